"""The test that groups have one value: its covariance recomputed by loops, and against fair and unequal groups."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.statistics.heterogeneity import (
    codes_of,
    difference_of_sides,
    equal_groups,
    joint_covariance,
)
from prejudge.core.statistics.multiway import Cells, multiway_jackknife

from .test_multiway import crossed, share_by_loops


def cells_of(codes, groups, values, count):
    """Return cells of groups as units, on one side; a cell has an answer of some of the groups."""
    sums = np.zeros((len(codes), count, 1, 2))
    np.add.at(sums, (np.arange(len(codes)), groups, 0), np.stack([np.ones(len(values)), values], axis=-1))
    return Cells(codes, sums)


def by_loops(codes, groups, values, count):
    """Return the covariances of the means of groups over all facets and by each alone, one left-out level at a time."""

    def means(kept):
        return np.array([np.mean([v for v, g, k in zip(values, groups, kept, strict=True) if k and g == group])
                         for group in range(count)])  # fmt: skip

    whole, total, alone = means(np.ones(len(values), bool)), np.zeros((count, count)), []
    for size in range(1, codes.shape[1] + 1):
        for chosen in combinations(range(codes.shape[1]), size):
            names = [tuple(row[facet] for facet in chosen) for row in codes.tolist()]
            gaps = np.array([means([own != name for own in names]) - whole for name in sorted(set(names))])
            if size == 1:
                levels = [len({n for n, g in zip(names, groups, strict=True) if g == group}) for group in range(count)]
                gaps = gaps * np.sqrt([(n - 1) / n for n in levels])
                alone.append(gaps.T @ gaps)
            total = total + (-1) ** (size + 1) * gaps.T @ gaps
    if codes.shape[1] > 2:
        lost = [max(0.0, 1 - share_by_loops(codes, facet)) for facet in range(codes.shape[1])]
        total = total + sum(share * own for share, own in zip(lost, alone, strict=True))
    return total, alone


@pytest.mark.parametrize("facets", [(7,), (6, 5), (5, 4, 4)])
def test_covariance_and_test_by_loops(facets):
    rng = np.random.default_rng(len(facets))
    codes = np.repeat(crossed(*facets), 3, axis=0)
    groups = np.tile(np.arange(3), len(codes) // 3)
    values = sum(rng.normal(size=(n, 3))[codes[:, way], groups] for way, n in enumerate(facets)) + rng.normal(
        size=len(codes)
    )
    # Each cell has all three groups, and so stands once per group.
    cells = cells_of(codes, groups, values, 3)
    found = joint_covariance(cells, difference_of_sides)
    total, alone = by_loops(codes, groups, values, 3)
    assert found.total == pytest.approx(total, rel=1e-9) and np.array(found.by_facet) == pytest.approx(np.array(alone))
    means = np.array([values[groups == group].mean() for group in range(3)])
    contrast = np.eye(3) - 1 / 3
    traces = [np.trace(contrast @ own) for own in alone]
    most = max([*traces, np.trace(contrast @ total)])
    matrix = total if most == np.trace(contrast @ total) else alone[int(np.argmax(traces))]
    among = contrast @ matrix @ contrast
    above = np.clip(most**2 / np.sum(among**2), 1, 2)
    below = most**2 / sum(t**2 / (n - 1) for t, n in zip(traces, facets, strict=True))
    test = equal_groups(means, found)
    assert test.statistic == pytest.approx(((means - means.mean()) ** 2).sum() / most)
    assert test.freedom == pytest.approx((above, below))
    assert test.p == pytest.approx(stats.f.sf(test.statistic, above, below))


def test_diagonal_is_the_variance_of_each_group():
    """With two sides, which words lie on one of, and groups that have templates of their own."""
    rng = np.random.default_rng(5)
    codes = crossed(8, 12)
    sums = np.zeros((len(codes), 3, 2, 2))
    for group in range(3):
        own = (codes[:, 1] // 4 == group) & (rng.random(len(codes)) < 0.9)
        sums[own, group, codes[own, 0] % 2] = np.stack([np.ones(own.sum()), rng.normal(size=own.sum())], axis=-1)
    cells = Cells(codes, sums)
    found = joint_covariance(cells, difference_of_sides)
    variance, _ = multiway_jackknife(cells, difference_of_sides)
    floor = np.max([np.diag(own) for own in found.by_facet], axis=0)
    assert np.maximum(np.diag(found.total), floor) == pytest.approx(variance[:, 0])


def test_groups_of_one_facet_level_and_groups_that_do_not_vary_have_no_test():
    codes = np.repeat(crossed(4, 3), 2, axis=0)
    groups = np.tile([0, 1], 12)
    values = np.ones(24)
    covariance = joint_covariance(cells_of(codes, groups, values, 2), difference_of_sides)
    assert equal_groups(np.array([1.0, 1.0]), covariance) is None
    one_level = (codes[:, 1] == 0) | (groups == 0)
    cells = cells_of(codes[one_level], groups[one_level], np.arange(one_level.sum()), 2)
    assert joint_covariance(cells, difference_of_sides) is None


def study(rng, shifts, words=8, templates=12):
    """Return cells of groups that share words and have templates of their own, each with a preference by group."""
    groups = len(shifts)
    codes = crossed(words, templates * groups)
    group = codes[:, 1] // templates
    values = (
        rng.normal(0, 0.5, (words, groups))[codes[:, 0], group]
        + rng.normal(0, 1.0, words)[codes[:, 0]]
        + rng.normal(0, 0.5, templates * groups)[codes[:, 1]]
        + rng.normal(size=len(codes))
        + np.asarray(shifts)[group]
    )
    return cells_of(codes, group, values, groups), np.array([values[group == g].mean() for g in range(groups)])


@pytest.mark.parametrize("studies", [400, pytest.param(4000, marks=pytest.mark.soak)])
def test_equal_groups_are_rejected_at_the_level_and_unequal_ones_often(studies):
    rng = np.random.default_rng(1)
    rates = []
    for shifts in ((0, 0, 0, 0, 0), (-0.8, 0.8, 0, 0, 0)):
        tests = []
        for _ in range(studies):
            cells, values = study(rng, shifts)
            tests.append(equal_groups(values, joint_covariance(cells, difference_of_sides)).p <= 0.05)
        rates.append(np.sum(tests))
    assert rates[0] <= stats.binom.ppf(0.99, studies, 0.05) and rates[1] > 0.8 * studies


def test_codes_are_numbers_of_names():
    assert codes_of([["b", "a", "b"], [2, 10, 2]]).T.tolist() == [[1, 0, 1], [1, 0, 1]]
