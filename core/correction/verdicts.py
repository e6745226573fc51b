"""The rows of a run's estimates with the verdict behind each, for a correction by an error matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from ..anytime.units import Key, parts_of
from ..catalogue.study import Catalogue
from ..compare.pair import units_of
from ..scoring.score import Scores
from .matrix import Matrix
from .powered import Codes, Rows
from .rows import UNUSED, identities_of, unit_names, ways_in


class Judged(NamedTuple):
    """An estimate's rows by verdict; or why a matrix says nothing of them."""

    rows: Rows | None = None
    of_label: tuple[float, float] = (0.0, 1.0)
    """The value of a row with the first label, and with the second."""
    cells: Codes | None = None
    """Which of `keys` has the errors of each row."""
    keys: tuple[tuple[str, ...], ...] = ()
    code: str = ""
    why: str = ""


def judged(catalogue: Catalogue, scores: Scores, name: str, matrix: Matrix, column: str) -> dict[Key, Judged] | None:
    """Return the rows of every estimate of a metric that is a mean of rows, or the difference of two.

    None: the metric does not see the outcome.
    """
    metric, _ = scores.metrics[name]
    observations, units = scores.seen_by(metric), units_of(catalogue, scores, name)
    if column not in observations.columns or column == "status":
        return None
    if units is None:
        return {}
    names = identities_of(observations, units.frame)
    if lacking := [factor for factor in matrix.factors if factor not in observations.columns]:
        return {key: _not(f"the answers have no {lacking[0]!r}") for key, _ in parts_of(units.frame)}
    known = observations.select(
        pl.col(column).cast(pl.String).alias("_verdict"),
        *(pl.col(factor).cast(pl.String).alias(f"_by {factor}") for factor in matrix.factors),
    )
    found = {}
    for key, part in parts_of(units.frame):
        units_of_rows = unit_names(observations, names[key[0]]) if key[0] in names else None
        if units_of_rows is None or units_of_rows.n_unique() < observations.height:
            found[key] = _not("each of its rows has several")
        else:
            own = known.with_columns(units_of_rows.alias("unit"))
            found[key] = _judged(part.join(own, on="unit", how="left"), matrix)
    return found


def _not(why: str) -> Judged:
    return Judged(code="annotation.rows", why=f"an error matrix corrects shares of single answers, and {why}")


def _judged(part: pl.DataFrame, matrix: Matrix) -> Judged:
    ok = part.filter((pl.col("status") == "ok") & pl.col("value").is_not_null())
    values = ok.group_by("_verdict").agg(pl.col("value").unique()).rows()
    if any(verdict not in matrix.levels for verdict, _ in values):
        strange = next(verdict for verdict, _ in values if verdict not in matrix.levels)
        return Judged(code="annotation.matrix", why=f"the error matrix does not know the verdict {strange!r}")
    by = dict(values)
    if any(len(own) > 1 for own in by.values()):
        return _not("its value is not told by the verdict alone")
    if len(by) < 2:
        ends = {float(end) for end in (ok["least"].min(), ok["greatest"].max()) if end is not None}  # type: ignore[arg-type]
        seen = next(iter(by.values()), [None])[0]
        if seen is None or len(ends) != 2 or seen not in ends:
            return _not("all have one verdict")
        other = next(level for level in matrix.levels if level not in by)
        by[other] = [*(ends - {seen})]
    first, second = (float(by[level][0]) for level in matrix.levels)
    if first == second:
        return Judged(code=UNUSED, why="it does not depend on the verdict")
    keys = list(ok.select(f"_by {factor}" for factor in matrix.factors).iter_rows()) if matrix.factors else []
    named = tuple(dict.fromkeys(keys)) or ((),)
    if unknown := [key for key in named if key not in matrix.counts]:
        told = ", ".join(map(str, unknown[0]))
        return Judged(code="annotation.matrix", why=f"the error matrix has no row for {told}")
    cells = np.array([named.index(key) for key in keys] or np.zeros(ok.height), dtype=np.int64)
    rows = Rows(ok["value"].to_numpy().astype(np.float64), ok["sign"].to_numpy().astype(np.float64), ways_in(ok))
    return Judged(rows, (first, second), cells, named)
