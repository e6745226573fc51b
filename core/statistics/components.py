"""How well a design will know a mean or a difference of two, from the answers of a pilot and the cells of the design.

An answer is its side's mean, what its level of each facet and its cell add, and the rest. The pilot says how much each
adds to the variance: sums of squares by level, set equal to what they are expected to be whatever cells are missing
(Rao's MINQUE with equal weights; of a balanced table the analysis of variance). What a level adds to both sides cancels
in their difference, and is estimated apart.

A small pilot hardly knows shares of some hundredths, and a large design rests on them: an estimate cut at 0 is too
large on average, and one of a few levels is anything. Each share therefore has a weak prior: it is 0 with the chance
`NOTHING`, and else every order of magnitude above the usual one is as likely as another. It holds little against a
pilot that knows the share. The quantiles of the posterior give a range.

The design's cells then give the variance as the jackknife over all facets will find it: by each, and by cells. What
it finds differs from that by chance, the more the fewer levels there are, which is part of the range.

A pilot whose cells cannot know the variance of a larger design forecasts nothing. Whether they can follows from the
cells of both alone: pilots that were chosen by their answers would be those that happened to find large shares.

Answers of two values, each of a level of its own, such as hits among prompts, have the variance of their share alone,
which a few answers hardly know where one value is rare: its posterior (Jeffreys' prior) is that of the share. It tells
something where all answers of a pilot are equal, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np

from .intervals import Array, Codes
from .multiway import joint, shared_levels, shares_lost

NOTHING = 1 / 6
"""Chance that the levels of a facet, or cells, add nothing, before a pilot; of more than two facets, see `_nothing`."""
CELL = "cell"
USUAL_OF_FACET, USUAL_OF_CELL = 0.005, 0.015
"""Shares of the variance of single answers that belong to levels of a facet and to cells, below which all are alike."""
SHARES = np.concatenate([[0.0], np.geomspace(1e-5, 1, 240)])
DRAWS, NEAR = 1000, 25
MIDDLE, LOWEST, HIGHEST = 0.5, 0.05, 0.95
"""Quantiles of a forecast: its value and the ends of its range."""
LARGEST_ERROR = 0.5
"""Standard error of the estimated variance of a design, as a share of it, above which a pilot forecasts nothing."""
COINCIDE = 0.9
"""Correlation of the levels of two facets, as what each adds to the squares of the other, above which they are one."""
NEARLY_SINGULAR = 1e-3
"""Least eigenvalue of components, scaled, that a pilot tells apart."""


class Crossing(msgspec.Struct, frozen=True, dict=True):
    """Which side and which level of each facet each answer has, as codes from 0."""

    sides: Codes
    facets: tuple[Codes, ...]

    @cached_property
    def cells(self) -> Codes:
        """Return the combination of levels of each answer."""
        return joint(*self.facets)

    @property
    def usual(self) -> dict[str, float]:
        """Return the usual share of the variance by component."""
        cells = {CELL: USUAL_OF_CELL} if len(self.facets) > 1 else {}
        return {f"facet {number}": USUAL_OF_FACET for number in range(len(self.facets))} | cells

    @cached_property
    def levels(self) -> Mapping[str, Codes]:
        """Return the code of the level of each answer, by component: within a side, then common to two sides."""
        ways = {f"facet {number}": codes for number, codes in reversed(list(enumerate(self.facets)))}
        if len(self.facets) > 1:
            ways |= {CELL: self.cells}
        within = {name: joint(codes, self.sides) for name, codes in ways.items()}
        common = {f"common {name}": codes for name, codes in ways.items()} if len(self.counts) > 1 else {}
        return {"answer": np.arange(len(self.sides)), **within, **common}

    @cached_property
    def counts(self) -> Array:
        """Return the number of answers of each side."""
        return np.bincount(self.sides).astype(float)

    @property
    def independent(self) -> bool:
        """Return whether each answer is of a level of its own, of the only facet, and no side has a single answer."""
        return len(self.facets) == 1 and len(np.unique(self.facets[0])) == len(self.sides) and min(self.counts) > 1

    @cached_property
    def counted(self) -> tuple[Array, list[tuple[int, Codes]]]:
        """Return how often inclusion and exclusion counts each facet, and the levels that several facets share."""
        codes = np.stack(self.facets, axis=-1)
        present = np.zeros((int(self.cells.max()) + 1, 1, len(self.counts)), dtype=bool)
        present[self.cells, 0, self.sides] = True
        first = np.unique(self.cells, return_index=True)[1]
        weights, shared = 1 + shares_lost(codes[first], present)[:, 0], []
        for sign, labels, alone in shared_levels(codes):
            if alone is None:
                shared.append((sign, labels))
            else:
                weights[alone] += sign
        return weights, shared

    def strata(self, way: Codes) -> tuple[Array, Codes]:
        """Return how many levels of a way are on the same sides as each, and the pattern of sides of each."""
        on = np.zeros((int(way.max()) + 1, len(self.counts)), dtype=np.int64)
        on[way, self.sides] = 1
        pattern: Codes = np.unique(on, axis=0, return_inverse=True)[1].ravel()
        return np.bincount(pattern)[pattern].astype(float), pattern

    def freedom(self, way: Codes) -> int:
        """Return the degrees of freedom of a way: levels on the same sides lose one together."""
        members, pattern = self.strata(way)
        return max(1, len(members) - len(np.unique(pattern)))

    def found(self, component: str, way: Codes, *, single: bool = False) -> float:
        """Return what a unit of a component's variance adds to that which the jackknife by a way finds, on average.

        Of levels of equal size it is what it adds to the variance of the mean, and else more: leaving out a large level
        moves the mean further. `single`: the way is that of single cells, of which there are very many.
        """
        levels, n = self.levels[component], self.counts
        sign = np.where(np.arange(len(n)) == 0, 1, -1)
        sizes = _by_side(way, self)
        left = n - sizes
        grown = np.divide(sizes, n * left, out=np.zeros_like(sizes), where=left > 0)
        of_levels = _by_side(levels, self) * sign
        share = np.ones(len(sizes)) if single else 1 - 1 / self.strata(way)[0]
        pairs = joint(levels, way)
        first = np.unique(pairs, return_index=True)[1]
        own = way[first]
        gained = (of_levels[levels[first]] * grown[own]).sum(axis=1)
        lost = (_by_side(pairs, self) * sign * (grown[own] + 1 / n)).sum(axis=1)
        everywhere = np.einsum("gs,st,gt->g", grown, of_levels.T @ of_levels, grown)
        return float(share @ everywhere + share[own] @ (lost**2 - 2 * gained * lost))


def _by_side(levels: Codes, crossing: Crossing) -> Array:
    """Return the number of answers of each level on each side."""
    sides = len(crossing.counts)
    every = (int(levels.max()) + 1) * sides
    return np.bincount(levels * sides + crossing.sides, minlength=every).reshape(-1, sides).astype(float)


class Precision(msgspec.Struct, frozen=True):
    """What single answers and the levels of each facet add to the variance of a mean or a difference."""

    single: float
    facets: tuple[float, ...]


def forecast(
    values: Array,
    pilot: Crossing,
    planned: Crossing,
    quantiles: Sequence[float],
    limits: tuple[float, float] | None = None,
) -> list[Precision]:
    """Return what a pilot's answers let expect of a planned design, at quantiles of its variance.

    Args:
        values: of the pilot, without NaN.
        pilot: of these values.
        planned: of the design.
        quantiles: such as `MIDDLE`.
        limits: least and greatest value of an answer, if it has both.

    Returns: nothing where the pilot's answers do not vary, unless each is one of the limits and of a level of its own.
    """
    independent = pilot.independent and planned.independent and len(pilot.counts) == len(planned.counts)
    if limits is not None and independent and np.isin(values, limits).all():
        hits = np.bincount(pilot.sides, weights=np.equal(values, limits[1])).astype(np.float64)
        return _at(_of_shares(hits, pilot, planned) * (limits[1] - limits[0]) ** 2, quantiles)
    spread, posterior = _posterior(values, pilot)
    if not spread:
        return []
    freedom = len(values) - len(pilot.counts)
    spreads = spread * freedom / np.random.default_rng(1).chisquare(freedom, DRAWS)
    shares = _drawn({name: found for name, found in posterior.items() if name in planned.levels})
    answer = 1 - sum(shares.values(), np.zeros(DRAWS))

    def by(way: Codes, *, single: bool = False) -> Array:
        parts = [share * planned.found(name, way, single=single) for name, share in shares.items()]
        total: Array = spreads * sum(parts, answer * planned.found("answer", way, single=single))
        return total

    single = by(planned.cells, single=True) if len(planned.facets) > 1 else np.zeros(DRAWS)
    by_facet = [
        _by_chance(np.maximum(by(way), single), planned.freedom(way), seed)
        for seed, way in enumerate(planned.facets, start=2)
    ]
    of_facets, of_shared = planned.counted
    shared = sum((sign * by(labels, single=True) for sign, labels in of_shared), np.zeros(DRAWS))
    total = sum((weight * part for weight, part in zip(of_facets, by_facet, strict=True)), shared)
    return _at(_together(total, by_facet), quantiles)


def _of_shares(hits: Array, pilot: Crossing, planned: Crossing) -> Array:
    """Return what answers and levels add to the variance that the jackknife finds of shares, or of their difference.

    Half an answer of either value is added on each side: a test that finds all answers equal is exact, not without
    uncertainty. Exact intervals and those by resampling are not quite as wide as the variance says, so that the range
    has the chance of a jackknife besides.
    """
    rng = np.random.default_rng(1)
    n = planned.counts
    shares = rng.beta(hits + 0.5, pilot.counts - hits + 0.5, (DRAWS, len(hits)))
    observed = (rng.binomial(n.astype(np.int64), shares) + 0.5) / (n + 1)
    variances = (observed * (1 - observed) / (n - 1)).sum(axis=1)
    freedom = planned.freedom(planned.facets[0])
    return np.stack([np.zeros(DRAWS), _by_chance(variances, freedom, 2)])


def _at(parts: Array, quantiles: Sequence[float]) -> list[Precision]:
    """Return the parts of a variance, of which there are draws, at quantiles of their sum."""
    order = np.argsort(parts.sum(axis=0))
    # Some draws around each quantile are averaged, so that what each facet adds to it is theirs at that quantile.
    near = [order[max(0, int(q * DRAWS) - NEAR) : int(q * DRAWS) + NEAR + 1] for q in quantiles]
    means = ([float(part[some].mean()) for part in parts] for some in near)
    return [Precision(first, tuple(others)) for first, *others in means]


def error_of(pilot: Crossing, planned: Crossing) -> float:
    """Return the standard error of the variance that a pilot estimates of a design, as a share of that variance.

    It is that without a prior, where facets and cells have their usual shares.
    """
    names, table = _told_apart(pilot)
    again = _again(pilot)
    answer, usual = _of_mean(planned, "answer"), {n: share for n, share in planned.usual.items() if n not in again}
    # What is common to both sides cancels in their difference.
    weights = {"answer": answer} | {name: _of_mean(planned, name) for name in usual}
    if any(weight - answer > NEARLY_SINGULAR * answer for name, weight in weights.items() if name not in names):
        return math.inf
    weighted = np.array([weights.get(name, 0.0) for name in names])
    variance = answer + sum(share * (weights[name] - answer) for name, share in usual.items())
    return math.sqrt(2 * weighted @ np.linalg.inv(table) @ weighted) / variance


def _of_mean(planned: Crossing, component: str) -> float:
    """Return what a unit of a component's variance adds to what the jackknife finds over all facets."""
    of_facets, of_shared = planned.counted
    by_facet = sum(
        weight * planned.found(component, way) for weight, way in zip(of_facets, planned.facets, strict=True)
    )
    return float(by_facet) + sum(sign * planned.found(component, labels, single=True) for sign, labels in of_shared)


