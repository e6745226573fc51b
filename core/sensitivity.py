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
FEWEST_RESAMPLES = 99


class Assumed(msgspec.Struct, frozen=True, kw_only=True):
    """What is taken for known of answers that nobody gave yet."""

    pilot: Scores | None = None
    """A run of the same study: its spread and correlation, measure by measure."""
    spread: float | None = None
    icc: float | None = None

    @property
    def any(self) -> bool:
        """Say whether there is anything to go by."""
        return self.pilot is not None or self.spread is not None or self.icc is not None


def smallest_effects(catalogue: Catalogue, study: Study, assumed: Assumed) -> dict[str, list[Estimate]]:
    """Return per metric the smallest effects of its headline estimates; nothing for a metric without units.

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
    options = build_options(SMALLEST, smallest.options, {"spread": assumed.spread, "icc": assumed.icc})
    found = {}
    for name, (metric, own) in instrument.metrics.items():
        with blamed(catalogue.plugins.offers["metric"][name].plugin, f"metric {name!r}"):
            frames = dict(_units(metric, own, planned, assumed.pilot))
            if frames:
                known = _estimates(metric, own, planned, assumed.pilot, name)
                effects = smallest.compute(_frame(frames), options)
                found[name] = list(_shown(metric, known, effects))
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


def _units(
    metric: Metric, options: Any, planned: pl.DataFrame | None, pilot: Scores | None
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the units of the design and those of the pilot, by role."""
    tried = None if pilot is None else metric.units(pilot.seen_by(metric), options)
    units = metric.units(planned, options) if planned is not None else tried
    for role, frame in (("planned", units), ("pilot", tried)):
        if frame is not None and not frame.is_empty():
            yield role, frame


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


def _shown(metric: Metric, known: list[Estimate], effects: list[Estimate]) -> Iterator[Estimate]:
    """Yield the effects of the headline, in the unit of their estimate; of all where there is no headline."""
    places = {_key(e): e for e in metric.headline(known) or known}
    for effect in effects:
        if (estimate := places.get(_key(effect))) is not None:
            yield msgspec.structs.replace(effect, unit=estimate.unit, neutral=estimate.neutral)


def _key(estimate: Estimate) -> tuple[Any, ...]:
    return estimate.metric, tuple(sorted(estimate.group.items()))


def in_lines(effects: list[Estimate]) -> Iterator[str]:
    """Yield one line per measure: the range of its smallest effects over groups, and what they rest on."""
    for measure in dict.fromkeys(e.metric for e in effects):
        mine = [e for e in effects if e.metric == measure]
        values = [e.value for e in mine if e.value is not None]
        if not values:
            yield f"{measure}: {mine[0].note}"
            continue
        low, high = (f"{value:.3g}" for value in (min(values), max(values)))
        reach = low if low == high else f"{low} to {high}"
        notes = dict.fromkeys(e.note for e in mine if e.value is not None)
        note = next(iter(notes)) if len(notes) == 1 else "by group"
        some = "" if len(values) == len(mine) else f"; {len(mine) - len(values)} of {len(mine)} undefined"
        yield f"{measure}: {reach} {mine[0].unit} ({note}{some})"
