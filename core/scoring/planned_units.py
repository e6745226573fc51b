"""The units that the tests of a design will compare, from its trials or from a pilot run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import polars as pl

from ..catalogue.instrument import STAGE
from ..contracts import FACET, Metric, Stage, factors_of, last_facet
from ..design import DesignedStage, Roles
from ..engine.observations import with_parts
from ..statistics.smallest_effect import PILOT, PLANNED
from ..store.bulk import batched

if TYPE_CHECKING:
    from .score import Scores


def enlarge(units: pl.DataFrame, tried: pl.DataFrame, asked: pl.DataFrame) -> pl.DataFrame | None:
    """Return the pilot's units with as many levels of their last facet as are asked about; None if nothing counts them.

    `tried` and `asked` have the factors of the first stage, one row per trial of the pilot and of the design. Levels
    are counted by the factor that they are of, or else by the one whose levels are the units. A group that the design
    does not ask about is left out. Levels that are asked more or fewer questions than in the pilot cannot be counted:
    they are not like those of the pilot.
    """
    if (counted := _counted(units, tried)) is None:
        return None
    groups = list(_groups(units, tried, asked, counted))
    if not all(after.like(before) for _, before, after in groups):
        return None
    parts = [
        repeated(part, max(1, round(part[last_facet(part)].n_unique() * after.clusters / before.clusters)))
        for part, before, after in groups
    ]
    return pl.concat(parts) if parts else units.clear()


def repeated(part: pl.DataFrame, wanted: int) -> pl.DataFrame:
    """Return this many levels of the last facet: the first ones, or all of them repeatedly under other names."""
    facet = last_facet(part)
    names = part[facet].unique(maintain_order=True)
    copies = [
        part.filter(pl.col(facet).is_in(names.head(wanted - time * len(names)).implode())).with_columns(
            pl.col(*dict.fromkeys(("unit", facet))) + (f" ({time + 1})" if time else "")
        )
        for time in range(math.ceil(wanted / len(names)))
    ]
    return pl.concat(copies)


def home_of(levels: pl.Series, frame: pl.DataFrame) -> str | None:
    """Return the first factor that has all of these levels."""
    wanted = set(levels.drop_nulls())
    return next((name for name in frame.columns if wanted and wanted <= set(frame[name].unique())), None)


def untold(units: pl.DataFrame, tried: pl.DataFrame, asked: pl.DataFrame) -> Iterator[str]:
    """Yield in words the levels of the units' factors that the design has and the pilot did not."""
    for name in factors_of(units):
        if name in tried.columns and set(units[name].drop_nulls()) <= set(tried[name]):
            known = set(tried[name])
            yield from (f"{name} {level}" for level in asked[name].unique(maintain_order=True) if level not in known)


def _counted(units: pl.DataFrame, tried: pl.DataFrame) -> str | None:
    column = last_facet(units)
    named = column.removeprefix(FACET)
    if column != named and named in tried.columns:
        return named
    homes = (home_of(units[name], tried) for name in (column, "unit"))
    return next((home for home in homes if home is not None), None)


def _groups(
    units: pl.DataFrame, tried: pl.DataFrame, asked: pl.DataFrame, counted: str
) -> Iterator[tuple[pl.DataFrame, _Size, _Size]]:
    """Yield the units of each group that the design asks about, with what pilot and design ask about it."""
    factors = factors_of(units)
    by = ["metric", *(name for name in ("test", *factors) if name in units.columns)]
    for key, part in units.partition_by(by, as_dict=True, maintain_order=True).items():
        group = {name: level for name, level in zip(by, key, strict=True) if name in factors and level is not None}
        told = {n: level for n, level in group.items() if n in tried.columns and level in set(tried[n])}
        before, after = (_size(frame, told, counted) for frame in (tried, asked))
        named = all(_there(units[name], level, tried, asked) for name, level in group.items())
        if named and before.clusters and after.clusters:
            yield part, before, after


def _there(levels: pl.Series, level: Any, tried: pl.DataFrame, asked: pl.DataFrame) -> bool:
    """Return whether a level is asked about, if it is a factor's: of this name or, as in contrasts, of another."""
    named = levels.name if levels.name in tried.columns else home_of(levels, tried)
    return named is None or level not in set(tried[named]) or level in set(asked[named])