def _by_chance(variance: Array, freedom: int, seed: int) -> Array:
    """Return what a jackknife of levels with this freedom finds of their variance: draws, right on average."""
    found: Array = variance * np.random.default_rng(seed).chisquare(freedom, DRAWS) / freedom
    return found


def _together(total: Array, by_facet: Sequence[Array]) -> Array:
    """Return what single answers and the facets add to the variance that a jackknife over all facets finds.

    It finds no less than by one facet alone, so that chance makes it larger on average where none adds anything.
    """
    if len(by_facet) == 1:
        return np.stack([np.zeros_like(total), by_facet[0]])
    variance = np.maximum(total, np.maximum.reduce(list(by_facet)))
    # What single answers add is in what each facet adds, and no more than the least of these.
    again = np.maximum(sum(by_facet, -variance), 0.0) / (len(by_facet) - 1)
    single = np.minimum(again, np.minimum.reduce(list(by_facet)))
    parts = np.stack([single, *(part - single for part in by_facet)])
    total = parts.sum(axis=0)
    scaled: Array = parts * np.divide(variance, total, out=np.ones_like(total), where=total > 0)
    return scaled


def _posterior(values: Array, pilot: Crossing) -> tuple[float, dict[str, Array]]:
    """Return the variance of single answers, and the posterior of each component's share of it on `SHARES`."""
    freedom = len(values) - len(pilot.counts)
    if freedom < 1:
        return 0.0, {}
    means = np.bincount(pilot.sides, weights=values) / pilot.counts
    centred = values - means[pilot.sides]
    spread = float(centred @ centred) / freedom
    if spread <= 0:
        return 0.0, {}
    names, table = _told_apart(pilot)
    squares = [(np.bincount(pilot.levels[name], weights=centred) ** 2).sum() for name in names]
    variances = np.linalg.solve(table, np.array(squares))
    # What is common to both sides cancels in their difference: it is no part of what varies there.
    common = sum(max(float(v), 0.0) for name, v in zip(names, variances, strict=True) if name.startswith("common"))
    within = max(spread - common, spread / len(values))
    estimates = variances / within
    errors = 2 * np.diag(np.linalg.inv(table)) * (spread / within) ** 2
    spread = within
    found = {}
    nothing = _nothing(len(pilot.facets) - len(_again(pilot)))
    again = _again(pilot)
    for name, usual in pilot.usual.items():
        if name in again:
            continue
        if name in names:
            place = names.index(name)
            levels = max(1, int(pilot.levels[name].max()))
            # The larger a share is, the more an estimate from few levels misses it.
            error = np.sqrt(errors[place] + 2 * SHARES**2 / levels)
            found[name] = _weighed(float(estimates[place]), error, usual, nothing)
        else:
            found[name] = _weighed(0.0, np.full_like(SHARES, np.inf), usual, nothing)
    return spread, found


