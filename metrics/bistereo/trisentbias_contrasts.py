"""Favouritism and discrimination: positive contexts against negative ones, by axis and gender."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from ...core.contracts.estimates import Estimate
from ...core.statistics.effects import FIRST, contrast_ranges, contrast_statistics
from ...core.statistics.estimates import POINTS, Block, Margin, equivalence_facts, merge, tested
from ...core.statistics.intervals import Array, Bounds, difference_bounds, scaled, worst_case
from ...core.statistics.resampling import bootstrap, swap_test
from .trisentbias_options import TriSentBiasOptions
from .trisentbias_tally import Tally


class Contrasts(msgspec.Struct, frozen=True):
    """Positive and negative cells side by side."""

    absent: list[tuple[int, int]]
    """Missing pairs in the positive and in the negative context."""
    sums: Array
    """Shape (clusters, contrasts, 2, columns)."""
    block: Block
    p: Array
    ends: Array | None
    """What `_ends` says, where equivalence is asked for."""


def contrast_estimates(counts: Tally, options: TriSentBiasOptions) -> Iterator[Estimate]:
    """Yield favouritism, discrimination and their magnitude wherever a group has both contexts."""
    found = counts.contrasts()
    if not found:
        return
    contrasts = _contrasts(counts, found, options)
    for unit in range(len(found)):
        yield _log_odds(contrasts, unit, options)
        for step, threshold in enumerate(options.thresholds):
            yield _difference(contrasts, unit, Measure("favouritism", threshold, step, 0), options)
            yield _difference(contrasts, unit, Measure("discrimination", threshold, step, 1), options)


class Measure(msgspec.Struct, frozen=True):
    """One contrast of shares: where its numbers stand."""

    name: str
    threshold: float
    step: int
    """Number of the threshold."""
    side: int
    """0 compares the preference for the desirable side (n2), 1 that for the undesirable side (n3)."""

    @property
    def column(self) -> int:
        """Return the column of the statistic; its effect size stands two further on."""
        return 2 + 4 * self.step + self.side

    @property
    def counted(self) -> int:
        """Return the column of the counted pairs in the sums."""
        return FIRST + 2 * self.step + self.side


def _contrasts(counts: Tally, found: list[tuple[dict[str, Any], int, int]], options: TriSentBiasOptions) -> Contrasts:
    pairs = [(positive, negative) for _, positive, negative in found]
    sums = np.stack([counts.sums[:, list(side)] for side in zip(*pairs, strict=True)], axis=2)
    totals = sums.sum(axis=0)
    low, high = bootstrap(sums, contrast_statistics, options.plan, contrast_ranges(sums.shape[-1]))
    block = Block(
        groups=[group for group, _, _ in found],
        value=contrast_statistics(totals),
        low=low,
        high=high,
        n=[int(n) for n in totals[..., 0].sum(axis=1)],
        clusters=[int(n) for n in (sums[..., 0] > 0).any(axis=2).sum(axis=0)],
        missing=[dict(Counter(counts.missing[one]) + Counter(counts.missing[other])) for one, other in pairs],
        interval=f"{options.interval} ({options.cluster})",
        level=options.level,
    )
    absent = [(sum(counts.missing[one].values()), sum(counts.missing[other].values())) for one, other in pairs]
    return Contrasts(absent, sums, block, swap_test(sums, contrast_statistics, options.plan), _ends(sums, options))


def _ends(sums: Array, options: TriSentBiasOptions) -> Array | None:
    """Return the ends of the 1 - 2 alpha and the 1 - alpha interval, shape (2, 2, units, statistics)."""
    if options.margin is None:
        return None
    ranges = contrast_ranges(sums.shape[-1])
    plans = (replace(options.plan, level=1 - tails * options.alpha) for tails in (2, 1))
    return np.array([bootstrap(sums, contrast_statistics, plan, ranges) for plan in plans])


def _swapped(contrasts: Contrasts, unit: int, column: int, options: TriSentBiasOptions) -> dict[str, Any]:
    name = f"permutation of positive and negative within cluster ({options.cluster})"
    return tested(name, contrasts.p[unit, column], int(contrasts.block.clusters[unit] or 0), options)


def _near(contrasts: Contrasts, unit: int, column: int, options: TriSentBiasOptions) -> dict[str, Any]:
    """Return whether a contrast of shares is shown to be near 0, as facts."""
    if contrasts.ends is None or options.margin is None:
        return {}
    return equivalence_facts(100 * contrasts.ends[:, :, unit, column], Margin(options.margin, options.alpha))


def _log_odds(contrasts: Contrasts, unit: int, options: TriSentBiasOptions) -> Estimate:
    block = contrasts.block
    row = merge(block.row(unit, 0), _swapped(contrasts, unit, 0, options))
    bound = None if block.missing[unit] else row["value"]
    return Estimate.from_flat(
        metric="favouritism_log_odds",
        group=dict(block.groups[unit]),
        neutral=0.0,
        unit="nats",
        bound_low=bound,
        bound_high=bound,
        statistic=row["value"] if "p" in row else None,
        family="favouritism_log_odds, cluster permutation",
        **block.effect(unit, 1, "Cohen's d"),
        **row,
    )


def _difference(contrasts: Contrasts, unit: int, measure: Measure, options: TriSentBiasOptions) -> Estimate:
    block = contrasts.block
    row = merge(
        block.row(unit, measure.column, 100),
        _swapped(contrasts, unit, measure.column, options),
        _near(contrasts, unit, measure.column, options),
    )
    low, high = _bounds(contrasts, unit, measure)
    return Estimate.from_flat(
        metric=measure.name,
        group={**block.groups[unit], "threshold": measure.threshold},
        neutral=0.0,
        unit=POINTS,
        bound_low=low,
        bound_high=high,
        statistic=row["value"] if "p" in row else None,
        family=f"{measure.name}, cluster permutation, threshold {measure.threshold:g}",
        **block.effect(unit, measure.column + 2, "Cohen's h"),
        **row,
    )


def _bounds(contrasts: Contrasts, unit: int, measure: Measure) -> Bounds:
    """Take every missing pair of one context as a hit and of the other as none, and the other way round."""
    totals = contrasts.sums[:, unit].sum(axis=0)
    shares = [
        worst_case(int(totals[side, measure.counted]), int(totals[side, 0]), contrasts.absent[unit][side])
        for side in ((0, 1) if measure.side == 0 else (1, 0))
    ]
    low, high = difference_bounds(*shares)
    return scaled(low, 100), scaled(high, 100)
