"""The smallest effect that a design can detect, before a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec
import polars as pl

from ..catalogue.instrument import Instrument
from ..catalogue.plugins import blamed
from ..catalogue.study import Catalogue, Study
from ..contracts import Metric
from ..contracts.errors import UsageError
from ..contracts.estimates import Estimate, with_neutral
from ..contracts.options import build_options
from ..contracts.words import BASIS, TWICE
from ..statistics.smallest_effect import PLANNED, SmallestEffectOptions, smallest_effects_of
from .estimates_frame import estimates_frame
from .planned_units import ComparedUnits, PlannedDesign, compared_units, planned_design
from .score import Scores
from .sensitivity_words import heading, in_lines
from .worded import ALPHA

FEWEST_RESAMPLES = 99
PLAN = "plan"
"""Names the assumptions in errors: they are options of `prejudge plan`."""
STATED = ("spread", "icc", "row_icc")
ASSUMED = ("pilot", *STATED, "power", "effects")
"""Assumptions about answers that are not yet collected."""


class Assumed(msgspec.Struct, frozen=True, kw_only=True):
    """Assumptions about answers that are not yet collected."""

    pilot: Scores | None = None
    """A run of the same study that gives the spread and correlation of each measure."""
    spread: float | None = None
    icc: float | None = None
    row_icc: float | None = None
    """For two crossed ways of clustering: correlation of units in one cluster of the second way."""
    power: float = 0.8
    """Power: the probability that a test detects an effect of the reported size."""
    effects: Mapping[str, float] = {}
    """Effects by measure, in its unit, for which the levels needed of each crossed facet are computed."""


class Detectable(msgspec.Struct, frozen=True, kw_only=True):
    """What a design can detect."""

    effects: dict[str, list[Estimate]]
    """By metric; metrics without stated units are left out."""
    levels: dict[str, float]
    """The level of each metric's tests."""
    power: float = 0.8
    notes: tuple[str, ...] = ()
    """Stated assumptions that were not used, and levels that the pilot did not ask about."""

    def __repr__(self) -> str:
        """Return the lines that the command line prints."""
        return "\n".join(self.lines)

    @property
    def frame(self) -> pl.DataFrame:
        """Return a frame with a row per effect: `value` (a distance from neutral), `unit`, `test`, `note`."""
        return estimates_frame([effect for effects in self.effects.values() for effect in effects])

    @property
    def lines(self) -> tuple[str, ...]:
        """Return everything in words."""
        found = [f"  {line}" for effects in self.effects.values() for line in in_lines(effects)]
        nothing = "  not known: no metric of this study states its units."
        return heading(self.power, self.levels), *(found or [nothing]), *self.notes


class _Question(msgspec.Struct, frozen=True, dict=True):
    """The results of one metric."""

    found: ComparedUnits
    options: SmallestEffectOptions
    places: list[Estimate]

    @cached_property
    def effects(self) -> list[Estimate]:
        """Return the effects of the estimates that there will be."""
        return self._effects()

    def _effects(self, **otherwise: Any) -> list[Estimate]:
        effects = smallest_effects_of(self.found.units, msgspec.structs.replace(self.options, **otherwise))
        return [self._noted(effect) for effect in _shown(self.places, effects)]

    def _noted(self, effect: Estimate) -> Estimate:
        if effect.value is None:
            return effect
        basis = "; ".join(filter(None, [str(effect.facts.get(BASIS, "")), self.found.note]))
        return effect.replace(facts=effect.facts | {BASIS: basis})

    def without_pilot(self) -> _Question:
        """Return the same without the assumptions that the pilot gives."""
        units = self.found.units.filter(pl.col("role") == PLANNED)
        return msgspec.structs.replace(self, found=msgspec.structs.replace(self.found, units=units))

    def heeds(self, name: str, **otherwise: Any) -> bool:
        """Return whether a stated assumption changes the result."""
        stated = self._effects(**otherwise) if otherwise else self.effects
        return stated != self._effects(**{**otherwise, name: None})


def ensure_apart(pilot: object, spread: float | None) -> None:
    """Refuse a spread beside a pilot."""
    if pilot is not None and spread is not None:
        raise UsageError(
            "--pilot gives the standard deviations, so --spread is not used. Remove one of them.",
            code="options.conflict",
        )


