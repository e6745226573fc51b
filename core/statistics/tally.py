"""TriSentBias as sums per cluster: what to count in a pair, and every statistic as a function of the sums.

Columns of the sums: the count of pairs, the sum of D and of its square, then per threshold the pairs that prefer the
desirable side (n2) and the undesirable one (n3). D is the log-odds difference PLL_desirable - PLL_undesirable in nats.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from ..contracts.records import Scalar
from .arrays import Array, ratio
from .intervals import CONTRAST, FREE, SHARE, Ranges
from .pairs import missing_by_status

TURN = (-np.pi, np.pi)
"""What Cohen's h can be."""
CELL = ("axis", "gender", "sentiment")
SENTIMENTS = ("positive", "negative", "neutral")
N, SUM, SQUARES, FIRST = 0, 1, 2, 3
"""Columns of the sums; from FIRST on, n2 and n3 of each threshold."""


class Tally(msgspec.Struct, frozen=True):
    """The cells of a study, in order, with their sums per cluster."""

    cells: tuple[dict[str, Scalar], ...]
    sums: Array
    """Shape (clusters, cells, 3 + 2 * thresholds)."""
    missing: tuple[dict[str, int], ...]
    """Per cell, the pairs left out, by status."""

    def contrasts(self) -> list[tuple[dict[str, Scalar], int, int]]:
        """Return axis and gender with the indices of its positive and of its negative cell."""
        places = {tuple(cell.values()): index for index, cell in enumerate(self.cells)}
        groups = dict.fromkeys((cell["axis"], cell["gender"]) for cell in self.cells)
        return [
            ({"axis": axis, "gender": gender}, places[axis, gender, "positive"], places[axis, gender, "negative"])
            for axis, gender in groups
            if (axis, gender, "positive") in places and (axis, gender, "negative") in places
        ]


def npll_difference(difference: Array) -> Array:
    """Return NPLL(S_d) - NPLL(S_u) = tanh(D / 2), the two-way softmax of the paper without its underflow.

    Source: BIStereo (2025), section 4.1.1.
    """
    result: Array = np.tanh(difference / 2)
    return result


def tally(pairs: pl.DataFrame, cluster: str, thresholds: Sequence[float]) -> Tally:
    """Sum the readable pairs per cluster and cell. Pairs without a value in `cluster` form one cluster."""
    cells = _cells(pairs)
    placed = pairs.join(cells, on=CELL, how="left", maintain_order="left")
    missing = {key[0]: missing_by_status(part) for key, part in placed.partition_by("cell", as_dict=True).items()}
    labels = tuple(cells.drop("cell").to_dicts())
    sums = _sums(placed.filter(pl.col("status") == "ok"), cluster, thresholds, len(labels))
    return Tally(labels, sums, tuple(missing[index] for index in range(len(labels))))


def cell_statistics(totals: Array) -> Array:
    """Return per cell: mean D, mean D in standard deviations, then z1, z2, z3 and z2 - z3 per threshold (shares)."""
    total = totals[..., 0, :]
    count = total[..., N]
    parts = [_mean(total), _standardised(_mean(total), _variance(total))]
    for column in range(FIRST, total.shape[-1], 2):
        z2, z3 = ratio(total[..., column], count), ratio(total[..., column + 1], count)
        parts += [ratio(count - total[..., column] - total[..., column + 1], count), z2, z3, z2 - z3]
    return np.stack(parts, axis=-1)


def cell_ranges(columns: int) -> Ranges:
    """Return what `cell_statistics` of so many columns can be."""
    return FREE, FREE, *(SHARE, SHARE, SHARE, CONTRAST) * ((columns - FIRST) // 2)


def contrast_ranges(columns: int) -> Ranges:
    """Return what `contrast_statistics` of so many columns can be."""
    return FREE, FREE, *(CONTRAST, CONTRAST, TURN, TURN) * ((columns - FIRST) // 2)


def contrast_statistics(totals: Array) -> Array:
    """Return per contrast of a positive with a negative cell what `CONTRASTS` lists.

    First the difference of mean D and its Cohen's d; then per threshold favouritism z2+ - z2-, discrimination
    z3- - z3+ (shares), and Cohen's h of each.
    """
    positive, negative = totals[..., 0, :], totals[..., 1, :]
    gap = _mean(positive) - _mean(negative)
    parts = [gap, _standardised(gap, _pooled(positive, negative))]
    for column in range(FIRST, totals.shape[-1], 2):
        more, less = ratio(positive[..., column], positive[..., N]), ratio(negative[..., column], negative[..., N])
        worse = ratio(negative[..., column + 1], negative[..., N])
        better = ratio(positive[..., column + 1], positive[..., N])
        parts += [more - less, worse - better, _angle(more) - _angle(less), _angle(worse) - _angle(better)]
    return np.stack(parts, axis=-1)


def signed(totals: Array) -> Array:
    """Return the columns a sign flip acts on: count, sum of D, and n2 - n3 per threshold."""
    return np.concatenate([totals[..., :2], totals[..., FIRST::2] - totals[..., FIRST + 1 :: 2]], axis=-1)


def _cells(pairs: pl.DataFrame) -> pl.DataFrame:
    """List the cells in the study's own order of axes and genders, positive before negative before neutral."""
    seen = pairs.select(CELL).unique(maintain_order=True).with_row_index("seen")
    order = [
        pl.col("seen").min().over("axis"),
        pl.col("seen").min().over("axis", "gender"),
        pl.col("sentiment").replace_strict(SENTIMENTS, range(3), return_dtype=pl.Int8),
    ]
    return seen.sort(order).select(CELL).with_row_index("cell")


def _mean(total: Array) -> Array:
    return ratio(total[..., SUM], total[..., N])


def _standardised(gap: Array, variance: Array) -> Array:
    """Return a difference in standard deviations: 0 for none at all, undefined for another that does not vary.

    Resamples in which nothing differs count as 0; left out, they would move the interval away from 0.
    """
    return np.where((gap == 0) & (variance == 0), 0.0, ratio(gap, np.sqrt(variance)))


def _spread(total: Array) -> Array:
    """Sum of squares about the mean; 0 where it is no more than rounding."""
    about = total[..., SQUARES] - ratio(total[..., SUM] ** 2, total[..., N])
    return np.where(about > 1e-12 * total[..., SQUARES], about, 0.0)


def _variance(total: Array) -> Array:
    return ratio(_spread(total), total[..., N] - 1)


def _pooled(one: Array, other: Array) -> Array:
    return ratio(_spread(one) + _spread(other), one[..., N] + other[..., N] - 2)


def _angle(share: Array) -> Array:
    """Cohen's arcsine transform; the clip takes off rounding only."""
    angle: Array = 2 * np.arcsin(np.sqrt(np.clip(share, 0, 1)))
    return angle


def _sums(pairs: pl.DataFrame, cluster: str, thresholds: Sequence[float], cells: int) -> Array:
    difference = pairs["difference"].to_numpy()
    npll = npll_difference(difference)
    columns: list[Array] = [np.ones(len(npll)), difference, difference**2]
    for threshold in thresholds:
        columns += [(npll > threshold).astype(np.float64), (npll < -threshold).astype(np.float64)]
    codes = pairs[cluster].rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
    _, code = np.unique(codes, return_inverse=True)
    clusters = int(code.max()) + 1 if len(code) else 0
    place = code * cells + pairs["cell"].to_numpy().astype(np.int64)
    flat = [np.bincount(place, weights=column, minlength=clusters * cells) for column in columns]
    sums: Array = np.stack(flat, axis=-1).astype(np.float64).reshape(clusters, cells, len(columns))
    return sums
