"""What a pilot of crossed answers lets expect of a larger or fuller design."""

from __future__ import annotations

import numpy as np
import pytest

from prejudge.core.statistics.components import HIGHEST, LOWEST, MIDDLE, Crossing, error_of, forecast
from prejudge.core.statistics.multiway import Cells, multiway_jackknife

QUANTILES = (MIDDLE, LOWEST, HIGHEST)


def table(rows, columns, rng, share=1.0, sides=1):
    """Return the crossing of all rows with all columns of each side, or of a random share of its cells."""
    side, row, column = (a.ravel() for a in np.meshgrid(range(sides), range(rows), range(columns), indexing="ij"))
    chosen = np.sort(rng.permutation(len(row))[: round(share * len(row))])
    return Crossing(sides=side[chosen], facets=(row[chosen], (column + columns * side)[chosen]))


def drawn(crossing, rng, row=0.0, column=0.0, common=0.0):
    """Return answers whose rows, by side and in common, and columns add such variances to a rest of 1."""
    n = len(crossing.sides)
    by_side = rng.normal(0, np.sqrt(row), (2, crossing.facets[0].max() + 1))[crossing.sides, crossing.facets[0]]
    both = rng.normal(0, np.sqrt(common), crossing.facets[0].max() + 1)[crossing.facets[0]]
    columns = rng.normal(0, np.sqrt(column), crossing.facets[1].max() + 1)[crossing.facets[1]]
    return by_side + both + columns + rng.normal(size=n)


def variance(crossing, row, column):
    """Return the variance of the difference of means, straight from the model: what each level counts, squared."""
    first = crossing.sides == 0
    weights = np.where(first, 1 / first.sum(), -1 / max(1, (~first).sum()))
    by_row = sum(
        np.bincount(crossing.facets[0][s], weights=weights[s]) @ np.bincount(crossing.facets[0][s], weights=weights[s])
        for s in (first, ~first)
    )
    by_column = np.bincount(crossing.facets[1], weights=weights) ** 2
    return row * by_row + column * by_column.sum() + (weights**2).sum()


@pytest.mark.parametrize(
    ("row", "column", "common"), [(0, 0, 0), (0.3, 0, 0), (0, 0.3, 0), (0.2, 0.2, 0), (0.03, 0.03, 0)]
)
@pytest.mark.parametrize("sides", [1, 2])
def test_thin_pilot_tells_the_precision_of_the_full_table(row, column, common, sides):
    """A sixth of the cells: the full table has six times as many answers, and the same rows and columns."""
    common = common if sides == 2 else 0
    ratios, inside = [], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        full = table(40, 30, rng, sides=sides)
        pilot = table(40, 30, rng, 1 / 6, sides)
        middle, low, high = forecast(drawn(pilot, rng, row, column, common), pilot, full, QUANTILES)
        truth = variance(full, row, column)
        ratios.append(np.sqrt((middle.single + sum(middle.facets)) / truth))
        inside += low.single + sum(low.facets) <= truth <= high.single + sum(high.facets)
    # Where rows and columns add nothing at all, no estimate can be below the truth.
    none = row == column == 0
    assert 1 / 1.2 <= np.median(ratios) <= (1.35 if none else 1.2)
    assert np.mean([1 / 1.5 <= ratio <= 1.5 for ratio in ratios]) >= (0.7 if none else 0.8)
    assert none or inside >= 14


def test_what_rows_add_to_both_sides_is_left_out():
    """It cancels in their difference, however much it is."""
    rng = np.random.default_rng(0)
    full = table(40, 30, rng, sides=2)
    pilot = table(40, 30, rng, 1 / 2, sides=2)
    y = drawn(pilot, rng, 0.3)
    moved = y + np.random.default_rng(1).normal(0, 1, 40)[pilot.facets[0]]
    before, after = (forecast(values, pilot, full, (MIDDLE,))[0] for values in (y, moved))
    assert after.facets[0] + after.single == pytest.approx(before.facets[0] + before.single, rel=0.3)


def test_precision_is_that_of_the_jackknife_of_the_design():
    """Of a table that is asked whole, what is expected of it is what its own jackknife finds."""
    rng = np.random.default_rng(3)
    full = table(40, 30, rng)
    y = drawn(full, rng, 0.3, 0.2)
    (middle,) = forecast(y, full, full, (MIDDLE,))
    cells = np.zeros((40, 30, 1, 1, 2))
    cells[full.facets[0], full.facets[1], 0, 0] = np.stack([np.ones_like(y), y], axis=-1)
    found, _ = multiway_jackknife(Cells.of_table(cells), mean)
    assert middle.single + sum(middle.facets) == pytest.approx(float(found[0, 0]), rel=0.15)


