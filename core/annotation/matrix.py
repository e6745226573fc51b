"""Shares corrected by an error matrix that is known from elsewhere (Rogan and Gladen 1978), of two labels or more.

The shares that were seen vary over draws of clusters, and the matrix over those by which it was made. Both are drawn,
the rates of a label from a Dirichlet distribution of its counts with one more of each (as Lang and Reiczigel 2014 add
them to two), and the interval is that of the corrected draws. With one matrix for both sides of a difference its errors
are drawn once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy import stats

from ..contracts.errors import UsageError
from ..statistics.clusters import Array, Codes
from ..statistics.error_matrix import draw_rates, true_shares
from ..tables import Form, Repeats, Row, parse_file
from .powered import Corrected, Rows, covariance_over

DRAWS = 20_000
SEED = 20_261_123
PRIOR = 1.0
VERDICT, LABEL, COUNT = "verdict", "label", "n"
NEARLY = 0.01
"""A matrix with a smaller determinant divides by this instead."""


class Matrix(NamedTuple):
    """How often each verdict was given, by what is true: for all answers, or by level of factors."""

    levels: tuple[str, ...]
    """The labels, two or more; the verdicts are the same."""
    factors: tuple[str, ...]
    counts: Mapping[tuple[str, ...], Array]
    """By levels of the factors, shape (labels, verdicts)."""


def read_matrix(path: str) -> Matrix:
    """Return the matrix of a CSV file: `verdict`, `label` (what is true), `n`, and factors in which errors differ.

    Raises:
        DataError: the file cannot be read, or a count is none.
        UsageError: there is one label only, or one has no answer, or verdicts may be those of chance.
    """
    repeats = Repeats((COUNT,))

    def cells_of(row: Row) -> dict[str, str]:
        name = tuple(sorted((column, cell) for column, cell in row.cells.items() if column != COUNT))
        if not row.cells[COUNT].strip().isdecimal():
            raise row.fault(f"{row.cells[COUNT]!r} is no count of answers.", "data.number", "no count of answers")
        repeats.check(row, name, f"the count of {', '.join(cell for _, cell in name)}")
        return row.cells

    rows = parse_file(path, Form((VERDICT, LABEL, COUNT)), cells_of).values
    factors = tuple(name for name in rows[0] if name not in (VERDICT, LABEL, COUNT))
    levels = tuple(sorted({row[LABEL] for row in rows} | {row[VERDICT] for row in rows}))
    if len(levels) < 2:
        raise UsageError(
            f"{path!r} has the labels {', '.join(levels) or 'none'}; an error matrix has two or more.",
            code="annotation.matrix",
        )
    counts: dict[tuple[str, ...], Array] = {}
    for row in rows:
        cells = counts.setdefault(tuple(row[name] for name in factors), np.zeros((len(levels), len(levels))))
        cells[levels.index(row[LABEL]), levels.index(row[VERDICT])] += int(row[COUNT])
    for key, cells in counts.items():
        _ensure_informative(cells, levels, key)
    return Matrix(levels, factors, counts)


def matrix_of(label: str, sensitivity: tuple[int, int], specificity: tuple[int, int]) -> Matrix:
    """Return the matrix of one label against all others.

    Args:
        label: That the verdict names.
        sensitivity: (right, all) of answers that have the label.
        specificity: (right, all) of answers that have not.

    Raises:
        UsageError: a label has no answer, or verdicts may be those of chance.
    """
    (hits, positives), (passes, negatives) = sensitivity, specificity
    levels = (label, f"not {label}")
    counts = np.array([[hits, positives - hits], [negatives - passes, passes]], dtype=np.float64)
    _ensure_informative(counts, levels, ())
    return Matrix(levels, (), {(): counts})


def _ensure_informative(counts: Array, levels: tuple[str, ...], key: tuple[str, ...]) -> None:
    """Refuse a matrix by which nothing can be corrected.

    The eigenvalues but the first, which is 1, tell verdicts from those of chance: of two labels the other one is
    sensitivity and specificity less 1, and a judge that cannot tell one label from another has one that is 0.

    Raises:
        UsageError: one of them may be 0 or less.
    """
    right, drawn = np.diagonal(counts), counts.sum(axis=1)
    correct = " and ".join(f"{int(right[n])} of {int(drawn[n])} {level!r}" for n, level in enumerate(levels))
    where = f" for {', '.join(key)}" if key else ""
    if not drawn.all():
        raise UsageError(
            f"the error matrix{where} knows {correct}: without answers of each it says nothing of some of its errors.",
            code="annotation.matrix",
        )
    least = np.linalg.eigvals(draw_rates(counts, PRIOR, np.random.default_rng(SEED), DRAWS)).real.min(axis=1)
    if float(np.quantile(least, 0.025)) <= 0.0:
        raise UsageError(
            f"the error matrix{where} is right for {correct}, which a verdict by chance can be, too: nothing can be "
            "corrected by it.",
            code="annotation.matrix",
        )


def by_matrix(rows: Rows, values: Array, cells: Codes, counts: list[Array], level: float) -> Corrected:
    """Return a mean of rows whose verdict tells their value, or the difference of two, corrected by matrices.

    Args:
        rows: With the verdict of each.
        values: Shape (labels,), the value of a row with each label.
        cells: Shape (rows,), which of `counts` a row has errors of.
        counts: Shape (labels, verdicts) each.
        level: Of the interval.
    """
    assert rows.verdicts is not None
    groups, group = np.unique(np.stack([rows.signs, cells.astype(np.float64)]), axis=1, return_inverse=True)
    group, count, labels = group.ravel(), groups.shape[1], len(values)
    sizes = np.bincount(group)
    weights = np.array([groups[0, n] * sizes[n] / (rows.signs == groups[0, n]).sum() for n in range(count)])
    of = groups[1].astype(np.int64)
    parts = np.zeros((len(group), count, labels))
    parts[np.arange(len(group)), group, rows.verdicts] = 1 / sizes[group]
    shares = parts.sum(axis=0)
    parts[np.arange(len(group)), group] -= shares[group] / sizes[group, None]
    spread = covariance_over(parts.reshape(len(group), -1), rows.ways)
    random = np.random.default_rng(SEED)
    least = min((int(way.max()) + 1 for way in rows.ways), default=len(cells))
    noise = random.multivariate_normal(np.zeros(len(spread)), spread, DRAWS)
    noise *= np.sqrt((least - 1) / random.chisquare(max(least - 1, 1), DRAWS))[:, None] if least > 1 else 1.0
    rates = np.stack([draw_rates(matrix, PRIOR, random, DRAWS) for matrix in counts], axis=1)[:, of]
    drawn = _corrected(shares + noise.reshape(-1, count, labels), rates) @ values @ weights
    observed_rates = np.array([matrix / matrix.sum(axis=1, keepdims=True) for matrix in counts])[of]
    value = float(_corrected(shares, observed_rates) @ values @ weights)
    raw = float(shares @ values @ weights)
    low, high = (float(end) for end in np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]))
    each = np.outer(weights, values).ravel()
    sampling = float(each @ spread @ each)
    error = (high - low) / (2 * float(stats.norm.ppf((1 + level) / 2)))
    bias = max(0.0, (raw - value) ** 2 - max(error**2 - sampling, 0.0))
    return Corrected(value, min(low, value), max(high, value), error**2 <= bias + sampling)


def share_by_matrix(hits: int, answers: int, matrix: Matrix, level: float) -> Corrected:
    """Return the share of the first label of a matrix, by how many answers have it for a verdict."""
    verdicts = np.repeat(np.array([0, 1]), [hits, answers - hits])
    values = np.array([1.0, 0.0])
    rows = Rows(values[verdicts], np.ones(answers), (), verdicts)
    return by_matrix(rows, values, np.zeros_like(verdicts), [matrix.counts[()]], level)


def _corrected(shares: Array, rates: Array) -> Array:
    """Return the shares of the labels, from 0 to 1; a matrix that is nearly singular moves them to the middle."""
    solved = true_shares(shares, rates)
    size = np.linalg.det(rates)
    factor = (size / np.maximum(size, NEARLY))[..., None]
    damped = np.maximum(factor * solved + (1 - factor) / shares.shape[-1], 0.0)
    return np.asarray(damped / damped.sum(axis=-1, keepdims=True))
