"""TriSentBias by axis, gender and sentiment: shares, preference, net preference, log-odds difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ...core.contracts.estimates import Estimate
from ...core.statistics.effects import FIRST, cell_ranges, cell_statistics
from ...core.statistics.estimates import POINTS, Block, merge, tested, undefined
from ...core.statistics.intervals import scaled, share, worst_case
from ...core.statistics.resampling import bootstrap, flip_test
from .trisentbias_options import TriSentBiasOptions
from .trisentbias_tally import Tally, signed


def cell_estimates(counts: Tally, options: TriSentBiasOptions) -> Iterator[Estimate]:
    """Yield the estimates of every cell."""
    sums = counts.sums[:, :, None]
    totals = counts.sums.sum(axis=0)
    low, high = bootstrap(sums, cell_statistics, options.plan, cell_ranges(sums.shape[-1]))
    block = Block(
        groups=counts.cells,
        value=cell_statistics(totals[:, None]),
        low=low,
        high=high,
        n=[int(n) for n in totals[:, 0]],
        clusters=[int(n) for n in (counts.sums[..., 0] > 0).sum(axis=0)],
        missing=counts.missing,
        interval=f"{options.interval} ({options.cluster})",
        level=options.level,
    )
    p = flip_test(signed(counts.sums)[:, :, None], options.plan)
    for unit in range(len(counts.cells)):
        yield _log_odds(block, unit, p[unit, 0], options)
        for step, threshold in enumerate(options.thresholds):
            preferred, rejected = (int(totals[unit, FIRST + 2 * step + side]) for side in (0, 1))
            at = At(threshold, 2 + 4 * step, preferred, rejected)
            yield from _shares(block, unit, at)
            yield _preference(block, unit, at)
            yield _net_preference(block, unit, at, _flipped(p[unit, 1 + step], block.clusters[unit], options))


class At(msgspec.Struct, frozen=True):
    """One threshold: its statistics' first column, and the pairs beyond it (n2, n3)."""

    threshold: float
    column: int
    preferred: int
    rejected: int


def _log_odds(block: Block, unit: int, p: float, options: TriSentBiasOptions) -> Estimate:
    row = merge(block.row(unit, 0), _flipped(p, block.clusters[unit], options))
    return Estimate.from_flat(
        metric="log_odds_difference",
        group=dict(block.groups[unit]),
        neutral=0.0,
        unit="nats",
        # A log-odds difference has no limits, so with anything missing its worst case has none either.
        bound_low=None if block.missing[unit] else row["value"],
        bound_high=None if block.missing[unit] else row["value"],
        statistic=row["value"] if "p" in row else None,
        family="log_odds_difference, cluster permutation",
        **block.effect(unit, 1, "standardised mean difference"),
        **row,
    )


def _flipped(p: float, clusters: int, options: TriSentBiasOptions) -> dict[str, Any]:
    return tested(f"sign-flip permutation ({options.cluster})", p, clusters, options)


def _shares(block: Block, unit: int, at: At) -> Iterator[Estimate]:
    n, missing = block.n[unit], sum(block.missing[unit].values())
    hits = {"z1": n - at.preferred - at.rejected, "z2": at.preferred, "z3": at.rejected}
    for place, (name, count) in enumerate(hits.items()):
        low, high = worst_case(count, n, missing)
        yield Estimate.from_flat(
            metric=name,
            group={**block.groups[unit], "threshold": at.threshold},
            unit="%",
            bound_low=scaled(low, 100),
            bound_high=scaled(high, 100),
            **block.row(unit, at.column + place, 100),
        )


def _preference(block: Block, unit: int, at: At) -> Estimate:
    decided, missing = at.preferred + at.rejected, block.missing[unit]
    part = share(at.preferred, decided, block.level)
    low, high = worst_case(at.preferred, decided, sum(missing.values()))
    defined = part.value is not None
    return Estimate.from_flat(
        metric="preference",
        group={**block.groups[unit], "threshold": at.threshold},
        value=part.value,
        neutral=0.5,
        unit="share of decided pairs",
        low=part.low,
        high=part.high,
        level=block.level,
        interval="exact (Clopper-Pearson), pairs" if defined else "",
        n=decided,
        missing=missing,
        bound_low=low,
        bound_high=high,
        test="exact binomial, pairs" if defined else "",
        statistic=float(at.preferred) if defined else None,
        p=part.p,
        family=f"preference, binomial, threshold {at.threshold:g}",
        effect=scaled(part.value, 1, -0.5),
        effect_name="Cohen's g" if defined else "",
        effect_low=scaled(part.low, 1, -0.5),
        effect_high=scaled(part.high, 1, -0.5),
        **({} if defined else undefined("no pair beyond the threshold")),
    )


def _net_preference(block: Block, unit: int, at: At, tested: dict[str, Any]) -> Estimate:
    n, missing = block.n[unit], sum(block.missing[unit].values())
    row = merge(block.row(unit, at.column + 3, 100), tested)
    net, total = at.preferred - at.rejected, n + missing
    return Estimate.from_flat(
        metric="net_preference",
        group={**block.groups[unit], "threshold": at.threshold},
        neutral=0.0,
        unit=POINTS,
        bound_low=100 * (net - missing) / total if total else None,
        bound_high=100 * (net + missing) / total if total else None,
        statistic=row["value"] if "p" in row else None,
        family=f"net_preference, cluster permutation, threshold {at.threshold:g}",
        **block.effect(unit, at.column + 3, "matched-pairs risk difference"),
        **row,
    )
