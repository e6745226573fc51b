"""The estimates of TriSentBias: contrasts by axis and gender, and shares by axis, gender and sentiment.

Favouritism and discrimination compare positive contexts with negative ones. The paper's stars are facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from ...core.contracts.estimates import Estimate, Verdict
from ...core.contracts.records import Scalar
from ...core.statistics.effects import FIRST, cell_ranges, cell_statistics, contrast_ranges, contrast_statistics
from ...core.statistics.estimates import POINTS, Block, Margin, correct, equivalence_facts, merge, undefined
from ...core.statistics.facets import Inference, Permutation, ends_at, infer_over
from ...core.statistics.intervals import Array, Bounds, difference_bounds, scaled, share, worst_case
from ...core.statistics.observations import Group, missing_estimates
from ...core.statistics.resampling import flip_test, swap_test
from .trisentbias_tally import Tally, TriSentBiasOptions, signed


def cell_estimates(counts: Tally, options: TriSentBiasOptions) -> Iterator[Estimate]:
    """Yield the estimates of every cell."""
    sums = counts.sums[:, :, :, None]
    totals = counts.sums.sum(axis=(0, 1))
    flips = Permutation(
        "sign-flip permutation",
        lambda own: flip_test(signed(own[:, :, 0])[:, :, None], options.plan),
        [0, *range(5, 2 + 4 * len(options.thresholds), 4)],
    )
    inferred = infer_over(
        options.ways, sums, cell_statistics, cell_ranges(sums.shape[-1]), options.plan, permutation=flips
    )
    block = inferred.block(counts.cells, cell_statistics(totals[:, None]), totals[:, 0], counts.missing)
    for unit in range(len(counts.cells)):
        yield _cell_log_odds(block, unit, Tested.of(inferred, unit, 0, options))
        for step, threshold in enumerate(options.thresholds):
            preferred, rejected = (int(totals[unit, FIRST + 2 * step + side]) for side in (0, 1))
            at = At(threshold, 2 + 4 * step, preferred, rejected)
            yield from _shares(block, unit, at)
            yield _preference(block, unit, at)
            yield _net_preference(block, unit, at, Tested.of(inferred, unit, at.column + 3, options))


class Tested(msgspec.Struct, frozen=True):
    """A test as fields of an estimate, and the name of its family."""

    row: dict[str, Any]
    family: str

    @classmethod
    def of(cls, inferred: Inference, unit: int, column: int, options: TriSentBiasOptions) -> Tested:
        """Return the test of one statistic of a unit."""
        return cls(inferred.tested(unit, column, options), inferred.family)


class At(msgspec.Struct, frozen=True):
    """One threshold: its statistics' first column, and the pairs beyond it (n2, n3)."""

    threshold: float
    column: int
    preferred: int
    rejected: int


def _cell_log_odds(block: Block, unit: int, test: Tested) -> Estimate:
    row = merge(block.row(unit, 0), test.row)
    return Estimate.from_flat(
        metric="log_odds_difference",
        group=dict(block.groups[unit]),
        neutral=0.0,
        unit="nats",
        # A log-odds difference has no limits, so with anything missing its worst case has none either.
        bound_low=None if block.missing[unit] else row["value"],
        bound_high=None if block.missing[unit] else row["value"],
        statistic=row["value"] if "p" in row else None,
        family=f"log_odds_difference, {test.family}",
        **block.effect(unit, 1, "standardised mean difference"),
        **row,
    )


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


def _net_preference(block: Block, unit: int, at: At, test: Tested) -> Estimate:
    n, missing = block.n[unit], sum(block.missing[unit].values())
    row = merge(block.row(unit, at.column + 3, 100), test.row)
    net, total = at.preferred - at.rejected, n + missing
    return Estimate.from_flat(
        metric="net_preference",
        group={**block.groups[unit], "threshold": at.threshold},
        neutral=0.0,
        unit=POINTS,
        bound_low=100 * (net - missing) / total if total else None,
        bound_high=100 * (net + missing) / total if total else None,
        statistic=row["value"] if "p" in row else None,
        family=f"net_preference, {test.family}, threshold {at.threshold:g}",
        **block.effect(unit, at.column + 3, "matched-pairs risk difference"),
        **row,
    )


class Contrasts(msgspec.Struct, frozen=True):
    """Positive and negative cells side by side."""

    absent: list[tuple[int, int]]
    """Missing pairs in the positive and in the negative context."""
    sums: Array
    """Shape (rows, columns of the design, contrasts, 2, columns)."""
    block: Block
    inferred: Inference
    ends: Array | None
    """The result of `_ends`, if equivalence is tested."""


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
    """One contrast of shares: the positions of its numbers."""

    name: str
    threshold: float
    step: int
    """Number of the threshold."""
    side: int
    """0 compares the preference for the desirable side (n2), 1 that for the undesirable side (n3)."""

    @property
    def column(self) -> int:
        """Return the column of the statistic; its effect size is two columns further."""
        return 2 + 4 * self.step + self.side

    @property
    def counted(self) -> int:
        """Return the column of the counted pairs in the sums."""
        return FIRST + 2 * self.step + self.side


