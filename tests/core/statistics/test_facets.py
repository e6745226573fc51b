"""Inference over several facets at once, recomputed with loops, and against fair models that are not neutral."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.contracts.estimates import Caveat
from prejudge.core.statistics.facets import OVER
from prejudge.core.statistics.facets import infer_over as infer_over_cells
from prejudge.core.statistics.intervals import CONTRAST
from prejudge.core.statistics.multiway import Cells
from prejudge.core.statistics.multiway import infer as infer_cells
from prejudge.core.statistics.resampling import Resampling, bootstrap


def gap(totals):
    """Return the mean of the first side less that of the second, from the columns count and sum."""
    first, second = totals[..., 0, :], totals[..., 1, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        return (first[..., 1] / first[..., 0] - second[..., 1] / second[..., 0])[..., None]


def mean(totals):
    with np.errstate(invalid="ignore", divide="ignore"):
        return (totals[..., 0, 1] / totals[..., 0, 0])[..., None]


def infer(table, *more):
    return infer_cells(Cells.of_table(table), *more)


def infer_over(ways, table, *more):
    return infer_over_cells(ways, Cells.of_table(table), *more)


def leaning(rng, templates=30, words=7, lean=0.3, effect=0.0, each=3, template=0.2):
    """Return cells (templates, words of both sides, 1 unit, 2 sides, 2 columns) of a model whose words lean."""
    side = np.repeat([0, 1], words)
    expected = np.where(side == 0, effect / 2, -effect / 2) + rng.normal(0, lean, 2 * words)
    expected = expected + rng.normal(0, template, templates)[:, None]
    answers = expected[..., None] + rng.normal(0, 0.5, (templates, 2 * words, each))
    cells = np.zeros((templates, 2 * words, 1, 2, 2))
    for number, place in enumerate(side):
        cells[:, number, 0, place] = np.stack([np.full(templates, each), answers[:, number].sum(axis=-1)], axis=-1)
    return cells


def by_loops(cells):
    """Return value, variance and degrees of freedom of `gap`, one left-out level at a time."""
    rows, columns = range(len(cells)), range(cells.shape[1])
    value = gap(cells.sum(axis=(0, 1)))[0, 0]
    without_row = np.array([gap(np.delete(cells, row, axis=0).sum(axis=(0, 1)))[0, 0] for row in rows])
    by_row = (len(rows) - 1) / len(rows) * ((without_row - value) ** 2).sum()
    parts, counts = [], []
    for side in (0, 1):
        own = [column for column in columns if cells[:, column, 0, side, 0].sum() > 0]
        without = np.array([gap(np.delete(cells, column, axis=1).sum(axis=(0, 1)))[0, 0] for column in own])
        parts.append((len(own) - 1) / len(own) * ((without - value) ** 2).sum())
        counts.append(len(own) - 1)
    single = 0.0
    for row in rows:
        for column in columns:
            less = cells.copy()
            less[row, column] = 0
            single += (gap(less.sum(axis=(0, 1)))[0, 0] - value) ** 2
    by_column = sum(parts)
    freedom = by_column**2 / sum(part**2 / count for part, count in zip(parts, counts, strict=True))
    variance = max(by_row + by_column - single, by_row, by_column)
    return value, variance, variance**2 / (by_row**2 / (len(rows) - 1) + by_column**2 / freedom)


@pytest.mark.parametrize("lean", [0.0, 0.3])
def test_interval_and_p_by_loops(lean):
    cells = leaning(np.random.default_rng(3), templates=9, words=5, lean=lean, effect=0.3)
    cells[2, 4] = 0  # a combination that nobody answered
    found = infer(cells, gap, 0.9)
    value, variance, freedom = by_loops(cells)
    half = stats.t.ppf(0.95, freedom) * np.sqrt(variance)
    assert (found.low[0, 0], found.high[0, 0]) == pytest.approx((value - half, value + half), rel=1e-9)
    assert found.p[0, 0] == pytest.approx(2 * stats.t.sf(abs(value) / np.sqrt(variance), freedom), rel=1e-9)
    assert Cells.of_table(cells).levels[0].tolist() == [[9, 5]]


def test_interval_excludes_zero_exactly_where_p_is_small():
    rng = np.random.default_rng(5)
    for _ in range(60):
        found = infer(leaning(rng, templates=8, words=4, effect=rng.normal(0, 0.5)), gap, 0.95, (CONTRAST,))
        assert ((found.low > 0) | (found.high < 0)).item() == (found.p < 0.05).item()


def test_fair_models_whose_words_lean_are_rarely_found_biased():
    # 300 studies: at 5 % more than 24 have a chance of 1 %, and at least 0.5 of them by templates alone.
    rng, crossed, templates, covered = np.random.default_rng(11), 0, 0, 0
    for _ in range(300):
        cells = leaning(rng)
        found = infer(cells, gap, 0.95)
        crossed += found.p[0, 0] < 0.05
        covered += found.low[0, 0] <= 0 <= found.high[0, 0]
        low, high = bootstrap(cells.sum(axis=1), gap, Resampling(method="jackknife"))
        templates += not low[0, 0] <= 0 <= high[0, 0]
    assert crossed <= 24
    assert covered >= 276
    assert templates > 150


def test_planted_bias_is_found_among_words_that_lean():
    # An ideal t test of 7 and 7 words with leans of 0.3 has a power of 0.80 at 0.5 nats.
    rng = np.random.default_rng(12)
    found = sum((infer(leaning(rng, effect=0.5), gap, 0.95).p < 0.05).item() for _ in range(300))
    assert 0.72 < found / 300 < 0.88


def test_facet_of_one_level_is_not_generalised_over():
    rng = np.random.default_rng(6)
    cells = leaning(rng, templates=8, words=1)
    found = infer(cells, gap, 0.95)
    plan = Resampling(method="jackknife")
    low, high = bootstrap(cells.sum(axis=1), gap, plan)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    inferred = infer_over(("template", "word"), cells, gap, (), plan)
    assert inferred.over(0) == ("template",)
    assert inferred.method(0) == "cluster jackknife (template)"
    assert inferred.caveats(0) == (Caveat.FEW_CLUSTERS, Caveat.ONE_LEVEL)


def test_nothing_varies_where_both_facets_have_one_level():
    found = infer(leaning(np.random.default_rng(7), templates=1, words=1), gap, 0.95)
    assert np.isnan([found.low, found.high, found.p]).all()


def test_equal_answers_have_no_interval_and_no_p():
    cells = np.zeros((6, 5, 1, 1, 2))
    cells[..., 0, :] = (2.0, 1.0)
    found = infer(cells, mean, 0.95)
    assert np.isnan([found.low, found.high, found.p]).all()


def test_p_is_never_zero():
    cells = leaning(np.random.default_rng(9), templates=200, words=60, lean=0, template=0)
    cells[..., 0, 0, 1] += 1e6 * cells[..., 0, 0, 0]
    found = infer(cells, gap, 0.95)
    assert stats.t.sf(1e6 / (found.high - found.low), 100).item() == 0
    assert found.p.item() > 0


def test_few_levels_are_a_caveat_and_what_is_covered_a_fact(options):
    cells = leaning(np.random.default_rng(8), templates=8, words=5)
    inferred = infer_over(("template", "word"), cells, gap, (), options.plan)
    assert inferred.caveats(0) == (Caveat.FEW_LEVELS,) and inferred.counted(0) == 8
    assert inferred.method(0) == "crossed jackknife (template x word)"
    assert inferred.tested(0, 0, options)["facts"] == {OVER: "template x word"}


@pytest.fixture
def options():
    from prejudge.core.statistics.estimates import TestingOptions

    return TestingOptions()


def test_facet_that_does_not_vary_leaves_the_other_its_interval():
    """Two rows with the same answers: the variance between rows is 0, and that between columns is left."""
    cells = np.zeros((2, 6, 1, 1, 2))
    cells[..., 0] = 1
    cells[..., 0, 0, 1] = np.array([0.1, 0.4, 0.2, 0.6, 0.3, 0.5])
    found = infer(cells, mean, 0.95)
    columns = stats.ttest_1samp(cells[0, :, 0, 0, 1], 0.0)
    assert found.p[0, 0] == pytest.approx(columns.pvalue)
    interval = columns.confidence_interval()
    assert (found.low[0, 0], found.high[0, 0]) == pytest.approx((interval.low, interval.high))
