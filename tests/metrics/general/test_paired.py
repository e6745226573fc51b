"""Differences between runs: checked against scipy, by brute force, and against the runs' own estimates."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.metrics.bistereo.trisentbias import TriSentBias, TriSentBiasOptions
from prejudge.metrics.general.paired import PairedDifference, PairedDifferenceOptions

from ...captions import long_captions

METRIC = PairedDifference()
QUICK = PairedDifferenceOptions(resamples=999)


def frame(rows, **fixed):
    """Return paired units of one measure from (first, second, cluster[, sign]); None is a refusal."""
    made = [
        {
            "run": "b",
            "against": "a",
            "metric": "share",
            "family": "difference in share",
            "unit": str(i),
            "over.word": str(row[2]),
            "sign": row[3] if len(row) > 3 else 1,
            "least": 0.0,
            "greatest": 100.0,
            "first": row[0],
            "second": row[1],
            "first_status": "refused" if row[0] is None else "ok",
            "second_status": "failed" if row[1] is None else "ok",
        }
        | fixed
        for i, row in enumerate(rows)
    ]
    return pl.DataFrame(made, schema_overrides={"first": pl.Float64, "second": pl.Float64, "least": pl.Float64})


def one(rows, options=QUICK, **fixed):
    (estimate,) = METRIC.compute(frame(rows, **fixed), options)
    return estimate


def test_no_interval_goes_beyond_what_a_difference_can_be():
    rows = [(100.0, 0.0, 0), (100.0, 100.0, 1), (0.0, 0.0, 2)]
    kept, free = one(rows), one(rows, least=None, greatest=None)
    assert free.low < -100 == kept.low and kept.high == free.high < 100
    sides = [(*row, sign) for row in rows for sign in (1, -1)]
    assert one([*sides, (100.0, 0.0, 0, 1)]).low >= -200


def test_differences_that_vary_by_rounding_alone_have_no_interval():
    rows = [(0.1 * k, 0.1 * k + 2.0, k) for k in range(12)]
    assert len({second - first for first, second, _ in rows}) > 1
    estimate = one(rows, least=None, greatest=None)
    assert (estimate.value, estimate.low, estimate.high) == (pytest.approx(2.0), None, None)
    assert "no_variation" in estimate.caveats


def test_effect_of_a_rare_change_has_an_interval_that_holds_none():
    estimate = one([(0.0, 100.0 * (k == 0), k) for k in range(20)])
    assert estimate.low == 0 and estimate.effect.low == 0 < estimate.effect.value < estimate.effect.high


def simulated(clusters, size, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    lean = rng.normal(0, 1, clusters)
    return [(0.0, shift + lean[c] + rng.normal(), c) for c in range(clusters) for _ in range(size)]


def test_value_is_second_less_first_over_shared_units():
    estimate = one([(0.0, 100.0, 0), (100.0, 100.0, 1), (None, 100.0, 2), (0.0, None, 2), (0.0, 0.0, 3)])
    assert estimate.value == pytest.approx(100 / 3) and estimate.neutral == 0.0
    assert (estimate.n, estimate.clusters, estimate.missing.counts) == (3, 3, {"failed": 1, "refused": 1})
    assert estimate.group == {"run": "b", "against": "a"}


def test_p_is_that_of_scipy_over_clusters():
    rows = simulated(10, 4, shift=0.5)
    sums = [sum(second - first for first, second, c in rows if c == cluster) for cluster in range(10)]
    exact = stats.permutation_test((sums,), np.sum, permutation_type="samples", n_resamples=np.inf)
    estimate = one(rows, PairedDifferenceOptions(resamples=1999))
    assert estimate.p == pytest.approx(exact.pvalue)
    assert estimate.test.name == "sign-flip permutation of runs within cluster"


def crossed(differences):
    """Return paired units of a difference by row (template) and cluster (word)."""
    rows, words = differences.shape
    made = frame([(0.0, differences[r, w], f"w{w}") for r in range(rows) for w in range(words)])
    made = made.select(pl.exclude("over.word"), pl.Series("over.template", np.repeat(range(rows), words)), "over.word")
    return made.with_columns(
        least=pl.lit(None, dtype=pl.Float64),
        greatest=pl.lit(None, dtype=pl.Float64),
    )


def test_crossed_differences_have_the_interval_of_both_ways():
    """Recomputed with numpy: Cameron, Gelbach and Miller's variance of a balanced mean, left out one by one."""
    rng = np.random.default_rng(3)
    table = 1 + rng.normal(0, 1, (9, 1)) + rng.normal(0, 1, (1, 7)) + rng.normal(0, 1, (9, 7))
    (estimate,) = METRIC.compute(crossed(table), QUICK)
    rows, words = (table.mean(axis=axis).var(ddof=1) / table.shape[1 - axis] for axis in (1, 0))
    cells = ((table - table.mean()) ** 2).sum() / (table.size - 1) ** 2
    variance = rows + words - cells
    freedom = variance**2 / (rows**2 / 8 + words**2 / 6)
    low, high = stats.t.interval(0.95, freedom, table.mean(), np.sqrt(variance))
    assert (estimate.low, estimate.high) == (pytest.approx(low), pytest.approx(high))
    assert estimate.p == pytest.approx(2 * stats.t.sf(table.mean() / np.sqrt(variance), freedom))
    assert estimate.facts["over"] == "template x word"


