"""Ranks and ratings: rank statistics of tables of counts, and the agreement of raters.

A table counts answers by group and ordered level, so that every statistic is a function of sums over clusters.

Krippendorff's alpha is for nominal, ordinal and interval ratings, some of which may be missing: 1 - D_o / D_e, the
disagreement within units over the disagreement that ratings dealt out at random would show (Krippendorff 2011,
*Computing Krippendorff's Alpha-Reliability*). 1 is perfect agreement, 0 what chance gives, below 0 is worse than
chance. Units with fewer than two ratings say nothing of agreement and are left out. Both disagreements are sums over
units, so units (or clusters of units) are drawn with all their ratings, and D_e is made anew in each replicate (Zapf
et al. 2016, BMC Medical Research Methodology 16:93, who find that this holds its level).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np
import polars as pl

from ..contracts.errors import DataError
from ..contracts.words import fixed, percent
from .intervals import ROUNDING, Array, Codes, normal_sf, ratio
from .resampling import Resampling, Statistics, bootstrap

MOST = 512
"""Levels that a table has at most: bounds time and memory, and moves a rank by no more than one part in 512."""


def level_counts(values: Array, groups: Codes, clusters: Codes) -> Array:
    """Count answers per cluster, group and level of `values`, shape (clusters, 1, groups, 1 + levels).

    Column 0 is the count of the group's answers, as `bootstrap` and `swap_test` want it. Groups and clusters are
    numbered from 0; a missing value (NaN) is left out. More than `MOST` different values are put together into levels
    of about equal count; equal values stay together.
    """
    there = ~np.isnan(values)
    level = levels_of(values[there])
    shape = (int(clusters.max()) + 1, int(groups.max()) + 1, int(level.max(initial=-1)) + 1)
    place = np.ravel_multi_index((clusters[there], groups[there], level), shape)
    counts = np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
    return np.concatenate([counts.sum(axis=-1, keepdims=True), counts], axis=-1)[:, None]


def levels_of(values: Array, most: int = MOST) -> Codes:
    """Return the level of each value, from 0 up; values are put together where more than `most` differ."""
    level = places(values)
    counts = np.bincount(level)
    if len(counts) <= most:
        return level
    below = np.cumsum(counts) - counts
    grouped: Codes = np.unique((below * most // len(values))[level], return_inverse=True)[1]
    return grouped


def places(values: Array) -> Codes:
    """Return the place of each value among the different ones, from 0 up; what differs by rounding alone is equal.

    Computed shares such as 5/12 - 4/12 and 4/12 - 3/12 differ by rounding, and ranks would tell them apart.
    """
    different, place = np.unique(values, return_inverse=True)
    largest = np.abs(different[np.isfinite(different)]).max(initial=0.0)
    steps = np.cumsum(np.diff(different) > ROUNDING * largest)
    found: Codes = np.concatenate([np.zeros(1, dtype=np.int64), steps])[place]
    return found


def signed_places(differences: Array) -> Codes:
    """Return the place of the size of each difference, with its sign; 0 for no more than rounding."""
    sizes = places(np.concatenate([np.zeros(1), np.abs(differences)]))[1:]
    found: Codes = sizes * np.sign(differences).astype(np.int64)
    return found


def midranks(totals: Array) -> Array:
    """Return the midrank of each level from the counts (..., levels) of all answers."""
    ranks: Array = np.cumsum(totals, axis=-1) - (totals - 1) / 2
    return ranks


def cliffs_delta(table: Array) -> Array:
    """Return P(first group above second) - P(below), from -1 to 1. Source: Cliff (1993)."""
    first, second = table[..., 0, :], table[..., 1, :]
    below = np.cumsum(second, axis=-1) - second
    above = second.sum(axis=-1, keepdims=True) - second - below
    return ratio((first * (below - above)).sum(axis=-1), first.sum(axis=-1) * second.sum(axis=-1))


def kruskal_h(table: Array) -> Array:
    """Return Kruskal and Wallis's H, corrected for ties; groups without an answer are left out."""
    totals = table.sum(axis=-2)
    n, sizes = totals.sum(axis=-1), table.sum(axis=-1)
    sums = (table * midranks(totals)[..., None, :]).sum(axis=-1)
    between = np.where(sizes > 0, ratio((sums - sizes * (n[..., None] + 1) / 2) ** 2, sizes), 0.0).sum(axis=-1)
    return ratio(12 * between, n * (n + 1) * (1 - ratio((totals**3 - totals).sum(axis=-1), n**3 - n)))


