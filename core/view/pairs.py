"""Twins by the declared design: pairs of trials of one unit that differ in the compared group alone."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl
from starlette.requests import Request
from starlette.responses import Response

from ..answer.twins import MOST_LEVELS, compared_group, shared_by_twins
from ..design.record import Declared, Roles
from ..engine.manifest import manifest_of
from ..report.marked import marked
from ..store import RunRow
from .answering import Pages, html, ready, run_of, view_of
from .browsing import LISTED, pages_around
from .columns import Column
from .exchanges import opening, shown
from .room import Room
from .shelf import Index
from .urls import View

SIDE, OTHER, LEVEL, VALUE = "row", "row_other", "level", "value"
PAGE = 20
"""Pairs on a page: each is two requests and two answers."""


class Twins(NamedTuple):
    """The pairs of a run, the largest difference first."""

    factor: str
    outcome: str
    frame: pl.DataFrame
    """`row` and `row_other` in the index, the `level` of each, and the `difference` of their outcomes."""

    def of(self, index: Index, view: View) -> pl.DataFrame:
        """Return the pairs that disagree and of which one trial or both fit the view."""
        rows = index.find(view.filters, view.words, view.where).rows
        either = pl.col(SIDE).is_in(rows) | pl.col(OTHER).is_in(rows)
        return self.frame.filter(pl.col("difference") != 0, either)


def twins_of_run(room: Room, run: RunRow, index: Index) -> Twins | None:
    """Return the pairs of a run by its declared design; None where it declares none, or the index lacks a column."""
    twins = room.kept.setdefault("twins", {})
    if index.folder not in twins:
        design = manifest_of(run).design
        twins[index.folder] = None if design is None else _twins(design, index)
    pairs_of_run: Twins | None = twins[index.folder]
    return pairs_of_run


def _twins(design: Roles, index: Index) -> Twins | None:
    names = [part.factor or part.name for part in design.declared] + [part.name for part in design.declared]
    present = [name for name in dict.fromkeys(names) if name in index.columns]
    frame = design.join(pl.DataFrame({name: _values(index.columns[name]) for name in present}))
    group = compared_group(design, frame.columns)
    if group is None or design.answer is None or design.answer.outcome not in index.columns:
        return None
    unit = _unit(design, group, index, frame)
    if not unit:
        return None
    outcome = _values(index.columns[design.answer.outcome])
    measured = outcome.is_in(design.answer.up) if design.answer.up else outcome.cast(pl.Float64, strict=False)
    if measured.is_null().all():
        return None  # words have no side
    frame = frame.with_columns(_values(index.columns[name]).alias(name) for name in unit if name not in frame.columns)
    rows = frame.select(*unit, pl.col(group.name).cast(pl.String).alias(LEVEL)).with_columns(
        _values(index.columns["stage"]).alias("_stage"),
        measured.cast(pl.Float64).fill_nan(None).alias(VALUE),
        pl.Series(SIDE, np.arange(index.rows)),
    )
    rows = rows.filter(_values(index.columns["status"]) == "ok", pl.col(VALUE).is_not_null())
    rows = rows.filter(pl.col(LEVEL).is_not_null(), ~pl.col(LEVEL).is_in(list(group.controls)))
    keys = [*unit, "_stage"]
    rows = rows.unique([*keys, LEVEL], keep="first", maintain_order=True)
    return Twins(group.name, design.answer.outcome, _paired(rows, keys))


def _unit(design: Roles, group: Declared, index: Index, frame: pl.DataFrame) -> list[str]:
    """Return the columns that twins have in common: their unit, the context, the order and the repeat; none if unknown.

    An order that is no column is known by the columns that tell trials of one unit and group apart.
    """
    roles = {part.name: part.role for part in design.declared}
    shared = shared_by_twins(design, group)
    present = [name for name in shared if name in frame.columns]
    missing = [name for name in shared if name not in present]
    if not present or any(roles[name] != "balanced" for name in missing):
        return []
    present += [n for n, role in roles.items() if role in ("context", "balanced", "repeat") and n in frame.columns]
    if missing:
        factors = [c.name for c in index.columns.values() if c.role == "factor" and c.name not in roles]
        extended = frame.with_columns(_values(index.columns[name]).alias(name) for name in factors)
        numbers = extended.group_by(*dict.fromkeys((*present, group.name))).agg(pl.col(factors).n_unique())
        present += [name for name in factors if (numbers[name] > 1).any()]
    return list(dict.fromkeys(name for name in present if name != group.name))


def _paired(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    levels = sorted(rows[LEVEL].unique())[:MOST_LEVELS]
    sides = {level: rows.filter(pl.col(LEVEL) == level) for level in levels}
    parts = [
        sides[first].join(sides[second], on=keys, suffix="_other", nulls_equal=True)
        for first, second in combinations(levels, 2)
    ]
    chosen = [SIDE, OTHER, LEVEL, f"{LEVEL}_other", "difference"]
    if not parts:
        return pl.DataFrame(schema=dict.fromkeys(chosen, pl.Int64))
    frame = pl.concat(parts).with_columns(difference=pl.col(VALUE) - pl.col(f"{VALUE}_other"))
    return frame.select(chosen).sort(pl.col("difference").abs(), SIDE, descending=[True, False])


def _values(column: Column) -> pl.Series:
    """Return a column with the words of its levels, its numbers, or the digests of levels that are not listed."""
    if column.values is not None:
        return pl.Series(np.asarray(column.values))
    if column.codes is None:
        return pl.Series(np.asarray(column.own))
    words = pl.Series([word or None for word in column.levels], dtype=pl.String)
    return words.gather(pl.Series(np.asarray(column.codes), dtype=pl.UInt32))


def pairs(room: Room, request: Request) -> Response:
    """Show the twins that disagree: both requests and answers, with what differs marked."""
    run, view = run_of(room, request), view_of(request)
    index = ready(room, run)
    twins, facets = twins_of_run(room, run, index), index.find(view.filters, view.words, view.where).facets
    frame = twins.of(index, view) if twins is not None else pl.DataFrame()
    start = min(view.start, max(frame.height - 1, 0))
    page = frame[start : start + PAGE]
    sides = [shown(room.store, run, index, page[name].to_list()) for name in (SIDE, OTHER) if page.height]
    beside = []
    for first, second in zip(*sides, strict=True) if sides else ():
        asked = marked([opening("\n\n".join(text for _, text in side.asked)) for side in (first, second)])
        answers = marked([side.opening for side in (first, second)])
        beside.append(tuple(zip((first, second), asked, answers, strict=True)))
    return html(
        "pairs.html",
        title=f"Twins of {run.name}",
        run=run,
        manifest=manifest_of(run),
        view=view,
        twins=twins,
        beside=list(zip(page.iter_rows(named=True), beside, strict=True)),
        count=frame.height,
        place=start,
        pages=pages_around(np.arange(frame.height), start, PAGE),
        facets=sorted(facets, key=lambda facet: len(facet.counts) > LISTED),
        listed=LISTED,
    )


PAGES: Pages = {"/run/{run}/twins": (("GET",), pairs)}
