"""Variance components of crossed and nested facets from sums over cells: ANOVA, or Henderson's method 1.

The outcome is a mean, plus an effect of every level of every facet and of every combination of levels, plus what is
left. All effects are random here; which facets a claim fixes matters later, when errors are computed. Equal sums
give equal estimates, so a million rows cost little more than their cells.

Source: Henderson (1953), method 1; Searle, Casella and McCulloch (1992), chapters 4 and 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from .limits import Array, Likely, Squares, interval

Codes = npt.NDArray[np.int64]
RESIDUAL = "residual"
DENSE = 8_000_000
"""Up to so many possible keys are counted by place, which needs no sorting."""
ANOVA, HENDERSON = "ANOVA", "Henderson's method 1"
APART = 1e-9
"""Terms whose expected sums are nearer than this cannot be told apart."""


class Note(msgspec.Struct, frozen=True):
    """What cannot be estimated, and what still can."""

    code: str
    text: str


class Term(msgspec.Struct, frozen=True):
    """A facet, or an interaction of several."""

    name: str
    """Such as `template x word`; `word (in group)` where every word is in one group."""
    by: tuple[str, ...]
    """The facets that name it."""
    facets: frozenset[str]
    """Those and every facet that they determine: more levels of any of them are more levels of it."""
    levels: int
    also: tuple[str, ...] = ()
    """Terms with the same levels, which it cannot be told apart from."""


class Component(msgspec.Struct, frozen=True):
    """The variance of one term."""

    term: Term
    variance: float
    """As estimated; it may be below 0."""
    low: float
    high: float
    freedom: int

    @property
    def bounded(self) -> float:
        """Return the variance, 0 if the estimate is below that."""
        return max(self.variance, 0.0)


class Cells:
    """The rows summed by combinations of levels."""

    def __init__(self, facets: Mapping[str, Codes], values: Array, weights: Array | None = None) -> None:
        """Sum the rows; `weights` are those of the headline, by default those of a mean."""
        weights = np.full(len(values), 1 / max(len(values), 1)) if weights is None else weights
        centred = values - (values.mean() if len(values) else 0.0)
        rows = {f"facet {name}": codes for name, codes in facets.items()}
        frame = pl.DataFrame({**rows, "y": centred, "w": weights})
        found = frame.group_by(list(rows), maintain_order=True) if rows else frame.group_by(pl.lit(0).alias("all"))
        summed = found.agg(
            pl.len().cast(pl.Float64).alias("n"),
            pl.col("y").sum(),
            (pl.col("y") ** 2).sum().alias("yy"),
            pl.col("w").sum(),
            (pl.col("w") ** 2).sum().alias("ww"),
        )
        self.n, self.y, self.w = (summed[name].to_numpy() for name in ("n", "y", "w"))
        self.squares, self.weights_squared = float(summed["yy"].sum()), float(summed["ww"].sum())
        self.rows = len(values)
        self.codes = {name: summed[f"facet {name}"].to_numpy() for name in facets}
        self._places: dict[frozenset[str], Codes] = {}

    @property
    def replicated(self) -> bool:
        """Return whether any cell has several rows."""
        return len(self.n) < self.rows

    def places(self, facets: frozenset[str]) -> Codes:
        """Return the level of every cell in a combination of facets, from 0 up."""
        if facets not in self._places:
            key = np.zeros(len(self.n), dtype=np.int64)
            for name in sorted(facets):
                key = _dense(key * (int(self.codes[name].max(initial=0)) + 1) + self.codes[name])
            self._places[facets] = key
        return self._places[facets]

    def levels(self, facets: frozenset[str]) -> int:
        """Return the number of levels that there are."""
        return int(self.places(facets).max(initial=-1)) + 1

    def sums(self, facets: frozenset[str], column: Array) -> Array:
        """Return a column summed by level."""
        found: Array = np.bincount(self.places(facets), column, self.levels(facets)).astype(np.float64)
        return found

    def closed(self, facets: Sequence[str]) -> frozenset[str]:
        """Return facets with all those that they determine."""
        own = frozenset(facets)
        count = self.levels(own)
        return own | {name for name in self.codes if name not in own and self.levels(own | {name}) == count}

    def forget(self, kept: set[frozenset[str]]) -> None:
        """Forget all places but those of some facets."""
        self._places = {facets: own for facets, own in self._places.items() if facets in kept}


def _dense(key: Codes) -> Codes:
    width = int(key.max(initial=0)) + 1
    if width <= DENSE:
        there = np.zeros(width, dtype=np.bool_)
        there[key] = True
        found: Codes = (np.cumsum(there) - 1)[key]
        return found
    return np.unique(key, return_inverse=True)[1].astype(np.int64)


class Components(msgspec.Struct, frozen=True, dict=True):
    """Every component, the residual last, and what was found on the way."""

    components: tuple[Component, ...]
    method: str
    level: float
    limits: Squares | Likely
    """What intervals of sums of components are made from."""
    cells: Cells
    notes: tuple[Note, ...] = ()

    @cached_property
    def total(self) -> float:
        """Return the sum of the bounded variances."""
        return sum(one.bounded for one in self.components)

    def combined(self, weights: Array) -> tuple[float, float]:
        """Return the interval of a combination of the components."""
        return self.limits.interval(weights, self.level)


def terms_of(cells: Cells, interactions: int) -> Iterator[Term]:
    """Yield the terms of up to so many facets that have levels of their own, small ones first."""
    seen: dict[frozenset[str], list[tuple[str, ...]]] = {}
    for size in range(1, min(interactions, len(cells.codes)) + 1):
        for by in combinations(cells.codes, size):
            seen.setdefault(cells.closed(by), []).append(by)
    for facets, ways in seen.items():
        by, *others = ways
        also = tuple(" x ".join(other) for other in others if len(other) == len(by))
        inside = [name for name in facets if name not in by] if len(by) == 1 else []
        # What determines whole groups of a facet is nested in it; where that is of one more facet only, say so.
        name = " x ".join(by) + (f" (in {' and '.join(sorted(inside))})" if inside else "")
        yield Term(name, by, facets, cells.levels(facets), also)


def estimate(cells: Cells, interactions: int = 3, level: float = 0.95) -> Components:
    """Return the variance components of every term and of the residual.

    Sums of squares are those of the analysis of variance, and each is set to what it is expected to be. In a balanced
    design this is the classical ANOVA estimator; elsewhere it is unbiased, too, and the sums are no longer independent.

    Args:
        cells: the rows, by facets that have two levels or more.
        interactions: the most facets of one term; what more do together is in the residual.
        level: of the intervals.
    """
    terms, notes = [], list[Note]()
    for term in terms_of(cells, interactions):
        if term.levels == cells.rows:
            also = ", ".join((term.name, *term.also))
            notes.append(
                Note(
                    "variance.one-answer",
                    f"{also}: one answer per cell, so what it adds is part of the residual. Ask each prompt twice or "
                    "more to tell them apart.",
                )
            )
            continue
        if term.also:
            others = ", ".join(term.also)
            notes.append(Note("variance.confounded", f"{term.name} is confounded with {others}: they share one value."))
        terms.append(term)
    totals, expected = _totals(cells, terms)
    kept, sums, rows, freedom = _squares(cells, terms, totals, expected, notes)
    kept, sums, rows, freedom = _solvable(kept, sums, rows, freedom, notes)
    rest = Term(RESIDUAL, (), frozenset(cells.codes), cells.rows)
    per = rows / freedom[:, None]
    solved: Array = np.linalg.inv(per).astype(np.float64)
    squares = sums / freedom
    variances = solved @ squares
    limits = Squares(squares, freedom, solved)
    found = tuple(
        Component(term, float(value), *interval(solved[place], squares, freedom, level), int(freedom[place]))
        for place, (term, value) in enumerate(zip([*kept, rest], variances, strict=True))
    )
    method = ANOVA if _balanced(kept, rows) else HENDERSON
    return Components(found, method, level, limits, cells, tuple(notes))


def _totals(cells: Cells, terms: Sequence[Term]) -> tuple[Array, Array]:
    """Return the uncorrected sums of squares, and the factors of every variance in what they are expected to be.

    The mean comes first, then the terms, then the rows; the last factor is that of the residual.
    """
    everything: list[frozenset[str]] = [frozenset(), *(term.facets for term in terms)]
    count = len(everything)
    totals, factors = np.zeros(count + 1), np.zeros((count + 1, count))
    sizes = [cells.sums(facets, cells.n) for facets in everything]
    for place, facets in enumerate(everything):
        totals[place] = (cells.sums(facets, cells.y) ** 2 / sizes[place]).sum()
        factors[place, -1] = len(sizes[place])
    unions: dict[frozenset[str], list[tuple[int, int]]] = {}
    for one in range(count):
        for other in range(1, count):
            both = cells.closed(sorted(everything[one] | everything[other]))
            unions.setdefault(both, []).append((one, other))
    keep = set(everything)
    for both, pairs in unions.items():
        codes, shared = cells.places(both), cells.sums(both, cells.n)
        first = np.zeros(len(shared), dtype=np.int64)
        first[codes] = np.arange(len(codes))
        for own in {one for one, _ in pairs}:
            per = sizes[own][cells.places(everything[own])[first]]
            value = float((shared**2 / per).sum())
            for one, other in pairs:
                if one == own:
                    factors[one, other - 1] = value
        cells.forget(keep)
    totals[count] = cells.squares
    factors[count] = cells.rows
    return totals, factors


def _squares(
    cells: Cells, terms: Sequence[Term], totals: Array, expected: Array, notes: list[Note]
) -> tuple[list[Term], Array, Array, Array]:
    """Return sums of squares, what is expected of them, and degrees of freedom; the residual comes last."""
    kept, places = list[Term](), list[int]()
    sums, rows, freedom = list[float](), list[Array](), list[int]()
    for number, term in enumerate(terms, start=1):
        below = [place for place, other in enumerate(kept) if other.facets < term.facets]
        own = term.levels - 1 - sum(freedom[place] for place in below)
        if own < 1:
            text = f"{term.name}: too many of its cells are empty; what it adds is part of the residual."
            notes.append(Note("variance.empty-cells", text))
            continue
        kept.append(term)
        places.append(number)
        sums.append(totals[number] - totals[0] - sum(sums[place] for place in below))
        rows.append(expected[number] - expected[0] - sum((rows[place] for place in below), np.zeros(expected.shape[1])))
        freedom.append(own)
    left = cells.rows - 1 - sum(freedom)
    sums.append(totals[-1] - totals[0] - sum(sums))
    rows.append(expected[-1] - expected[0] - sum(rows, np.zeros(expected.shape[1])))
    freedom.append(left)
    columns = [place - 1 for place in places] + [expected.shape[1] - 1]
    return kept, np.array(sums), np.array(rows)[:, columns], np.array(freedom, dtype=np.float64)


def _solvable(
    kept: list[Term], sums: Array, rows: Array, freedom: Array, notes: list[Note]
) -> tuple[list[Term], Array, Array, Array]:
    """Leave out terms until every variance has a value of its own, the largest interactions first."""
    while kept:
        scale = np.maximum(np.abs(rows).max(axis=1), 1.0)
        _, values, turned = np.linalg.svd(rows / scale[:, None] / max(1.0, float(len(kept))))
        if freedom[-1] >= 1 and values[-1] > APART * values[0]:
            break
        # The last term of those that cannot be told apart; where no row is left for the residual, the largest.
        tied = [place for place in range(len(kept)) if abs(turned[-1, place]) > 1e-6] if freedom[-1] >= 1 else []
        lost = (tied or [max(range(len(kept)), key=lambda place: (len(kept[place].by), freedom[place]))])[-1]
        others = ", ".join(kept[place].name for place in tied if place != lost) or "the residual"
        text = f"{kept[lost].name} cannot be told apart from {others} in these cells; its values are part of theirs."
        notes.append(Note("variance.confounded", text))
        sums[-1] += sums[lost]
        rows[-1] += rows[lost]
        freedom[-1] += freedom[lost]
        kept = kept[:lost] + kept[lost + 1 :]
        sums, freedom = np.delete(sums, lost), np.delete(freedom, lost)
        rows = np.delete(np.delete(rows, lost, axis=0), lost, axis=1)
    return kept, sums, rows, freedom


def _balanced(kept: Sequence[Term], rows: Array) -> bool:
    """Return whether every sum of squares is expected to hold the variances of its own and of larger terms only."""
    scale = np.abs(rows).max()
    return all(
        abs(rows[one, other]) <= 1e-9 * scale
        for one in range(len(kept) + 1)
        for other, term in enumerate(kept)
        if one == len(kept) or not kept[one].facets <= term.facets
    )
