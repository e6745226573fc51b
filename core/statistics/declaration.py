"""`Declaration`: what a metric measures, of which groups, and over which clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
import polars as pl

from .measures import DeclaredMeasure, Derived, SummedMeasure
from .pivot import Pivot


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """What a metric declares: measures, and what their rows share."""

    measures: tuple[DeclaredMeasure, ...]
    groups: tuple[tuple[str, ...], ...] = ((),)
    """Factors that estimates are given by; `()` is the whole. A row without a level is in no group of the factor."""
    clusters: tuple[str, ...] = ()
    """Columns whose levels are clusters: one, or several that cross; without one every row is independent, but for
    samples of one prompt."""
    macro: str = ""
    """Column whose levels count alike, however many rows each has: the values are means of the levels' means."""
    pivot: Pivot | None = None
    row: str = ""
    """Column that names a row, and what a row is called; by default that of the pivot, or `trial`, an answer."""
    unknown: Literal["one cluster", "left out"] = "one cluster"
    """What is done with rows without a cluster: they are one together, or the column clusters no group with such a
    row. Where no column is left then, shares have exact intervals and nothing else has any."""
    missing: tuple[str, ...] | None = None
    """Factors that what is missing is given by; by default those of the first grouping."""
    kinds: str = ""
    """Factor that kinds of unreadable answers are given by; by default they are given for the whole."""
    compared: bool = True
    """Whether its measures are compared between runs, and planned for."""
    rows: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    """What makes its rows from those of the metric, where a metric has several designs."""

    def bases(self, measure: DeclaredMeasure) -> tuple[SummedMeasure, ...]:
        """Return the measures with sums of their own that a measure rests on, in their order."""
        if isinstance(measure, Derived):
            found = [base for own in self.parts(measure) for base in self.bases(own)]
            return tuple(dict.fromkeys(found))
        assert isinstance(measure, SummedMeasure)
        return (measure,)

    @property
    def summed(self) -> tuple[SummedMeasure, ...]:
        """Return the measures with sums of their own."""
        return tuple(measure for measure in self.measures if isinstance(measure, SummedMeasure))

    def parts(self, measure: Derived) -> list[DeclaredMeasure]:
        """Return what a measure is derived from: of measures of one name, that with the same group."""
        named = {own.name: own for own in self.measures}
        alike = {own.name: own for own in self.measures if own.group == measure.group}
        return [alike.get(name, named[name]) for name in measure.of]

    @property
    def factors(self) -> tuple[str, ...]:
        """Return the columns that rows are kept apart by."""
        return tuple(dict.fromkeys([name for by in self.groups for name in by]))

    @property
    def kept(self) -> frozenset[str]:
        """Return the columns that say where a row belongs."""
        return frozenset(
            {*self.factors, *self.clusters, *(self.missing or ()), *filter(None, [self.macro, self.kinds])}
        )

    @property
    def needs(self) -> frozenset[str]:
        """Return the observations' columns that are read, but for those that a function reads."""
        read = frozenset[str]().union(*(measure.needs for measure in self.summed))
        if self.pivot is not None:
            read = read - {*self.pivot.levels} | self.pivot.needs
        return read | self.kept | {"status"}

    @property
    def identity(self) -> str:
        """Return the column that names a row."""
        return self.row or (self.pivot.index if self.pivot is not None else "trial")

    @property
    def called(self) -> str:
        """Return what a row is called."""
        return "answer" if self.identity == "trial" else self.identity

    def independent(self, measure: DeclaredMeasure | None = None) -> bool:
        """Return whether every row is independent, for all measures or for one."""
        alone = measure is not None and all(base.independent for base in self.bases(measure))
        return alone or not (self.clusters or self.macro)

    def limited(self, measure: DeclaredMeasure) -> bool:
        """Return whether a measure is about some rows only."""
        return any(base.where is not None for base in self.bases(measure))

    def given(self, measure: DeclaredMeasure, by: tuple[str, ...]) -> bool:
        """Return whether a measure is given by a grouping."""
        return measure.report and (measure.groups is None or by in measure.groups)

    def problems(self) -> Iterator[str]:
        """Yield what cannot be computed."""
        names = [measure.key for measure in self.measures]
        yield from (f"two measures are called {name!r}" for name in {n for n in names if names.count(n) > 1})
        known: set[str] = set()
        for measure in self.measures:
            if isinstance(measure, Derived) and (unknown := set(measure.of) - known):
                yield f"{measure.name!r} is derived from {sorted(unknown)[0]!r}, which no measure before it is called"
            elif isinstance(measure, Derived) and measure.average:
                if any(base.average != measure.average for base in self.bases(measure)):
                    yield f"{measure.name!r} averages over {measure.average!r} what is no average over it"
            known.add(measure.name)
            if wrong := [by for by in measure.groups or () if by not in self.groups]:
                yield f"{measure.name!r} is given by {wrong[0]}, which is none of the groupings"
        if len(set(self.clusters)) < len(self.clusters):
            yield f"clusters are {self.clusters}; name each column once"
