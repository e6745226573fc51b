"""What the tests of a design will compare: the units of its trials, or those of a pilot, as many as are planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..catalogue.study import STAGE
from ..contracts import Metric, Stage
from .enlarging import enlarge, untold

if TYPE_CHECKING:
    from .score import Scores

PLANNED, PILOT = "planned", "pilot"
AS_PLANNED = "clusters as planned, each as in the pilot"
AS_PILOT = "for a run as large as the pilot"


class PlannedDesign(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a design before it is run."""

    first: Stage
    factors: pl.DataFrame
    """One row per trial of the first stage."""
    observations: pl.DataFrame | None
    """What the observations will be, but for the answers; None where later stages depend on answers."""
    pilot: Scores | None


class ComparedUnits(msgspec.Struct, frozen=True, kw_only=True):
    """The units of one metric, with a column `role`: `planned` or `pilot`."""

    units: pl.DataFrame
    designed: bool
    """Whether the metric says what its tests compare, or else what its estimates are means of."""
    note: str = ""
    """What effects hold for, where the planned units are those of the pilot."""
    untold: tuple[str, ...] = ()
    """What the design asks about and the pilot did not."""

    @property
    def tried(self) -> bool:
        """Return whether there are units of a pilot."""
        return bool((self.units["role"] == PILOT).any())


def planned_design(stages: Sequence[Stage], pilot: Scores | None) -> PlannedDesign:
    """Return what the trials of the first stage say."""
    rows = [{**trial.factors, "trial": trial.id} for trial in stages[0].trials({})]
    frame = pl.DataFrame(rows, infer_schema_length=None, orient="row")
    observed = _observed(frame, stages[0], pilot) if len(stages) == 1 else None
    return PlannedDesign(first=stages[0], factors=frame, observations=observed, pilot=pilot)


def _observed(frame: pl.DataFrame, stage: Stage, pilot: Scores | None) -> pl.DataFrame:
    types = {} if pilot is None else dict(pilot.last.schema)
    empty = [pl.lit(None, dtype=types.get(name, pl.Null)).alias(name) for name in (*stage.outcomes, "reason")]
    return frame.with_columns(
        *empty,
        pl.lit(PLANNED).alias("status"),
        pl.lit(stage.name).alias(STAGE),
        pl.lit(None, dtype=pl.Binary).alias("key"),
    )


def compared_units(metric: Metric, options: Any, design: PlannedDesign) -> ComparedUnits | None:
    """Return what the metric says its tests compare, or else the units of its estimates; None where it tells none."""
    seen = None if design.pilot is None else design.pilot.seen_by(metric)
    asked = {PLANNED: design.observations, PILOT: seen}
    for designed, units in ((True, metric.designs), (False, metric.units)):
        found = {role: units(frame, options) for role, frame in asked.items() if frame is not None}
        there = {role: frame for role, frame in found.items() if frame is not None and not frame.is_empty()}
        if there:
            return _scaled(there, designed, design)
    return None


def _scaled(units: Mapping[str, pl.DataFrame], designed: bool, design: PlannedDesign) -> ComparedUnits:
    """Return the units by role; where only a pilot tells any, the planned ones are its own, as many as are planned."""
    if PLANNED in units:
        return ComparedUnits(units=_stacked(units), designed=designed)
    mine, tried = units[PILOT], _tried(design)
    planned = None if tried is None else enlarge(mine, tried, design.factors)
    if planned is None or tried is None:
        return ComparedUnits(units=_stacked({PLANNED: mine, **units}), designed=designed, note=AS_PILOT)
    return ComparedUnits(
        units=_stacked({PLANNED: planned, **units}),
        designed=designed,
        note=AS_PLANNED,
        untold=tuple(untold(mine, tried, design.factors)),
    )


def _tried(design: PlannedDesign) -> pl.DataFrame | None:
    """Return the factors of the first stage as the pilot asked it, if it did."""
    found = None if design.pilot is None else design.pilot.observations.get(design.first.name)
    return None if found is None else found.select(design.first.factors)


def _stacked(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    parts = [frame.with_columns(pl.lit(role).alias("role")) for role, frame in frames.items()]
    return pl.concat(parts, how="diagonal_relaxed")
