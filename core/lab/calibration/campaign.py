"""A calibration: many simulated studies over the gallery, each recorded when it is done, so that it can be resumed."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from ...catalogue.registry import Calibration, TrainedDesign, locate
from ...catalogue.study import SUBJECT, Catalogue, Study
from ...contracts.adapter import ModelAdapter
from ...contracts.errors import DataError, UsageError
from ...contracts.estimates import Estimate
from ...contracts.files import replaced_whole
from ...contracts.options import build_options
from ...contracts.records import Scalar
from .bench import Bench
from .changes import Answers, answers_of, changed_share
from .gallery import FAIR, Null, is_preferring

COMPARED = (0, 1)
"""Seeds of the models whose answers are compared with those of `fair`."""


class Cell(NamedTuple):
    """A kind of model, and how many studies it has."""

    null: str
    strength: float
    studies: int


class Number(msgspec.Struct, frozen=True, array_like=True):
    """One number of the headline of one study."""

    measure: str
    group: dict[str, Scalar]
    value: float | None
    low: float | None
    high: float | None
    neutral: float | None
    shown: bool | None
    """None: it has no verdict."""
    label: str = ""
    unit: str = ""

    @classmethod
    def of(cls, estimate: Estimate, discoveries: Mapping[str, Mapping[str, Scalar]] | None = None) -> Number:
        """Return the number of an estimate; one of `discoveries` counts what is significant, and is shown above 0."""
        shown = None if estimate.verdict is None else estimate.shown
        counted = (discoveries or {}).get(estimate.metric)
        if shown is None and counted is not None and counted.items() <= estimate.group.items():
            shown = bool(estimate.value)
        ends = (estimate.value, estimate.low, estimate.high, estimate.neutral)
        return cls(estimate.metric, estimate.group, *ends, shown, estimate.label, estimate.unit)


class Done(msgspec.Struct, frozen=True):
    """One study."""

    null: str
    strength: float
    seed: int
    numbers: tuple[Number, ...]
    missing: float
    """Share of trials without a readable answer."""
    seconds: float
    """Processor time."""
    changed: float | None = None
    """Share of answers that differ from those of `fair`, of the first models of the gallery; None: not compared."""


class Opening(msgspec.Struct, frozen=True):
    """The first line of a record: what all its studies have in common."""

    study: Study
    gallery: dict[str, Null]
    digests: dict[str, str]
    settings: dict[str, Any] = {}
    """Of every model of the gallery: the words of the study."""
    trained: TrainedDesign = TrainedDesign()
    """The studies of trained models."""
    entire: dict[str, Any] = {}
    """Options of the studies of models that prefer levels, where these have the default size."""

    @property
    def alike(self) -> bytes:
        """Return what must be the same, that studies belong together; models may be added to the gallery."""
        return msgspec.json.encode(msgspec.structs.replace(self, gallery={}))


def amounts_of(calibration: Calibration) -> frozenset[str]:
    """Return the options of a stated design that say how much is asked: those that are numbers or lists."""
    stated = calibration.options.items()
    numbers = {n for n, v in stated if isinstance(v, int | float | list) and not isinstance(v, bool)}
    # An option of a metric says how estimates are made.
    return frozenset(name for name in (*numbers, *calibration.sizes) if "." not in name)


class Campaign:
    """The calibration of one study."""

    def __init__(
        self,
        catalogue: Catalogue,
        name: str,
        assignments: Mapping[str, Any],
        gallery: Mapping[str, Null],
        *,
        entire: bool = False,
    ) -> None:
        """Make the study at its stated design; `assignments` override that.

        Args:
            catalogue: where the study is.
            name: its name.
            assignments: options besides the stated ones.
            gallery: the models by name.
            entire: whether it has its default size, and of its headline only what has a verdict.

        Raises:
            UsageError: a role has no model.
        """
        self.catalogue, self.gallery = catalogue, dict(gallery)
        name = catalogue.adopt(name)
        self.entry = catalogue.registry.study(name)
        own = self.entry.calibration
        self.stated = {key: value for key, value in own.options.items() if not (entire and key in amounts_of(own))}
        """Options of the study beside those that are assigned."""
        self.stand_in = catalogue.registry.defaults["calibrate"]
        """The model by which the study is made; the gallery's take its place."""
        like = catalogue.registry.model(own.like or self.stand_in).settings
        self._assignments = dict(assignments)
        self.words = {key: locate(value, None) for key, value in (like | own.settings).items() if key != own.planted}
        roles = {SUBJECT: self.stand_in} | own.roles
        self.study = catalogue.study(name, roles, self.options)
        needed = {stage.role for stage in catalogue.instrument(self.study).every_stage() if not stage.rules.optional}
        if lacking := {role: self.stand_in for role in needed if role not in self.study.roles}:
            self.study = catalogue.study(name, roles | lacking, self.options)
        self.bench = Bench(catalogue, self.study, own.discoveries if entire else None)
        self._others: dict[str, ModelAdapter] = {}
        self._fair_answers: dict[int, Answers] = {}
        self._fair: dict[int, Done] = {}

    @property
    def options(self) -> dict[str, Any]:
        """Return the options that are set, those of metrics by `METRIC.option`."""
        return self.stated | self._assignments

    def of(self, null: str) -> Campaign:
        """Return the calibration by which a model is asked: at the default size if it prefers levels, where it can.

        It can where such answers are computed, so that a study of the default size takes about a second.
        """
        return self.entire if is_preferring(null) else self

    @cached_property
    def entire(self) -> Campaign:
        """Return the calibration at the default size; this one where that is the same, or answers are not computed."""
        preferring = next((null for name, null in self.gallery.items() if is_preferring(name)), None)
        amounts = amounts_of(self.entry.calibration)
        if preferring is None or not self.stated.keys() & amounts - self._assignments.keys():
            return self
        entire = Campaign(self.catalogue, self.study.name, self._assignments, self.gallery, entire=True)
        return entire if entire.bench.is_computed(entire.model(preferring, 0)) else self

    @property
    def planted(self) -> str:
        """Return the setting by which a bias is planted."""
        return self.entry.calibration.planted

    def subject(self, null: Null) -> Null:
        """Return a model of the gallery as it is asked: planted by the design of a study that names no words."""
        if self.entry.calibration != Calibration():
            return null
        planting = next((model.planting for name, model in self.gallery.items() if is_preferring(name)), {})
        return msgspec.structs.replace(null, settings=planting | null.settings)

    def settings(self, null: Null, seed: int, strength: float = 0.0) -> dict[str, Any]:
        """Return the settings of a model of the gallery that knows the words of the study.

        Raises:
            UsageError: no bias can be planted in this study.
        """
        words = self.words if null.adapter == self.gallery[FAIR].adapter else {}
        if strength and not self.planted:
            raise UsageError(f"no bias can be planted in {self.study.name!r}.", code="calibration.planted")
        return {"seed": seed} | words | null.settings | ({self.planted: strength} if strength else {})

    def model(self, null: Null, seed: int, strength: float = 0.0) -> ModelAdapter:
        """Return a model of the gallery that knows the words of the study."""
        kind = self.catalogue.plugins.load("adapter", null.adapter)
        settings = self.settings(null, seed, strength)
        return kind(build_options(f"model of the gallery ({null.adapter})", kind.options, settings))  # type: ignore[no-any-return]

    def _models(self, null: str, seed: int, strength: float) -> dict[str, ModelAdapter]:
        models = {}
        for role, given in self.study.roles.items():
            name = self.gallery[null].roles.get(role, given)
            if role == SUBJECT:
                models[role] = self.model(self.subject(self.gallery[null]), seed, strength)
            elif name == self.stand_in:
                models[role] = self.model(self.gallery[FAIR].with_settings(self.gallery[null].others), seed)
            else:
                models[role] = self.other(name)
        return models

    def other(self, name: str) -> ModelAdapter:
        """Return the model of another role, the same for all studies; the stand-in knows the words of the study."""
        if name not in self._others:
            fair = self.gallery[FAIR]
            self._others[name] = self.model(fair, 0) if name == self.stand_in else self.catalogue.adapter(name)
        return self._others[name]

    def with_options(self, given: Mapping[str, Any], roles: Mapping[str, str]) -> Study:
        """Return the study with other options, those of metrics by `METRIC.option`, and other models."""
        return self.catalogue.study(self.study.name, self.study.roles | dict(roles), self.options | dict(given))

    def observe(self, null: str, seed: int, strength: float = 0.0) -> dict[str, pl.DataFrame]:
        """Return the observations of one study."""
        return asyncio.run(self.bench.observe(self._models(null, seed, strength)))

    def one(self, null: str, seed: int, strength: float = 0.0) -> Done:
        """Ask, read and measure one study; the first ones of a model are compared with those of `fair`."""
        if self.of(null) is not self:
            return self.entire.one(null, seed, strength)
        start = time.process_time()
        observations = self.observe(null, seed, strength)
        done = self._measured(self.bench, observations, Done(null, strength, seed, (), 0.0, 0.0), check=seed == 0)
        done = msgspec.structs.replace(done, seconds=time.process_time() - start)
        if seed not in COMPARED:
            return done
        if (null, strength) == (FAIR, 0.0):
            self._fair_answers[seed] = answers_of(observations)
            return done
        return msgspec.structs.replace(done, changed=self._changed(observations, seed))

    def fair(self, seed: int) -> Done:
        """Return a study of `fair`, which is not recorded."""
        if seed not in self._fair:
            self._fair[seed] = self.one(FAIR, seed)
        return self._fair[seed]

    def _changed(self, observations: Mapping[str, pl.DataFrame], seed: int) -> float:
        if seed not in self._fair_answers:
            self._fair_answers[seed] = answers_of(self.observe(FAIR, seed))
        return changed_share(answers_of(observations), self._fair_answers[seed])

    def measured(self, bench: Bench, models: Mapping[str, ModelAdapter], name: str, seed: int, strength: float) -> Done:
        """Ask these models, read and measure; `name` and `seed` are what the study is recorded by.

        The items of such studies differ, and so may their numbers: all is computed.
        """
        start = time.process_time()
        observations = asyncio.run(bench.observe(models))
        done = self._measured(bench, observations, Done(name, strength, seed, (), 0.0, 0.0), check=None)
        return msgspec.structs.replace(done, seconds=time.process_time() - start)

    def _measured(
        self, bench: Bench, observations: Mapping[str, pl.DataFrame], done: Done, *, check: bool | None
    ) -> Done:
        estimates = bench.measure(observations, check=check)
        discoveries = self.entry.calibration.discoveries
        numbers = tuple(Number.of(estimate, discoveries) for estimate in estimates)
        trials = sum(frame.height for frame in observations.values())
        read = sum(frame.filter(pl.col("status") == "ok").height for frame in observations.values())
        missing = 1 - read / trials if trials else 0.0
        return msgspec.structs.replace(done, numbers=numbers, missing=missing)

    def opening(self, digests: dict[str, str]) -> Opening:
        """Return the first line of the record: without the study's words, and with names of files for their paths."""
        told = {name: getattr(self.study, name) for name in ("name", "probe", "options", "metrics", "roles")}
        words = {key: Path(one).name if Path(str(one)).is_absolute() else one for key, one in self.words.items()}
        entire = {} if self.entire is self else self.entire.study.options
        return Opening(Study(**told), self.gallery, digests, words, self.entry.calibration.trained, entire)