def _nothing(facets: int) -> float:
    """Return the chance that a facet adds nothing, so that of many facets no more are expected to add than of two."""
    return 1 - (1 - NOTHING) * min(1.0, 2 / facets)


def _weighed(estimate: float, error: Array, usual: float, nothing: float) -> Array:
    """Return the weights of `SHARES` after an estimate with this error if so much is true, and the usual share."""
    middles = (SHARES[1:] + SHARES[:-1]) / 2
    widths = np.diff(np.concatenate([[0.0], middles, [1.0]]))
    distance = ((estimate - SHARES) / error) ** 2 / 2 + np.log(error / error[0] if np.isfinite(error[0]) else 1.0)
    prior = widths / (usual + SHARES)
    prior[0] = 0
    prior[0] = prior.sum() * nothing / (1 - nothing)
    weights: Array = np.exp(distance.min() - distance) * prior
    total: Array = weights / weights.sum()
    return total


def _drawn(posterior: Mapping[str, Array]) -> dict[str, Array]:
    """Return draws of every share, by name; together they are the whole variance at most."""
    rng = np.random.default_rng(0)
    drawn = {name: rng.choice(SHARES, DRAWS, p=weights) for name, weights in posterior.items()}
    total = np.maximum(sum(drawn.values(), np.zeros(DRAWS)), 1.0)
    return {name: share / total for name, share in drawn.items()}


