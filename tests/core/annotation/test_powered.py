"""The estimators alone: recomputed by other means, and against judges of many kinds."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from prejudge.core.annotation.matrix import by_matrix, read_matrix
from prejudge.core.annotation.powered import Labelled, Rows, powered
from prejudge.core.contracts.errors import UsageError
from prejudge.testing import raises_code

from ...benchmark_scripts import benchmark_script

bench = benchmark_script("correction")


def drawn_from(world, seed=1):
    random = np.random.default_rng(seed)
    truth, verdict, group, cluster = bench.answers(world, random)
    places, chances = bench.drawn(world, verdict, group, random)
    codes = (verdict > 0.5).astype(int)
    rows = Rows(verdict, np.where(group == 0, 1.0, -1.0), (cluster,), codes)
    return rows, Labelled(places, truth[places] - verdict[places], chances), truth


def test_value_is_the_weighted_mean_of_labels_by_verdict():
    """Of each side: over verdicts, their share times the mean label, from sums in a loop."""
    rows, labelled, truth = drawn_from(bench.World())
    found = powered(rows, labelled, 0.95, 1.0)
    by = defaultdict(list)
    for place in labelled.rows:
        by[rows.signs[place], rows.values[place]].append(truth[place])
    value = 0.0
    for (sign, verdict), told in by.items():
        side = rows.signs == sign
        value += sign * (side & (rows.values == verdict)).sum() / side.sum() * sum(told) / len(told)
    assert found.value == pytest.approx(value)
    assert found.powers == (1.0, 1.0)


def test_interval_is_that_of_cluster_sums():
    """Each row is the mean of its verdict, and a labelled one what it adds to it; clusters are summed in a loop."""
    world = bench.World(difference=None, labels=150)
    rows, labelled, truth = drawn_from(world)
    found = powered(rows, labelled, 0.9, 1.0)
    n, parts = len(rows.values), dict(enumerate([0.0] * len(rows.values)))
    for verdict in (0.0, 1.0):
        told = [(p, c) for p, c in zip(labelled.rows, labelled.chances, strict=True) if rows.values[p] == verdict]
        mean = sum(truth[place] for place, _ in told) / len(told)
        for place in np.flatnonzero(rows.values == verdict):
            parts[place] = mean
        for place, chance in told:
            parts[place] += (truth[place] - mean) / chance * math.sqrt(1 + (1 - chance) / (len(told) - 1))
    sums = defaultdict(float)
    middle = sum(parts.values()) / n
    for place, part in parts.items():
        sums[rows.ways[0][place]] += (part - middle) / n
    variance = sum(one**2 for one in sums.values()) * 40 / 39
    variance += 2 * np.mean([(1 / chance / n) ** 2 * (1 - chance) for chance in labelled.chances])
    half = stats.t.ppf(0.95, 39) * math.sqrt(variance)
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))


def test_all_labelled_is_the_truth():
    """With every answer labelled the verdict counts for nothing, and the interval is that of the labels."""
    rows, _, truth = drawn_from(bench.World(difference=None))
    every = np.arange(len(truth))
    found = powered(rows, Labelled(every, truth - rows.values, np.ones(len(truth))), 0.95, 1.0)
    alone = powered(rows._replace(values=truth), Labelled(every, np.zeros(len(truth)), np.ones(len(truth))), 0.95)
    assert (found.value, found.low, found.high) == pytest.approx((truth.mean(), alone.low, alone.high))


def test_verdicts_by_chance_get_no_weight():
    random = np.random.default_rng(3)
    truth, verdict = random.random(2000), random.random(2000)
    places = random.choice(2000, 300, replace=False)
    rows = Rows(verdict, np.ones(2000), (), np.arange(2000))
    found = powered(rows, Labelled(places, (truth - verdict)[places], np.full(300, 0.15)), 0.95)
    assert found.powers[0] < 0.15
    assert found.high - found.low == pytest.approx(2 * 1.96 * truth.std() / math.sqrt(300), rel=0.15)


def test_a_judge_that_was_never_wrong_may_be():
    """Among 30 labels no error was seen: the interval is wider than that of the verdicts, by what 30 can miss."""
    rows, labelled, _ = drawn_from(bench.World(difference=None, labels=30, right=bench.PERFECT))
    found = powered(rows, labelled, 0.95, 1.0)
    assert not labelled.changes.any()
    assert found.value == pytest.approx(rows.values.mean())
    bare = powered(rows, labelled, 0.95)
    assert found.high - found.low > 1.2 * (bare.high - bare.low)
    assert not found.closer


def test_rows_of_several_answers_take_each_by_its_chance():
    values, signs = np.array([1.0, 0.0, -1.0, 0.0] * 10), np.ones(40)
    labelled = Labelled(np.arange(0, 40, 2), np.array([-1.0, 0.0] * 10), np.full(20, 0.25))
    found = powered(Rows(values, signs), labelled, 0.95, 1.0)
    assert found.value == pytest.approx(values.mean() - 10 / 0.25 / 40)


@pytest.mark.parametrize("side", [0, 1])
def test_few_labels_of_one_side_are_refused(side):
    rows, labelled, _ = drawn_from(bench.World())
    sign = (1.0, -1.0)[side]
    kept = np.flatnonzero((rows.signs[labelled.rows] != sign) | (np.arange(len(labelled.rows)) < 10))
    with raises_code(UsageError, "annotation.few"):
        powered(rows, Labelled(*(part[kept] for part in labelled)), 0.95, 1.0)


def test_matrix_value_and_interval():
    """Rogan and Gladen's formula, and an interval about as long as the delta method's."""
    random = np.random.default_rng(2)
    verdict = (random.random(4000) < 0.4).astype(float)
    rows, counts = Rows(verdict, np.ones(4000), (), verdict.astype(int)), np.array([[270.0, 30.0], [40.0, 160.0]])
    found = by_matrix(rows, np.array([0.0, 1.0]), np.zeros(4000, dtype=int), [counts], 0.95)
    sp, se, q = 0.9, 0.8, verdict.mean()
    value = (q + sp - 1) / (se + sp - 1)
    variance = q * (1 - q) / 4000 + value**2 * se * (1 - se) / 200 + (1 - value) ** 2 * sp * (1 - sp) / 300
    assert found.value == pytest.approx(value)
    assert found.high - found.low == pytest.approx(2 * 1.96 * math.sqrt(variance) / 0.7, rel=0.06)


def test_one_matrix_for_both_sides_stretches_a_difference():
    """Errors that are the same on both sides make a difference smaller; their uncertainty counts once."""
    verdict = np.concatenate([np.arange(1000) < 500, np.arange(1000) < 300]).astype(float)
    rows = Rows(verdict, np.repeat([1.0, -1.0], 1000), (), verdict.astype(int))
    counts = np.array([[950.0, 50.0], [50.0, 950.0]])
    found = by_matrix(rows, np.array([0.0, 1.0]), np.zeros(2000, dtype=int), [counts], 0.95)
    assert found.value == pytest.approx(0.2 / 0.9)


def test_three_labels_solve_the_equations_of_their_shares():
    """Exact shares through exact rates come back; with values of 3, 1 and -2 of the labels, and of their mean."""
    true, rates = [Fraction(5, 10), Fraction(2, 10), Fraction(3, 10)], [[8, 1, 1], [2, 7, 1], [1, 3, 6]]
    seen = [sum(share * Fraction(own[k], 10) for share, own in zip(true, rates, strict=True)) for k in range(3)]
    verdicts = np.repeat(np.arange(3), [int(1000 * share) for share in seen])
    assert len(verdicts) == 1000
    values = np.array([3.0, 1.0, -2.0])
    rows = Rows(values[verdicts], np.ones(1000), (), verdicts)
    found = by_matrix(rows, values, np.zeros(1000, dtype=int), [np.array(rates) * 1e6], 0.95)
    assert found.value == pytest.approx(float(sum(v * share for v, share in zip((3, 1, -2), true, strict=True))))
    # With rates that are known, the variance is that of a multinomial mean of the values that rows are corrected to.
    worth = np.linalg.solve(np.array(rates) / 10, values)
    error = np.sqrt((np.array(seen, float) @ worth**2 - (np.array(seen, float) @ worth) ** 2) / 1000)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.03)


@pytest.mark.parametrize(
    ("counts", "refused"),
    [
        ([[90, 5, 5], [5, 90, 5], [5, 5, 90]], False),
        ([[50, 50, 0], [50, 50, 0], [0, 0, 100]], True),
        ([[0, 100, 0], [0, 0, 100], [100, 0, 0]], True),
        ([[9, 0, 1], [0, 9, 1], [0, 0, 0]], True),
    ],
    ids=["good", "cannot tell two apart", "always wrong, in a circle", "a label that nobody knows"],
)
def test_matrix_by_which_nothing_is_known_is_refused(tmp_path, counts, refused):
    path = tmp_path / "errors.csv"
    cells = [
        f"{v},{label},{n}" for label, own in zip("abc", counts, strict=True) for v, n in zip("abc", own, strict=True)
    ]
    path.write_text("\n".join(["verdict,label,n", *cells]))
    if not refused:
        assert read_matrix(str(path)).levels == ("a", "b", "c")
        return
    with raises_code(UsageError, "annotation.matrix"):
        read_matrix(str(path))


COVERED = ("judge whose errors differ by group", "judge by chance", "labels of nearly one class", "12 clusters")


@pytest.mark.parametrize("name", [*COVERED, "people who disagree", "numbers"])
def test_intervals_cover_the_model(name):
    """A small part of `make bench-correction`: 95 % intervals of 100 studies; fewer than 89 by chance is 1 in 250."""
    found = bench.simulate(bench.by_labels(bench.WORLDS[name]), 100)
    assert found["covered"] >= 0.89
    if name == COVERED[0]:
        assert found["raw_covered"] < 0.3
        assert found["error"] < found["raw_error"]


def test_intervals_of_a_matrix_cover_the_model():
    found = bench.simulate(bench.with_matrix(bench.WORLDS[COVERED[0]], 100), 40)
    assert found["covered"] >= 0.85 > found["raw_covered"]


def test_intervals_of_a_matrix_of_three_labels_cover_the_model():
    found = bench.simulate(bench.with_three(100), 60)
    assert found["covered"] >= 0.86 > found["raw_covered"]
    assert found["error"] < found["raw_error"]
