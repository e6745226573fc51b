"""The rows of a run's estimates with the verdict behind each, for a correction by an error matrix."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from ..catalogue.study import Catalogue
from ..compare.pair import parts_of, units_of
from ..contracts.estimates import Key
from ..scoring.score import Scores
from ..statistics.clusters import Codes
from .matrix import Matrix
from .powered import Rows
from .rows import UNUSED, identities_of, unit_names, ways_in


class Judged(NamedTuple):
    """An estimate's rows by verdict; or why a matrix says nothing of them."""

    rows: Rows | None = None
    of_label: tuple[float, ...] = ()
    """The value of a row with each label of the matrix."""
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
    verdicts = observations.select(
        pl.col(column).cast(pl.String).alias("_verdict"),
        *(pl.col(factor).cast(pl.String).alias(f"_by {factor}") for factor in matrix.factors),
    )
    refused, answered = dict[Key, Judged](), dict[Key, pl.DataFrame]()
    for key, part in parts_of(units.frame):
        units_of_rows = unit_names(observations, names[key[0]]) if key[0] in names else None
        if units_of_rows is None or units_of_rows.n_unique() < observations.height:
            refused[key] = _not("each of its rows has several")
        else:
            ok = part.filter((pl.col("status") == "ok") & pl.col("value").is_not_null())
            answered[key] = ok.join(verdicts.with_columns(units_of_rows.alias("unit")), on="unit", how="left")
    worth = dict[str, dict[str, set[float]]]()
    for key, ok in answered.items():
        for verdict, value in ok.select("_verdict", "value").unique().rows():
            worth.setdefault(key[0], {}).setdefault(verdict, set()).add(value)
    return refused | {key: _judged(ok, matrix, worth.get(key[0], {})) for key, ok in answered.items()}


def _not(why: str) -> Judged:
    return Judged(code="annotation.rows", why=f"an error matrix corrects shares of single answers, and {why}")


def _judged(ok: pl.DataFrame, matrix: Matrix, worth: Mapping[str, Collection[float]]) -> Judged:
    """Return the rows of an estimate; `worth` are the values that each verdict has anywhere in its measure."""
    values = ok.group_by("_verdict").agg(pl.col("value").unique()).rows()
    if any(verdict not in matrix.levels for verdict, _ in values):
        strange = next(verdict for verdict, _ in values if verdict not in matrix.levels)
        return Judged(code="annotation.matrix", why=f"the error matrix does not know the verdict {strange!r}")
    by = dict(values)
    if any(len(values_of_level) > 1 for values_of_level in by.values()):
        return _not("its value is not told by the verdict alone")
    for level in matrix.levels:
        if level not in by and len(values_of_level := worth.get(level, ())) == 1:
            by[level] = [*values_of_level]
    if len(by) == 1 and len(matrix.levels) == 2:
        ends = {float(end) for end in (ok["least"].min(), ok["greatest"].max()) if end is not None}  # type: ignore[arg-type]
        (seen,) = next(iter(by.values()))
        if len(ends) == 2 and seen in ends:
            by[next(level for level in matrix.levels if level not in by)] = [*(ends - {seen})]
    if unseen := [level for level in matrix.levels if level not in by]:
        return _not(f"no answer has the verdict {unseen[0]!r}, so its value is not known")
    of_label = tuple(float(by[level][0]) for level in matrix.levels)
    if len(set(of_label)) == 1:
        return Judged(code=UNUSED, why="it does not depend on the verdict")
    keys = list(ok.select(f"_by {factor}" for factor in matrix.factors).iter_rows()) if matrix.factors else []
    named = tuple(dict.fromkeys(keys)) or ((),)
    if unknown := [key for key in named if key not in matrix.counts]:
        level_words = ", ".join(map(str, unknown[0]))
        return Judged(code="annotation.matrix", why=f"the error matrix has no row for {level_words}")
    cells = np.array([named.index(key) for key in keys] or np.zeros(ok.height), dtype=np.int64)
    verdicts = np.array([matrix.levels.index(verdict) for verdict in ok["_verdict"]], dtype=np.int64)
    signs = ok["sign"].to_numpy().astype(np.float64)
    rows = Rows(ok["value"].to_numpy().astype(np.float64), signs, ways_in(ok), verdicts)
    return Judged(rows, of_label, cells, named)