class _Size(NamedTuple):
    clusters: int
    trials: int

    def like(self, other: _Size) -> bool:
        return math.isclose(self.trials / self.clusters, other.trials / other.clusters, rel_tol=0.1)


def _size(frame: pl.DataFrame, group: dict[str, Any], counted: str) -> _Size:
    levels = frame.filter(*(pl.col(name) == level for name, level in group.items()))[counted]
    return _Size(levels.n_unique(), len(levels))


AS_PLANNED = "clusters as planned, each as in the pilot"
AS_PILOT = "for a run as large as the pilot"


class PlannedDesign(msgspec.Struct, frozen=True, kw_only=True):
    """The design, before a run."""

    first: Stage
    factors: pl.DataFrame
    """One row per trial of the first stage."""
    observations: pl.DataFrame | None
    """The observations without the answers; None if later stages depend on answers."""
    pilot: Scores | None


class ComparedUnits(msgspec.Struct, frozen=True, kw_only=True):
    """The units of one metric, with a column `role`: `planned` or `pilot`."""

    units: pl.DataFrame
    designed: bool
    """Whether the units come from `designs`, not from `units`."""
    counted: bool = True
    """Whether the design says how many units there are, before any answer."""
    note: str = ""
    """Scope of the effects, if the planned units are those of the pilot."""
    untold: tuple[str, ...] = ()
    """Levels that the design has and the pilot did not."""

    @property
    def tried(self) -> bool:
        """Return whether there are units of a pilot."""
        return bool((self.units["role"] == PILOT).any())


def planned_design(stages: Sequence[Stage], pilot: Scores | None, design: Roles | None = None) -> PlannedDesign:
    """Return the design of the first stage's trials; `design` adds the parts of what they vary."""
    frame = with_parts(_factors_of(stages[0]), design)
    observed = _observed(frame, stages[0], pilot) if len(stages) == 1 else None
    return PlannedDesign(first=stages[0], factors=frame, observations=observed, pilot=pilot)


ROWS = 50_000
"""Trials that are held as Python objects at a time: a frame of them takes a tenth of the memory."""


def _factors_of(stage: Stage) -> pl.DataFrame:
    rows = (
        stage.factor_rows()
        if isinstance(stage, DesignedStage)
        else ({**trial.factors, "trial": trial.id} for trial in stage.trials({}))
    )
    chunks = [pl.DataFrame(chunk, infer_schema_length=None, orient="row") for chunk in batched(rows, ROWS)]
    return pl.concat(chunks, how="vertical_relaxed") if chunks else pl.DataFrame()


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
    """Return the units of the metric's tests, or else of its estimates; None if it states none."""
    seen = None if design.pilot is None else design.pilot.seen_by(metric)
    asked = {PLANNED: design.observations, PILOT: seen}
    for designed, units in ((True, metric.designs), (False, metric.units)):
        found = {role: units(frame, options) for role, frame in asked.items() if frame is not None}
        there = {role: frame for role, frame in found.items() if frame is not None and not frame.is_empty()}
        if there:
            return _scaled(there, designed, design)
    return None


def _scaled(units: Mapping[str, pl.DataFrame], designed: bool, design: PlannedDesign) -> ComparedUnits:
    """Return the units by role; if only a pilot has units, the planned ones are the pilot's, in the planned number."""
    if PLANNED in units:
        return ComparedUnits(units=_stacked(units), designed=designed)
    mine, tried = units[PILOT], _tried(design)
    planned = None if tried is None else enlarge(mine, tried, design.factors)
    if planned is None or tried is None:
        return ComparedUnits(units=_stacked({PLANNED: mine, **units}), designed=designed, note=AS_PILOT, counted=False)
    return ComparedUnits(
        units=_stacked({PLANNED: planned, **units}),
        designed=designed,
        note=AS_PLANNED,
        counted=home_of(mine["unit"], tried) is not None,
        untold=tuple(untold(mine, tried, design.factors)),
    )


def _tried(design: PlannedDesign) -> pl.DataFrame | None:
    """Return the factors of the pilot's first stage, if it has them."""
    found = None if design.pilot is None else design.pilot.observations.get(design.first.name)
    return None if found is None else found.select(design.first.factors)


def _stacked(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    parts = [frame.with_columns(pl.lit(role).alias("role")) for role, frame in frames.items()]
    return pl.concat(parts, how="diagonal_relaxed")
