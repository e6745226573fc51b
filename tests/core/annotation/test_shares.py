"""Corrected shares and means that carry how answers lie in clusters, recomputed with numpy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from prejudge.core.annotation.design import Design, Drawn, Stratum
from prejudge.core.annotation.shares import Tally, difference_rows, mean_rows, share_rows
from prejudge.core.statistics.clusters import ways_of

LABELS = ("0", "1")


def tally_of(truth, cell, clusters, *, share=1.0, right=None):
    """Return the labels of a sample, drawn by cell and verdict; the verdict is right but where it is not."""
    verdict = truth if right is None else np.where(right, truth, 1 - truth)
    codes, random = cell * 2 + verdict, np.random.default_rng(1)
    strata, items = [], []
    for number in range(4):
        rows = np.flatnonzero(codes == number)
        drawn = random.choice(rows, max(int(share * len(rows)), 1), replace=False)
        strata.append(Stratum({"cell": "ab"[number // 2]}, LABELS[number % 2], len(rows), len(drawn), number % 2))
        chance = len(drawn) / len(rows)
        items += [Drawn(f"i{row}", int(row), "", "", number, chance, float(number % 2)) for row in drawn]
    design = Design(
        sample="", run="", head="", verdict="v", cells=("cell",), seed=0, drawn=0.0,
        population=len(truth), strata=tuple(strata), items=tuple(items),
        ways=ways_of(clusters, codes),
    )  # fmt: skip
    return Tally(design, LABELS, {one.item: LABELS[truth[one.row]] for one in items})


def drawn(seed, sizes=(40, 20), scale=1.2):
    """Return labels, cells and the cluster of each of two ways."""
    random = np.random.default_rng(seed)
    first, second = np.repeat(np.arange(sizes[0]), sizes[1]), np.tile(np.arange(sizes[1]), sizes[0])
    lean = random.normal(0, scale, sizes[0])[first] + random.normal(0, scale, sizes[1])[second]
    cell = random.integers(0, 2, len(first))
    return (random.random(len(first)) < 1 / (1 + np.exp(-lean))).astype(int), cell, first, second


def by_hand(values, clusters):
    """Return the cluster-robust variance of a mean."""
    totals = np.bincount(clusters, values - values.mean())
    return (totals**2).sum() / len(values) ** 2 * len(totals) / (len(totals) - 1)


def test_share_of_a_right_verdict_has_the_variance_of_its_clusters():
    truth, cell, first, _ = drawn(2)
    tally = tally_of(truth, cell, {"face": first})
    (row,) = [row for row in share_rows(tally) if row.group == "" and row.label == "1"]
    assert row.rate.value == pytest.approx(truth.mean()) and row.alone.low == pytest.approx(row.alone.high)
    half = stats.t.ppf(0.975, 39) * np.sqrt(by_hand(truth, first))
    assert row.rate.high - row.rate.value == pytest.approx(half, rel=0.03)
    (mean,) = [row for row in mean_rows(tally) if row.group == ""]
    assert mean.raw == pytest.approx(truth.mean()) == mean.rate.value
    assert mean.rate.high - mean.rate.value == pytest.approx(half, rel=0.05)


def test_ways_that_cross_are_added_less_their_intersection():
    truth, cell, first, second = drawn(3)
    tally = tally_of(truth, cell, {"face": first, "scene": second})
    (row,) = [row for row in share_rows(tally) if row.group == "" and row.label == "1"]
    cells = first * 20 + second
    variance = by_hand(truth, first) + by_hand(truth, second) - by_hand(truth, cells)
    half = stats.t.ppf(0.975, 19) * np.sqrt(variance)
    assert row.rate.value - row.rate.low == pytest.approx(half, rel=0.03)
    one = tally_of(truth, cell, {"face": first})
    (alone,) = [row for row in share_rows(one) if row.group == "" and row.label == "1"]
    assert alone.rate.low > row.rate.low


def test_difference_within_clusters_is_narrower_than_between_them():
    random = np.random.default_rng(5)
    truth, cell, first, _ = drawn(5, (60, 20), 2.0)
    parted = random.permutation(60)[first] % 2
    widths = []
    for groups in (cell, parted):
        tally = tally_of(truth, groups, {"face": first})
        rate = difference_rows(tally)[1].rate
        widths.append(rate.high - rate.low)
    assert widths[0] < 0.6 * widths[1]


def test_a_verdict_that_errs_hides_no_clusters():
    random, hits = np.random.default_rng(6), 0
    for seed in range(40):
        truth, cell, first, _ = drawn(100 + seed, (30, 20), 1.0)
        tally = tally_of(truth, cell, {"face": first}, share=0.2, right=random.random(600) < 0.85)
        (row,) = [row for row in share_rows(tally) if row.group == "" and row.label == "1"]
        hits += row.rate.low <= 0.5 <= row.rate.high
    assert hits >= 34


def test_a_single_cluster_tells_nothing_of_others():
    truth, cell, first, _ = drawn(7, (4, 10))
    tally = tally_of(truth, cell, {"face": np.zeros_like(first)})
    assert all(row.alone is None for row in share_rows(tally))


def test_interval_of_a_rare_label_ends_at_what_a_share_can_be():
    """Two wrong verdicts of few labels: the interval on either side of a small share would begin below 0."""
    random = np.random.default_rng(0)
    truth = (random.random(400) < 0.02).astype(int)
    tally = tally_of(truth, random.integers(0, 2, 400), {}, share=0.1, right=random.random(400) < 0.97)
    rates = [rate for row in share_rows(tally) for rate in (row.rate, row.alone) if rate and rate.low is not None]
    assert all(0 <= rate.low <= rate.value <= rate.high <= 1 for rate in rates)
    assert any(rate.low == 0 < rate.value for rate in rates) and any(rate.value < rate.high == 1 for rate in rates)