@pytest.mark.parametrize("sides", [1, 2])
def test_what_a_jackknife_finds_is_known_where_columns_are_unequal(sides):
    """Leaving out a column of half of all answers finds more than the column adds: against drawn answers."""
    rng = np.random.default_rng(4)
    full = table(12, 8, rng, sides=sides)
    kept = np.flatnonzero((full.facets[1] % 8 < 1) | (full.facets[0] < 2))
    design = Crossing(sides=full.sides[kept], facets=tuple(own[kept] for own in full.facets))
    place = (design.facets[0], design.facets[1], 0, design.sides)
    found = []
    for _ in range(1000):
        y = rng.normal(0, 1, 8 * sides)[design.facets[1]]
        cells = np.zeros((12, 8 * sides, 1, sides, 2))
        cells[place] = np.stack([np.ones_like(y), y], axis=-1)
        found.append(multiway_jackknife(Cells.of_table(cells), difference)[0][0, 0])
    rows, columns, cells = (
        design.found("facet 1", way, single=single)
        for way, single in (
            (design.facets[0], False),
            (design.facets[1], False),
            (np.unique(design.facets[0] * 100 + design.facets[1], return_inverse=True)[1], True),
        )
    )
    assert max(rows + columns - cells, rows, columns) == pytest.approx(np.mean(found), rel=0.1)
    assert np.mean(found) > 1.1 * (variance(design, 0, 1) - variance(design, 0, 0))


def mean(totals):
    return (totals[..., 0, 1] / totals[..., 0, 0])[..., None]


def difference(totals):
    """Return the mean of the first side less that of the second, if there is one."""
    means = totals[..., 1] / totals[..., 0]
    return (means[..., 0] - means[..., 1:].sum(axis=-1))[..., None]


@pytest.mark.parametrize("columns", [16, 30])
def test_share_of_few_levels_is_not_shrunk(columns):
    """Columns that add half of the variance, however few they are, are forecast at what a jackknife of them finds."""
    ratios = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        full = table(200, columns, rng)
        (middle,) = forecast(drawn(full, rng, column=1.0), full, full, (MIDDLE,))
        ratios.append((middle.single + sum(middle.facets)) / variance(full, 0, 1.0))
    assert 1 / 1.15 <= np.median(ratios) ** 0.5 <= 1.15


def test_blocks_that_do_not_cross_are_not_filled():
    """Two domains, each with rows and columns of its own: half of all meetings of rows with columns exist."""
    rng = np.random.default_rng(0)
    row, column = (a.ravel() for a in np.meshgrid(range(20), range(20), indexing="ij"))
    own = (row < 10) == (column < 10)
    blocks = Crossing(sides=np.zeros(own.sum(), int), facets=(row[own], column[own]))
    (found,) = forecast(rng.normal(size=200), blocks, blocks, (MIDDLE,))
    assert found.single == pytest.approx(1 / 200, rel=0.3)


def test_answers_without_variation_give_nothing():
    rng = np.random.default_rng(0)
    full = table(4, 4, rng)
    assert forecast(np.ones(16), full, full, QUANTILES) == []
    one = Crossing(sides=np.zeros(1, int), facets=(np.zeros(1, int), np.zeros(1, int)))
    assert forecast(np.ones(1), one, full, QUANTILES) == []


def test_facets_that_nearly_coincide_count_once():
    """Such as the positive and the negative option of a question, of which nearly every one has one partner."""
    row, column = (a.ravel() for a in np.meshgrid(range(40), range(30), indexing="ij"))
    sides = np.zeros(len(row), int)
    ratios = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        partner = np.where(rng.random(len(column)) < 0.03, rng.integers(0, 30, len(column)), column)
        full = Crossing(sides=sides, facets=(row, column, partner))
        by_column = rng.normal(0, np.sqrt(0.3), 30)
        (middle,) = forecast(by_column[column] + rng.normal(size=len(row)), full, full, (MIDDLE,))
        ratios.append((middle.single + sum(middle.facets)) / (0.3 / 30 + 1 / len(row)))
    assert 1 / 1.3 <= np.median(ratios) <= 1.3


def test_many_facets_that_add_nothing_are_not_expected_to_add_much():
    """Of five facets the first guess is that as many matter as of two."""
    ratios = {2: [], 5: []}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        facets = tuple(rng.integers(0, 50, 2000) for _ in range(5))
        values = rng.normal(size=2000)
        for count, found in ratios.items():
            full = Crossing(sides=np.zeros(2000, int), facets=facets[:count])
            pilot = Crossing(sides=full.sides[:800], facets=tuple(codes[:800] for codes in full.facets))
            (middle,) = forecast(values[:800], pilot, full, (MIDDLE,))
            found.append(2000 * (middle.single + sum(middle.facets)))
    assert np.median(ratios[5]) < 1.25 * np.median(ratios[2])


def items(n):
    return Crossing(sides=np.zeros(n, int), facets=(np.arange(n),))


