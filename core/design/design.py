"""`Design`: what a study varies, declared; sizes, cells, incidence, twins, samples and trials follow by arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from ..contracts.errors import UnknownNameError, UsageError
from ..contracts.probe import Trial
from ..contracts.records import AnyRequest, Scalar
from .cells import Cell, Chunk, Columns, chunks
from .factors import AnswerForm, AnyFactor, Question, RoleName
from .grid import build_grid, codes_of, joint
from .record import Roles, record
from .sampling import Sampler
from .vocabulary import NULL, Codes, Pattern, Vocabulary

if TYPE_CHECKING:
    import polars as pl

Rows = npt.NDArray[np.int64]
"""Places of trials in the whole design."""
FACET_ORDER: tuple[RoleName, ...] = ("balanced", "sampled", "fixed", "repeat")
"""Roles in the order in which a sample balances them, after the cells that are compared or reported apart."""


class Design(msgspec.Struct, frozen=True, kw_only=False, dict=True):
    """What a study varies.

    The cells are every combination of the factors' levels that the nesting allows, in the order of nested loops over
    the factors as declared; `where` and `without` leave cells out. Nothing is made until it is asked for.

    Example:
        >>> from prejudge import design
        >>> words = design.Levels(("kind", "clever", "rude"), {"sentiment": ("praise", "praise", "blame")})
        >>> plan = design.Design((
        ...     design.Sampled("opening", ("I met", "We saw")),
        ...     design.Sampled("word", words, parts=(design.Context("sentiment"),)),
        ...     design.Group("noun", ("woman", "man")),
        ... ))
        >>> plan.size, plan.incidence("sentiment", "noun").tolist()
        (12, [[4, 4], [2, 2]])
        >>> [facet.name for facet in plan.record().facets()]
        ['opening', 'word']
    """

    factors: tuple[AnyFactor, ...]
    columns: dict[str, str] = {}
    """Factors of the trials: by name, a factor, a part, `factor.column`, or a pattern of them such as
    `{template}/{noun}`. Empty: every factor and part by its own name."""
    id: str = ""
    """Pattern of the trials' ids. Empty: the levels of all factors, separated by `/`."""
    where: dict[str, tuple[Scalar, ...]] = {}
    """What every cell meets: allowed values by name of a factor, part or `factor.column`."""
    without: tuple[dict[str, tuple[Scalar, ...]], ...] = ()
    """Cells that are not asked: those that meet all conditions of an entry."""
    questions: tuple[Question, ...] = ()
    """The questions whose roles differ from the declared ones."""
    within_unit: tuple[str, ...] = ()
    """Factors in which the trials of one unit differ; empty: those of the declared groups."""
    answer: AnswerForm | None = None
    """The form of an answer."""

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Return the checked names. Raises `UsageError` where the declaration contradicts itself."""
        return Vocabulary(self.factors)

    @cached_property
    def grid(self) -> dict[str, Codes]:
        """Return the level index of every factor in every trial.

        Raises:
            UsageError: The declaration contradicts itself.
        """
        return build_grid(self.vocabulary, self.where, self.without)

    @property
    def size(self) -> int:
        """Return the number of trials."""
        return len(next(iter(self.grid.values()), ()))

    @cached_property
    def trial_columns(self) -> dict[str, str]:
        """Return the factors of the trials, each with what it holds."""
        return self.columns or {name: name for name in self.vocabulary.names}

    @cached_property
    def _columns(self) -> Columns:
        return Columns(self.vocabulary, self.trial_columns)

    @cached_property
    def _id(self) -> Pattern:
        return Pattern.parsed(self.id or "/".join(f"{{{name}}}" for name in self.vocabulary.factors))

    def codes(self, name: str) -> Codes:
        """Return the index of the level of a factor or part in every trial; -1 where it has none.

        Raises:
            UnknownNameError: There is no such factor or part.
        """
        return codes_of(self.vocabulary, self.grid, name)

    def levels(self, name: str) -> tuple[object, ...]:
        """Return the levels of a factor or part, those that no trial has among them."""
        return self.vocabulary.coded(name).levels

    def column(self, name: str, rows: Rows | None = None) -> list[Scalar]:
        """Return the values of a column of the trials, a factor, a part or `factor.column`, of all trials or some."""
        return [value for chunk in chunks(self.grid, rows, self.size) for value in self._columns.named(chunk, name)]

    def incidence(self, first: str, second: str, rows: Rows | None = None) -> npt.NDArray[np.int64]:
        """Return how many trials have each level of one factor or part with each of another.

        Args:
            first: A factor or part; its levels are the rows of the result.
            second: Another one.
            rows: Trials to count; None: all.

        Returns:
            Counts, in the order of `levels`.
        """
        one, other = self.codes(first), self.codes(second)
        if rows is not None:
            one, other = one[rows], other[rows]
        present = (one >= 0) & (other >= 0)
        shape = len(self.levels(first)), len(self.levels(second))
        flat = one[present].astype(np.int64) * shape[1] + other[present]
        return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)

    def counts(self, *names: str, rows: Rows | None = None) -> pl.DataFrame:
        """Return the number of trials per combination of levels that occurs, in a column `trials`.

        Args:
            names: Factors or parts; none: the group, contexts and `by` of the declared roles.
            rows: Trials to count; None: all.
        """
        import polars as pl

        names = names or self.named("group", "context", "by")
        codes = [self.codes(name) if rows is None else self.codes(name)[rows] for name in names]
        size = self.size if rows is None else len(rows)
        number = joint(codes, size)
        first = np.unique(number, return_index=True)[1]
        columns = {
            name: [None if code < 0 else self.levels(name)[code] for code in column[first].tolist()]
            for name, column in zip(names, codes, strict=True)
        }
        return pl.DataFrame({**columns, "trials": np.bincount(number, minlength=len(first))})

    def roles(self, question: str = "") -> dict[str, RoleName]:
        """Return the role of each factor and part: the declared ones, or those of a question.

        Raises:
            UnknownNameError: There is no such question, or it names an unknown factor.
        """
        roles = {name: self.vocabulary.declared(name).role for name in self.vocabulary.names}
        if not question:
            return roles
        for one in self.questions:
            if one.name == question:
                for name in one.roles:
                    self.vocabulary.declared(name)
                return roles | one.roles
        raise UnknownNameError("question", question, [one.name for one in self.questions])

    def named(self, *roles: RoleName, question: str = "") -> tuple[str, ...]:
        """Return the factors and parts that have one of some roles, in the order of the roles."""
        own = self.roles(question)
        return tuple(name for role in roles for name in own if own[name] == role)

    @cached_property
    def unit_factors(self) -> tuple[str, ...]:
        """Return the factors whose levels a unit is made of: all but those in which its trials differ."""
        inside = self.within_unit or tuple(self.vocabulary.term(name).factor for name in self.named("group"))
        return tuple(name for name in self.vocabulary.factors if name not in inside)

    @cached_property
    def units(self) -> npt.NDArray[np.int64]:
        """Return the number of each trial's unit, by first appearance; a unit is asked whole."""
        return joint([self.grid[name] for name in self.unit_factors], self.size)

    def twins(self, group: str) -> Rows:
        """Return the trials that differ in a group alone: a row per set, a column per level that is no control.

        Args:
            group: A factor, or a part; trials then differ in its factor alone.

        Returns:
            Places of trials, in the order of the levels; -1 where a set has no trial of the level.

        Raises:
            UsageError: No trials differ in it alone.
        """
        factor, controls = self.vocabulary.term(group).factor, self.vocabulary.declared(group).controls
        compared = [level not in controls for level in self.levels(group)]
        places = np.where(compared, np.cumsum(compared) - 1, NULL)
        column = places[self.codes(group)]
        rows = np.flatnonzero((column >= 0) & (self.codes(group) >= 0))
        sets = joint([codes[rows] for name, codes in self.grid.items() if name != factor], len(rows))
        twins = np.full((int(sets.max(initial=-1)) + 1, sum(compared)), -1, np.int64)
        twins[sets, column[rows]] = rows
        present = twins >= 0
        if present.sum() < len(rows) or len(rows) and present.sum(axis=1).max() < 2:
            raise UsageError(
                f"no trials differ in {group!r} alone: other factors differ where {factor!r} does. They are no twins.",
                code="design.twins",
            )
        return twins

    @cached_property
    def _sampler(self) -> Sampler:
        return self._sampler_of(np.unique(self.units, return_index=True)[1])

    def _sampler_of(self, first: Rows) -> Sampler:
        """Return the order of units, each given by one of its trials."""
        # A group whose levels are not asked in one unit is a side of a contrast, as a context is.
        sides, cells = (self.named("context", "group", *further) for further in ((), ("by",)))
        facets = [
            name
            for name in dict.fromkeys([*cells, *self._balanced])
            if self.vocabulary.term(name).factor in self.unit_factors
        ]
        codes = {name: self.codes(name)[first] for name in facets}
        outer = [sum(name in facets for name in names) for names in (sides, cells)]
        return Sampler(codes, {name: self.levels(name) for name in facets}, *outer)

    @property
    def _balanced(self) -> list[str]:
        """Return what a sample balances within its cells: role by role, the coarser first, and wholes after parts."""
        names = [
            name for role in FACET_ORDER for name in sorted(self.named(role), key=lambda name: len(self.levels(name)))
        ]
        wholes = [whole for name, (_, whole, _) in self.vocabulary.parts.items() if name in names]
        return sorted(names, key=lambda name: name in wholes)

    def sample(
        self, limit: int | None = None, per_cell: int | None = None, seed: int = 0, *, units: int | None = None
    ) -> Rows:
        """Return a sample of whole units, balanced over cells, orders, and all that is sampled.

        A larger sample holds every smaller one of the same seed. Each side of a contrast has two levels of each sampled
        factor as soon as it has two units.

        Args:
            limit: Most trials; at least one unit is drawn.
            per_cell: Most units per combination of contexts and `by`, and of groups that a unit does not hold all of.
            seed: Seed of the order of equal choices.
            units: Most units.

        Returns:
            Places of the trials, in the order of the design.
        """
        order = islice(self._sampler.order(seed, per_cell), units)
        return self._drawn(np.arange(self.size), order, limit)

    def first(
        self,
        most: int | None = None,
        rows: Rows | None = None,
        *,
        per_cell: int | None = None,
        units: int | None = None,
    ) -> Rows:
        """Return the first trials, whole units in the balanced order of samples, of all or of some trials.

        Args:
            most: Most trials; at least one unit is taken.
            rows: Trials to take from; None: all.
            per_cell: Most units per cell, as of `sample`.
            units: Most units.

        Returns:
            Places of the trials, in the order of the design.
        """
        places = np.arange(self.size) if rows is None else rows
        first = places[np.unique(self.units[places], return_index=True)[1]]
        sampler = self._sampler if rows is None else self._sampler_of(first)
        return self._drawn(places, islice(sampler.order(per_cell=per_cell), units), most)

    def _drawn(self, places: Rows, order: Iterator[int], most: int | None) -> Rows:
        """Return the trials, of some places, of the units of an order, which are numbered among those of the places."""
        numbers, sizes = np.unique(self.units[places], return_counts=True)
        chosen: list[int] = []
        trials = 0
        for unit in order:
            trials += int(sizes[unit])
            if most is not None and trials > most and chosen:
                break
            chosen.append(unit)
        return places[np.isin(self.units[places], numbers[chosen])]

    def record(self) -> Roles:
        """Return the roles, parts, level tables and incidence, which a run stores."""
        return record(self)

    def cells(self, rows: Rows | None = None) -> Iterator[Cell]:
        """Yield the cells in order, or those of some trials."""
        for chunk in chunks(self.grid, rows, self.size):
            yield from self._cells(chunk)

    def _cells(self, chunk: Chunk) -> Iterator[Cell]:
        names = tuple(chunk.codes)
        for codes in zip(*chunk.codes.values(), strict=True):
            yield Cell(self._columns, self.vocabulary, dict(zip(names, codes, strict=True)))

    def trials(
        self,
        request: Callable[[Cell], AnyRequest],
        rows: Rows | None = None,
        further: Callable[[Cell], Mapping[str, Scalar]] | None = None,
    ) -> Iterator[Trial]:
        """Yield the trials in order, lazily: a request is made when its trial is yielded.

        Args:
            request: Makes the request of a cell.
            rows: Trials to yield, such as those of a sample; None: all.
            further: Makes further factors of a cell, such as its texts, or other values of the declared ones.
        """
        for key, factors, cell in self.named_cells(rows, further):
            yield Trial(key, factors, request(cell))

    def named_cells(
        self, rows: Rows | None = None, further: Callable[[Cell], Mapping[str, Scalar]] | None = None
    ) -> Iterator[tuple[str, dict[str, Scalar], Cell]]:
        """Yield id, factors and cell of each trial, which is all of it but its request; as `trials`."""
        names = tuple(self.trial_columns)
        for chunk in chunks(self.grid, rows, self.size):
            ids = self._columns.formatted(chunk, self._id)
            values = zip(*(self._columns.named(chunk, name) for name in names), strict=True)
            for key, row, cell in zip(ids, values, self._cells(chunk), strict=True):
                factors = dict(zip(names, row, strict=True))
                yield str(key), factors if further is None else {**factors, **further(cell)}, cell