def epsilon_squared(table: Array) -> Array:
    """Return H (n + 1) / (n^2 - 1) = H / (n - 1), from 0 to 1. Source: Kelley (1935); Tomczak and Tomczak (2014)."""
    return ratio(kruskal_h(table), table.sum(axis=(-1, -2)) - 1)


def tau_b(table: Array) -> Array:
    """Return Kendall's tau-b of groups (in their order) and levels."""
    return taus(table)[0]


def tau_c(table: Array) -> Array:
    """Return Stuart's tau-c of groups (in their order) and levels: 2 m S / (n^2 (m - 1)), m the shorter side."""
    return taus(table)[1]


def taus(table: Array) -> tuple[Array, Array]:
    """Return tau-b and tau-c, which share most of their work."""
    counts = _groups_first(table)
    groups, levels = counts.sum(axis=1), counts.sum(axis=0)
    n, apart = levels.sum(axis=0), _concordance(counts)
    rows, columns = ((n**2 - (side**2).sum(axis=0)) / 2 for side in (levels, groups))
    shorter = np.minimum((levels > 0).sum(axis=0), (groups > 0).sum(axis=0)).astype(np.float64)
    return ratio(apart, np.sqrt(rows * columns)), ratio(2 * shorter * apart, n**2 * (shorter - 1))


def _groups_first(table: Array) -> Array:
    """Return the counts as (groups, levels, ...): numpy sums over a short axis fast only where it comes first."""
    return np.ascontiguousarray(np.moveaxis(table, (-2, -1), (0, 1)))


def kendall_p(table: Array) -> float:
    """Return the asymptotic two-sided p of Kendall's tau, as if every answer stood for itself; NaN if undefined.

    As `scipy.stats.kendalltau` has it, with the variance corrected for ties. Source: Kendall (1970), chapter 5.
    """
    n = float(table.sum())
    pairs, ties = n * (n - 1), [table.sum(axis=axis) for axis in (-1, -2)]
    (rows, row_triples, row_spread), (columns, column_triples, column_spread) = map(_ties, ties)
    if not rows < pairs or not columns < pairs:
        return float("nan")
    spread = (pairs * (2 * n + 5) - row_spread - column_spread) / 18 + rows * columns / (2 * pairs)
    if n > 2:
        spread += row_triples * column_triples / (9 * pairs * (n - 2))
    return float(min(1.0, 2 * normal_sf(abs(float(_concordance(_groups_first(table)))) / np.sqrt(spread))))


def _ties(counts: Array) -> tuple[float, float, float]:
    """Return the sums over ties of t that the variance of tau is made of."""
    pairs = counts * (counts - 1)
    return float(pairs.sum()), float((pairs * (counts - 2)).sum()), float((pairs * (2 * counts + 5)).sum())


def rank_biserial(table: Array) -> Array:
    """Return (T+ - T-) / (T+ + T-) of paired differences; groups are signs, levels are sizes above 0.

    Source: Kerby (2014); King, Rosopa and Minium (2011). Zero differences have no sign and stand in no level.
    """
    ranks = midranks(table.sum(axis=-2))
    above, below = ((table[..., side, :] * ranks).sum(axis=-1) for side in (0, 1))
    return ratio(above - below, above + below)


def _concordance(counts: Array) -> Array:
    """Return concordant minus discordant pairs of answers; counts (groups, levels, ...)."""
    # Answers in lower groups, at lower and at higher levels.
    lower = np.cumsum(counts, axis=0) - counts
    left = np.cumsum(lower, axis=1) - lower
    right = lower.sum(axis=1, keepdims=True) - lower - left
    pairs: Array = (counts * (left - right)).sum(axis=(0, 1))
    return pairs