def smallest_effects(catalogue: Catalogue, study: Study, assumed: Assumed) -> Detectable:
    """Return per metric the smallest effects of what it designs, or else of its headline; nothing without units.

    The units are those of the planned trials. Where later stages depend on answers they are those of the pilot, with as
    many clusters as are planned where that can be counted.

    Raises:
        UsageError: the pilot is of another study, or no pilot is given and the requests depend on answers.
    """
    _ensure_fits(study, assumed.pilot)
    instrument = catalogue.instrument(study)
    if len(instrument.stages()) > 1 and assumed.pilot is None:
        raise UsageError(
            "the requests of the last stage depend on answers. Name a pilot run: --pilot RUN.",
            code="plan.pilot-missing",
        )
    levels = {name: float(getattr(own, "alpha", ALPHA)) for name, (_, own) in instrument.metrics.items()}
    asked = dict(_questions(catalogue, instrument, assumed, levels))
    every = list(asked.values())
    return Detectable(
        effects={name: question.effects for name, question in asked.items()},
        levels=levels,
        power=assumed.power,
        notes=(*_untold(every), *_unused(every, assumed)),
    )


def _ensure_fits(study: Study, pilot: Scores | None) -> None:
    if pilot is not None and pilot.manifest.study.probe != study.probe:
        of = pilot.manifest.study.name
        raise UsageError(
            f"run {pilot.run.name!r} is of study {of!r}, not of {study.name!r}. Name a run of the same study.",
            code="run.other-study",
        )


def _questions(
    catalogue: Catalogue, instrument: Instrument, assumed: Assumed, levels: dict[str, float]
) -> Iterator[tuple[str, _Question]]:
    stated = {name: getattr(assumed, name) for name in (*STATED, "power")}
    stated["effects"] = dict(assumed.effects)
    design = planned_design(instrument.stages(), assumed.pilot, instrument.design)
    for name, (metric, own) in instrument.metrics.items():
        options = build_options(PLAN, SmallestEffectOptions, {**stated, "alpha": levels[name]})
        with blamed(catalogue.plugins.offers["metric"][name].plugin, f"metric {name!r}"):
            if (found := compared_units(metric, own, design)) is not None:
                known = _estimates(metric, own, design, name)
                places = known if found.designed else with_neutral(metric.headline(known)) or known
                yield name, _Question(found, options, places)


def _estimates(metric: Metric, options: Any, design: PlannedDesign, name: str) -> list[Estimate]:
    """Return the estimates that there will be, with whatever values: for their units and their choice."""
    if design.pilot is not None and name in design.pilot.estimates:
        return design.pilot.estimates[name]
    if design.observations is None:
        return []
    if "resamples" in type(options).__struct_fields__:
        options = msgspec.structs.replace(options, resamples=FEWEST_RESAMPLES)
    return metric.compute(design.observations, options)


def _shown(places: list[Estimate], effects: list[Estimate]) -> Iterator[Estimate]:
    """Yield the effects of these estimates, in their unit where they have none of their own."""
    known = {_key(e): e for e in places}
    for effect in effects:
        if (estimate := known.get(_key(effect))) is not None:
            unit, neutral = (effect.unit, 0.0) if effect.unit else (estimate.unit, estimate.neutral)
            yield effect.replace(unit=unit, neutral=neutral)


def _key(estimate: Estimate) -> tuple[Any, ...]:
    return estimate.metric, tuple(sorted(estimate.group.items()))


def _untold(asked: list[_Question]) -> Iterator[str]:
    for what in dict.fromkeys(what for question in asked for what in question.found.untold):
        yield f"Nothing is known about {what}: the pilot did not ask about it."


def _unused(asked: list[_Question], assumed: Assumed) -> Iterator[str]:
    """Yield a line with the reason for each stated assumption that does not change the result."""
    for name in STATED:
        if asked and getattr(assumed, name) is not None and not any(question.heeds(name) for question in asked):
            yield f"--{name.replace('_', '-')} was not used: {_reason(name, asked)}."
    crossed = {e.metric for question in asked for e in question.effects if any(f.startswith(TWICE) for f in e.facts)}
    for name in assumed.effects.keys() - crossed:
        yield f"--effect {name} was not used: no measure of this name is tested over two crossed facets."


def _reason(name: str, asked: list[_Question]) -> str:
    told = any(effect.value is not None for question in asked for effect in question.effects)
    if not told and any(question.options.spread is not None for question in asked):
        return "nothing is known about this design (see above)"
    if name == "spread":
        return "each measure here has limits, or tests that need no spread"
    spread = [1.0 if question.options.spread is None else question.options.spread for question in asked]
    if not any(q.without_pilot().heeds(name, spread=s) for q, s in zip(asked, spread, strict=True)):
        rows = "no design here has rows that cross clusters"
        return rows if name == "row_icc" else "no two units here share a cluster"
    return "the pilot gives it" if told and asked[0].found.tried else "nothing can be computed without a spread"