def test_runs_that_differ_in_single_words_alone_are_rarely_told_apart():
    """Each word has a difference of its own and none in common: by template that is significant nearly always."""
    rng = np.random.default_rng(5)
    found = {"both": 0, "templates": 0}
    for _ in range(100):
        table = crossed(rng.normal(0, 1, (1, 8)) + rng.normal(0, 0.1, (10, 8)))
        alone = table.drop("over.word")
        for name, own in {"both": table, "templates": alone}.items():
            (estimate,) = METRIC.compute(own, PairedDifferenceOptions(resamples=199))
            found[name] += estimate.p <= 0.05
    assert found["templates"] > 80 and found["both"] <= stats.binom.ppf(0.999, 100, 0.05)


def test_interval_is_near_that_of_scipy_over_clusters():
    rows = simulated(60, 5, shift=0.3)
    means = [np.mean([second for _, second, c in rows if c == cluster]) for cluster in range(60)]
    theirs = stats.bootstrap((means,), np.mean, method="percentile", n_resamples=4999, rng=1).confidence_interval
    ours = one(rows, PairedDifferenceOptions(resamples=4999))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.03)


def test_equal_runs_show_nothing():
    estimate = one([(100.0, 100.0, c) for c in range(8)])
    assert (estimate.value, estimate.p, estimate.low) == (0.0, 1.0, None)
    assert (estimate.effect.value, estimate.effect.low) == (0.0, None)


def test_bounds_are_those_of_brute_force():
    rows = [(None, 100.0, 0, 1), (0.0, None, 1, 1), (0.0, 100.0, 2, 1), (None, None, 3, -1), (100.0, 0.0, 4, -1)]
    found = []
    for filled in product((0.0, 100.0), repeat=4):
        guess = iter(filled)
        whole = [(*(x if x is not None else next(guess) for x in row[:2]), *row[2:]) for row in rows]
        sides = [np.mean([b - a for a, b, _, sign in whole if sign == s]) for s in (1, -1)]
        found.append(sides[0] - sides[1])
    estimate = one(rows)
    assert (estimate.bound_low, estimate.bound_high) == pytest.approx((min(found), max(found)))


def test_no_limits_give_no_bounds():
    estimate = one([(None, 1.0, 0), (0.0, 1.0, 1)], least=None, greatest=None)
    assert (estimate.bound_low, estimate.bound_high) == (None, None)
    assert one([(0.0, 1.0, 0), (0.0, 1.0, 1)], least=None, greatest=None).bound_low == 1.0


def test_contrast_is_the_difference_of_contrasts():
    rows = [(0.0, 100.0, c % 4, 1) for c in range(8)] + [(0.0, 50.0 * (c % 2), c % 4, -1) for c in range(8)]
    estimate = one(rows)
    assert estimate.value == pytest.approx(75.0) and estimate.effect.name == "Cohen's d"


