"""The standard error of a headline from variance components, its reliability, and what more of each facet would do.

A headline is a weighted mean of rows. A component adds its variance times the sum of its levels' squared weights, if
it has a facet that the claim generalises over. What only fixed facets do is no error: all of their levels are there.

Source: Brennan (2001), Generalizability Theory, chapters 1, 2 and 4: designs of a decision study, coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from math import ceil, inf, sqrt

import msgspec
import numpy as np
from scipy.stats import norm

from .components import RESIDUAL, Cells, Components
from .limits import Array, Flags, ratio_interval

DRAWS, ROWS = "draws", "rows"
"""More answers to each prompt; more of what is counted, where no facet is generalised over."""
POWER = 0.8
FEWEST = 2
"""Levels of a facet in a design: with one, nobody could tell how much they vary."""
DENSEST, LATTICE = 40, 60
"""Level counts that are all tried, and how many larger ones are."""
MOST = 100_000


class Value(msgspec.Struct, frozen=True):
    """A number with its interval; None is unknown."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Planned(msgspec.Struct, frozen=True):
    """A design: how many levels of each facet, and what comes of them."""

    levels: dict[str, int]
    times: float
    """Answers, by those of the run."""
    error: float
    """Standard error of the headline."""

    @property
    def detectable(self) -> float:
        """Return the smallest effect found with 80 % power at the 5 % level, for many levels of each facet."""
        return float(norm.isf(0.025) + norm.ppf(POWER)) * self.error


