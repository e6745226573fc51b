"""The roles of a design as a record: what a manifest stores, so that a run is scored without its study's files."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from ..contracts.errors import UnknownNameError
from .factors import AnswerForm, Question, RoleName
from .levels import NAME, Levels, Value

if TYPE_CHECKING:
    import polars as pl

    from .design import Design

SUMMARISED: frozenset[RoleName] = frozenset({"group", "context", "by", "sampled"})
"""Roles between which the incidence is stored."""
MOST_COUNTED = 1 << 24
"""Cells of the largest table of counts; larger ones are counted by sorting."""


class Declared(msgspec.Struct, frozen=True, omit_defaults=True):
    """A factor or part of a design that was asked."""

    name: str
    role: RoleName
    levels: int
    """Number of levels that trials have."""
    factor: str = ""
    """Of a part: the factor whose level table has it as a column."""
    whole: str = ""
    """Of a part: the factor or part that it is a part of."""
    held: str = ""
    """Of a factor that the trials' column of its name holds by another column of its table: that column."""
    is_column: bool = False
    """Whether trials have it as a column; parts that are none are joined to observations."""
    nested_in: tuple[str, ...] = ()
    """Factors and parts of which each of its levels occurs with one level only."""
    controls: tuple[str, ...] = ()
    several: str = ""


class Incidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many trials have each level of one factor or part with each of another."""

    first: str
    second: str
    each: int | None = None
    """The count, where it is the same for all; None: see `counts`."""
    counts: tuple[tuple[int, int, int], ...] = ()
    """Index of the level of `first`, of `second`, and the count, of each pair that occurs."""


class Facet(msgspec.Struct, frozen=True):
    """Something sampled that an inference covers."""

    name: str
    levels: int
    whole: str
    """What it is a part of; empty: nothing."""
    nested_in: tuple[str, ...]
    """The other facets that each of its levels belongs to one level of: resampling those covers it."""


class Roles(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a study varied and in which roles: enough to infer, and to add the parts to observations.

    Example:
        >>> import polars
        >>> from prejudge import design
        >>> words = design.Levels(("kind", "rude"), {"sentiment": ("praise", "blame")})
        >>> parts = (design.Context("sentiment"),)
        >>> plan = design.Design((design.Sampled("word", words, parts=parts),), columns={"word": "word"})
        >>> plan.record().join(polars.DataFrame({"word": ["rude", "odd"]})).rows()
        [('rude', 'blame'), ('odd', None)]
    """

    declared: tuple[Declared, ...]
    tables: dict[str, Levels]
    """The level tables of factors, by factor: names, and the columns of parts that trials do not have as columns."""
    incidence: tuple[Incidence, ...] = ()
    questions: tuple[Question, ...] = ()
    unit: tuple[str, ...] = ()
    """Factors that a unit is made of."""
    answer: AnswerForm | None = None

    def of(self, question: str = "") -> dict[str, RoleName]:
        """Return the role of each factor and part, the declared ones or those of a question.

        Raises:
            UnknownNameError: There is no such question.
        """
        roles = {one.name: one.role for one in self.declared}
        if not question:
            return roles
        for one in self.questions:
            if one.name == question:
                return roles | one.roles
        raise UnknownNameError("question", question, [one.name for one in self.questions])

    def facets(self, question: str = "", columns: frozenset[str] | None = None) -> tuple[Facet, ...]:
        """Return what an inference about a question covers: all that is sampled, factors and parts.

        Args:
            question: One of the questions; empty: the declared roles.
            columns: Columns of the observations after `join`; a facet that is not among them is left out, which
                `missing` says. None: all.
        """
        roles = self.of(question)
        sampled = [one for one in self.declared if roles[one.name] == "sampled"]
        present = [one for one in sampled if columns is None or one.name in columns]
        names = {one.name for one in present}
        return tuple(
            Facet(one.name, one.levels, one.whole, tuple(name for name in one.nested_in if name in names))
            for one in present
        )

    def missing(self, observations: pl.DataFrame, question: str = "") -> tuple[str, ...]:
        """Return the facets that no row of the observations, after `join`, has a level of."""
        empty = {name for name in observations.columns if observations[name].null_count() == observations.height}
        present = frozenset(observations.columns) - empty
        return tuple(facet.name for facet in self.facets(question) if facet.name not in present)

    def join(self, observations: pl.DataFrame) -> pl.DataFrame:
        """Return observations with a column per part that they lack; null where their level is not of the design."""
        frame = observations
        for one in self.declared:
            # Trials have some parts themselves, which are in no table.
            listed = one.factor in self.tables and one.name in self.tables[one.factor].columns
            if listed and one.name not in frame.columns and one.factor in frame.columns:
                frame = frame.with_columns(self._part(frame[one.factor], one))
        return frame

    def _part(self, levels: pl.Series, part: Declared) -> pl.Series:
        import polars as pl

        held = next(one.held for one in self.declared if one.name == part.factor)
        table = self.tables[part.factor]
        keys, values = table.column(held or NAME), table.column(part.name)
        by_key = {_key(key): value for key, value in zip(keys, values, strict=True)}
        distinct = levels.unique()
        found = [by_key.get(_key(level)) for level in distinct.to_list()]
        pairs = pl.DataFrame({"level": distinct, "part": pl.Series(found, strict=False)})
        joined = pl.DataFrame({"level": levels}).join(
            pairs, on="level", how="left", nulls_equal=True, maintain_order="left"
        )
        return joined["part"].alias(part.name)


