"""Shares corrected by an error matrix that is known from elsewhere (Rogan and Gladen 1978).

The share that was seen varies over draws of clusters, and the matrix over those by which it was made. Both are drawn,
the rates of the matrix from Beta distributions of its counts with one more of each (as Lang and Reiczigel 2014 add
them), and the interval is that of the corrected draws. With one matrix for both sides of a difference its errors are
drawn once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy import stats

from ..contracts.csv import read_rows
from ..contracts.errors import DataError, UsageError
from .powered import Array, Codes, Rows, side_covariance

DRAWS = 20_000
SEED = 20_261_123
VERDICT, LABEL, COUNT = "verdict", "label", "n"


class Matrix(NamedTuple):
    """How often a verdict was right and wrong, by what is true: for all answers, or by level of factors."""

    levels: tuple[str, str]
    """The two labels."""
    factors: tuple[str, ...]
    counts: Mapping[tuple[str, ...], Array]
    """By levels of the factors, shape (2, 2): label, verdict."""


def read_matrix(path: str) -> Matrix:
    """Return the matrix of a CSV file: `verdict`, `label` (what is true), `n`, and factors in which errors differ.

    Raises:
        DataError: the file cannot be read, or a count is none.
        UsageError: there are not two labels, or one has no answer.
    """
    rows = [row.cells for row in read_rows(path, (VERDICT, LABEL, COUNT))]
    factors = tuple(name for name in (rows[0] if rows else {}) if name not in (VERDICT, LABEL, COUNT))
    levels = tuple(sorted({row[LABEL] for row in rows} | {row[VERDICT] for row in rows}))
    if len(levels) != 2:
        raise UsageError(
            f"{path!r} has the labels {', '.join(levels) or 'none'}; an error matrix has two. With more, draw and "
            "label a sample.",
            code="annotation.matrix",
        )
    counts: dict[tuple[str, ...], Array] = {}
    for row in rows:
        own = counts.setdefault(tuple(row[name] for name in factors), np.zeros((2, 2)))
        if not row[COUNT].strip().isdecimal():
            raise DataError(f"{path!r}: {row[COUNT]!r} is no count of answers.", code="data.number")
        own[levels.index(row[LABEL]), levels.index(row[VERDICT])] += int(row[COUNT])
    for key, own in counts.items():
        _ensure_informative(own, (levels[0], levels[1]), key)
    return Matrix((levels[0], levels[1]), factors, counts)


def _ensure_informative(counts: Array, levels: tuple[str, str], key: tuple[str, ...]) -> None:
    """Refuse a matrix by which nothing can be corrected.

    Raises:
        UsageError: sensitivity and specificity may add up to 1, as those of a coin do.
    """
    right, drawn = np.diagonal(counts), counts.sum(axis=1)
    told = " and ".join(f"{int(right[n])} of {int(drawn[n])} {levels[n]!r}" for n in (0, 1))
    where = f" for {', '.join(key)}" if key else ""
    if not drawn.all():
        raise UsageError(
            f"the error matrix{where} knows {told}: without answers of both it says nothing of one of its errors.",
            code="annotation.matrix",
        )
    found = _rates(counts, np.random.default_rng(SEED), DRAWS).sum(axis=1)
    if float(np.quantile(found, 0.025)) <= 1.0:
        raise UsageError(
            f"the error matrix{where} is right for {told}, which a verdict by chance can be, too: nothing can be "
            "corrected by it.",
            code="annotation.matrix",
        )


def _rates(counts: Array, random: np.random.Generator, draws: int) -> Array:
    """Return draws of how often the verdict is right by label, shape (draws, 2)."""
    return np.stack([random.beta(counts[n, n] + 1.0, counts[n, 1 - n] + 1.0, draws) for n in (0, 1)], axis=-1)


class ByMatrix(NamedTuple):
    """A corrected estimate."""

    value: float
    low: float
    high: float
    closer: bool


def by_matrix(rows: Rows, ends: tuple[float, float], cells: Codes, counts: list[Array], level: float) -> ByMatrix:
    """Return a mean of two-valued rows, or the difference of two, corrected by the matrix of each cell.

    Args:
        rows: By the verdict.
        ends: The values of a row whose label is the first, and the second.
        cells: Shape (rows,), which of `counts` a row has errors of.
        counts: Shape (2, 2) each: label, verdict.
        level: Of the interval.
    """
    places = np.unique(np.stack([rows.signs, cells.astype(np.float64)]), axis=1)
    own = np.zeros(len(cells), dtype=np.int64)
    for number, (sign, cell) in enumerate(places.T):
        own[(rows.signs == sign) & (cells == cell)] = number
    sizes = np.bincount(own)
    weights = np.array([places[0, n] * sizes[n] / (rows.signs == places[0, n]).sum() for n in range(len(sizes))])
    of = places[1].astype(np.int64)
    span = ends[1] - ends[0]
    shares = (np.bincount(own, rows.values) / sizes - ends[0]) / span
    random = np.random.default_rng(SEED)
    least = min((int(way.max()) + 1 for way in rows.ways), default=len(cells))
    noise = random.multivariate_normal(np.zeros(len(sizes)), side_covariance(rows, own) / span**2, DRAWS)
    noise *= np.sqrt((least - 1) / random.chisquare(max(least - 1, 1), DRAWS))[:, None] if least > 1 else 1.0
    rates = np.stack([_rates(one, random, DRAWS) for one in counts], axis=1)[:, of]
    drawn = span * (_corrected(shares + noise, rates) @ weights)
    # Both sides of a difference begin at the same end, which cancels; a mean begins there.
    start = ends[0] * weights.sum()
    known = np.array([np.diagonal(one) / one.sum(axis=1) for one in counts])[of]
    value = float(span * (_corrected(shares, known) @ weights)) + start
    low, high = (float(end) + start for end in np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]))
    raw = float(span * (shares @ weights)) + start
    sampling = float(weights @ side_covariance(rows, own) @ weights)
    spread = (high - low) / (2 * float(stats.norm.ppf((1 + level) / 2)))
    bias = max(0.0, (raw - value) ** 2 - max(spread**2 - sampling, 0.0))
    return ByMatrix(value, min(low, value), max(high, value), spread**2 <= bias + sampling)


def _corrected(shares: Array, rates: Array) -> Array:
    """Return shares of the second label by shares of its verdict."""
    below = rates.sum(axis=-1) - 1
    safe = np.where(below > 0.01, below, 0.01)
    return np.asarray(np.clip((shares + rates[..., 0] - 1) / safe, 0.0, 1.0))
