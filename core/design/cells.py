"""Reading the values of cells: one cell by name, and columns of many cells at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ..contracts.errors import UsageError
from ..contracts.records import Scalar
from .levels import Value
from .vocabulary import Codes, Pattern, Term, Vocabulary

CHUNK = 4096
"""Cells whose columns are made at once."""


class Chunk(NamedTuple):
    """Some cells: level indices by factor, in plain lists, which are read faster than arrays."""

    codes: Mapping[str, list[int]]
    size: int
    columns: dict[str, list[Value]]
    """Columns that patterns made for these cells, so that each is made once."""


class Columns:
    """Everything that has a value in a cell: factors, parts, columns of tables, and the trials' own columns.

    A name is that of a factor or part, or `factor.column`; only where there is none, of a column.
    """

    def __init__(self, vocabulary: Vocabulary, columns: Mapping[str, str]) -> None:
        """Check that every column refers to something.

        Raises:
            UnknownNameError: A column names an unknown factor or part.
            UsageError: A column refers to itself, or a level table lacks a column.
        """
        self._vocabulary = vocabulary
        self._patterns = {name: Pattern.parsed(text) for name, text in columns.items()}
        self._sources: dict[str, Term | Pattern] = {}
        for name in columns:
            self._check(name, ())

    def _check(self, name: str, pending: tuple[str, ...]) -> None:
        if name in pending:
            raise UsageError(f"column {name!r} refers to itself. Name other columns or factors.", code="design.column")
        for field in self._patterns[name].names:
            source = self._source(field)
            if isinstance(source, Pattern):
                self._check(field, (*pending, name))
            elif any(isinstance(value, tuple) for value in source.values):
                raise UsageError(f"column {name!r}: {field!r} has several values per level.", code="design.several")

    def _source(self, name: str) -> Term | Pattern:
        if name not in self._sources:
            pattern = self._patterns.get(name)
            declared = name in self._vocabulary.factors or name in self._vocabulary.parts
            self._sources[name] = self._vocabulary.term(name) if declared or pattern is None else pattern
        return self._sources[name]

    def term(self, name: str) -> Term:
        """Return what the name of a factor, part or `factor.column` stands for."""
        return self._vocabulary.term(name)

    def value(self, codes: Mapping[str, int], name: str) -> Value:
        """Return the value of a cell by name; `codes` are its level indices by factor."""
        source = self._sources.get(name) or self._source(name)
        if isinstance(source, Term):
            return source.values[codes[source.factor]]
        if source.bare:
            return self.value(codes, source.bare)
        inner = ((literal, self.value(codes, field) if field else "", spec) for literal, field, spec in source.fields)
        return "".join(f"{literal}{show(value, spec)}" for literal, value, spec in inner)

    def column(self, chunk: Chunk, name: str) -> list[Value]:
        """Return the values of many cells by name."""
        source = self._source(name)
        if isinstance(source, Term):
            values = source.values
            return [values[code] for code in chunk.codes[source.factor]]
        return self._memoised(chunk, name, source)

    def named(self, chunk: Chunk, name: str) -> list[Scalar]:
        """Return the values of a column of the trials, or of what else has the name.

        A column of the trials may have the name of a factor and hold something else of it.
        """
        pattern = self._patterns.get(name)
        values = self.column(chunk, name) if pattern is None else self._memoised(chunk, name, pattern)
        return cast(list[Scalar], values)

    def _memoised(self, chunk: Chunk, name: str, pattern: Pattern) -> list[Value]:
        if name not in chunk.columns:
            chunk.columns[name] = self.formatted(chunk, pattern)
        return chunk.columns[name]

    def formatted(self, chunk: Chunk, pattern: Pattern) -> list[Value]:
        """Return the texts of a pattern; where it is nothing but a name, the values."""
        if pattern.bare:
            return self.column(chunk, pattern.bare)
        pieces: list[list[str]] = []
        for literal, field, spec in pattern.fields:
            if literal:
                pieces.append([literal] * chunk.size)
            if field:
                pieces.append([show(value, spec) for value in self.column(chunk, field)])
        return ["".join(row) for row in zip(*pieces, strict=True)]


class Cell:
    """One cell of a design: a mapping from any name of the design to its value there.

    Example:
        >>> from prejudge import design
        >>> plan = design.Design((design.Sampled("word", ("kind", "rude")), design.Group("side", ("she", "he"))))
        >>> cell = next(plan.cells())
        >>> cell["word"], cell["side"], cell.twin(side="he")["side"]
        ('kind', 'she', 'he')
    """

    __slots__ = ("_codes", "_columns", "_vocabulary")

    def __init__(self, columns: Columns, vocabulary: Vocabulary, codes: Mapping[str, int]) -> None:
        """Remember the cell's level indices by factor."""
        self._columns, self._vocabulary, self._codes = columns, vocabulary, codes

    def __getitem__(self, name: str) -> Value:
        """Return the value of a factor, part, `factor.column`, or column of the design."""
        return self._columns.value(self._codes, name)

    def text(self, name: str) -> str:
        """Return a value as text; the empty text where it is None."""
        value = self._columns.value(self._codes, name)
        return value if isinstance(value, str) else show(value)

    def twin(self, **levels: str) -> Cell:
        """Return the cell with other levels of some factors or parts, such as the other group.

        Raises:
            UsageError: No cell, or more than one, differs in these alone.
        """
        codes = dict(self._codes)
        for name, level in levels.items():
            factor = self._columns.term(name).factor
            codes[factor] = self._vocabulary.twin_level(name, level, codes)
        return Cell(self._columns, self._vocabulary, codes)


def chunks(grid: Mapping[str, Codes], rows: npt.NDArray[np.int64] | None, size: int) -> Iterator[Chunk]:
    """Yield the cells, or those of some rows, in chunks."""
    number = size if rows is None else len(rows)
    for start in range(0, number, CHUNK):
        wanted = slice(start, start + CHUNK) if rows is None else rows[start : start + CHUNK]
        yield Chunk({name: codes[wanted].tolist() for name, codes in grid.items()}, min(CHUNK, number - start), {})


def show(value: Value, spec: str = "") -> str:
    """Return a value as text; the empty text for None."""
    if value is None:
        return ""
    return format(value, spec) if spec else str(value)
