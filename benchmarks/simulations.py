"""Studies simulated with a known truth, and how often intervals cover it and tests cry wolf.

Every simulated study is one unit of the resampling, so a thousand of them cost one matrix product.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from rank_tests import Answers, kruskal_wallis, mann_whitney, mcnemar, wilcoxon
from scipy import stats

from prejudge.core.statistics import power as _power
from prejudge.core.statistics.effects import (
    MEANS,
    cell_statistics,
    contrast_statistics,
    odds_ratio,
    risk_difference,
)
from prejudge.core.statistics.intervals import CONTRAST, FREE, Array, Ranges, ratio
from prejudge.core.statistics.multiway import Cells, infer
from prejudge.core.statistics.resampling import Method, Resampling, bootstrap, flip_test, swap_test
from prejudge.metrics.bistereo.trisentbias import npll_difference

SEED = 0
RANKED = ("Wilcoxon", "McNemar", "Mann-Whitney", "Kruskal-Wallis")
THRESHOLD = 0.02
FAVOURITISM = 2
"""Its column among the statistics of a contrast."""


class Design(msgspec.Struct, frozen=True):
    """A study of sentence pairs to simulate: D = effect * (+1 praise, -1 blame) + template + noise."""

    clusters: int = 20
    size: int = 10
    """Pairs per cluster and context."""
    spread: float = 0.5
    """Standard deviation of the templates' own lean, where that of a pair is 1."""
    effect: float = 0.0
    """Half the planted difference of mean D between praise and blame, in nats."""
    skewed: bool = False
    """Draw noise from a shifted exponential in place of a normal distribution."""


class Rates(msgspec.Struct, frozen=True):
    """What came of it, as shares of the studies; None where the design does not fix the truth."""

    cover_log_odds: float
    """Intervals of the mean log-odds difference that cover the truth."""
    cover_favouritism_log_odds: float
    cover_favouritism: float | None
    """Intervals of favouritism that cover 0, without an effect."""
    swap: float
    """Tests of favouritism at p <= 0.05: false positives without an effect, power with one."""
    flip: float | None
    """Sign-flip tests of z2 - z3 at p <= 0.05 in a context without a lean: false positives."""
    binomial: float | None
    """Binomial tests of single pairs at p <= 0.05 in a context without a lean: false positives."""


def simulate(design: Design, studies: int, seed: int) -> Array:
    """Return sums of shape (clusters, studies, 2 contexts, 5 columns)."""
    rng = np.random.default_rng(seed)
    shape = (design.clusters, studies, 2, design.size)
    noise = rng.exponential(size=shape) - 1 if design.skewed else rng.normal(size=shape)
    lean = rng.normal(0, design.spread, (*shape[:3], 1)) + design.effect * np.array([[1.0], [-1.0]])
    difference = lean + noise
    npll = npll_difference(difference)
    columns = [np.ones(shape), difference, difference**2, npll > THRESHOLD, npll < -THRESHOLD]
    sums: Array = np.stack([column.sum(axis=-1) for column in columns], axis=-1).astype(np.float64)
    return sums


def calibrate(design: Design, studies: int = 1000, resamples: int = 999, seed: int = 0) -> Rates:
    """Return coverage and rejection rates over simulated studies."""
    plan = Resampling(resamples, seed)
    sums = simulate(design, studies, seed)
    praise = sums[:, :, :1]
    low, high = bootstrap(praise, cell_statistics, plan, MEANS)
    lows, highs = bootstrap(sums, _contrast, plan, (*MEANS, CONTRAST))
    hits, misses = (praise[..., column].sum(axis=(0, 2)).astype(int) for column in (3, 4))
    binomial = np.array([stats.binomtest(h, h + m).pvalue for h, m in zip(hits, misses, strict=True)])
    net = np.stack([praise[..., 0], praise[..., 3] - praise[..., 4]], axis=-1)
    level = not design.effect
    even = level and not design.skewed  # Skewed noise of mean 0 is more often below 0 than above: z2 - z3 is not 0.
    return Rates(
        cover_log_odds=_covered(low[:, 0], high[:, 0], design.effect),
        cover_favouritism_log_odds=_covered(lows[:, 0], highs[:, 0], 2 * design.effect),
        cover_favouritism=_covered(lows[:, FAVOURITISM], highs[:, FAVOURITISM], 0.0) if level else None,
        swap=_rejected(swap_test(sums, _contrast, plan)[:, FAVOURITISM]),
        flip=_rejected(flip_test(net, plan)[:, 0]) if even else None,
        binomial=_rejected(binomial) if even else None,
    )


def _contrast(totals: Array) -> Array:
    """Return the difference of means, Cohen's d, and favouritism: the difference in how often z2 is reached."""
    above = ratio(totals[..., 3], totals[..., 0])
    return np.concatenate([contrast_statistics(totals), -np.diff(above, axis=-1)], axis=-1)


