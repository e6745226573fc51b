"""The first trials of a stage, and the stop where their answers show that the model cannot do the task.

They are trials of the run, the first of its balanced sample, asked before the others and with the same keys: nothing of
them is asked twice. The test that looks at them watches the answers of the whole stage.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..catalogue.study import SUBJECT, Catalogue, Study
from ..contracts import Stage, Trial
from ..contracts.abilities import OPERATIONS
from ..contracts.canonical import encode, question_of
from ..contracts.errors import HaltedError
from ..contracts.records import AnyRequest, AnyResponse, Generate, Likelihood
from ..contracts.words import percent
from ..design import DesignedStage
from ..fitness import FIRST, FitAnswer, Watch, base_words, look_at, profile_of, remedies, unfit_words
from ..fitness.words import shown_answers
from ..store.bulk import batched
from .ending import CANNOT
from .reading import read_answer
from .windows import Source, Window

if TYPE_CHECKING:
    import polars as pl

LOG = logging.getLogger(__name__)
AT_ONCE = 10
"""First trials between two looks: a model that cannot do the task is asked two or three times as many."""
SPREAD = 4096
"""Trials over which the first ones are spread, where no design says which are balanced."""
KEPT = 200
"""Answers whose texts are kept for the sentences of a stop."""


class Remedy(NamedTuple):
    """What a stopped run can be told to do."""

    limit: int | None = None
    """Tokens that the study's own requests allow by its option `max_tokens`."""
    by_likelihood: str = ""
    """Assignment that has the study ask by likelihood; empty: it cannot, or the model gives none."""
    base: bool = False
    """Whether the model has no chat template."""


class FitnessGuard:
    """Watches the answers of a stage, and returns the reason to stop once there is one."""

    def __init__(self, stage: Stage, remedy: Remedy = Remedy()) -> None:  # noqa: B008 - a constant
        self._stage, self._remedy = stage, remedy
        self._watch = Watch()
        self._answers: list[FitAnswer] = []
        groups = stage.design.named("group") if isinstance(stage, DesignedStage) else ()
        self._factor = compared_factor(stage, groups, stage.factors)

    @property
    def decided(self) -> bool:
        """Return whether the first trials have shown enough."""
        return self._watch.verdict != "watch"

    def see(self, trial: Trial, request: AnyRequest, response: AnyResponse) -> HaltedError | None:
        """Receive the answer to a trial, as it is read; `request` is its last attempt."""
        prompt = hashlib.sha256(encode(question_of(request))).digest()
        if not self._watch.wants(prompt):
            return None
        try:
            outcome = read_answer(self._stage, trial.factors, response)
        except Exception as error:
            # A defect of the reader is reported when the run is scored; it costs no answer.
            LOG.debug("the reader raised", exc_info=error)
            return None
        answer = look_at(request, response, outcome)
        if not answer.answered and self._asks_again(request, answer):
            return None
        self._watch.see(prompt, str(trial.factors.get(self._factor, "")), answer)
        if len(self._answers) < KEPT:
            self._answers.append(answer)
        return self._stop() if self._watch.verdict == "stops" else None

    def _asks_again(self, request: AnyRequest, answer: FitAnswer) -> bool:
        rules = self._stage.rules
        return answer.status in rules.again and request.attempt + 1 < rules.attempts

    def _stop(self) -> HaltedError:
        bounds, profile = self._watch.bounds, profile_of(self._answers)
        shares = unfit_words(profile)
        return CANNOT.error(
            stage=self._stage.name,
            asked=self._watch.asked,
            answered=self._watch.answered,
            low=percent(bounds.low, 0),
            high=percent(bounds.high, 0),
            shares=f"{shares[:1].upper()}{shares[1:]}",
            examples=f"The first: {shown_answers(self._answers)}.",
            remedies=remedies(profile, self._remedy.limit, self._remedy.by_likelihood, base=self._remedy.base),
        )


def base_note(catalogue: Catalogue, study: Study) -> str:
    """Return, before anything is asked, that a model without a chat template is asked in words; empty: it is not.

    Raises:
        PrejudgeError: the settings of the model or its adapter are invalid.
    """
    if (model := study.roles.get(SUBJECT)) is None or (able := catalogue.abilities(model)).chat:
        return ""
    instrument = catalogue.instrument(study)
    if not any(stage.role == SUBJECT and stage.operation is Generate for stage in instrument.stages()):
        return ""
    return base_words(instrument.by_likelihood if OPERATIONS[Likelihood] in able.operations else "")


def compared_factor(stage: Stage, groups: Iterable[str], columns: Collection[str]) -> str:
    """Return the first declared group among some columns, else the first that `plan` counts by; empty: none."""
    return next((name for name in (*groups, *stage.counting.by) if name in columns), "")


def first_trials(stage: Stage, earlier: Mapping[str, pl.DataFrame], planned: int) -> list[Trial]:
    """Return the trials that are asked first: those of the balanced sample, or some that are spread over the stage.

    Args:
        stage: the stage.
        earlier: observations of the stages before.
        planned: number of its trials.
    """
    if isinstance(stage, DesignedStage) and type(stage).trials is DesignedStage.trials:
        return list(islice(stage.first(FIRST), FIRST))
    within = min(planned, SPREAD)
    wanted = {place * within // FIRST for place in range(FIRST)} if within > FIRST else set(range(within))
    return [trial for place, trial in enumerate(islice(stage.trials(earlier), within)) if place in wanted]


def asks_first(stage: Stage) -> bool:
    """Return whether a stage has first trials: where a model answers in words, it may not answer the question."""
    return stage.operation is Generate


async def ask_first(source: Source, trials: Sequence[Trial], guard: FitnessGuard) -> set[bytes]:
    """Ask the first trials until the guard has decided, and return their keys, those that failed among them.

    Raises:
        HaltedError: the model cannot do the task; what was answered is recorded as trials of the run.
    """
    asked: list[Trial] = []
    keys: set[bytes] = set()
    try:
        for chunk in batched(trials, AT_ONCE):
            asked += chunk
            window = Window(source, 0, chunk)
            await window.answer()
            keys |= _keys_of(window)
            for trial, request, response in await window.answered():
                if (stop := guard.see(trial, request, response)) is not None:
                    raise stop
            if guard.decided:
                break
    except BaseException:
        await _record(Window(source, 0, asked))
        raise
    return keys


async def _record(window: Window) -> None:
    """Record trials that were answered, so that the run can be scored, and its screen says why it was stopped."""
    await window.look_up()
    if window.answers:
        await window.record()


def _keys_of(window: Window) -> set[bytes]:
    """Return the keys of all attempts."""
    requests = (
        msgspec.structs.replace(keyed.request, attempt=attempt)
        for keyed in window.keyed
        for attempt in range(keyed.request.attempt + 1)
    )
    return {window.scheduler.key(request).key for request in requests}
