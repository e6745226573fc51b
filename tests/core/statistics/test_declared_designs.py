"""What a declaration may say besides: ties, strata, rows taken out, own tests, several designs, unknown ways."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge import statistics
from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.statistics.intervals import paired_bounds
from prejudge.testing import raises_code

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
            words = statistics.Declaration(
                measures=(second,),
                row="word",
                rows=lambda f: ok(f).group_by("word").agg(pl.col("x").mean(), status=pl.lit("ok")),
            )
            return statistics.Declaration(measures=(first,), clusters=("template",), missing=("side",)), words

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
            return statistics.Declaration(groups=((), ("side",)), unknown="left out", **members)

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


SIZES = {"a": 4, "b": 3, "c": 5}
HALF = {"neutral": 0.5, "limits": (0, 1), "average": "level"}


def levels(seed=0):
    """Return four answers of each of some clusters, which lie in one of three levels of very unequal means."""
    rng = np.random.default_rng(seed)
    rows = [
        {"level": level, "cluster": f"{level}{number}", "x": rng.uniform(0, 0.4) + 0.3 * place, "status": "ok"}
        for place, (level, count) in enumerate(SIZES.items())
        for number in range(count)
        for _ in range(4)
    ]
    return pl.DataFrame(rows).with_columns(trial=pl.int_range(pl.len()).cast(pl.String))


def by_level(frame, value="x"):
    return {name: part[value].to_numpy() for (name,), part in frame.group_by("level", maintain_order=True)}


def test_levels_that_weigh_alike_are_drawn_apart():
    frame = levels().head(47)
    e = one(frame, statistics.Mean("m", value="x", **HALF), OPTIONS, clusters=("cluster",))
    parts, means = [], {name: x.mean() for name, x in by_level(frame).items()}
    assert e.value == pytest.approx(np.mean(list(means.values()))) and e.clusters == 12
    for name, part in frame.partition_by("level", as_dict=True).items():
        left = [part.filter(pl.col("cluster") != own)["x"].mean() for own in part["cluster"].unique()]
        gaps = [(x - means[name[0]]) / 3 for x in left]
        parts.append(((len(left) - 1) / len(left) * sum(gap**2 for gap in gaps), len(left) - 1))
    variance = sum(v for v, _ in parts)
    reach = stats.t.isf(0.025, variance**2 / sum(v**2 / n for v, n in parts)) * np.sqrt(variance)
    assert (e.low, e.high) == pytest.approx((e.value - reach, e.value + reach))


def test_flips_of_levels_that_weigh_alike_are_those_of_their_mean():
    frame = levels(3).with_columns(x=pl.col("x") - 0.12)
    e = one(frame, statistics.Mean("m", value="x", **HALF), OPTIONS.__class__(resamples=4999), clusters=("cluster",))
    weight = {name: 1 / (3 * len(x)) for name, x in by_level(frame).items()}
    sums = frame.group_by("level", "cluster").agg((pl.col("x") - 0.5).sum()).rows()
    gaps = np.array([weight[level] * gap for level, _, gap in sums])
    signs = 1 - 2 * ((np.arange(2 ** len(gaps))[:, None] >> np.arange(len(gaps))) & 1)
    assert e.p == pytest.approx((np.abs(signs @ gaps) >= abs(gaps.sum()) - 1e-12).mean(), abs=1e-12)


def test_missing_rows_bound_every_level_by_itself():
    frame = levels().with_columns(
        status=pl.when(pl.int_range(pl.len()) % 5 > 0).then(pl.lit("ok")).otherwise(pl.lit("no"))
    )
    e = one(frame, statistics.Mean("m", value="x", **HALF), OPTIONS, clusters=("cluster",))
    for end, bound in ((0.0, e.bound_low), (1.0, e.bound_high)):
        filled = frame.with_columns(x=pl.when(pl.col("status") == "ok").then("x").otherwise(end))
        assert bound == pytest.approx(np.mean([x.mean() for x in by_level(filled).values()]))


def test_level_without_an_answer_leaves_the_mean_undefined():
    lost = pl.when(pl.col("level") == "b").then(pl.lit("refused")).otherwise("status")
    e = one(levels().with_columns(status=lost), statistics.Mean("m", value="x", **HALF), OPTIONS, clusters=("cluster",))
    assert (e.value, e.low, e.p, e.caveats) == (None, None, None, (Caveat.UNDEFINED,))


def test_what_is_derived_from_levels_is_derived_level_by_level():
    """The mean of distances is no distance of the mean; only the levels' own means have units."""
    frame, away = levels(), {"of": ("m",), "by": lambda m: np.abs(m - 0.5)}
    measures = (
        statistics.Mean("m", value="x", **HALF),
        statistics.Derived("each", average="level", **away),
        statistics.Derived("whole", **away),
    )
    metric = declared(*measures, groups=((), ("level",)), clusters=("cluster",))
    found = {(e.metric, e.group.get("level")): e for e in metric.compute(frame, OPTIONS)}
    means = {name: x.mean() for name, x in by_level(frame).items()}
    assert found["each", None].value == pytest.approx(np.mean([abs(m - 0.5) for m in means.values()]))
    assert found["whole", None].value == pytest.approx(abs(np.mean(list(means.values())) - 0.5))
    assert {name: found["each", name].value for name in means} == pytest.approx(
        {name: abs(m - 0.5) for name, m in means.items()}
    )
    assert metric.units(frame, OPTIONS)["level"].null_count() == 0
    with pytest.raises(TypeError, match="no average"):
        declared(statistics.Mean("m", value="x"), statistics.Derived("each", average="level", **away))


def test_many_levels_cannot_weigh_alike():
    frame = pl.DataFrame({"level": [f"l{i}" for i in range(63)], "x": 0.5, "status": "ok"})
    with raises_code(DataError, "data.value", "63"):
        one(frame, statistics.Mean("m", value="x", **HALF), OPTIONS, clusters=("level",))
