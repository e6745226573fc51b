"""What a declaration may say besides: ties, strata, rows taken out, own tests, several designs, unknown ways."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge import statistics
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.statistics.intervals import paired_bounds

from .test_measures import answers, declared, ok, one

OPTIONS = statistics.MarginOptions(resamples=499, intervals="jackknife")
TIE = pl.col("x").abs() < 0.3


def test_ties_lower_the_neutral_value_and_leave_test_and_effect():
    frame, hit = answers(missing=0), (pl.col("x") >= 0.3)
    share = statistics.Share("m", hit=hit, tie=TIE, neutral=50, size="Cohen's g")
    found = one(frame, share, statistics.MarginOptions(margin=10), clusters=())
    hits, ties, n = frame.filter(hit).height, frame.filter(TIE).height, frame.height
    test = stats.binomtest(hits, n - ties)
    ends, whole = test.proportion_ci(method="exact"), stats.binomtest(hits, n).proportion_ci(method="exact")
    assert (found.value, found.neutral) == pytest.approx((100 * hits / n, 50 * (n - ties) / n))
    assert (found.low, found.high) == pytest.approx((100 * whole.low, 100 * whole.high))
    assert found.p == pytest.approx(test.pvalue) and found.facts["ties"] == ties
    effect = (found.effect.value, found.effect.low, found.effect.high)
    assert effect == pytest.approx((hits / (n - ties) - 0.5, ends.low - 0.5, ends.high - 0.5))


def test_ties_of_clusters_are_judged_without_them():
    frame, hit = answers(missing=0), (pl.col("x") >= 0.3)
    tied = one(frame, statistics.Share("m", hit=hit, tie=TIE, neutral=50), OPTIONS)
    out = one(frame, statistics.Share("m", hit=hit, out=TIE, neutral=50), OPTIONS)
    assert tied.p == out.p and tied.effect == out.effect and tied.value < out.value


def test_rows_that_an_answer_takes_out_are_neither_counted_nor_missing():
    frame = answers()
    found = one(frame, statistics.Share("m", hit=pl.col("x") > 0, out=TIE), OPTIONS)
    left = ok(frame).filter(~TIE)
    assert found.n == left.height and found.missing.total == frame.height - ok(frame).height
    assert found.value == pytest.approx(100 * (left["x"] > 0).mean())
    assert declared(statistics.Share("m", hit="hit", out=TIE)).units(frame, OPTIONS) is None


def test_matched_numbers_have_the_bounds_of_either_side():
    frame = answers().with_columns(second=pl.when(pl.col("trial") != "t5").then(pl.col("y")))
    known = pl.col("status") == "ok"
    frame = frame.with_columns(x=pl.when(known | (pl.col("trial") > "t6")).then(pl.col("x").fill_null(1.0)))
    frame = frame.with_columns(second=pl.when(known).then("second"))
    found = one(frame, statistics.Matched("m", first="x", second="second", limits=(-9, 9)), OPTIONS)
    gap = (frame["x"] - frame["second"]).drop_nulls()
    assert (found.value, found.n) == (pytest.approx(gap.mean()), len(gap))
    assert found.effect.value == pytest.approx(gap.mean() / gap.std())
    expected = paired_bounds(*(frame[name].fill_null(np.nan).to_numpy() for name in ("x", "second")), (-9, 9))
    assert (found.bound_low, found.bound_high) == pytest.approx(expected)


def test_mcnemar_takes_rows_as_independent_and_clusters_are_flipped():
    frame = ok(answers()).with_columns(other=pl.col("y") > 0.3)
    options = statistics.TestingOptions(resamples=999)
    own = {"first": "hit", "second": "other", "size": "matched odds ratio", "scale": 100, "limits": (0, 100)}
    exact, clustered = (
        one(frame, statistics.Matched("m", test=test, **own), options) for test in (statistics.MCNEMAR, None)
    )
    b, c = frame.filter(pl.col("hit") & ~pl.col("other")).height, frame.filter(~pl.col("hit") & pl.col("other")).height
    assert exact.p == pytest.approx(stats.binomtest(b, b + c).pvalue) and exact.test.statistic == b
    assert exact.effect.value == pytest.approx((b + 0.5) / (c + 0.5))
    change = pl.col("hit").cast(int) - pl.col("other").cast(int)
    sums = frame.group_by("template").agg(change.sum())["hit"].to_numpy()
    flipped = stats.permutation_test((sums,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert clustered.p == pytest.approx(flipped.pvalue) and exact.low == clustered.low


def test_groups_are_compared_by_ranks_and_labels_are_permuted():
    frame = ok(answers()).with_columns(group=pl.col("template").str.slice(1).cast(int) % 3)
    options = statistics.TestingOptions(resamples=1999)
    found = one(frame, statistics.Groups("m", value="x", of="group", levels=("0", "1", "2")), options)
    parts = [part["x"].to_numpy() for _, part in frame.group_by("template", maintain_order=True)]
    labels = [part["group"][0] for _, part in frame.group_by("template", maintain_order=True)]

    def h(own):
        groups = [np.concatenate([x for x, label in zip(parts, own, strict=True) if label == k]) for k in range(3)]
        return stats.kruskal(*groups).statistic

    observed, every = h(labels), set(permutations(labels))
    assert found.value == pytest.approx(observed / (frame.height - 1)) and found.low < found.value < found.high
    assert found.p == pytest.approx(np.mean([h(own) >= observed - 1e-9 for own in every]))
    designs = declared(statistics.Groups("m", value="x", of="group", levels=("0", "1", "2"))).designs(frame, options)
    assert set(designs["test"]) == {"kruskal-wallis"} and set(designs["level"]) == set("012")


def test_strata_keep_their_count_of_clusters():
    """Words lie in one of two strata of very different level: drawn apart, that difference is no uncertainty."""
    frame = answers(missing=0).with_columns(of=pl.col("word").is_in(["p", "q", "r"]))
    frame = frame.with_columns(x=pl.col("x") + 100 * pl.col("of"))
    apart, plain = (
        one(frame, statistics.Mean("m", value="x", neutral=0, strata=strata), OPTIONS, clusters=("word",))
        for strata in ("of", None)
    )
    assert (apart.value, apart.effect.value) == pytest.approx((plain.value, plain.effect.value))
    whole, parts = frame["x"].mean(), []
    for half in (frame.filter(of=side) for side in (True, False)):
        left = [frame.filter(pl.col("word") != name)["x"].mean() for name in half["word"].unique()]
        parts.append((len(left) - 1) / len(left) * sum((x - whole) ** 2 for x in left))
    freedom = sum(parts) ** 2 / sum(part**2 / 2 for part in parts)
    reach = stats.t.isf(0.025, freedom) * np.sqrt(sum(parts))
    assert (apart.low, apart.high) == pytest.approx((whole - reach, whole + reach))
    units = declared(statistics.Mean("m", value="x", strata="of")).units(frame, OPTIONS)
    assert set(units["sign"]) == {1}


def test_measures_that_differ_in_their_group_share_a_name():
    shares = [
        statistics.Share("m", hit=pl.col("x") > t, group={"threshold": t}, facts={"main": t == 0}, neutral=50)
        for t in (0.0, 0.5)
    ]
    doubled = [statistics.Derived("twice", of=("m",), by=lambda m: 2 * m, group={"threshold": t}) for t in (0.0, 0.5)]
    metric, frame = declared(*shares, *doubled), answers()
    found = metric.compute(frame, OPTIONS)
    values = {(e.metric, e.group["threshold"]): e.value for e in found if e.metric != "missing"}
    for t in (0.0, 0.5):
        share = 100 * (ok(frame)["x"] > t).mean()
        assert (values["m", t], values["twice", t]) == pytest.approx((share, 2 * share))
    assert [e.facts["main"] for e in found if e.metric == "m"] == [True, False]
    assert set(metric.units(frame, OPTIONS)["threshold"]) == {0.0, 0.5}


def test_measure_may_be_given_by_some_groupings_with_a_family_of_its_own():
    share = statistics.Share("m", hit="hit", neutral=50, groups=((),), family=lambda by: f"mine of {len(by)}")
    mean = statistics.Mean("n", value="x", neutral=0, family=lambda by: "all")
    found = declared(share, mean, groups=((), ("word",))).compute(answers(), OPTIONS)
    assert [e.group for e in found if e.metric == "m"] == [{}]
    families = {e.metric: e.test.family for e in found if e.p_adjusted is not None}
    assert families == {"m": "mine of 0: 1 test", "n": "all: 7 tests"}
    with pytest.raises(TypeError, match="groupings"):
        declared(statistics.Share("m", hit="hit", groups=(("word",),)))


def test_measure_may_have_independent_rows_and_a_status_of_its_own():
    frame = answers().with_columns(own=pl.when(pl.col("trial") < "t3").then(pl.lit("late")).otherwise("status"))
    plain = statistics.Share("m", hit="hit", neutral=50)
    own = statistics.Share("m", hit="hit", neutral=50, status="own", independent=True)
    found = one(frame, own, OPTIONS)
    alone = one(frame.with_columns(status=pl.col("own")), plain, OPTIONS, clusters=())
    assert (found.low, found.p, found.missing, found.clusters) == (alone.low, alone.p, alone.missing, None)
    assert found.missing.counts["late"] > 0 and found.test.name == "exact binomial, answers"


def test_designs_have_rows_and_clusters_of_their_own():
    def by_word(rows):
        return ok(rows).group_by("word").agg(pl.col("x").mean(), status=pl.lit("ok"))

    class Several(statistics.DeclaredMetric):
        needs = frozenset({"x", "word", "template", "side"})
        measures = (statistics.Mean("mean", value="x"), statistics.Mean("word_mean", value="x", neutral=0))

        def design(self, options):
            first, second = self._declared.measures
            words = statistics.Design(
                measures=(second,),
                row="word",
                rows=lambda f: ok(f).group_by("word").agg(pl.col("x").mean(), status=pl.lit("ok")),
            )
            return statistics.Design(measures=(first,), clusters=("template",), missing=("side",)), words

    frame = answers()
    found = {(e.metric, *e.group.values()): e for e in Several().compute(frame, OPTIONS)}
    assert found["mean",].clusters == 9 and found["word_mean",].clusters == 6
    means = ok(frame).group_by("word").agg(pl.col("x").mean())["x"]
    assert found["word_mean",].value == pytest.approx(means.mean())
    assert {key[1] for key in found if key[0] == "missing" and len(key) > 1} == {"a", "b"}
    assert set(Several().units(frame, OPTIONS)["metric"]) == {"mean", "word_mean"}


def test_way_that_is_not_known_for_every_row_may_be_left_out():
    class Known(statistics.DeclaredMetric):
        measures = (
            statistics.Share("share", hit="hit", neutral=50),
            statistics.Mean("mean", value="x", neutral=0),
        )

        def design(self, options):
            members = {"measures": self._declared.measures, "clusters": ("template", "word")}
            return statistics.Design(groups=((), ("side",)), unknown="left out", **members)

    nameless = (pl.col("side") == "a") & (pl.col("trial") < "t2")
    some = answers().with_columns(word=pl.when(nameless).then(None).otherwise("word"))
    found = {(e.metric, e.group.get("side")): e for e in Known().compute(some, OPTIONS)}
    lost = some["word"].null_count()
    assert found["mean", None].interval.method == "cluster jackknife (template)"
    assert found["mean", None].facts["answers_without_word"] == lost
    assert found["mean", "b"].interval.method == "crossed jackknife (template x word)"
    none = some.with_columns(word=pl.lit(None, pl.String), template=pl.lit(None, pl.String))
    share, mean, *_ = Known().compute(none, OPTIONS)
    assert share.interval.method.startswith("exact") and share.p is not None
    assert mean.low is None and mean.p is None and mean.caveats == (Caveat.UNTESTED,)


def test_test_of_a_paper_takes_the_place_of_that_by_clusters():
    told = statistics.Test("t, answers", lambda totals: (1.5, stats.norm.sf(totals[0, 0])))
    found = one(answers(), statistics.Mean("m", value="x", neutral=0, test=told), OPTIONS)
    assert (found.test.name, found.test.statistic) == ("t, answers", 1.5) and 0 < found.p < 1e-300


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ({"template": 9, "word": 6}, "For words like these in sentences like these:"),
        ({"template": 9}, "For these words only, in sentences like these:"),
        ({"face": 9, "scenario": 6}, "For faces and scenarios like these:"),
        ({}, "For items like these:"),
    ],
)
def test_conclusion_names_what_it_holds_for(over, said):
    names = dict(zip(over, ("template", "word"), strict=False))
    frame = answers().rename({"trial": "item", **{old: new for new, old in names.items() if new != old}})
    metric = declared(statistics.Mean("m", value="x", neutral=0), clusters=tuple(over), row="item")
    assert metric.conclude(metric.compute(frame, OPTIONS)).startswith(said)