def _contrasts(counts: Tally, found: list[tuple[dict[str, Any], int, int]], options: TriSentBiasOptions) -> Contrasts:
    pairs = [(positive, negative) for _, positive, negative in found]
    sums = np.stack([counts.sums[:, :, list(side)] for side in zip(*pairs, strict=True)], axis=3)
    totals = sums.sum(axis=(0, 1))
    ranges = contrast_ranges(sums.shape[-1])
    swaps = Permutation(
        "permutation of positive and negative within cluster",
        lambda own: swap_test(own, contrast_statistics, options.plan),
        range(len(ranges)),
        flips=False,
    )
    inferred = infer_over(options.ways, sums, contrast_statistics, ranges, options.plan, permutation=swaps)
    missing = [dict(Counter(counts.missing[one]) + Counter(counts.missing[other])) for one, other in pairs]
    groups = [group for group, _, _ in found]
    block = inferred.block(groups, contrast_statistics(totals), totals[..., 0].sum(axis=1), missing)
    absent = [(sum(counts.missing[one].values()), sum(counts.missing[other].values())) for one, other in pairs]
    return Contrasts(absent, sums, block, inferred, _ends(sums, options))


def _ends(sums: Array, options: TriSentBiasOptions) -> Array | None:
    """Return the result of `ends_at`, if equivalence is tested."""
    if options.margin is None:
        return None
    ranges = contrast_ranges(sums.shape[-1])
    return ends_at(options.ways, sums, contrast_statistics, ranges, options.plan, options.alpha)


def _near(contrasts: Contrasts, unit: int, column: int, options: TriSentBiasOptions) -> dict[str, Any]:
    """Return whether a contrast of shares is shown to be near 0, as facts."""
    if contrasts.ends is None or options.margin is None:
        return {}
    return equivalence_facts(100 * contrasts.ends[:, :, unit, column], Margin(options.margin, options.alpha))


def _log_odds(contrasts: Contrasts, unit: int, options: TriSentBiasOptions) -> Estimate:
    block = contrasts.block
    row = merge(block.row(unit, 0), contrasts.inferred.tested(unit, 0, options))
    bound = None if block.missing[unit] else row["value"]
    return Estimate.from_flat(
        metric="favouritism_log_odds",
        group=dict(block.groups[unit]),
        neutral=0.0,
        unit="nats",
        bound_low=bound,
        bound_high=bound,
        statistic=row["value"] if "p" in row else None,
        family=f"favouritism_log_odds, {contrasts.inferred.family}",
        **block.effect(unit, 1, "Cohen's d"),
        **row,
    )


def _difference(contrasts: Contrasts, unit: int, measure: Measure, options: TriSentBiasOptions) -> Estimate:
    block = contrasts.block
    row = merge(
        block.row(unit, measure.column, 100),
        contrasts.inferred.tested(unit, measure.column, options),
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
        family=f"{measure.name}, {contrasts.inferred.family}, threshold {measure.threshold:g}",
        **block.effect(unit, measure.column + 2, "Cohen's h"),
        **row,
    )


def _bounds(contrasts: Contrasts, unit: int, measure: Measure) -> Bounds:
    """Count every missing pair of one context as a hit and of the other as none, and vice versa."""
    totals = contrasts.sums[:, :, unit].sum(axis=(0, 1))
    shares = [
        worst_case(int(totals[side, measure.counted]), int(totals[side, 0]), contrasts.absent[unit][side])
        for side in ((0, 1) if measure.side == 0 else (1, 0))
    ]
    low, high = difference_bounds(*shares)
    return scaled(low, 100), scaled(high, 100)


MAIN = "main_threshold"
"""Fact of the estimates at the threshold of headlines and figures."""
STAR_BINOMIAL = "star_binomial"
"""The paper's star as an exact binomial test of pairs, p not corrected, as in the paper's caption."""
STAR_CLUSTER = "star_cluster"
"""The same star for a permutation test of whole clusters, p corrected."""


def estimate_all(counts: Tally, options: TriSentBiasOptions) -> list[Estimate]:
    """Return every estimate of a study, corrected within its families."""
    found = [*contrast_estimates(counts, options), *cell_estimates(counts, options)]
    corrected = correct(found, options.correction, options.alpha, "cells")
    marked = [e.replace(facts=e.facts | _marks(e, options)) for e in corrected]
    answered = (int(n) for n in counts.sums[..., 0].sum(axis=(0, 1)))
    groups = [Group(*cell) for cell in zip(counts.cells, answered, counts.missing, strict=True)]
    return [*marked, *missing_estimates(groups, options.level, "pairs")]


def _marks(estimate: Estimate, options: TriSentBiasOptions) -> dict[str, Scalar]:
    marks = {
        STAR_BINOMIAL: _star_binomial(estimate, options.alpha),
        STAR_CLUSTER: _star_cluster(estimate),
        MAIN: estimate.group.get("threshold") == options.threshold_main,
    }
    return {name: True for name, holds in marks.items() if holds}


def _star_binomial(estimate: Estimate, alpha: float) -> bool:
    value, p, sentiment = estimate.value, estimate.p, estimate.group.get("sentiment")
    if estimate.metric != "preference" or value is None or p is None or p > alpha:
        return False
    return (sentiment == "positive" and value > 0.5) or (sentiment == "negative" and value < 0.5)


def _star_cluster(estimate: Estimate) -> bool:
    sought = {"positive": Verdict.ABOVE, "negative": Verdict.BELOW}.get(str(estimate.group.get("sentiment")))
    return estimate.metric == "net_preference" and sought is not None and estimate.verdict is sought