def test_contrast_p_exchanges_whole_clusters():
    rng = np.random.default_rng(3)
    rows = [(0.0, float(rng.normal(0.5)), c, sign) for c in range(9) for sign in (1, -1, 1)]
    parts = [
        np.mean([second for _, second, c, s in rows if c == k and s == 1]) * 2 / 18
        - np.mean([second for _, second, c, s in rows if c == k and s == -1]) / 9
        for k in range(9)
    ]
    exact = stats.permutation_test((parts,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert one(rows).p == pytest.approx(exact.pvalue)


def test_nothing_shared_is_undefined():
    estimate = one([(None, 1.0, 0), (1.0, None, 1)])
    assert (estimate.value, estimate.p, estimate.n) == (None, None, 0)
    assert estimate.caveats == ("undefined",)


def test_one_cluster_gives_no_interval_and_no_test():
    estimate = one([(0.0, 100.0, 0), (0.0, 0.0, 0)])
    assert estimate.value == 50.0 and (estimate.low, estimate.p) == (None, None)


def test_few_clusters_are_told():
    assert "p_floor" in one([(0.0, 100.0, c) for c in range(3)]).caveats


def test_family_is_corrected_over_all_pairs_of_runs():
    parts = [frame(simulated(12, 3, 1.0, seed), run=f"r{seed}") for seed in range(3)]
    found = METRIC.compute(pl.concat(parts), QUICK)
    assert {e.test.family for e in found} == {"difference in share: 3 comparisons"}
    assert [e.p_adjusted for e in found] == pytest.approx(stats.false_discovery_control([e.p for e in found]))


def test_units_of_two_studies_give_the_difference_of_their_estimates(study):
    options, metric = TriSentBiasOptions(over="template", resamples=99), TriSentBias()
    runs = [study(effect=effect) for effect in (0.0, 1.0)]
    values = [{(e.metric, frozenset(e.group.items())): e.value for e in metric.compute(run, options)} for run in runs]
    first, second = (metric.units(run, options) for run in runs)
    keys = [c for c in first.columns if c not in ("value", "status")]
    both = first.rename({"value": "first", "status": "first_status"}).join(
        second.rename({"value": "second", "status": "second_status"}), on=keys, nulls_equal=True
    )
    labels = [pl.lit(text).alias(name) for name, text in (("run", "b"), ("against", "a"), ("family", "f"))]
    found = METRIC.compute(both.with_columns(labels), PairedDifferenceOptions(resamples=99))
    for e in found:
        key = (e.metric, frozenset((k, v) for k, v in e.group.items() if k not in ("run", "against")))
        assert e.value == pytest.approx(values[1][key] - values[0][key], abs=1e-9)
    assert len(found) == 12 * 13 + 4 * 7


def test_conclusion_names_what_is_shown():
    shown = METRIC.compute(frame(simulated(20, 3, 3.0)), QUICK)
    said = METRIC.conclude(shown)
    assert said.startswith("1 difference was tested. 1 is significant: share: b is ")
    hidden = METRIC.compute(frame(simulated(20, 3, 0.0, 5)), QUICK)
    assert "1 is not significant. Not finding a difference does not show that there is none" in METRIC.conclude(hidden)
    both = METRIC.conclude([*[shown[0].replace(label="Share of x")] * 5, *hidden])
    assert both.startswith("6 differences were tested. 5 are significant: Share of x: ") and "and 2 more" in both
    assert METRIC.conclude([]) == "No difference between the runs could be tested."


def test_methods_say_what_was_done():
    assert "999 resamples" in METRIC.methods(QUICK) and "Benjamini-Hochberg" in METRIC.methods(QUICK)


def test_one_figure_per_measure():
    charts = METRIC.figures(METRIC.compute(frame(simulated(9, 2)), QUICK))
    assert [chart.name for chart in charts] == ["differences-share"] and long_captions(charts) == []


def test_factor_may_have_any_name():
    rows = frame(simulated(6, 2)).with_columns(cell=pl.lit("x"), difference=pl.lit(0.02), status_of=pl.lit(None))
    (estimate,) = METRIC.compute(rows, QUICK)
    assert estimate.group == {"run": "b", "against": "a", "cell": "x", "difference": 0.02}
