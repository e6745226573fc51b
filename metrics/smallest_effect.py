"""Smallest effects: what a design can show, from the spread of a pilot's answers or a stated one.

The design's units and clusters are known before anything is asked; how much answers vary is not. A pilot run tells,
measure by measure; without one, a measure with limits is taken to vary as much as it can, and any other by the stated
spread. `docs/statistics.md` has the formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from ..core.contracts import UNIT_COLUMNS, Metric, Options
from ..core.errors import UsageError
from ..core.estimates import Estimate
from ._arrays import Array, Codes
from ._cluster import smallest_p
from ._power import Design, Pilot, minimum_detectable_effect, pilot

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SmallestEffect", "SmallestEffectOptions"]

PLANNED, PILOT = "planned", "pilot"
UNKNOWN = Pilot(None, None, 0, 0)


class SmallestEffectOptions(Options, frozen=True, kw_only=True):
    """What a test must achieve, and what is known of the answers."""

    alpha: float = 0.05
    """Level of the two-sided test, before correction within a family."""
    power: float = 0.8
    spread: float | None = None
    """Standard deviation of one unit of a measure without limits, in its own unit; a pilot comes first."""
    icc: float | None = None
    """Correlation of two units of one cluster; a pilot comes first."""

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be computed."""
        if not 0 < self.alpha < self.power < 1:
            raise UsageError(f"alpha is {self.alpha} and power {self.power}. Give 0 < alpha < power < 1.")
        if self.spread is not None and not self.spread > 0:
            raise UsageError(f"spread is {self.spread}. Give a number above 0.")
        if self.icc is not None and not 0 <= self.icc <= 1:
            raise UsageError(f"icc is {self.icc}. Give a number from 0 to 1.")


class SmallestEffect(Metric):
    """The smallest effect that each estimate of a design would find, with the power asked for."""

    options: ClassVar[type[Options]] = SmallestEffectOptions
    needs: ClassVar[frozenset[str]] = frozenset({*UNIT_COLUMNS, "role"})

    def compute(self, observations: pl.DataFrame, options: SmallestEffectOptions) -> list[Estimate]:
        """Return one estimate per measure and group; its value is a distance from neutral.

        `observations` has the columns of `Metric.units` and `role`: `planned` for the units of the design, `pilot`
        for those of a pilot run, if there is one.
        """
        factors = [name for name in observations.columns if name not in self.needs]
        pilots = dict(_groups(observations.filter(pl.col("role") == PILOT), factors))
        planned = observations.filter(pl.col("role") == PLANNED)
        return [_estimate(key, units, pilots.get(key), options) for key, units in _groups(planned, factors)]


Key = tuple[Any, ...]
"""The measure, then pairs of a factor and its level."""


def _groups(units: pl.DataFrame, factors: Sequence[str]) -> Iterator[tuple[Key, pl.DataFrame]]:
    for (metric, *levels), part in units.partition_by("metric", *factors, as_dict=True, maintain_order=True).items():
        yield (metric, *((f, v) for f, v in zip(factors, levels, strict=True) if v is not None)), part


def _estimate(key: Key, units: pl.DataFrame, tried: pl.DataFrame | None, options: SmallestEffectOptions) -> Estimate:
    clusters = _clusters(units)
    known, source = _known(units, tried, options)
    design = _design(units, known)
    value = None if design is None else minimum_detectable_effect(design, options.alpha, options.power)
    notes = [source if design else "undefined: fewer than two clusters, or no spread"]
    if design and smallest_p(clusters, 9999) > options.alpha:
        notes.append(f"with {clusters} clusters a sign-flip test cannot reach {options.alpha:g}, whatever the effect")
    return Estimate(
        metric=key[0],
        group=dict(key[1:]),
        value=value,
        neutral=0.0,
        n=units.height,
        clusters=clusters,
        test=f"two-sided t of clusters, alpha {options.alpha:g}, power {options.power:g}" if design else "",
        note="; ".join(notes),
    )


def _known(units: pl.DataFrame, tried: pl.DataFrame | None, options: SmallestEffectOptions) -> tuple[Pilot, str]:
    """Return spread and correlation, and in words where they come from."""
    found = UNKNOWN if tried is None else _pooled(tried)
    least, greatest = units.select(pl.col("least").first(), pl.col("greatest").first()).row(0)
    limit = None if least is None or greatest is None else (greatest - least) / 2
    stated = options.spread if limit is None else limit
    spread, icc = found.spread or stated, options.icc if found.icc is None else found.icc
    words = ["spread from the pilot" if found.spread else "spread as stated" if limit is None else "greatest spread"]
    alone = units["cluster"].n_unique() == units.height
    # Without repeats in a cluster a correlation has nothing to say.
    correlation = 0.0 if alone else icc
    told = (
        "the pilot"
        if found.icc is not None
        else "stated"
        if icc is not None
        else "not known, taken as 0: the effect may be larger"
    )
    if not alone:
        words.append(f"correlation within clusters {correlation or 0:.2f} ({told})")
    return Pilot(spread, correlation or 0.0, found.n, found.clusters), ", ".join(words)


def _pooled(tried: pl.DataFrame) -> Pilot:
    """Return spread and correlation of a pilot's units, each side (sign) centred on its own mean."""
    answered = tried.filter(pl.col("status") == "ok").with_columns(
        pl.col("value") - pl.col("value").mean().over("sign")
    )
    values: Array = answered["value"].cast(pl.Float64).to_numpy()
    # A cluster that has both sides counts as two: what its sides share cancels, and this is the cautious reading.
    codes: Codes = answered.select(pl.struct("cluster", "sign").rank("dense")).to_series().to_numpy().astype(np.int64)
    return pilot(values, codes) if len(values) else UNKNOWN


def _design(units: pl.DataFrame, known: Pilot) -> Design | None:
    """Return the design of one estimate; two groups of clusters where it is a contrast."""
    sizes = units.group_by("sign", "cluster").len()
    sides = [part["len"].to_numpy() for part in sizes.partition_by("sign")]
    fewest = min(map(len, sides))
    if known.spread is None or fewest < 2:
        return None
    mean = float(np.mean([side.mean() for side in sides]))
    uneven = math.sqrt(float(np.mean([side.var() for side in sides]))) / mean
    icc = known.icc or 0.0
    return Design(clusters=fewest, size=mean, spread=known.spread, icc=icc, unevenness=uneven, groups=len(sides))


def _clusters(units: pl.DataFrame) -> int:
    return int(units["cluster"].n_unique())
