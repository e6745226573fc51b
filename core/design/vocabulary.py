"""What the names of a declaration refer to: factors, parts, columns of level tables, and patterns of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from string import Formatter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..contracts.errors import UnknownNameError, UsageError
from .factors import Factor
from .levels import NAME, Levels, Value, agree

Codes = npt.NDArray[np.int32]
"""Places in a table of levels; -1 where there is no level."""
NULL = -1


class Term(NamedTuple):
    """What a name stands for: a value for each level of one factor."""

    factor: str
    values: tuple[Value, ...]


class Coded(NamedTuple):
    """The distinct levels of a factor or part, and which of them each level of the factor has."""

    levels: tuple[Value, ...]
    codes: Codes


class Pattern(NamedTuple):
    """A text with fields: what stands before each, the name in it, and its format."""

    fields: tuple[tuple[str, str, str], ...]
    """A literal, a name (empty after the last field), and a format."""

    @classmethod
    def parsed(cls, text: str) -> Pattern:
        """Return a pattern such as `{template}/{noun}`; a text without braces is the name itself."""
        if "{" not in text:
            return cls((("", text, ""),))
        return cls(tuple((literal, name or "", spec or "") for literal, name, spec, _ in Formatter().parse(text)))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names in its fields."""
        return tuple(name for _, name, _ in self.fields if name)

    @property
    def bare(self) -> str:
        """Return the name, if the pattern is nothing but one; its values then keep their type."""
        return self.fields[0][1] if len(self.fields) == 1 and self.fields[0] == ("", self.fields[0][1], "") else ""


class Vocabulary:
    """All names of a declaration, checked."""

    def __init__(self, factors: Sequence[Factor]) -> None:
        """Check the names.

        Raises:
            UsageError: Two factors or parts have one name, a part has no column, or a part has levels of its own.
        """
        self.factors: Mapping[str, Factor] = {factor.name: factor for factor in factors}
        self.tables: Mapping[str, Levels] = {factor.name: factor.table for factor in factors}
        self.parts: dict[str, tuple[Factor, str, str]] = {}
        for factor in factors:
            for part, whole in factor.all_parts():
                self._admit(part, whole, factor.name)
        if len(self.factors) < len(factors) or self.factors.keys() & self.parts.keys():
            listed = [factor.name for factor in factors] + list(self.parts)
            raise _twice(next(name for name in listed if listed.count(name) > 1))
        self._coded: dict[str, Coded] = {}

    def _admit(self, part: Factor, whole: str, factor: str) -> None:
        if part.name in self.parts:
            raise _twice(part.name)
        if part.levels:
            raise UsageError(
                f"part {part.name!r} has levels of its own. Give them as the column {part.name!r} of {factor!r}.",
                code="design.part",
            )
        self.tables[factor].column(part.name)
        self.parts[part.name] = (part, whole, factor)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of all factors and parts: each factor, then its parts."""
        return tuple(name for factor in self.factors.values() for name in (factor.name, *_names(factor)))

    def declared(self, name: str) -> Factor:
        """Return the factor or part of a name.

        Raises:
            UnknownNameError: There is none.
        """
        if name in self.factors:
            return self.factors[name]
        if name in self.parts:
            return self.parts[name][0]
        raise UnknownNameError("factor", name, self.names)

    def term(self, name: str) -> Term:
        """Return what a name stands for: a factor, a part, or `factor.column`.

        Raises:
            UnknownNameError: There is no such factor or part.
            UsageError: The factor has no such column.
        """
        factor, _, column = name.partition(".")
        if column and factor in self.factors:
            return Term(factor, self.tables[factor].column(column))
        self.declared(name)
        if name in self.factors:
            return Term(name, self.tables[name].column(NAME))
        return Term(self.parts[name][2], self.tables[self.parts[name][2]].column(name))

    def coded(self, name: str) -> Coded:
        """Return the distinct levels of a factor or part, in the order of its factor's table.

        Raises:
            UsageError: A level has several values, and no rule says which counts.
        """
        if name not in self._coded:
            values = self._single(name, self.term(name).values)
            places: dict[tuple[type, Value], int] = {}
            for value in values:
                if value is not None:
                    places.setdefault((type(value), value), len(places))
            codes = [NULL if value is None else places[type(value), value] for value in values]
            self._coded[name] = Coded(tuple(value for _, value in places), np.array(codes, np.int32))
        return self._coded[name]

    def _single(self, name: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
        if not any(isinstance(value, tuple) for value in values):
            return values
        if "." not in name and self.declared(name).several != "commonest":
            raise UsageError(
                f"a level of {name!r} has several values. Say which counts: several='commonest'.", code="design.several"
            )
        members = [value if isinstance(value, tuple) else (value,) for value in values]
        # Each level counts a value once, however often it names it.
        times = Counter(value for group in members for value in dict.fromkeys(group))
        return tuple(min(group, key=lambda value: (-times[value], str(value)), default=None) for group in members)

    def twin_level(self, name: str, level: Value, codes: Mapping[str, int]) -> int:
        """Return the level of a factor, the only one that goes with a cell and has a level of the factor or its part.

        Raises:
            UsageError: There is none, or more than one.
        """
        factor, values = self.term(name)
        gates = [(self.tables[factor].column(gate), self.term(gate)) for gate in self.factors[factor].within]
        fitting = [
            at
            for at, value in enumerate(values)
            if value == level and all(agree(column[at], term.values[codes[term.factor]]) for column, term in gates)
        ]
        if len(fitting) != 1:
            raise UsageError(
                f"{len(fitting)} levels of {factor!r} have {name} {level!r} in this cell. A twin needs one.",
                code="design.twins",
            )
        return fitting[0]

    def compatible(self, name: str, gate: str) -> npt.NDArray[np.bool_]:
        """Return which levels of factor `name` go with which of `gate`, the row of no level last."""
        wanted = self.tables[name].column(gate)
        levels = self.coded(gate).levels
        places = {level: place for place, level in enumerate(levels)}
        table = np.zeros((len(levels) + 1, len(wanted)), bool)
        table[-1] = True
        for column, value in enumerate(wanted):
            several = value if isinstance(value, tuple) else (value,)
            rows = [places[level] for level in several if level in places]
            table[slice(None) if value is None else rows, column] = True
        return table


def _names(factor: Factor) -> Iterator[str]:
    return (part.name for part, _ in factor.all_parts())


def _twice(name: str) -> UsageError:
    return UsageError(f"two factors or parts are named {name!r}. Give each its own name.", code="design.names")
