"""Smallest effects that a design can detect, from the spread of a pilot's answers or a stated one.

The design's units and clusters are known before a run; the spread of the answers is not. A pilot run gives it for each
measure; without one, a measure with limits is assumed to have the greatest possible spread, and any other the
stated spread. Tests of ranks and of several groups need no spread. `docs/statistics.md` has the formulas.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..contracts import DESIGN_COLUMNS, Options, factors_of, last_facet
from ..contracts.errors import UsageError
from ..contracts.estimates import Estimate
from ..contracts.words import BASIS, NEEDED, TIMES, TWICE
from .components import HIGHEST, LOWEST
from .estimates import floor_of_p, merge, undefined
from .power import CrossedDesign, Design, levels_needed, minimum_detectable_effect, power
from .smallest_designs import Planned, planned
from .smallest_known import Assumptions

if TYPE_CHECKING:
    from collections.abc import Sequence

ROLE = "role"
PLANNED, PILOT = "planned", "pilot"


class SmallestEffectOptions(Options, frozen=True, kw_only=True):
    """Requirements of the tests, and assumptions about the answers."""

    alpha: float = 0.05
    """Level of the two-sided test, before correction within a family."""
    power: float = 0.8
    spread: float | None = None
    """Standard deviation of one unit of a measure without limits, in its own unit; a pilot's value takes precedence."""
    icc: float | None = None
    """Correlation of two units of one cluster; a pilot's value takes precedence."""
    effects: dict[str, float] = {}
    """Effects by measure, in its unit: how many levels of each facet would detect them is a fact of the estimate."""
    row_icc: float | None = None
    """Correlation of two units of one row, if rows cross clusters; a pilot's value takes precedence."""

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        if not 0 < self.alpha < self.power < 1:
            raise UsageError(
                f"alpha is {self.alpha} and power {self.power}. Give 0 < alpha < power < 1.", code="options.value"
            )
        if self.spread is not None and not 0 < self.spread < math.inf:
            raise UsageError(f"spread is {self.spread}. Give a finite number above 0.", code="options.value")
        for measure, effect in self.effects.items():
            if not 0 < abs(effect) < math.inf:
                raise UsageError(
                    f"the effect of {measure} is {effect}. Give a finite number that is not 0.", code="options.value"
                )
        for name, share in (("icc", self.icc), ("row_icc", self.row_icc)):
            if share is not None and not 0 <= share <= 1:
                raise UsageError(f"{name} is {share}. Give a number from 0 to 1.", code="options.value")
        if (self.icc or 0) + (self.row_icc or 0) > 1:
            raise UsageError(
                f"icc is {self.icc} and row_icc {self.row_icc}. Give shares that sum up to 1 at most.",
                code="options.value",
            )


def smallest_effects_of(units: pl.DataFrame, options: SmallestEffectOptions) -> list[Estimate]:
    """Return the smallest effect that each test detects, per measure and group; its value is a distance from neutral.

    Args:
        units: The columns of `Metric.units` or `Metric.designs`, and `role`: `planned` for the units of the design,
            `pilot` for those of a pilot run, if there is one.
        options: Requirements and assumptions.

    Raises:
        DataError: a test has a name that is not known.
    """
    factors = [name for name in factors_of(units) if name != ROLE]
    absent = [name for name in DESIGN_COLUMNS if name not in units.columns]
    units = units.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in absent)
    pilot = units.filter(pl.col(ROLE) == PILOT)
    pilots = dict(_groups(pilot, factors))
    # A group that the pilot lacks is distinguished from no pilot.
    other = None if pilot.is_empty() else pilot.clear()
    planned_groups = _groups(units.filter(pl.col(ROLE) == PLANNED), factors)
    return [e for key, part in planned_groups for e in _estimates(key, part, pilots.get(key, other), options)]


TestKey = tuple[Any, ...]
"""The measure and its test, then pairs of a factor and its level."""