def _key(level: Value) -> str | None:
    """Return a level as it is compared: columns of categories or of another type hold the same levels as texts."""
    return None if level is None else str(level)


def record(design: Design) -> Roles:
    """Return the roles of a design as it was asked."""
    vocabulary, names = design.vocabulary, design.vocabulary.names
    together = {pair: _together(design, *pair) for pair in combinations(names, 2)}
    nested = {
        name: tuple(other for other in names if other != name and _is_nested(together, name, other)) for name in names
    }
    asked = ["", *(question.name for question in design.questions)]
    summarised = {name for question in asked for name, role in design.roles(question).items() if role in SUMMARISED}
    # What lies within another such factor is covered by it, and may have very many levels.
    summarised = {name for name in summarised if not summarised.intersection(nested[name])}
    tables = {name: Levels(vocabulary.tables[name].names, _stored(design, name)) for name in vocabulary.factors}
    return Roles(
        tuple(_declared(design, name, nested[name]) for name in names),
        {name: table for name, table in tables.items() if table.columns},
        tuple(pairs.counted(*names) for names, pairs in together.items() if summarised >= {*names}),
        design.questions,
        design.unit_factors,
        design.answer,
    )


class _Pairs(NamedTuple):
    """The pairs of levels of two factors or parts that occur, and how often."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    crossed: bool

    def counted(self, first: str, second: str) -> Incidence:
        """Return the pairs as a record."""
        if self.crossed and len(set(self.times.tolist())) == 1:
            return Incidence(first, second, each=int(self.times[0]))
        columns = (column.tolist() for column in (self.first, self.second, self.times))
        return Incidence(first, second, counts=tuple(zip(*columns, strict=True)))


def _together(design: Design, first: str, second: str) -> _Pairs:
    one, other = design.codes(first), design.codes(second)
    present = (one >= 0) & (other >= 0)
    width = max(1, len(design.levels(second)))
    flat = one[present].astype(np.int64) * width + other[present]
    if (span := len(design.levels(first)) * width) < MOST_COUNTED:
        counts = np.bincount(flat, minlength=span)
        pairs = np.flatnonzero(counts)
        times = counts[pairs]
    else:
        pairs, times = np.unique(flat, return_counts=True)
    return _Pairs(*np.divmod(pairs, width), times, len(pairs) == span)


def _is_nested(together: Mapping[tuple[str, str], _Pairs], inner: str, outer: str) -> bool:
    """Return whether each level of one occurs with one level only of another, which has several."""
    if inner == outer:
        return False
    if (inner, outer) in together:
        own, others = together[inner, outer][:2]
    else:
        others, own = together[outer, inner][:2]
    return len(np.unique(own)) == len(own) > 0 and len(np.unique(others)) > 1


def _declared(design: Design, name: str, nested: tuple[str, ...]) -> Declared:
    vocabulary, columns = design.vocabulary, design.trial_columns
    factor, codes = vocabulary.declared(name), design.codes(name)
    _, whole, owner = vocabulary.parts.get(name, (None, "", ""))
    return Declared(
        name,
        factor.role,
        levels=len(np.unique(codes[codes >= 0])),
        factor=owner,
        whole=whole,
        held=_held(design, name),
        is_column=name in columns,
        nested_in=nested,
        controls=factor.controls,
        several=factor.several,
    )


def _held(design: Design, factor: str) -> str:
    """Return the column of a factor's table that the trials hold in place of its names."""
    owner, _, column = design.trial_columns.get(factor, factor).partition(".")
    return column if owner == factor else ""


def _stored(design: Design, factor: str) -> dict[str, tuple[Value, ...]]:
    """Return the columns of a table that parts without a column in the trials, and the factor's column, refer to."""
    vocabulary = design.vocabulary
    columns: dict[str, tuple[Value, ...]] = {}
    for name, (_, _, owner) in vocabulary.parts.items():
        if owner == factor and name not in design.trial_columns:
            levels, codes = vocabulary.coded(name)
            columns[name] = tuple(None if code < 0 else levels[code] for code in codes.tolist())
    if columns and (held := _held(design, factor)):
        columns.setdefault(held, vocabulary.tables[factor].column(held))
    return columns
