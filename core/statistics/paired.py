"""Units of two runs side by side: sums per cluster of the differences, and the worst case of what is missing.

A difference is the second run's value less the first's, on one unit. A cell is one pair of runs with one estimate;
a side is a sign: most estimates are a mean and have one side, a contrast is one mean less another and has two.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from ..contracts.metric import CROSSED
from ..contracts.records import Scalar
from .facets import facet_codes
from .intervals import Array
from .observations import missing_by_status

COLUMNS = ("metric", "unit", "cluster", "sign", "least", "greatest")
PAIRED = ("first", "second", "first_status", "second_status")
CELL = "_cell"
Ends = tuple[tuple[float | None, float | None], ...]
LABELS = ("run", "against")
"""The second run of a pair, and the first; then come the factors of the estimate."""


class Cells(msgspec.Struct, frozen=True):
    """The cells of one measure."""

    groups: tuple[dict[str, Scalar], ...]
    ways: tuple[str, ...]
    """What clusters the units; of two ways that cross, first what names the rows."""
    sums: Array
    """Shape (rows, columns, cells, sides, 3): count, sum and sum of squares of the differences; one column for a single
    way of clustering."""
    missing: tuple[dict[str, int], ...]
    """Units left out per cell, by status."""
    bounds: Ends
    """Worst case per cell; None without limits."""
    limits: tuple[Array, Array]
    """The least and the greatest that a difference can be at all, shape (cells,) each; infinite without limits."""


def factors_of(observations: pl.DataFrame) -> list[str]:
    """Return the columns that are factors of the estimates."""
    known = {*COLUMNS, *CROSSED, *PAIRED, *LABELS, "family"}
    return [name for name in observations.columns if name not in known]


def cells_of(observations: pl.DataFrame, factors: Sequence[str]) -> Cells:
    """Gather one measure's cells, in the order of their first appearance."""
    by = [*LABELS, *factors]
    cells = observations.select(by).unique(maintain_order=True).with_row_index(CELL)
    placed = _differences(observations).join(cells, on=by, how="left", nulls_equal=True, maintain_order="left")
    missing = {key[0]: missing_by_status(part) for key, part in placed.partition_by(CELL, as_dict=True).items()}
    groups = tuple({k: v for k, v in row.items() if v is not None} for row in cells.drop(CELL).to_dicts())
    sides = 2 if (placed["sign"] < 0).any() else 1
    places = range(len(groups))
    crossed = "row" in placed.columns and placed["row"].null_count() < placed.height
    ways = tuple(placed["ways"].drop_nulls()[0].split(" x ")) if crossed else ("cluster",)
    return Cells(
        groups,
        ways,
        _sums(placed.filter(pl.col("status") == "ok"), (len(groups), sides), ["row", "cluster"][-len(ways) :]),
        tuple(missing[index] for index in places),
        _bounds(placed, len(groups)),
        _limits(placed, len(groups)),
    )


def flips(sums: Array) -> Array:
    """Return what a sign flip of whole clusters acts on, shape (clusters, cells, 1, 2): units, and their part.

    Exchanging the two runs within a cluster turns the sign of every difference in it.
    """
    count = sums[..., 0].sum(axis=2)
    totals = sums[..., 0].sum(axis=0)
    share = np.divide(sums[..., 1], totals, out=np.full(sums.shape[:3], np.nan), where=totals > 0)
    part = share[..., 0] - share[..., 1] if sums.shape[2] == 2 else share[..., 0]
    scaled: Array = np.stack([count, part * count.sum(axis=0)], axis=-1)[:, :, None]
    return scaled


def _differences(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the status of the pair, the difference, and the least and greatest it may be."""
    ends = [pl.coalesce(name, end) for name in ("first", "second") for end in ("least", "greatest")]
    first_low, first_high, second_low, second_high = ends
    status = pl.when(pl.col("first_status") != "ok").then("first_status").otherwise("second_status")
    return frame.with_columns(
        status=status,
        _difference=pl.col("second") - pl.col("first"),
        _least=second_low - first_high,
        _greatest=second_high - first_low,
    )


def _sums(pairs: pl.DataFrame, shape: tuple[int, int], ways: Sequence[str]) -> Array:
    difference = pairs["_difference"].to_numpy()
    columns = (np.ones(len(difference)), difference, difference**2)
    codes = facet_codes(pairs, ways)
    rows, width = (int(code.max(initial=-1)) + 1 for code in codes)
    width, (cells, sides) = max(width, 1), shape
    place = codes[0] * width + codes[1]
    place = (place * cells + pairs[CELL].to_numpy().astype(np.int64)) * sides + (pairs["sign"] < 0).to_numpy()
    size = rows * width * cells * sides
    flat = [np.bincount(place, weights=column, minlength=size) for column in columns]
    sums: Array = np.stack(flat, axis=-1).astype(np.float64).reshape(rows, width, cells, sides, len(columns))
    return sums


def _bounds(placed: pl.DataFrame, cells: int) -> Ends:
    """Return the least and the greatest difference over every answer the missing units might have given."""
    # A mean would pass over a missing limit; then there is no worst case.
    low, high = (pl.when(pl.col(end).null_count() == 0).then(pl.col(end).mean()) for end in ("_least", "_greatest"))
    return _ends(placed, cells, low, high)


def _limits(placed: pl.DataFrame, cells: int) -> tuple[Array, Array]:
    width = pl.col("greatest") - pl.col("least")
    widest = pl.when(width.null_count() == 0).then(width.max()).otherwise(pl.lit(np.inf))
    low, high = np.array(_ends(placed, cells, -widest, widest), dtype=np.float64).reshape(-1, 2).T
    return low, high


def _ends(placed: pl.DataFrame, cells: int, low: pl.Expr, high: pl.Expr) -> Ends:
    """Return both ends per cell: those of its side, or of its one side less the other."""
    sides = placed.group_by(CELL, "sign").agg(low.alias("low"), high.alias("high"))
    found: dict[int, list[float | None]] = {cell: [0.0, 0.0] for cell in range(cells)}
    for cell, sign, least, greatest in sides.iter_rows():
        for end, by in enumerate((least, greatest) if sign > 0 else (greatest, least)):
            one = found[cell][end]
            found[cell][end] = None if by is None or one is None else one + sign * by
    return tuple((least, greatest) for least, greatest in found.values())
