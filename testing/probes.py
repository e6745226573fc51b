"""`ProbeContract`: the tests that every probe must pass."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from itertools import islice
from typing import Any, ClassVar
from unittest import SkipTest

import msgspec
import polars as pl

from ..core.contracts import LargeStage, Options, Probe, Stage, Trial, Unreadable
from ..core.contracts.abilities import OPERATIONS
from ..core.contracts.canonical import decode_request, encode, encode_response
from ..core.contracts.options import build_options
from ..core.contracts.probe import count_trials, example_trials
from ..core.contracts.records import AnyResponse, Scalar
from ..core.engine.tokens import weigh
from ._hostile import HOSTILE
from .observing import Answer, guesses, observe

REASON = 200
RESERVED = {"status", "reason", "key", "trial", "stage", "response", "first"}


class ProbeContract:
    """The rules, one test each. Set `make`; the other settings are for probes that need them."""

    make: ClassVar[Callable[[], Probe]]
    """Make the probe."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Options by name, such as a small `per_cell`, so that there are few trials."""
    answer: ClassVar[Answer] = staticmethod(guesses())
    """The simulated answers, so that later stages have something to ask about."""
    most: ClassVar[int] = 300
    """Number of trials of each stage that are checked."""

    def _stages(self) -> list[Stage]:
        probe = type(self).make()
        stages = list(probe.stages(build_options("the probe", probe.options, dict(self.options))))
        assert stages, "a probe needs at least one stage"
        return stages

    def _asked(self) -> Iterator[tuple[Stage, list[Trial]]]:
        """Yield each stage with its first trials."""
        probe = type(self).make()
        options = build_options("the probe", probe.options, dict(self.options))
        earlier = observe(probe, options, type(self).answer, self.most)
        for stage in probe.stages(options):
            yield stage, list(islice(stage.trials(earlier), self.most))

    def test_options_are_strict(self) -> None:
        """The options are frozen, refuse unknown names, and can be built from the class's `options`."""
        kind = type(self).make().options
        assert issubclass(kind, Options), f"{kind.__name__} is no subclass of prejudge.Options"
        config = kind.__struct_config__
        assert config.frozen and config.forbid_unknown_fields, (
            f"{kind.__name__} must be frozen and forbid unknown fields"
        )
        build_options("the probe", kind, dict(self.options))

    def test_stages_declare_what_they_are(self) -> None:
        """Names are unique, operations are known, and counts use declared factors."""
        stages = self._stages()
        names = [stage.name for stage in stages]
        assert len(set(names)) == len(names), f"two stages have one name: {names}"
        for stage in stages:
            assert stage.operation in OPERATIONS, f"stage {stage.name!r}: {stage.operation!r} is no request"
            assert stage.role and stage.rules.attempts >= 1 and stage.counting.trials >= 1
            odd_again = set(stage.rules.again) - {"unreadable", "refused", "filtered"}
            assert not odd_again, f"stage {stage.name!r}: `again` names {sorted(odd_again)}, which are no statuses"
            both = set(stage.factors) & set(stage.outcomes)
            assert not both, f"stage {stage.name!r}: {sorted(both)} are both factors and outcomes"
            taken = {*stage.factors, *stage.outcomes} & RESERVED
            assert not taken, f"stage {stage.name!r}: the names {sorted(taken)} are reserved"
            odd = set(stage.counting.by) - set(stage.factors)
            assert not odd, f"stage {stage.name!r}: `counting` names {sorted(odd)}, which are no factors"

    def test_trials_fit_their_stage(self) -> None:
        """Ids are unique, factors are the declared ones in order, and requests are of the declared operation."""
        for stage, trials in self._asked():
            ids = [trial.id for trial in trials]
            assert len(set(ids)) == len(ids), f"stage {stage.name!r}: two trials have one id"
            for trial in trials:
                assert tuple(trial.factors) == tuple(stage.factors), f"{trial.id}: factors are {tuple(trial.factors)}"
                flat = all(isinstance(value, Scalar) for value in trial.factors.values())
                assert flat, f"{trial.id}: a factor is not a text, number or boolean: {trial.factors}"
                assert isinstance(trial.request, stage.operation), (
                    f"{trial.id}: requests {type(trial.request).__name__}"
                )
                assert trial.request.attempt == 0, f"{trial.id}: only the run may set `attempt`"

    def test_first_stage_asks_something(self) -> None:
        """There is at least one trial, and `count` says how many there are."""
        first = self._stages()[0]
        made = sum(1 for _ in first.trials({}))
        assert made, "the first stage asks nothing"
        assert count_trials(first, {}) == made, f"`count` says {count_trials(first, {})}; there are {made} trials"

    def test_trials_that_stand_for_all_count_like_all(self) -> None:
        """`alike` gives the same cells, and the same different requests, short and long, as the trials."""
        first = self._stages()[0]
        assert _counted(first, example_trials(first, {})) == _counted(first, ((trial, 1) for trial in first.trials({})))

    def test_requests_can_be_stored(self) -> None:
        """A stored request is read back unchanged."""
        for _, trials in self._asked():
            for trial in trials:
                assert decode_request(encode(trial.request)) == trial.request, trial.id

    def test_trials_are_made_the_same_way_again(self) -> None:
        """The same options give the same trials, independently of random numbers drawn elsewhere."""
        random.seed(1)
        first = [(stage.name, trials) for stage, trials in self._asked()]
        random.seed(2)
        random.random()
        second = [(stage.name, trials) for stage, trials in self._asked()]
        for (stage, one), (_, two) in zip(first, second, strict=True):
            for a, b in zip(one, two, strict=True):
                assert a == b, f"stage {stage!r}: made twice, a trial differs:\n{a!r}\n{b!r}"

    def test_trials_are_the_same_in_another_process(self) -> None:
        """No trial depends on the order of a set, or on anything else that differs between processes."""
        kind = type(type(self).make())
        elsewhere = _digest_elsewhere(kind, self.options, self.most)
        first = kind().stages(build_options("the probe", kind.options, dict(self.options)))[0]
        here = hashlib.sha256(b"".join(encode(trial) for trial in islice(first.trials({}), self.most)))
        assert here.hexdigest() == elsewhere, "the trials of the first stage differ from process to process"

    def test_trials_can_be_made_twice_from_one_stage(self) -> None:
        """Counting a stage or reading its first trial does not change a later reading."""
        first = self._stages()[0]
        once = [trial.id for trial in islice(first.trials({}), self.most)]
        count_trials(first, {})
        next(iter(first.trials({})), None)
        assert [trial.id for trial in islice(first.trials({}), self.most)] == once

    def test_reading_hostile_answers_never_fails(self) -> None:
        """Every answer is read as the declared outcomes, or is unreadable with a short reason."""
        for stage, trials in self._asked():
            for trial in trials[:: max(1, len(trials) // 20)]:
                for response in (*HOSTILE[stage.operation](trial.request), type(self).answer(trial.request)):
                    _check_reading(stage, trial, response)

    def test_reading_is_pure(self) -> None:
        """Reading twice gives the same result and does not change the factors."""
        for stage, trials in self._asked():
            for trial in trials[:: max(1, len(trials) // 20)]:
                response, factors = type(self).answer(trial.request), dict(trial.factors)
                first, second = stage.read(factors, response), stage.read(factors, response)
                assert first == second, f"{trial.id}: read twice, {first!r} and {second!r}"
                assert factors == trial.factors, f"{trial.id}: reading changed the factors"

    def test_reading_many_at_once_agrees_with_reading_one(self) -> None:
        """`read_frame`, where there is one, gives what `read` gives."""
        for stage, trials in self._asked():
            answers = [type(self).answer(trial.request) for trial in trials]
            frame = pl.DataFrame([trial.factors for trial in trials], infer_schema_length=None).with_columns(
                pl.Series("response", [encode_response(answer).decode() for answer in answers], dtype=pl.String)
            )
            quick = stage.read_frame(frame) if trials and isinstance(stage, LargeStage) else None
            if quick is None:
                continue
            assert set(quick.columns) >= set(stage.outcomes) and quick.height == len(trials)
            for trial, answer, row in zip(trials, answers, quick.iter_rows(named=True), strict=True):
                one = stage.read(trial.factors, answer)
                if not isinstance(one, Unreadable):
                    assert {name: row[name] for name in stage.outcomes} == dict(one), trial.id

    def test_first_trials_come_before_the_last_are_made(self) -> None:
        """`trials` is lazy: it gives an iterator."""
        trials = self._stages()[0].trials({})
        assert iter(trials) is trials, "`trials` gives a list; yield the trials one by one"


ELSEWHERE = """
import hashlib, json, sys
from importlib import import_module
from itertools import islice
from prejudge.core.contracts.canonical import encode
from prejudge.core.contracts.options import build_options
module, name, options, most = json.loads(sys.argv[1])
probe = getattr(import_module(module), name)()
first = probe.stages(build_options("the probe", probe.options, options))[0]
print(hashlib.sha256(b"".join(encode(trial) for trial in islice(first.trials({}), most))).hexdigest())
"""


def _digest_elsewhere(probe: type[Probe], options: Mapping[str, Any], most: int) -> str:
    """Return a digest of the first stage's trials, made by a new interpreter whose sets have another order."""
    if not hasattr(sys.modules.get(probe.__module__), probe.__name__) or find_spec(probe.__module__) is None:
        raise SkipTest(f"{probe.__module__}.{probe.__qualname__} cannot be imported by another process")
    told = json.dumps([probe.__module__, probe.__name__, dict(options), most])
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, told], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _check_reading(stage: Stage, trial: Trial, response: AnyResponse) -> None:
    shown = repr(response)[:REASON]
    try:
        outcome = stage.read(trial.factors, response)
    except Exception as error:
        raise AssertionError(f"stage {stage.name!r}, {trial.id}: {shown} cannot be read: {error!r}") from error
    if isinstance(outcome, Unreadable):
        assert 0 < len(outcome.reason) <= REASON, f"{trial.id}: {shown}: a reason of {len(outcome.reason)} characters"
        return
    assert set(outcome) == set(stage.outcomes), f"{trial.id}: {shown} gives {sorted(outcome)}"
    flat = all(isinstance(value, Scalar) for value in outcome.values())
    assert flat, f"{trial.id}: {shown}: an outcome is not a text, number or boolean: {msgspec.to_builtins(outcome)}"


def _counted(stage: Stage, groups: Iterable[tuple[Trial, int]]) -> tuple[Counter[Any], Counter[Any]]:
    """Return the trials by cell, and the different requests by what a model reads of them (characters, images)."""
    cells: Counter[Any] = Counter()
    requests: dict[bytes, tuple[Any, int]] = {}
    for trial, times in groups:
        cells[tuple(trial.factors[name] for name in stage.counting.by)] += times
        requests[encode(trial.request)] = weigh(trial.request), times
    read: Counter[Any] = Counter()
    for weight, times in requests.values():
        read[weight] += times
    return cells, read