Scale = Literal["nominal", "ordinal", "interval"]
"""Nominal: equal or not; ordinal: by ranks; interval: by squared differences."""


class Agreement(msgspec.Struct, frozen=True):
    """How far raters agree."""

    alpha: float | None
    """None where undefined: no unit with two ratings, or all ratings the same."""
    low: float | None
    high: float | None
    """Ends of the bootstrap interval; None with fewer than two units or no variation."""
    scale: Scale
    units: int
    """Units with at least two ratings, on which alpha rests."""
    ratings: int
    """Ratings of these units."""
    raters: int
    """Raters who gave these ratings."""
    single: int
    """Units left out: one rating."""
    unrated: int
    """Units left out: no rating."""

    def lines(self, units: str, level: float) -> Iterator[str]:
        """Yield the result as lines of text; `units` names what was rated."""
        if self.alpha is None:
            yield f"Krippendorff's alpha: undefined (no two ratings of one of the {units}, or all ratings the same)"
        else:
            ends = "no interval"
            if self.low is not None and self.high is not None:
                ends = f"{percent(level)} interval {fixed(self.low, 3)} to {fixed(self.high, 3)}"
            yield f"Krippendorff's alpha: {fixed(self.alpha, 3)} ({self.scale}, {ends}, bootstrap)"
        left = f"; left out: {self.single} with one rating, {self.unrated} with none"
        yield f"  {self.units} {units} with two ratings, {self.ratings} ratings, {self.raters} annotators{left}"


def agreement(
    ratings: Array, scale: Scale, plan: Resampling | None = None, clusters: Sequence[object] | None = None
) -> Agreement:
    """Return alpha with its interval.

    Args:
        ratings: Shape (units, raters), NaN where a rating is missing. Ordinal and interval values as they are;
            nominal ones as any codes (see `rating_table`).
        scale: How ratings differ.
        plan: How to resample; 9,999 percentile bootstrap samples if none is given.
        clusters: One label per unit, such as its template, where units are not independent; without labels every unit
            is independent.

    Raises:
        DataError: the ratings are no table, or there is not one cluster per unit.
    """
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or (clusters is not None and len(clusters) != len(table)):
        labels = "" if clusters is None else f" and {len(clusters)} clusters"
        raise DataError(
            f"Ratings of shape {table.shape}{labels}. Give a table (units, raters), one cluster per unit.",
            code="data.shape",
        )
    given = (~np.isnan(table)).sum(axis=1)
    kept = table[given > 1]
    value, low, high = None, None, None
    if len(kept):
        own = np.arange(len(table)) if clusters is None else np.unique(list(map(str, clusters)), return_inverse=True)[1]
        sums, statistics = _moments(kept) if scale == "interval" else _coincidences(kept, scale)
        value = _number(statistics(sums.sum(axis=0)))
        low, high = map(_number, bootstrap(_summed(sums, own[given > 1]), statistics, plan or Resampling()))
    return Agreement(
        alpha=value,
        low=low,
        high=high,
        scale=scale,
        units=len(kept),
        ratings=int((~np.isnan(kept)).sum()),
        raters=int((~np.isnan(kept)).any(axis=0).sum()),
        single=int((given == 1).sum()),
        unrated=int((given == 0).sum()),
    )


def rating_table(rows: pl.DataFrame, columns: tuple[str, str, str], order: Sequence[object] | None = None) -> Array:
    """Return the table (units, raters) of ratings in long form; units and raters stand in the order of their text.

    Args:
        rows: One row per rating; a rating that is null is missing. A row without a rater names a unit nobody rated.
        columns: Names of the columns of the unit, the rater and the rating.
        order: The possible ratings, least first; a rating becomes its place in it. Without it numbers are taken as
            they are, and words become nominal codes.

    Raises:
        DataError: a rater rated a unit twice, or a rating is not in `order`.
    """
    unit, rater, rating = columns
    rows = rows.select(unit, rater, rating).filter(pl.col(unit).is_not_null())
    units = np.unique(rows[unit].cast(pl.String).to_numpy())
    rows = rows.filter(pl.col(rater).is_not_null())
    twice = rows.filter(rows.select(unit, rater).is_duplicated())
    if twice.height:
        raise DataError(
            f"Rater {twice[rater][0]!r} rated {twice[unit][0]!r} twice. Keep one rating per rater and unit.",
            code="data.duplicate",
        )
    codes = _codes(rows[rating], order)
    raters, columns_of = np.unique(rows[rater].cast(pl.String).to_numpy(), return_inverse=True)
    table = np.full((len(units), len(raters)), np.nan)
    table[np.searchsorted(units, rows[unit].cast(pl.String).to_numpy()), columns_of] = codes
    return table


