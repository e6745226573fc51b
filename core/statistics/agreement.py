"""Agreement of raters: Krippendorff's alpha for nominal, ordinal and interval ratings, some of which may be missing.

alpha = 1 - D_o / D_e: the disagreement within units over the disagreement that ratings dealt out at random would show
(Krippendorff 2011, *Computing Krippendorff's Alpha-Reliability*). 1 is perfect agreement, 0 what chance gives, below 0
is worse than chance. Units with fewer than two ratings say nothing of agreement and are left out.

Both disagreements are functions of sums over units, so that the toolbox's bootstrap gives the interval: units (or
clusters of units) are drawn with all their ratings, and D_e is made anew in each replicate (Zapf et al. 2016, BMC
Medical Research Methodology 16:93, who find that this holds its level).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
import polars as pl

from ..contracts.errors import DataError
from .arrays import Array, Codes, ratio
from .cluster import Resampling, Statistics, bootstrap

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


def agreement(
    ratings: Array, scale: Scale, plan: Resampling | None = None, clusters: Sequence[object] | None = None
) -> Agreement:
    """Return alpha with its interval.

    Args:
        ratings: Shape (units, raters), NaN where a rating is missing. Ordinal and interval values as they are;
            nominal ones as any codes (see `rating_table`).
        scale: How ratings differ.
        plan: How to resample; 9,999 percentile bootstrap samples if none is given.
        clusters: One label per unit, such as its template, where units are not independent; each unit by itself if
            none is given.

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
