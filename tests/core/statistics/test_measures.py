"""Declared measures, computed again by hand from made-up answers: values, intervals, tests, effects, bounds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge import statistics
from prejudge.core.contracts.errors import DataError
from prejudge.core.statistics.recipes import Sample, symmetric
from prejudge.testing import raises_code

OPTIONS = statistics.MarginOptions(resamples=1999, intervals="jackknife")
FIRST = pl.col("side") == "a"


def answers(rows: int = 90, clusters: int = 9, seed: int = 0, *, missing: float = 0.1) -> pl.DataFrame:
    """Return answers whose clusters lean, in no order; some are missing."""
    rng = np.random.default_rng(seed)
    of = rng.integers(clusters, size=rows)
    x = rng.normal(0, 0.5, clusters)[of] + rng.normal(size=rows) + 0.2
    frame = pl.DataFrame(
        {
            "trial": [f"t{i}" for i in range(rows)],
            "template": [f"c{i}" for i in of],
            "word": rng.choice(list("pqrstu"), rows),
            "side": rng.choice(["a", "b"], rows),
            "x": x,
            "y": 0.5 * x + rng.normal(size=rows),
            "hit": x > 0,
            "known": rng.integers(0, 2, rows),
            "status": np.where(rng.random(rows) < missing, "refused", "ok"),
        }
    )
    blank = [pl.when(pl.col("status") == "ok").then(pl.col(name)).alias(name) for name in ("x", "y", "hit")]
    return frame.with_columns(*blank)


def declared(
    *measures: object, clusters: tuple[str, ...] = ("template",), **others: object
) -> statistics.DeclaredMetric:
    """Return a metric of these measures."""
    return type("Case", (statistics.DeclaredMetric,), {"measures": measures, "clusters": clusters, **others})()


def one(frame: pl.DataFrame, measure: object, options: object = OPTIONS, **others: object):
    """Return the estimate of one measure for the whole."""
    found = declared(measure, **others).compute(frame, options)
    return next(e for e in found if e.metric == measure.name)  # type: ignore[attr-defined]


def ok(frame: pl.DataFrame) -> pl.DataFrame:
    """Return what is readable."""
    return frame.filter(pl.col("status") == "ok")


def cohens_d(frame: pl.DataFrame) -> float:
    """Return the difference of means in pooled standard deviations."""
    a, b = (frame.filter(side=side)["x"].to_numpy() for side in "ab")
    pooled = ((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(a) + len(b) - 2)
    return (a.mean() - b.mean()) / np.sqrt(pooled)


def variance(frame: pl.DataFrame) -> float:
    """Return the variance of all answers, about their mean."""
    return float(frame["x"].to_numpy().var())


CASES: dict[str, tuple[object, Callable[[pl.DataFrame], float], float | None]] = {
    "share": (statistics.Share("m", hit="hit", neutral=50), lambda f: 100 * f["hit"].mean(), 50),
    "share of some": (
        statistics.Share("m", hit=pl.col("x") > 0.5, where=FIRST, neutral=30),
        lambda f: 100 * (f.filter(side="a")["x"] > 0.5).mean(),
        30,
    ),
    "mean": (statistics.Mean("m", value="x", neutral=0), lambda f: f["x"].mean(), 0),
    "mean of a function": (
        statistics.Mean("m", value=lambda f: f["x"].exp(), neutral=1),
        lambda f: np.exp(f["x"].to_numpy()).mean(),
        1,
    ),
    "difference": (
        statistics.Difference("m", value="x", first=FIRST, neutral=0.2),
        lambda f: f.filter(side="a")["x"].mean() - f.filter(side="b")["x"].mean(),
        0.2,
    ),
    "ratio": (
        statistics.Ratio("m", above=pl.col("hit") & (pl.col("known") == 1), below="known", scale=100, neutral=40),
        lambda f: 100 * (f["hit"] & (f["known"] == 1)).sum() / f["known"].sum(),
        40,
    ),
    "ranks": (
        statistics.Ranks("m", value="x", first=FIRST, neutral=0.1),
        lambda f: (
            2 * stats.mannwhitneyu(*(f.filter(side=s)["x"].to_numpy() for s in "ab")).statistic
            / np.prod([f.filter(side=s).height for s in "ab"]) - 1
        ),
        0.1,
    ),
    "correlation": (
        statistics.Correlation("m", x="x", y="y"),
        lambda f: np.corrcoef(f["x"].to_numpy(), f["y"].to_numpy())[0, 1],
        0,
    ),
    "statistic": (
        statistics.Statistic(
            "m", sums=(pl.lit(1), "x", pl.col("x") ** 2), by=lambda n, x, xx: xx / n - (x / n) ** 2, neutral=1
        ),
        variance,
        1,
    ),
}  # fmt: skip


def by_hand(
    frame: pl.DataFrame, of: Callable[[pl.DataFrame], float], level: float = 0.95
) -> tuple[float, float, float]:
    """Return the value with its standard error and the degrees of freedom, from leaving out one template at a time."""
    frame = ok(frame)
    names = frame["template"].unique().to_list()
    left = np.array([of(frame.filter(pl.col("template") != name)) for name in names])
    value, n = of(frame), len(names)
    return value, float(np.sqrt((n - 1) / n * ((left - value) ** 2).sum())), n - 1


@pytest.mark.parametrize("case", CASES, ids=str)
def test_value_and_jackknife_interval(case):
    measure, of, _ = CASES[case]
    frame = answers()
    value, error, freedom = by_hand(frame, of)
    reach = stats.t.isf(0.025, freedom) * error
    found = one(frame, measure)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert (found.low, found.high) == pytest.approx((value - reach, value + reach), rel=1e-9)
    assert found.interval.method == "cluster jackknife (template)" and found.clusters == 9


@pytest.mark.parametrize(
    "case", [name for name in CASES if name not in ("share", "mean", "mean of a function", "ratio")], ids=str
)
def test_p_is_that_of_the_jackknife_where_no_permutation_is_valid(case):
    measure, of, neutral = CASES[case]
    value, error, freedom = by_hand(answers(), of)
    found = one(answers(), measure)
    assert found.test.name == "t test, jackknife (template)"
    assert found.p == pytest.approx(2 * stats.t.sf(abs(value - neutral) / error, freedom), rel=1e-9)


def every_sign(sums: np.ndarray) -> float:
    """Return the exact two-sided p of flipping the signs of sums."""
    replicates = [abs(np.dot(signs, sums)) for signs in product((1, -1), repeat=len(sums))]
    return float(np.mean(np.array(replicates) >= abs(sums.sum()) * (1 - 1e-9) - 1e-12))


@pytest.mark.parametrize(
    ("measure", "deviation"),
    [
        (statistics.Share("m", hit="hit", neutral=50), pl.col("hit").cast(float) - 0.5),
        (statistics.Mean("m", value="x", neutral=0.3), pl.col("x") - 0.3),
        (
            statistics.Ratio(
                "m", above=pl.col("hit") & (pl.col("known") == 1), below="known", limits=(0, 1), neutral=0.5
            ),
            pl.when(pl.col("known") == 1).then(pl.col("hit").cast(float) - 0.5).otherwise(0.0),
        ),
    ],
    ids=["share", "mean", "ratio"],
)
def test_p_is_exact_where_signs_can_be_flipped(measure, deviation):
    sums = ok(answers()).group_by("template").agg(deviation.sum().alias("sum"))["sum"].to_numpy()
    found = one(answers(), measure)
    assert found.p == pytest.approx(every_sign(sums)) and "flip" in found.test.name


@pytest.mark.parametrize("neutral", [30, 0, 100])
def test_signs_are_not_flipped_about_what_is_not_in_the_middle(neutral):
    assert one(answers(), statistics.Share("m", hit="hit", neutral=neutral)).test.name.startswith("t test")
    assert not symmetric((0, 100), 30) and symmetric((0, 100), 50) and symmetric(None, 3) and not symmetric(None, None)


@pytest.mark.parametrize("kind", [statistics.Difference, statistics.Ranks])
def test_p_is_exact_where_sides_can_be_exchanged(kind):
    frame = answers(60, 6, missing=0)
    found = one(frame, kind("m", value="x", first=FIRST))

    def of(swapped: tuple[bool, ...]) -> float:
        flip = dict(zip(sorted(frame["template"].unique()), swapped, strict=True))
        a = np.array([(s == "a") != flip[t] for s, t in frame.select("side", "template").iter_rows()])
        x = frame["x"].to_numpy()
        if kind is statistics.Difference:
            return abs(x[a].mean() - x[~a].mean())
        return abs(np.sign(x[a][:, None] - x[~a][None]).mean())

    every = np.array([of(swapped) for swapped in product((False, True), repeat=6)])
    assert found.p == pytest.approx(np.mean(every >= every[0] - 1e-9)) and "sides" in found.test.name


def test_p_of_clusters_on_one_side_is_that_of_exchanged_labels():
    frame = answers(64, 8, missing=0).with_columns(
        side=pl.when(pl.col("template").is_in(["c0", "c1", "c2", "c3"])).then(pl.lit("a")).otherwise(pl.lit("b"))
    )
    sums = frame.group_by("template", "side").agg(pl.col("x").sum(), pl.len()).sort("template")
    mine = (sums["side"] == "a").to_numpy()

    def gap(labels: np.ndarray) -> float:
        means = [sums["x"].to_numpy()[own].sum() / sums["len"].to_numpy()[own].sum() for own in (labels, ~labels)]
        return abs(means[0] - means[1])

    labels = {own for own in product((True, False), repeat=8) if sum(own) == mine.sum()}
    every = np.array([gap(np.array(own)) for own in labels])
    assert one(frame, statistics.Difference("m", value="x", first=FIRST)).p == pytest.approx(
        np.mean(every >= gap(mine) - 1e-9)
    )


def test_effect_sizes():
    frame, rows = answers(), ok(answers())
    x, hit = rows["x"].to_numpy(), rows["hit"].to_numpy()
    shares = [rows.filter(side=side)["hit"].mean() for side in "ab"]
    h = [2 * np.arcsin(np.sqrt(share)) for share in (*shares, hit.mean(), 0.5)]
    counts = [(own["hit"].sum() + 0.5) / ((~own["hit"]).sum() + 0.5) for own in (rows.filter(side=s) for s in "ab")]
    expected = {
        statistics.Mean("m", value="x", neutral=0.1): (x.mean() - 0.1) / x.std(ddof=1),
        statistics.Share("m", hit="hit", neutral=50): h[2] - h[3],
        statistics.Difference("m", value="x", first=FIRST): cohens_d(rows),
        statistics.Difference("m", value="hit", first=FIRST, size="Cohen's h"): h[0] - h[1],
        statistics.Difference("m", value="hit", first=FIRST, size="odds ratio"): counts[0] / counts[1],
        statistics.Ratio("m", above="hit", below=pl.lit(1), neutral=0.4): np.log(hit.mean() / 0.4),
        statistics.Correlation("m", x="x", y="y"): np.corrcoef(x, rows["y"].to_numpy())[0, 1],
    }
    for measure, value in expected.items():
        effect = one(frame, measure).effect
        assert effect.value == pytest.approx(value, rel=1e-9) and effect.name
        assert effect.low is not None and effect.low < effect.value < effect.high


@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_the_worst_that_missing_rows_could_do(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, 9).astype(float)
    lost = rng.random(9) < 0.3
    side = np.array([i % 2 for i in range(9)])
    rows = pl.DataFrame(
        {
            "trial": [str(i) for i in range(9)],
            "template": [f"t{i % 4}" for i in range(9)],
            "side": ["ab"[s] for s in side],
            "x": [None if gone else value for value, gone in zip(x, lost, strict=True)],
            "status": ["refused" if gone else "ok" for gone in lost],
        }
    )
    fills = [np.where(lost, 0, x).astype(float) for _ in range(4 ** int(lost.sum()))]
    for filled, own in zip(fills, product(range(4), repeat=int(lost.sum())), strict=True):
        filled[lost] = own
    cases = [
        (statistics.Mean("m", value="x", limits=(0, 3)), np.mean),
        (statistics.Share("m", hit=pl.col("x") > 1), lambda v: 100 * np.mean(v > 1)),
        (
            statistics.Difference("m", value="x", first=FIRST, limits=(0, 3)),
            lambda v: v[side == 0].mean() - v[side == 1].mean(),
        ),
        (
            statistics.Ranks("m", value="x", first=FIRST, limits=(0, 3)),
            lambda v: np.sign(v[side == 0][:, None] - v[side == 1][None]).mean(),
        ),
    ]
    for measure, of in cases:
        every = [of(filled) for filled in fills]
        found = one(rows, measure)
        assert (found.bound_low, found.bound_high) == pytest.approx((min(every), max(every)), abs=1e-12)


def test_bounds_of_a_ratio_let_a_missing_row_count_in_either_sum_or_in_none():
    rows = pl.DataFrame(
        {
            "trial": list("vwxyz"),
            "template": list("vwxyz"),
            "above": [1, 0, 1, None, None],
            "below": [1, 1, 1, None, None],
            "status": ["ok"] * 3 + ["refused"] * 2,
        }
    )
    every = [
        (2 + sum(a for a, _ in own)) / (3 + sum(b for _, b in own))
        for own in product([(0, 0), (0, 1), (1, 1)], repeat=2)
    ]
    found = one(rows, statistics.Ratio("m", above="above", below="below", limits=(0, 1)))
    assert (found.bound_low, found.bound_high) == pytest.approx((min(every), max(every)))
    free = one(rows, statistics.Ratio("m", above="above", below="below"))
    assert free.bound_low is None and free.value == pytest.approx(2 / 3)


def test_bounds_without_limits_are_none_and_without_missing_the_value():
    assert one(answers(), statistics.Mean("m", value="x")).bound_low is None
    whole = one(answers(missing=0), statistics.Correlation("m", x="x", y="y"))
    assert whole.bound_low == whole.bound_high == whole.value


def test_ranks_without_limits_put_missing_rows_beyond_all_others():
    sample = Sample(np.array([[1.0], [np.nan], [0.0]]), np.array([0, 0, 1]), np.zeros(3, np.int64))
    assert statistics.Ranks("m", value="x", first=FIRST).recipe().bounds(sample) == (0.0, 1.0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_two_ways_that_cross(case):
    """The variance by rows plus that by columns less that by single cells, or the larger of the first two."""
    measure, of, neutral = CASES[case]
    frame = answers(150)
    rows, columns, cells = ([] for _ in range(3))
    known = ok(frame)
    value = of(known)
    for found, keys in ((rows, ["template"]), (columns, ["word"]), (cells, ["template", "word"])):
        for names in known.select(keys).unique().rows():
            same = [pl.col(key) == name for key, name in zip(keys, names, strict=True)]
            found.append(of(known.filter(~pl.all_horizontal(*same))))
    first, second = ((len(own) - 1) / len(own) * sum((x - value) ** 2 for x in own) for own in (rows, columns))
    both = max(first + second - sum((x - value) ** 2 for x in cells), first, second)
    freedom = both**2 / (first**2 / (len(rows) - 1) + second**2 / (len(columns) - 1))
    estimate = one(frame, measure, clusters=("template", "word"))
    reach = stats.t.isf(0.025, freedom) * np.sqrt(both)
    assert (estimate.low, estimate.high) == pytest.approx((value - reach, value + reach), rel=1e-9)
    assert estimate.p == pytest.approx(2 * stats.t.sf(abs(value - neutral) / np.sqrt(both), freedom), rel=1e-9)
    assert (estimate.p < 0.05) == (not estimate.low <= neutral <= estimate.high)
    assert estimate.clusters == 6 and estimate.interval.method == "crossed jackknife (template x word)"


def test_share_of_independent_rows_is_exact():
    found = one(answers(), statistics.Share("m", hit="hit", neutral=50), clusters=())
    hits, n = ok(answers())["hit"].sum(), ok(answers()).height
    test = stats.binomtest(hits, n)
    ends = test.proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((100 * ends.low, 100 * ends.high))
    assert found.p == pytest.approx(test.pvalue) and found.test.statistic == hits
    assert found.clusters is None and found.caveats == () and found.interval.method.startswith("exact")


def test_derived_is_a_function_of_values_in_their_units():
    share = statistics.Share("s", hit="hit")
    gap = statistics.Difference("d", value="x", first=FIRST, report=False)
    twice = statistics.Derived("twice", of=("s",), by=lambda s: 2 * s, limits=(0, 200))
    both = statistics.Derived("both", of=("twice", "d"), by=lambda twice, d: twice * d, neutral=0)
    metric = declared(share, gap, twice, both)
    s, t, b, *_ = metric.compute(answers(), OPTIONS)
    assert (s.metric, t.metric, b.metric) == ("s", "twice", "both") and "d" not in metric.measures
    assert (t.value, t.low, t.high) == pytest.approx((2 * s.value, 2 * s.low, 2 * s.high))

    def of(f: pl.DataFrame) -> float:
        return 200 * f["hit"].mean() * (f.filter(side="a")["x"].mean() - f.filter(side="b")["x"].mean())

    value, error, freedom = by_hand(answers(), of)
    assert b.value == pytest.approx(value)
    assert b.high == pytest.approx(value + stats.t.isf(0.025, freedom) * error)
    assert b.p == pytest.approx(2 * stats.t.sf(abs(value) / error, freedom)) and b.n == s.n


@pytest.mark.parametrize("intervals", ["percentile", "bca"])
def test_derived_copy_has_the_interval_of_its_measure(intervals):
    gap = statistics.Difference("d", value="x", first=FIRST)
    copy = statistics.Derived("copy", of=("d",), by=lambda d: d)
    d, c, *_ = declared(gap, copy).compute(answers(), statistics.MarginOptions(resamples=299, intervals=intervals))
    assert (c.low, c.high) == pytest.approx((d.low, d.high)) and c.low is not None


def test_values_of_the_wrong_kind_are_refused():
    frame = answers().with_columns(n=pl.Series([2] * 90), word=pl.lit("w"))
    wrong = [
        (statistics.Share("m", hit="n"), "data.value"),
        (statistics.Ratio("m", above="n", below=-pl.col("n")), "data.value"),
        (statistics.Difference("m", value="n", first=FIRST, size="odds ratio"), "data.value"),
        (statistics.Mean("m", value="word"), "data.type"),
        (statistics.Mean("m", value="absent"), "data.column-missing"),
    ]
    for measure, code in wrong:
        with raises_code(DataError, code):
            one(frame, measure)
