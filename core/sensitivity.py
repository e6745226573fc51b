"""The smallest effect a design can detect, before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from .contracts import Metric, Stage
from .errors import UsageError
from .estimates import Estimate
from .options import build_options
from .plugins import blamed
from .study import STAGE, Catalogue, Study

if TYPE_CHECKING:
    from .scoring import Scores

SMALLEST = "smallest-effect"
LINES = 4
"""Lines per measure and test, at most; more kinds of groups than that share one."""
FEWEST_RESAMPLES = 99


class Assumed(msgspec.Struct, frozen=True, kw_only=True):
    """What is taken for known of answers that nobody gave yet."""

    pilot: Scores | None = None
    """A run of the same study: its spread and correlation, measure by measure."""
    spread: float | None = None
    icc: float | None = None
    row_icc: float | None = None
    """Where two ways of clustering cross: correlation of units that share the other way."""
    power: float = 0.8
    """Chance with which a test finds the effects that are given."""


def smallest_effects(catalogue: Catalogue, study: Study, assumed: Assumed) -> dict[str, list[Estimate]]:
    """Return per metric the smallest effects of what it designs, or else of its headline; nothing without units.

    The units are those of the planned trials. Where later stages depend on answers they are those of the pilot.

    Raises:
        UsageError: the pilot is of another study, or there is none and what is asked depends on answers.
    """
    _ensure_fits(study, assumed.pilot)
    instrument = catalogue.instrument(study)
    stages = instrument.stages()
    planned = _planned(stages[0], assumed.pilot) if len(stages) == 1 else None
    if planned is None and assumed.pilot is None:
        raise UsageError("what the last stage asks depends on answers. Name a run to go by: --pilot RUN.")
    smallest: Metric = catalogue.plugins.load("metric", SMALLEST)()
    stated = {name: getattr(assumed, name) for name in ("spread", "icc", "row_icc", "power")}
    options = build_options(SMALLEST, smallest.options, stated)
    found = {}
    for name, (metric, own) in instrument.metrics.items():
        with blamed(catalogue.plugins.offers["metric"][name].plugin, f"metric {name!r}"):
            designed, frames = _compared(metric, own, planned, assumed.pilot)
            if frames:
                known = _estimates(metric, own, planned, assumed.pilot, name)
                effects = smallest.compute(_frame(frames), options)
                places = known if designed else metric.headline(known) or known
                found[name] = list(_shown(places, effects))
    return found


def _ensure_fits(study: Study, pilot: Scores | None) -> None:
    if pilot is not None and pilot.manifest.study.probe != study.probe:
        of = pilot.manifest.study.name
        raise UsageError(f"run {pilot.run.name!r} is of study {of!r}, not of {study.name!r}. Name a run of its kind.")


def _planned(stage: Stage, pilot: Scores | None) -> pl.DataFrame:
    """Return what the observations will be, but for the answers."""
    rows = [{**trial.factors, "trial": trial.id} for trial in stage.trials({})]
    frame = pl.DataFrame(rows, infer_schema_length=None, orient="row")
    types = {} if pilot is None else dict(pilot.last.schema)
    empty = [pl.lit(None, dtype=types.get(name, pl.Null)).alias(name) for name in (*stage.outcomes, "reason")]
    return frame.with_columns(
        *empty,
        pl.lit("planned").alias("status"),
        pl.lit(stage.name).alias(STAGE),
        pl.lit(None, dtype=pl.Binary).alias("key"),
    )


def _compared(
    metric: Metric, options: Any, planned: pl.DataFrame | None, pilot: Scores | None
) -> tuple[bool, dict[str, pl.DataFrame]]:
    """Return whether the metric says what its tests compare, and these units, or else its own, by role."""
    seen = None if pilot is None else pilot.seen_by(metric)
    asked = {"planned": seen if planned is None else planned, "pilot": seen}
    for designed, units in ((True, metric.designs), (False, metric.units)):
        found = {role: units(frame, options) for role, frame in asked.items() if frame is not None}
        there = {role: frame for role, frame in found.items() if frame is not None and not frame.is_empty()}
        if there:
            return designed, there
    return False, {}


def _frame(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    parts = [frame.with_columns(pl.lit(role).alias("role")) for role, frame in frames.items()]
    return pl.concat(parts, how="diagonal_relaxed")


def _estimates(
    metric: Metric, options: Any, planned: pl.DataFrame | None, pilot: Scores | None, name: str
) -> list[Estimate]:
    """Return the estimates that there will be, with whatever values: for their units and their choice."""
    if pilot is not None and name in pilot.estimates:
        return pilot.estimates[name]
    if planned is None:
        return []
    if "resamples" in type(options).__struct_fields__:
        options = msgspec.structs.replace(options, resamples=FEWEST_RESAMPLES)
    return metric.compute(planned, options)


def _shown(places: list[Estimate], effects: list[Estimate]) -> Iterator[Estimate]:
    """Yield the effects of these estimates, in their unit where they have none of their own."""
    known = {_key(e): e for e in places}
    for effect in effects:
        if (estimate := known.get(_key(effect))) is not None:
            unit, neutral = (effect.unit, 0.0) if effect.unit else (estimate.unit, estimate.neutral)
            yield msgspec.structs.replace(effect, unit=unit, neutral=neutral)


def _key(estimate: Estimate) -> tuple[Any, ...]:
    return estimate.metric, tuple(sorted(estimate.group.items()))


def in_lines(effects: list[Estimate]) -> Iterator[str]:
    """Yield one line per measure and test: the range of its smallest effects over groups, and what they rest on.

    Where these are a few kinds, each has a line of its own; else the whole study has, and its groups by their factors.
    """
    for measure, test in dict.fromkeys((e.metric, e.test) for e in effects):
        mine = [e for e in effects if (e.metric, e.test) == (measure, test)]
        defined = [e for e in mine if e.value is not None]
        if not defined:
            yield f"{measure}: {mine[0].note}"
            continue
        undefined = len(mine) - len(defined)
        some = f"; {undefined} of {len(mine)} undefined" if undefined else ""
        few = len({e.note for e in defined}) <= LINES
        parts: dict[Any, list[Estimate]] = {}
        for e in defined:
            parts.setdefault(e.note if few else tuple(e.group), []).append(e)
        for part in parts.values():
            label = _label(measure, part, defined) if few else ", by ".join([measure, *part[0].group])
            yield f"{label}: {_reach(part)} ({_rests_on(test, part)}{some})"


def _label(measure: str, part: list[Estimate], every: list[Estimate]) -> str:
    """Return the measure, with what the groups of this part alone have in common."""
    fixed, known = ({f for f in e[0].group.items() if all(f in o.group.items() for o in e)} for e in (part, every))
    return ", ".join([measure, *(f"{name} {level}" for name, level in sorted(fixed - known, key=str))])


def _reach(part: list[Estimate]) -> str:
    values = [e.value for e in part if e.value is not None]
    low, high = (f"{value:.3g}" for value in (min(values), max(values)))
    return f"{low if low == high else f'{low} to {high}'} {part[0].unit}"


def _rests_on(test: str, part: list[Estimate]) -> str:
    notes = dict.fromkeys(e.note for e in part)
    return "; ".join(filter(None, [test, next(iter(notes)) if len(notes) == 1 else "by group"]))