def test_pilot_of_a_share_knows_a_rare_answer_as_little_as_it_does():
    """Of 20 prompts about a share of any size; the whole study asks 80 and takes the sample variance."""
    rng = np.random.default_rng(11)
    inside, equal = [], []
    for share in rng.beta(0.5, 0.5, 400):
        pilot, whole = rng.random(20) < share, rng.random(80) < share
        truth = whole.var(ddof=1) / 80
        low, high = (
            sum(part.facets) for part in forecast(pilot * 1.0, items(20), items(80), (LOWEST, HIGHEST), (0.0, 1.0))
        )
        if truth:
            inside.append(low <= truth <= high)
            equal.append(pilot.all() or not pilot.any())
    assert 0.85 <= np.mean(inside) <= 0.99
    assert sum(equal) > 20 and np.mean(np.array(inside)[equal]) >= 0.8
    # A pilot half of whose answers are hits knows the variance of a share far better than that of any other answer.
    halves = np.tile([0.0, 1.0], 10)
    of_share, of_number = (
        [sum(part.facets) for part in forecast(halves, items(20), items(80), (LOWEST, HIGHEST), limits)]
        for limits in ((0.0, 1.0), None)
    )
    assert 1.5 * of_share[1] / of_share[0] < of_number[1] / of_number[0]


def test_difference_of_two_shares_has_the_variance_of_both():
    sides, codes = np.repeat([0, 1], 40), np.arange(80)
    both = Crossing(sides=sides, facets=(codes,))
    values = np.concatenate([np.arange(40) < 4, np.arange(40) < 20]) * 1.0
    (middle,) = forecast(values, both, both, (MIDDLE,), (0.0, 1.0))
    assert sum(middle.facets) == pytest.approx((0.1 * 0.9 + 0.5 * 0.5) / 39, rel=0.1)
    larger, smaller = forecast(100 * values, both, both, (MIDDLE,), (0.0, 100.0)), middle
    assert sum(larger[0].facets) == pytest.approx(1e4 * sum(smaller.facets))


def test_equal_answers_of_no_share_give_nothing():
    for values, limits in ((np.ones(20), None), (np.full(20, 0.5), (0.0, 1.0))):
        assert forecast(values, items(20), items(80), QUANTILES, limits) == []
    # What clusters that were asked twice add cannot be told from equal answers.
    twice = Crossing(sides=np.zeros(20, int), facets=(np.arange(20) // 2,))
    assert forecast(np.ones(20), twice, items(80), QUANTILES, (0.0, 1.0)) == []


def test_smaller_pilot_has_a_wider_range():
    rng = np.random.default_rng(5)
    full = table(40, 30, rng)
    widths = []
    for share in (0.05, 0.5):
        pilot = table(40, 30, rng, share)
        low, high = forecast(drawn(pilot, rng), pilot, full, (LOWEST, HIGHEST))
        widths.append((high.single + sum(high.facets)) / (low.single + sum(low.facets)))
    assert widths[0] > 1.5 * widths[1]


def test_larger_pilot_knows_a_design_better():
    rng = np.random.default_rng(6)
    full = table(40, 30, rng)
    errors = [error_of(table(40, 30, rng, share), full) for share in (0.05, 0.2, 0.8)]
    assert errors[0] > 2 > errors[1] > 0.5 > errors[2]


def test_error_is_that_of_estimates_of_the_variance():
    """Of pilots without any row or column that adds something, what the sums of squares say of the design varies so."""
    rng = np.random.default_rng(7)
    full, pilot = table(12, 10, rng), table(12, 10, rng, 0.5)
    estimates = []
    for _ in range(400):
        y = rng.normal(size=len(pilot.sides))
        y = y - y.mean()
        rows, columns = (np.bincount(way, weights=y) for way in (pilot.facets[0], pilot.facets[1]))
        estimates.append(moments(pilot, y, rows, columns))
    single, row, column = np.transpose(estimates)
    varies = np.std(row / 12 + column / 10 + single / 120)
    usual = 0.005 / 12 + 0.005 / 10 + 1 / 120
    assert error_of(pilot, full) == pytest.approx(varies / usual, rel=0.25)


@pytest.mark.parametrize("answers", [5, 12])
def test_error_of_independent_answers_is_that_of_their_variance(answers):
    """One answer of each cluster: nothing is known but how much answers vary, the less the fewer there are."""
    pilot, design = (Crossing(sides=np.zeros(n, int), facets=(np.arange(n),)) for n in (answers, 20 * answers))
    variances = np.random.default_rng(9).normal(size=(20_000, answers)).var(axis=1, ddof=1)
    assert error_of(pilot, design) == pytest.approx(variances.std(), rel=0.05)


def moments(pilot, y, rows, columns):
    """Return the variances of single answers, rows and columns by least squares of all products of two answers."""
    n = len(y)
    centre = np.eye(n) - 1 / n
    parts = [np.eye(n), *((way[:, None] == way[None, :]).astype(float) for way in (pilot.facets[0], pilot.facets[1]))]
    parts = [centre @ part @ centre for part in parts]
    squares = [y @ y, (rows**2).sum(), (columns**2).sum()]
    return np.linalg.solve([[np.trace(a @ b) for b in parts] for a in parts], squares)


def test_pilot_that_asked_one_answer_per_cell_does_not_know_what_cells_add():
    rng = np.random.default_rng(8)
    once = table(6, 5, rng)
    twice = Crossing(sides=np.tile(once.sides, 2), facets=tuple(np.tile(own, 2) for own in once.facets))
    assert error_of(once, once) < error_of(once, twice) == np.inf
