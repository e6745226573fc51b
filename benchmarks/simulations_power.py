"""Studies simulated with the effect that a design is said to find with power 0.8: how often do the tests find it?"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from rank_tests import Answers, kruskal_wallis, mann_whitney, wilcoxon
from scipy import special

from prejudge.core.statistics.intervals import Array, ratio
from prejudge.core.statistics.multiway import Cells, infer
from prejudge.core.statistics.power import (
    CrossedDesign,
    GroupsDesign,
    RankDesign,
    crossed_pilot,
    minimum_detectable_effect,
)
from prejudge.core.statistics.resampling import Resampling

SEED = 0
ALPHA = 0.05
DRAWN = 1_000_000
"""Pairs of answers that say how far ranks move."""
GROUPS = 3
"""Of the simulated tests of Kruskal and Wallis."""


class Crossing(msgspec.Struct, frozen=True):
    """Crossed answers of variance 1 to simulate."""

    rows: int
    columns: int
    """In each group."""
    row_share: float
    """Share of the variance between rows; between rows of one group, where there are two."""
    column_share: float
    groups: int = 1
    missing: float = 0.0
    """Share of the cells that are not asked."""

    def design(self) -> CrossedDesign:
        """Return the design whose power is predicted."""
        return CrossedDesign(
            levels=(self.rows, self.columns),
            shares=(self.row_share, self.column_share),
            fill=1 - self.missing,
            groups=self.groups,
        )


class Ranking(msgspec.Struct, frozen=True):
    """Answers of variance 1 in clusters, to be tested by ranks."""

    clusters: int
    """In each group."""
    size: int = 1
    icc: float = 0.0
    kind: str = "normal"
    """`normal`, or `laplace`: heavy tails, in clusters and in answers."""

    @property
    def rank_icc(self) -> float:
        """Return the correlation of the ranks of two answers of one cluster, answers being normal (Pearson 1907)."""
        return 6 / math.pi * math.asin(self.icc / 2)


def draw_crossed(crossing: Crossing, studies: int, seed: int = SEED) -> Array:
    """Return answers (rows, columns, groups, studies) of mean 0; NaN where missing."""
    rng = np.random.default_rng([seed, *repr(crossing).encode()])
    r, c, g = crossing.rows, crossing.columns, crossing.groups
    rest = 1 - crossing.row_share - crossing.column_share
    shapes = ((r, 1, g, studies), (1, c, g, studies), (r, c, g, studies))
    shares = (crossing.row_share, crossing.column_share, rest)
    values = sum(math.sqrt(share) * rng.normal(size=shape) for share, shape in zip(shares, shapes, strict=True))
    if g == 2:
        # What a row adds to both groups cancels in their difference.
        values = values + rng.normal(size=(r, 1, 1, studies))
    return np.where(rng.random((r, c, g, studies)) < crossing.missing, np.nan, values)


def crossed_power(crossing: Crossing, studies: int) -> dict[str, float]:
    """Return how often the crossed jackknife finds the predicted effect, and how near pilots come to its size."""
    values = draw_crossed(crossing, studies)
    effect = minimum_detectable_effect(crossing.design())
    values[:, :, 0] += effect
    sums = np.stack([~np.isnan(values), np.nan_to_num(values)], axis=-1).astype(np.float64)
    # Columns belong to one group each, so the groups stand beside each other.
    shape = (crossing.rows, crossing.columns * crossing.groups, studies, crossing.groups, 2)
    cells = np.zeros(shape)
    for side in range(crossing.groups):
        cells[:, side * crossing.columns : (side + 1) * crossing.columns, :, side] = sums[:, :, side]

    def location(totals: Array) -> Array:
        means = ratio(totals[..., 1], totals[..., 0])
        return means[..., :1] - means[..., 1:] if crossing.groups == 2 else means

    found = infer(Cells.of_table(cells), location, 0.95)
    tried = [_from_pilot(crossing, values[..., study]) for study in range(min(studies, 200))]
    return {
        "effect": effect,
        "crossed jackknife": float(np.mean((found.low[:, 0] > 0) | (found.high[:, 0] < 0))),
        "effect by pilots, median": float(np.median(tried)),
    }


def _from_pilot(crossing: Crossing, values: Array) -> float:
    rows, columns, sides = np.indices(values.shape).reshape(3, -1)
    # A column stands in one group only.
    found = crossed_pilot(values.ravel(), [rows, columns * 2 + sides], sides)
    design = msgspec.structs.replace(crossing.design(), spread=found.spread or 0, shares=found.shares or (0.0, 0.0))
    return minimum_detectable_effect(design)


def rank_power(world: Ranking, studies: int, resamples: int = 499) -> dict[str, float | None]:
    """Return how often rank tests of whole clusters find the predicted effects: None where no effect is enough."""
    plan = Resampling(resamples, SEED)
    shape = {"size": world.size, "icc": world.rank_icc}
    paired, two = (minimum_detectable_effect(RankDesign(clusters=world.clusters, groups=g, **shape)) for g in (1, 2))
    f = minimum_detectable_effect(GroupsDesign(clusters=(world.clusters,) * GROUPS, ranks=True, **shape))
    moves = (shift_of(paired, world, 1), shift_of(two, world, 2), f * math.sqrt(1.5))
    found = [_rejections(world, moves, study, plan) for study in range(studies)]
    rates = np.mean(found, axis=0)
    return {
        "rank-biserial": paired if math.isfinite(paired) else None,
        "Wilcoxon": float(rates[0]) if math.isfinite(paired) else None,
        "Cliff's delta": two if math.isfinite(two) else None,
        "Mann-Whitney": float(rates[1]) if math.isfinite(two) else None,
        "Cohen's f": f,
        "Kruskal-Wallis": float(rates[2]),
    }


def shift_of(effect: float, world: Ranking, groups: int) -> float:
    """Return by how much answers move where ranks have this effect: P(D + D' > 0) or P(X > Y) is (1 + effect) / 2.

    An infinite effect, which no test finds, moves nothing.
    """
    if not math.isfinite(effect):
        return 0.0
    if world.kind == "normal":
        return float(special.ndtri((1 + effect) / 2)) * (math.sqrt(0.5) if groups == 1 else math.sqrt(2))
    drawn = _draw(msgspec.structs.replace(world, clusters=DRAWN, size=1), 2, SEED)
    # Symmetric answers: a sum is distributed as a difference.
    return float(-np.quantile(drawn.sum(axis=0), (1 - effect) / 2)) / (2 if groups == 1 else 1)


def _rejections(world: Ranking, moves: tuple[float, float, float], study: int, plan: Resampling) -> list[bool]:
    drawn = _draw(world, GROUPS, study)
    tests = (
        wilcoxon((drawn[0] + moves[0]).ravel(), np.repeat(np.arange(world.clusters), world.size), plan),
        mann_whitney(_answers(drawn[:2], [moves[1], 0]), plan),
        kruskal_wallis(_answers(drawn, [-moves[2], 0, moves[2]]), plan),
    )
    return [test.p_cluster is not None and test.p_cluster <= ALPHA for test in tests]


def _draw(world: Ranking, groups: int, study: int) -> Array:
    """Return answers (groups, clusters, size)."""
    rng = np.random.default_rng([SEED, study, *repr(world).encode()])
    shape = (groups, world.clusters, world.size)

    def noise(*size: int) -> Array:
        return rng.normal(size=size) if world.kind == "normal" else rng.laplace(scale=math.sqrt(0.5), size=size)

    between: Array = math.sqrt(world.icc) * noise(*shape[:2], 1)
    return between + math.sqrt(1 - world.icc) * noise(*shape)


def _answers(drawn: Array, moves: list[float]) -> Answers:
    """Return the answers of groups that have clusters of their own."""
    groups, clusters, size = drawn.shape
    values = drawn + np.array(moves)[:, None, None]
    numbers = np.arange(groups * clusters)
    return Answers(values.ravel(), np.repeat(numbers // clusters, size), np.repeat(numbers, size))