def _groups(units: pl.DataFrame, factors: Sequence[str]) -> Iterator[tuple[TestKey, pl.DataFrame]]:
    parts = units.partition_by("metric", "test", *factors, as_dict=True, maintain_order=True)
    for (metric, test, *levels), part in parts.items():
        yield (metric, test, *((f, v) for f, v in zip(factors, levels, strict=True) if v is not None)), part


def _estimates(
    key: TestKey, units: pl.DataFrame, tried: pl.DataFrame | None, options: SmallestEffectOptions
) -> Iterator[Estimate]:
    stated = Assumptions(spread=options.spread, icc=options.icc, row_icc=options.row_icc)
    clusters = int(units[last_facet(units)].n_unique())
    for found in planned(units, tried, stated):
        value = _value(found, options)
        yield Estimate.from_flat(
            metric=key[0],
            group=dict(key[2:]),
            value=value,
            **({} if value is None else _ends(found, options)),
            neutral=0.0,
            unit=found.unit,
            n=units.height,
            clusters=clusters,
            test=found.test,
            **merge(_rests_on(found, value, clusters, options), _levels(found, options.effects.get(key[0]), options)),
        )


def _value(found: Planned, options: SmallestEffectOptions) -> float | None:
    if found.design is None:
        return None
    value = minimum_detectable_effect(found.design, options.alpha, options.power)
    return value if math.isfinite(value) else None


def _ends(found: Planned, options: SmallestEffectOptions) -> dict[str, Any]:
    """Return the range of the value that a pilot lets expect, as the interval of an estimate."""
    if found.ends is None:
        return {}
    low, high = (minimum_detectable_effect(design, options.alpha, options.power) for design in found.ends)
    return {"low": low, "high": high, "level": HIGHEST - LOWEST, "interval": "posterior of a pilot's variances"}


def _rests_on(found: Planned, value: float | None, clusters: int, options: SmallestEffectOptions) -> dict[str, Any]:
    """Return why there is no value, or the basis of the value."""
    if value is None:
        why = f"{found.test} can detect no effect with {clusters} clusters, however large"
        return undefined(why if found.design is not None else found.note)
    basis: dict[str, Any] = {"facts": {BASIS: found.note}} if found.note else {}
    return merge(basis, floor_of_p(clusters, 9999, options.alpha) if found.flips else {})


def _levels(found: Planned, effect: float | None, options: SmallestEffectOptions) -> dict[str, Any]:
    """Return as facts what more levels of each facet would detect, and how many an effect needs (0: too many)."""
    facts: dict[str, Any] = {}
    if isinstance(found.design, Design) and effect is not None:
        needed = levels_needed(found.design, 0, effect, options.alpha, options.power)
        facts = {f"{NEEDED}clusters": needed or 0}
    if not isinstance(found.design, CrossedDesign) or not found.ways:
        return {"facts": facts} if facts else {}
    for facet, name in enumerate(found.ways):
        twice = found.design.with_levels(facet, 2 * found.design.levels[facet])
        facts[f"{TWICE}{name}"] = minimum_detectable_effect(twice, options.alpha, options.power)
        if effect is not None:
            needed = levels_needed(found.design, facet, effect, options.alpha, options.power)
            facts[f"{NEEDED}{name}"] = needed or 0
    if effect is not None:
        facts[TIMES] = _times(found.design, effect, options)
    return {"facts": facts}


MOST_TIMES = 4096


def _times(design: CrossedDesign, effect: float, options: SmallestEffectOptions) -> float:
    """Return how many times as many levels of every facet find an effect, in tenths; 0 for more than `MOST_TIMES`."""

    def finds(tenths: int) -> bool:
        levels = tuple(math.ceil(count * tenths / 10) for count in design.levels)
        larger = msgspec.structs.replace(design, levels=levels)
        return power(effect, larger, options.alpha) >= options.power

    high = 10
    while not finds(high):
        if high >= 10 * MOST_TIMES:
            return 0.0
        high *= 2
    return bisect.bisect_left(range(high + 1), True, lo=min(10, high), key=finds) / 10