def _codes(values: pl.Series, order: Sequence[object] | None) -> Array:
    if order is None and values.dtype.is_numeric():
        return values.cast(pl.Float64).fill_null(np.nan).to_numpy()
    known = list(order) if order is not None else values.drop_nulls().unique(maintain_order=True).to_list()
    places = {value: float(place) for place, value in enumerate(known)}
    if strange := [value for value in values.drop_nulls().unique().to_list() if value not in places]:
        raise DataError(
            f"Rating {strange[0]!r} is not one of {known}. Correct it, or leave it empty where missing.",
            code="data.unknown-value",
        )
    return np.array([np.nan if value is None else places[value] for value in values.to_list()], dtype=np.float64)


def _summed(sums: Array, clusters: Codes) -> Array:
    """Return the sums of whole clusters."""
    _, codes = np.unique(clusters, return_inverse=True)
    total = np.zeros((codes.max() + 1, *sums.shape[1:]))
    np.add.at(total, codes, sums)
    return total


def _coincidences(ratings: Array, scale: Scale) -> tuple[Array, Statistics]:
    """Return each unit's ratings and coincidence matrix, shape (units, 1, 1, 1 + values squared), and alpha of them."""
    values = np.unique(ratings[~np.isnan(ratings)])
    counts = (ratings[:, :, None] == values).sum(axis=1).astype(np.float64)
    n = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(values))
    flat = (pairs / (n - 1)[:, None, None]).reshape(len(counts), -1)
    return np.concatenate([n[:, None], flat], axis=1)[:, None, None], _Coincident(len(values), scale)


class _Coincident:
    """Alpha from totals of coincidences."""

    def __init__(self, values: int, scale: Scale) -> None:
        self._values, self._scale = values, scale

    def __call__(self, totals: Array) -> Array:
        n, flat = totals[..., 0, 0], totals[..., 0, 1:]
        found = flat.reshape(*flat.shape[:-1], self._values, self._values)
        margins = found.sum(axis=-1)
        if self._scale == "nominal":
            apart: Array = 1 - np.eye(self._values)
        else:
            # The ordinal difference of two values is that of their mid-ranks.
            ranks = margins.cumsum(axis=-1) - margins / 2
            apart = (ranks[..., :, None] - ranks[..., None, :]) ** 2
        within = (found * apart).sum(axis=(-2, -1))
        between = (margins[..., :, None] * margins[..., None, :] * apart).sum(axis=(-2, -1))
        return (1 - ratio((n - 1) * within, between))[..., None]


def _moments(ratings: Array) -> tuple[Array, Statistics]:
    """Return each unit's count, sum, sum of squares and disagreement, and alpha of them: no matrix of all values."""
    # Differences only count: about the mean, large values of little spread keep their digits.
    centred = ratings - np.nanmean(ratings)
    n = (~np.isnan(ratings)).sum(axis=1).astype(np.float64)
    total, squares = np.nansum(centred, axis=1), np.nansum(centred**2, axis=1)
    within = 2 * (n * squares - total**2) / (n - 1)
    return np.stack([n, total, squares, within], axis=1)[:, None, None], _of_moments


def _of_moments(totals: Array) -> Array:
    n, total, squares, within = (totals[..., 0, column] for column in range(4))
    between = 2 * (n * squares - total**2)
    return (1 - ratio((n - 1) * within, between))[..., None]


def _number(value: Array) -> float | None:
    found = float(value.ravel()[0])
    return None if np.isnan(found) else found