class Headline(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A headline as a weighted mean of rows, and what is generalised over."""

    components: Components
    shares: Array
    """Shape (components,): the sum of the squared weights of each one's levels, of an average object."""
    random: frozenset[str]
    """Facets whose levels are samples."""
    object: str = ""
    """The facet whose levels are told apart, such as the model; empty: the headline is one value."""
    value: float | None = None
    neutral: float | None = None
    repeated: bool = False
    """Whether prompts were asked several times, so that more draws can be planned."""

    def _having(self, facets: frozenset[str]) -> Flags:
        return np.array([bool(one.term.facets & facets) for one in self.components.components])

    @cached_property
    def errors(self) -> Flags:
        """Return which components are errors of the headline, shape (components,)."""
        residual = np.array([one.term.name == RESIDUAL for one in self.components.components])
        found: Flags = residual | self._having(self.random - {self.object})
        return found

    @cached_property
    def added(self) -> Array:
        """Return what each component adds to the squared standard error; 0 where it is no error."""
        bounded = np.array([one.bounded for one in self.components.components])
        return np.where(self.errors, bounded * self.shares, 0.0)

    @cached_property
    def error(self) -> Value:
        """Return the standard error, with its interval."""
        low, high = self.components.combined(np.where(self.errors, self.shares, 0.0))
        return Value(sqrt(self.added.sum()), sqrt(max(low, 0.0)), sqrt(max(high, 0.0)))

    @cached_property
    def relative(self) -> Value:
        """Return the generalizability coefficient: how well the levels of the object are told apart, 0 to 1."""
        of_object = self._having(frozenset({self.object}))
        return self._coefficient(of_object & ~self.errors, of_object & self.errors)

    @cached_property
    def dependable(self) -> Value:
        """Return the index of dependability: of the object's levels, or else of the distance from neutral, 0 to 1."""
        if self.object:
            return self._coefficient(self._having(frozenset({self.object})) & ~self.errors, self.errors)
        error = self.error.value
        if self.value is None or self.neutral is None or not error:
            return Value(None)
        distance, reach = abs(self.value - self.neutral) / error, float(norm.isf(0.025))
        ends = (max(distance - reach, 0.0), distance + reach)
        return Value(max(1 - 1 / distance**2, 0.0) if distance else 0.0, *(end**2 / (1 + end**2) for end in ends))

    def _coefficient(self, universe: Flags, error: Flags) -> Value:
        bounded = np.array([one.bounded for one in self.components.components]) * self.shares
        true, wrong = float(bounded[universe].sum()), float(bounded[error].sum())
        if not true + wrong:
            return Value(None)
        first, second = np.where(universe, self.shares, 0.0), np.where(error, self.shares, 0.0)
        ends = ratio_interval(lambda ratio: self.components.combined(first - ratio * second))
        return Value(true / (true + wrong), *(1.0 if end == inf else end / (1 + end) for end in ends))

    @cached_property
    def scalable(self) -> tuple[str, ...]:
        """Return what a design can have more of."""
        there = [name for name in self.components.cells.codes if name in self.random and name != self.object]
        errors = [one.term for one, error in zip(self.components.components, self.errors, strict=True) if error]
        found = [name for name in there if any(name in term.by for term in errors)]
        return (*found, *((DRAWS,) if self.repeated and found else ())) or (ROWS,)

    @cached_property
    def _scaled(self) -> Flags:
        """Return which of `scalable` divides which component, shape (components, scalable)."""
        every = self.components.components
        rest = np.array([one.term.name == RESIDUAL for one in every])
        held = [self._having(frozenset({name})) for name in self.scalable]
        return np.stack([rest | own for own in held], axis=-1)

    def counts(self) -> dict[str, int]:
        """Return how many levels the run has of what a design can have more of."""
        cells = self.components.cells
        given = {DRAWS: max(1, round(cells.rows / len(cells.n))), ROWS: cells.rows}
        return {name: given.get(name) or cells.levels(frozenset({name})) for name in self.scalable}

    def planned(self, times: Mapping[str, float]) -> Planned:
        """Return the design with so many times the levels of some facets."""
        factors = np.array([times.get(name, 1.0) for name in self.scalable])
        squared = float((self.added / np.where(self._scaled, factors, 1.0).prod(axis=1)).sum())
        cells = self.components.cells
        levels = {}
        for name, count in self.counts().items():
            # A facet within another has more levels if that has more.
            around = cells.closed([name]) if name in cells.codes else {name}
            levels[name] = round(count * float(np.prod([times.get(own, 1.0) for own in around])))
        return Planned(levels, float(factors.prod()), sqrt(squared))

    def cheapest(self, error: float) -> Planned | None:
        """Return the design with the fewest answers whose standard error is at most this; None if there is none.

        Every facet but one is tried at each count of levels up to 40 and some sixty larger ones, then nearby; the last
        has as many levels as it then needs.
        """
        counts = self.counts()
        *others, _ = self.scalable
        grid = np.unique(np.r_[FEWEST : DENSEST + 1, np.round(np.geomspace(DENSEST, MOST, LATTICE))])
        options = [np.unique(np.r_[1, grid]) if name == DRAWS else grid for name in others]
        best = self._best(options, error, counts)
        if best is None:
            return None
        for _ in range(3):
            near = [np.unique(np.r_[max(1, n - 12) : n + 13, n]) for n in best[:-1]]
            best = self._best([own[own >= options[p][0]] for p, own in enumerate(near)], error, counts) or best
        return self.planned({name: n / counts[name] for name, n in zip(self.scalable, best, strict=True)})

    def _best(self, options: list[Array], error: float, counts: Mapping[str, int]) -> tuple[int, ...] | None:
        last = self.scalable[-1]
        every = list(product(*options))
        tried = np.array(every, dtype=np.float64).reshape(len(every), len(options))
        factors = tried / np.array([counts[name] for name in self.scalable[:-1]])
        divided = np.ones((len(tried), len(self.added)))
        for place in range(factors.shape[1]):
            divided *= np.where(self._scaled[:, place], factors[:, place, None], 1.0)
        parts = self.added / divided
        held = self._scaled[:, -1]
        left, needs = error**2 - parts[:, ~held].sum(axis=1), parts[:, held].sum(axis=1) * counts[last]
        least = 1 if last in (DRAWS, ROWS) else FEWEST
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(left > 0, np.maximum(np.ceil(needs / left - 1e-9), least), np.inf)
        cost = factors.prod(axis=1) * found / counts[last]
        place = int(np.argmin(cost))
        return (*(int(n) for n in tried[place]), ceil(found[place])) if found[place] <= MOST * 100 else None


def shares_of(components: Components, cells: Cells, object: str = "") -> Array:
    """Return `Headline.shares`; the weights of the cells are those of each object's own headline."""
    about = frozenset({object} - {""})
    count = cells.levels(about) if object else 1
    found = [
        (cells.sums(one.term.facets | about, cells.w) ** 2).sum()
        for one in components.components
        if one.term.name != RESIDUAL
    ]
    return np.array([*found, cells.weights_squared]) / count


def designs(headline: Headline, times: tuple[int, ...] = (2, 5, 10)) -> Iterator[tuple[str, int, Planned]]:
    """Yield the run's own design, and those with so many times each facet, by facet."""
    yield "", 1, headline.planned({})
    for name in headline.scalable:
        for factor in times:
            yield name, factor, headline.planned({name: float(factor)})
