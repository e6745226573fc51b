"""Bounds that hold at every look: the capital recomputed exactly, and how often they are wrong."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import permutations, product
from math import log

import numpy as np
import pytest

from prejudge.core.statistics.betting import CAUTION, MOST_BET, Mean, bounds_of, evidence_of

from ...benchmark_scripts import benchmark_script


def mean_of(sums, sizes, least=0.0, greatest=1.0, most=4.0, typical=4.0):
    sums, sizes = (np.asarray(own, dtype=float) for own in (sums, sizes))
    return Mean(sums=sums, sizes=sizes, least=least, greatest=greatest, most=most, typical=typical)


def capital(units, middle, side, most=4):
    """Return the capital after each unit of (sum, size), in fractions: bets of a share that follows from what was."""
    worst = middle if side > 0 else 1 - middle
    found, total, squares, now = [], F(0), F(0), F(1)
    for sums, size in units:
        gain = F(side) * (F(sums) - size * middle) / most
        share = total / (squares + F(CAUTION))
        share = min(max(share, F(0)), F(MOST_BET) / worst)
        now *= 1 + share * gain
        assert now >= 0
        total, squares = total + gain, squares + gain**2
        found.append(now)
    return found


@pytest.mark.parametrize("side", [1, -1])
def test_capital_is_that_of_the_fractions(side):
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 5, 40)
    units = [(int(rng.binomial(size, 0.7)), int(size)) for size in sizes]
    found = evidence_of(mean_of(*zip(*units, strict=True)), [0.4])
    best = max(1, *capital(units, F(2, 5), side))
    own = (found.above if side > 0 else found.below)[np.flatnonzero(found.values == 0.4)[0]]
    assert own == pytest.approx(log(best), rel=1e-9)


def worst_of(every, alpha, middle, side):
    """Return the mean capital at the end, and how often it ever reached 1/alpha, over equally likely histories."""
    paths = [capital(units, middle, side) for units in every]
    ends = sum((path[-1] for path in paths), F(0)) / len(paths)
    return ends, F(sum(max(path) >= 1 / F(alpha) for path in paths), len(paths))


@pytest.mark.parametrize("side", [1, -1])
def test_fair_fixed_set_in_random_order_gains_nothing(side):
    """Every order of a set of units of unequal size, whose answers have exactly this mean: no replacement."""
    units = [(4, 4), (1, 1), (0, 2), (1, 4), (3, 4), (0, 1)]
    middle = F(sum(s for s, _ in units), sum(n for _, n in units))
    for k in (2, 4, 6):
        ends, _ = worst_of([order[:k] for order in permutations(units)], "0.05", middle, side)
        assert ends <= 1
    for alpha in ("0.5", "0.25", "0.1"):
        assert worst_of(permutations(units), alpha, middle, side)[1] <= F(alpha)


@pytest.mark.parametrize("side", [1, -1])
def test_fair_draws_gain_nothing_where_size_goes_with_value(side):
    """Every history of five draws: large units answer yes, small ones no; missing units are of size 0."""
    kinds = [(4, 4), (0, 1), (0, 3), (0, 0)]
    middle = F(4, 8)
    ends, often = worst_of(product(kinds, repeat=5), "0.25", middle, side)
    assert ends <= 1
    assert often <= F("0.25")
    # A mean of units would be 1 of 3, not 1 of 2: bets that weigh units alike would win against the truth.
    wrong = [[(F(s, n) * 4 if n else 0, 4 if n else 0) for s, n in units] for units in product(kinds, repeat=5)]
    assert worst_of(wrong, "0.25", middle, -1)[0] > 1


def test_bounds_close_in_and_never_open():
    rng = np.random.default_rng(2)
    sums = rng.binomial(4, 0.3, 400).astype(float)
    ends = [bounds_of([mean_of(sums[:k], np.full(k, 4))], 0.05) for k in (0, 5, 20, 100, 400)]
    assert (ends[0].low, ends[0].high, ends[0].value) == (0.0, 1.0, None)
    for one, later in zip(ends, ends[1:], strict=False):
        assert one.low <= later.low <= later.high <= one.high
    assert ends[-1].low < 0.3 < ends[-1].high
    assert ends[-1].high - ends[-1].low < 0.15


def test_coarse_bounds_decide_as_fine_ones():
    """A look tries the limit alone; the gate tries a thousand values."""
    rng = np.random.default_rng(3)
    for limit in (0.2, 0.35, 0.5, 0.65):
        means = [mean_of(rng.binomial(4, 0.4, 300), np.full(300, 4))]
        fine, coarse = bounds_of(means, 0.05, [limit]), bounds_of(means, 0.05, [limit], steps=1)
        assert (fine.high < limit, fine.low > limit) == (coarse.high < limit, coarse.low > limit)


def test_unit_without_an_answer_changes_nothing():
    own = mean_of([3, 0, 1, 0], [4, 0, 4, 0])
    without = mean_of([3, 1], [4, 4])
    assert bounds_of([own], 0.05) == bounds_of([without], 0.05)


@pytest.fixture(scope="module")
def benchmark():
    return benchmark_script("anytime")


@pytest.mark.parametrize(
    "name",
    ["words that lean", "units of unequal size and value", "a third missing", "drift of both sides"],
)
def test_wrong_at_any_look_is_rare(benchmark, name):
    """At most 2.5 % on each side, within what 200 repeats can tell; a t test at every look is wrong 40 times in 100."""
    below, above, test = benchmark.errors(name, 200)
    assert max(below, above) <= 0.055
    assert test > 0.2


def test_words_of_one_side_each(benchmark):
    below, above, _ = benchmark.errors("words of one side each", 20)
    assert below + above <= 0.1