def _told_apart(pilot: Crossing) -> tuple[list[str], Array]:
    """Return the components that the pilot tells apart, and what each is expected to add to the squares of each."""
    names, table = ["answer"], _expected(pilot, ["answer"])
    again = _again(pilot)
    for name in pilot.levels:
        if name in names or name.removeprefix("common ") in again:
            continue
        larger = _expected(pilot, [*names, name])
        scale = np.sqrt(np.diag(larger))
        if scale.min() > 0 and np.linalg.eigvalsh(larger / np.outer(scale, scale))[0] > NEARLY_SINGULAR:
            names, table = [*names, name], larger
    return names, table


def _again(pilot: Crossing) -> set[str]:
    """Return the facets whose levels nearly coincide with those of an earlier one, which stands for both.

    Such as two options of one question: estimates of what each adds would be large, and of opposite signs.
    """
    again: set[str] = set()
    names = [f"facet {number}" for number in range(len(pilot.facets))]
    for number, name in enumerate(names):
        for earlier in names[:number]:
            squares = _expected(pilot, [earlier, name]) - _expected(pilot, ["answer"])[0, 0]
            if earlier not in again and squares[0, 1] ** 2 > COINCIDE**2 * squares[0, 0] * squares[1, 1] > 0:
                again.add(name)
    return again


def _expected(pilot: Crossing, names: Sequence[str]) -> Array:
    """Return traces of products of the components' matrices, after each side's mean was subtracted."""
    table = np.zeros((len(names), len(names)))
    for i, first in enumerate(names):
        for j, second in enumerate(names[: i + 1]):
            table[i, j] = table[j, i] = _trace(pilot, pilot.levels[first], pilot.levels[second])
    return table


def _trace(pilot: Crossing, first: Codes, second: Codes) -> float:
    met = np.bincount(joint(first, second)).astype(float)
    counts = [
        [np.bincount(levels[pilot.sides == side], minlength=levels.max() + 1) for levels in (first, second)]
        for side in range(len(pilot.counts))
    ]
    once = sum((a[first] * b[second]).sum() / n for (a, b), n in zip(counts, pilot.counts, strict=True))
    both = sum(
        float(a @ c) * float(b @ d) / (n * m)
        for (a, b), n in zip(counts, pilot.counts, strict=True)
        for (c, d), m in zip(counts, pilot.counts, strict=True)
    )
    return float((met**2).sum() - 2 * once + both)