def alike(one: Done, other: Done) -> bool:
    """Return whether two studies found the same values, but for rounding.

    Intervals of equal answers may differ: prompts are resampled in the order of their keys, which are a model's own.
    """
    if [(n.measure, n.group) for n in one.numbers] != [(n.measure, n.group) for n in other.numbers]:
        return False
    pairs = [(a.value, b.value) for a, b in zip(one.numbers, other.numbers, strict=True)]
    return one.missing == other.missing and all(
        a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)) for a, b in pairs
    )


class Journal:
    """The record of a calibration: a JSON line for each study that is done.

    Its file is written with the first study, so that a call that fails before leaves nothing behind.
    """

    def __init__(self, path: Path, opening: Opening) -> None:
        """Begin a record, or take up the one in the file.

        Raises:
            DataError: the file is no record.
            UsageError: it is of other code, options or data.
        """
        self.path, self._opening = path, opening
        self.done: dict[tuple[str, float, int], Done] = {}
        if self._begun:
            self._read(opening)

    @property
    def _begun(self) -> bool:
        return self.path.exists() and self.path.stat().st_size > 0

    def made(self, campaign: Campaign, null: str, seed: int, strength: float = 0.0) -> Done:
        """Return one study, made now if it is not done."""
        if (done := self.done.get((null, strength, seed))) is None:
            self.add(done := campaign.one(null, seed, strength))
        return done

    def touches(self, campaign: Campaign, null: str) -> bool:
        """Return whether a null changes the headline of a study against `fair`, in one of two models at least."""
        own = campaign.gallery[null]
        if own.roles and not own.settings and own.roles.keys().isdisjoint(campaign.study.roles):
            return False  # nor is its model loaded
        entire = campaign.of(null)
        fair = (self.made(campaign, FAIR, seed) if entire is campaign else entire.fair(seed) for seed in COMPARED)
        return any(not alike(self.made(campaign, null, seed), one) for seed, one in zip(COMPARED, fair, strict=True))

    def add(self, done: Done) -> None:
        """Record one study."""
        if not self._begun:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_bytes(msgspec.json.encode(self._opening) + b"\n")
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(done) + b"\n")
        self.done[done.null, done.strength, done.seed] = done

    def of(self, cell: Cell) -> list[Done]:
        """Return the studies of a cell that are done, by seed."""
        found = (self.done.get((cell.null, cell.strength, seed)) for seed in range(cell.studies))
        return [one for one in found if one is not None]

    def _read(self, opening: Opening) -> None:
        first, *rest = self.path.read_bytes().split(b"\n")
        try:
            before = msgspec.json.decode(first, type=Opening)
            # A line that was being written when the process ended is asked again.
            lines = [msgspec.json.decode(line, type=Done) for line in rest[:-1] if line]
        except msgspec.MsgspecError as error:
            raise DataError(f"{str(self.path)!r} is no record of a calibration: {error}.", code="data.syntax") from None
        if before.alike != opening.alike:
            raise UsageError(
                f"{str(self.path)!r} is of another design, gallery or version of the study. Remove it to begin anew, "
                "or name another folder: --out DIR",
                code="calibration.other",
            )
        if rest[-1]:
            whole = self.path.stat().st_size - len(rest[-1])
            with self.path.open("r+b") as file:
                file.truncate(whole)
        other = {name for name, null in before.gallery.items() if null != opening.gallery.get(name, null)}
        self.done = {(one.null, one.strength, one.seed): one for one in lines if one.null not in other}
        if before.gallery != (wanted := before.gallery | opening.gallery):
            kept = [msgspec.structs.replace(opening, gallery=wanted), *self.done.values()]
            with replaced_whole(self.path) as beside:
                beside.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in kept))


def pending(journal: Journal, cells: Iterable[Cell]) -> Iterator[tuple[str, float, int]]:
    """Yield null, strength and seed of each study that is not done."""
    for cell in cells:
        for seed in range(cell.studies):
            if (cell.null, cell.strength, seed) not in journal.done:
                yield cell.null, cell.strength, seed


def cells_of(nulls: Sequence[str], strengths: Sequence[float], studies: int, planted: int) -> list[Cell]:
    """Return the cells of a calibration: every null, and biases planted in `fair`, then in every other null."""
    biased = [Cell(null, strength, planted) for null in nulls for strength in strengths if strength]
    return [*(Cell(null, 0.0, studies) for null in nulls), *biased]