def _covered(low: Array, high: Array, truth: float) -> float:
    return float(np.mean((low <= truth) & (truth <= high)))


def _rejected(p: Array) -> float:
    return float(np.mean(p <= 0.05))


class World(msgspec.Struct, frozen=True):
    """Answers to simulate: two sides in every cluster, of mean 0 and variance 1."""

    clusters: int = 20
    size: int = 10
    """Answers per cluster and side."""
    icc: float = 0.2
    """Correlation of two answers of one cluster."""
    kind: str = "normal"
    """`normal`, `skewed` (shifted exponential), or `ties` (rounded to five grades)."""
    missing: float = 0.0
    """Share of answers that are missing, more of them in some clusters."""
    uneven: bool = False
    """Clusters of half and of one and a half times the size."""


def draw_answers(world: World, studies: int, seed: int = SEED) -> Array:
    """Return answers of shape (clusters, studies, 2 sides, answers); NaN where missing. The truth is 0."""
    rng = np.random.default_rng([seed, *repr(world).encode()])

    def noise(*shape: int) -> Array:
        return rng.exponential(size=shape) - 1 if world.kind == "skewed" else rng.normal(size=shape)

    size = world.size * 3 // 2 if world.uneven else world.size
    shape = (world.clusters, studies, 2, size)
    shared, own = noise(*shape[:2], 1, 1), noise(*shape[:3], 1)
    values = np.sqrt(world.icc / 2) * (shared + own) + np.sqrt(1 - world.icc) * noise(*shape)
    if world.kind == "ties":
        values = np.clip(np.round(values), -2, 2)
    gone = rng.random(shape) < 2 * world.missing * rng.random((*shape[:2], 1, 1))
    if world.uneven:
        gone |= (np.arange(size) >= world.size // 2) & (rng.random((*shape[:2], 1, 1)) < 0.5)
    gone[..., 0] = False  # A cluster without an answer would be another design in every study.
    return np.where(gone, np.nan, values)


def sums_of(values: Array) -> Array:
    """Return count, sum and answers above 0 of shape (clusters, studies, 2, 3)."""
    there = ~np.isnan(values)
    columns = (there, np.nan_to_num(values), values > 0)
    sums: Array = np.stack([column.sum(axis=-1) for column in columns], axis=-1).astype(np.float64)
    return sums


def apart(sums: Array) -> Array:
    """Return twice the clusters, each with one side: two groups of clusters."""
    keep = np.eye(2)[:, None, None, :, None]
    # The other side of a cluster shares its lean, so the second group takes another study's clusters.
    return (np.stack([sums, np.roll(sums, 1, axis=1)]) * keep).reshape(-1, *sums.shape[1:])


def location(totals: Array) -> Array:
    """Return the first side's mean and the difference of the means."""
    mean = ratio(totals[..., 1], totals[..., 0])
    return np.stack([mean[..., 0], mean[..., 0] - mean[..., 1]], axis=-1)


def shares(totals: Array) -> Array:
    """Return risk difference and odds ratio of answers above 0."""
    counts = totals[..., [0, 2]]
    return np.stack([risk_difference(counts), odds_ratio(counts)], axis=-1)


def coverage(world: World, method: Method, studies: int, resamples: int = 1999) -> dict[str, float]:
    """Return the share of intervals that cover the truth, by statistic."""
    sums, plan = sums_of(draw_answers(world, studies)), Resampling(resamples, SEED, method=method)
    one, paired = _covers(sums, location, plan, (0.0, 0.0), MEANS)
    _, difference = _covers(apart(sums), location, plan, (0.0, 0.0), MEANS)
    risk, odds = _covers(apart(sums), shares, plan, (0.0, 1.0))
    return {
        "mean": one,
        "paired difference": paired,
        "difference of two groups": difference,
        "risk difference of two groups": risk,
        "odds ratio of two groups": odds,
    }


def false_positives(world: World, studies: int, resamples: int = 999) -> dict[str, float | None]:
    """Return how often tests reject a true hypothesis at p <= 0.05: whole clusters permuted."""
    sums, plan = sums_of(draw_answers(world, studies)), Resampling(resamples, SEED)
    return {
        "sign flip": _rejected(flip_test(sums[:, :, :1, :2], plan)[:, 0]),
        "swap": _rejected(swap_test(sums, location, plan)[:, 1]),
        "two groups": _rejected(swap_test(apart(sums), location, plan)[:, 1]),
        "two groups, shares": _rejected(swap_test(apart(sums), shares, plan)[:, 0]),
    }


def rank_false_positives(world: World, studies: int, resamples: int = 199) -> dict[str, float]:
    """Return how often rank tests reject a true hypothesis, by whole clusters and as if answers stood alone."""
    plan, found = Resampling(resamples, SEED), []
    for study in range(studies):
        drawn = np.round(draw_answers(world, 3, seed=study + 1), 1)  # (clusters, 3 groups, 2 sides, answers)
        values, size = drawn[:, :, 0], drawn.shape[3]
        clusters = np.repeat(np.arange(3 * world.clusters), size)
        groups = np.tile(np.repeat(np.arange(3), size), world.clusters)
        three = Answers(values.ravel(), groups, clusters)
        two = Answers(np.where(groups < 2, three.values, np.nan), groups, clusters)
        own, sides = np.repeat(np.arange(world.clusters), size), (drawn[:, 0, 0].ravel(), drawn[:, 0, 1].ravel())
        yes = [np.where(np.isnan(side), np.nan, side > 0) for side in sides]
        tests = (
            wilcoxon(sides[0] - sides[1], own, plan),
            mcnemar(*yes, own, plan),
            mann_whitney(two, plan),
            kruskal_wallis(three, plan),
        )
        found.append([p for test in tests for p in (test.p_cluster, test.p)])
    p = np.array(found, dtype=np.float64)
    names = [f"{test}{how}" for test in RANKED for how in ("", ", classic")]
    return {name: _rejected(p[:, column]) for column, name in enumerate(names)}


class Grid(msgspec.Struct, frozen=True):
    """Crossed answers to simulate: one in every row and column."""

    rows: int
    columns: int
    row_share: float
    """Share of the variance between rows."""
    column_share: float


def crossed_coverage(grid: Grid, studies: int, resamples: int = 999) -> dict[str, float]:
    """Return the coverage of a mean by clustering both ways, and by either alone."""
    rng, plan = np.random.default_rng([SEED, grid.rows, grid.columns]), Resampling(resamples, SEED)
    rest = np.sqrt(1 - grid.row_share - grid.column_share)
    rows, columns = rng.normal(size=(grid.rows, 1, studies)), rng.normal(size=(1, grid.columns, studies))
    values = np.sqrt(grid.row_share) * rows + np.sqrt(grid.column_share) * columns
    values = values + rest * rng.normal(size=(grid.rows, grid.columns, studies))
    values[rng.random(values.shape) < 0.1] = np.nan
    cells = np.stack([~np.isnan(values), np.nan_to_num(values)], axis=-1)[:, :, :, None].astype(np.float64)

    def mean(totals: Array) -> Array:
        return ratio(totals[..., 1], totals[..., 0])

    found = infer(Cells.of_table(cells), mean, 0.95)
    return {
        "crossed jackknife": _covered(found.low[:, 0], found.high[:, 0], 0.0),
        "rows only": _covers(cells.sum(axis=1), mean, plan, (0.0,))[0],
        "columns only": _covers(cells.sum(axis=0), mean, plan, (0.0,))[0],
    }


NEAR, DIFFERS, OPEN = VERDICTS = "shown to be near neutral", "shown to differ", "not shown either way"


def verdicts(world: World, margin: float, studies: int, resamples: int = 1999) -> dict[str, float]:
    """Return how often the verdict on a mean is which: where nothing differs, and at the edge of the margin."""
    sums, found = sums_of(draw_answers(world, studies))[:, :, :1, :2], {}
    for truth, where in ((0.0, "truth 0"), (margin, "truth at margin")):
        moved = sums + np.stack([0 * sums[..., 0], truth * sums[..., 0]], axis=-1)
        plan = Resampling(resamples)
        low, high = bootstrap(moved, lambda t: ratio(t[..., 0, 1:], t[..., 0, :1]), plan, (FREE,))
        near, differs = (-margin < low) & (high < margin), (low > 0) | (high < 0)
        seen = np.where(near, NEAR, np.where(differs, DIFFERS, OPEN))[:, 0].tolist()
        found |= {f"{verdict}, {where}": seen.count(verdict) / studies for verdict in VERDICTS}
    return found


def predicted_power(world: World, studies: int, resamples: int = 999) -> dict[str, float]:
    """Return how often an effect that the formula finds with power 0.8 is found by t of clusters and by sign flips."""
    design = _power.Design(clusters=world.clusters, size=world.size, icc=world.icc)
    effect = _power.minimum_detectable_effect(design)
    sums = sums_of(draw_answers(world, studies) + effect)[:, :, :1, :2]
    means = sums[..., 0, 1] / sums[..., 0, 0]
    return {
        "effect": effect,
        "formula": _power.power(effect, design),
        "t of clusters": _rejected(stats.ttest_1samp(means, 0, axis=0).pvalue),
        "sign flip": _rejected(flip_test(sums, Resampling(resamples))[:, 0]),
    }


def _covers(
    sums: Array, statistics: Any, plan: Resampling, truths: tuple[float, ...], ranges: Ranges = ()
) -> list[float]:
    low, high = bootstrap(sums, statistics, plan, ranges)
    return [_covered(low[:, i], high[:, i], truth) for i, truth in enumerate(truths)]
