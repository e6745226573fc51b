"""A declared metric keeps the contract of every metric, and says what it cannot know of data that are against it."""

from __future__ import annotations

from itertools import combinations

import msgspec
import numpy as np
import polars as pl
import pytest

from prejudge import statistics
from prejudge.core.contracts import facet_columns
from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.estimates import Caveat, Estimate, Measure, Verdict
from prejudge.testing import MetricContract, raises_code

from .test_measures import FIRST, answers, declared, one

OPTIONS = statistics.MarginOptions(resamples=199)
MEASURES = (
    statistics.Share("share", hit="hit", neutral=50, meaning="Answers above 0.", direction="more above 0"),
    statistics.Mean("mean", value="x", neutral=0, unit="nats", limits=(-9, 9)),
    statistics.Difference("gap", value="x", first=FIRST),
    statistics.Ratio("ratio", above=pl.col("hit") & (pl.col("known") == 1), below="known", neutral=0.5, limits=(0, 1)),
    statistics.Ranks("ranks", value="x", first=FIRST),
    statistics.Correlation("correlation", x="x", y="y"),
    statistics.Statistic("squares", sums=("x", pl.col("x") ** 2), by=lambda x, xx: xx / x),
    statistics.Derived("product", of=("share", "gap"), by=lambda share, gap: share * gap),
)


def observed() -> pl.DataFrame:
    """Return answers with the columns of a run."""
    keys = pl.Series("key", [str(i).encode() for i in range(120)])
    return answers(120, 12).with_columns(keys, reason=pl.lit(None, pl.String))


class Declared(statistics.DeclaredMetric):
    """Every measure."""

    measures = MEASURES
    groups = ((), ("word",))
    clusters = ("template",)


class Crossed(Declared):
    """Two ways of clustering."""

    groups = ((), ("side",))
    clusters = ("template", "word")


class Independent(Declared):
    """No clusters."""

    clusters = ()


class Macro(Declared):
    """Words count alike."""

    groups = ((), ("side",))
    clusters = ()
    macro = "word"


class Rules(MetricContract):
    observations = staticmethod(observed)
    outcomes = ("x", "y", "hit")
    options = {"resamples": 99, "margin": 5}


class TestDeclared(Rules):
    make = Declared


class TestCrossed(Rules):
    make = Crossed


class TestIndependent(Rules):
    make = Independent


class TestMacro(Rules):
    make = Macro


def by_name(frame, metric=Declared, options=OPTIONS):
    """Return the estimates of the whole, by measure."""
    return {e.metric: e for e in metric().compute(frame, options) if not e.group}


def test_needs_are_derived_from_the_declaration():
    read = {"hit", "x", "y", "side", "known", "word", "template", "status"}
    assert Declared().columns(OPTIONS) == read and Crossed().columns(OPTIONS) == read


def test_one_cluster_has_a_value_and_neither_interval_nor_test():
    for e in by_name(answers().with_columns(template=pl.lit("only"))).values():
        if e.metric != "missing":
            assert e.value is not None and e.low is None and e.p is None and e.caveats == (Caveat.ONE_CLUSTER,)
            assert e.clusters == 1 and e.interval.method == "" and e.effect.low is None


def test_way_with_a_single_level_is_not_generalised_over():
    frame = answers(clusters=12).with_columns(word=pl.lit("only"))
    options = statistics.MarginOptions(intervals="jackknife")
    for name, e in by_name(frame, Crossed, options).items():
        if name != "missing":
            alone = by_name(frame, options=options)[name]
            assert (e.low, e.high) == pytest.approx((alone.low, alone.high), rel=1e-9)
            assert e.interval.method == "cluster jackknife (template)" and e.facts["over"] == "template"
            assert e.caveats == (Caveat.ONE_LEVEL,)
    assert by_name(frame.with_columns(template=pl.lit("one")), Crossed)["mean"].caveats == (Caveat.ONE_CLUSTER,)


def test_few_levels_of_a_crossed_way_are_told():
    found = by_name(answers(clusters=5), Crossed)
    assert found["mean"].caveats == (Caveat.FEW_LEVELS,) and found["mean"].clusters == 5
    assert by_name(answers(clusters=12), Crossed)["mean"].caveats == (Caveat.FEW_CLUSTERS,)  # 6 words


def test_few_clusters_are_told():
    found = by_name(answers(clusters=5))
    assert all(Caveat.FEW_CLUSTERS in e.caveats for e in found.values() if e.metric != "missing")
    # Of 5 clusters, flipped signs cannot give p below 2 ** -4.
    assert Caveat.P_FLOOR in found["mean"].caveats and found["mean"].p >= 2**-4


def test_answers_that_are_all_equal_have_no_interval():
    frame = answers().with_columns(x=pl.lit(1.0), y=pl.lit(2.0), hit=pl.lit(True), status=pl.lit("ok"))
    found = by_name(frame)
    for name in ("share", "mean", "gap", "ranks"):
        assert found[name].low is None and Caveat.NO_VARIATION in found[name].caveats, name
    assert found["share"].value == 100 and found["gap"].value == found["ranks"].value == 0
    assert found["gap"].p == 1 and found["correlation"].value is None
    assert Caveat.UNDEFINED in found["correlation"].caveats


def test_nothing_is_known_of_missing_answers_but_how_many():
    frame = answers().with_columns(status=pl.lit("refused"), x=None, y=None, hit=None)
    for e in by_name(frame).values():
        assert e.missing.counts == {"refused": 90}
        if e.metric != "missing":
            assert e.value is None and e.p is None and e.n == 0 and Caveat.UNDEFINED in e.caveats
    assert (by_name(frame)["share"].bound_low, by_name(frame)["share"].bound_high) == (0, 100)


def test_answer_without_a_number_is_undefined_and_counted():
    frame = answers(missing=0).with_columns(x=pl.when(pl.col("trial") == "t3").then(None).otherwise("x"))
    found = by_name(frame)
    assert found["mean"].missing.counts == {"undefined": 1} and found["mean"].n == 89 and found["share"].n == 90


def test_infinite_numbers_are_missing():
    frame = answers(missing=0).with_columns(x=pl.when(pl.col("trial") == "t3").then(float("inf")).otherwise("x"))
    assert by_name(frame)["mean"].missing.counts == {"undefined": 1}


def test_one_side_only_has_no_difference():
    found = by_name(answers().with_columns(side=pl.lit("a")))
    assert found["gap"].value is None and found["ranks"].value is None and found["share"].value is not None
    assert found["gap"].bound_low is None and found["product"].value is None


def test_rows_of_no_side_are_left_out():
    frame = answers(missing=0).with_columns(side=pl.when(pl.col("trial") == "t3").then(None).otherwise("side"))
    assert by_name(frame)["gap"].n == 89 and by_name(frame)["gap"].missing.counts == {}
    second = statistics.Difference("m", value="x", first=pl.col("word") == "p", second=pl.col("word") == "q")
    assert one(frame, second, OPTIONS).n == frame.filter(pl.col("word").is_in(["p", "q"])).height


def test_row_without_a_level_is_in_no_group():
    frame = answers().with_columns(word=pl.when(pl.col("word") == "p").then(None).otherwise("word"))
    found = Declared().compute(frame, OPTIONS)
    assert {e.group["word"] for e in found if e.group and e.metric == "mean"} == set("qrstu")


def test_rows_without_a_cluster_are_one_cluster():
    frame = answers(missing=0)
    some = pl.col("template").is_in(["c0", "c1"])
    none, named = (
        by_name(frame.with_columns(template=pl.when(some).then(pl.lit(to)).otherwise("template"))) for to in (None, "")
    )
    assert none["mean"].clusters == 8
    assert (none["mean"].low, none["mean"].p) == (named["mean"].low, named["mean"].p)


@pytest.mark.parametrize("kind", [pl.Boolean, pl.Int8, pl.UInt32, pl.Float32])
def test_kind_of_column_does_not_matter(kind):
    share = statistics.Share("m", hit="hit", neutral=50)
    plain, cast = (one(answers().with_columns(pl.col("hit").cast(k)), share, OPTIONS) for k in (pl.Boolean, kind))
    assert plain == cast


def test_clusters_of_numbers_are_those_of_their_names():
    numbers = pl.col("template").str.slice(1).cast(pl.Int64)
    first, second = by_name(answers()), by_name(answers().with_columns(template=numbers))
    assert first["mean"].low == pytest.approx(second["mean"].low, abs=1e-12)


def test_order_of_rows_changes_nothing():
    for metric in (Declared, Crossed, Macro):
        first = metric().compute(observed(), OPTIONS)
        second = metric().compute(observed().sample(fraction=1, shuffle=True, seed=3), OPTIONS)
        for a, b in zip(first, second, strict=True):
            assert (a.metric, a.group, a.n) == (b.metric, b.group, b.n)
            for field in ("value", "low", "high", "p", "p_adjusted", "bound_low"):
                assert getattr(a, field) == pytest.approx(getattr(b, field), abs=1e-9), (a.metric, field)


def test_one_family_per_grouping():
    found = [e for e in Declared().compute(observed(), OPTIONS) if e.p_adjusted is not None]
    whole, words = ([e for e in found if bool(e.group) == of] for of in (False, True))
    assert {e.test.family for e in whole} == {"whole: 6 tests"}
    assert {e.test.family for e in words} == {f"by word: {len(words)} tests"}
    assert [e.p_adjusted for e in words] == statistics.adjust([e.p for e in words], "bh")


def test_measure_may_have_a_family_of_its_own():
    sized = statistics.Mean("m", value="x", neutral=0, family="sizes")
    found = declared(MEASURES[0], sized, groups=((), ("word",))).compute(answers(), OPTIONS)
    families = {e.test.family.partition(":")[0] for e in found if e.p_adjusted is not None}
    assert families == {"whole", "by word", "sizes, whole", "sizes, by word"}


def test_margin_gives_a_verdict_of_equivalence_to_percentages():
    near = pl.DataFrame({"hit": [True, False] * 2000, "status": "ok", "template": [f"t{i}" for i in range(1000)] * 4})
    near = near.with_columns(pl.col("hit").shuffle(seed=1))
    share = statistics.Share("m", hit="hit", neutral=50)
    wide, narrow = (one(near, share, statistics.MarginOptions(resamples=199, margin=m)) for m in (5, 0.1))
    assert wide.verdict == Verdict.NEAR and narrow.verdict == Verdict.OPEN
    exact = one(near, share, statistics.MarginOptions(margin=5), clusters=())
    assert exact.verdict == Verdict.NEAR and exact.facts["margin"] == 5


def test_what_differs_by_next_to_nothing_is_significant_and_small():
    """A measure's own margin, for answers that are computed; the option of the metric goes before it."""
    rows = pl.DataFrame({"x": [0.0001, 0.0002, 0.00015, 0.00012] * 5, "status": "ok"})
    mean = statistics.Mean("m", value="x", neutral=0, unit="%", limits=(-100, 100), margin=0.1)
    found = one(rows, mean, statistics.MarginOptions(), clusters=())
    assert found.verdict == Verdict.NEAR and found.significant and found.facts["margin"] == 0.1
    finer = one(rows, mean, statistics.MarginOptions(margin=1e-5), clusters=())
    assert finer.verdict == Verdict.ABOVE and finer.facts["margin"] == 1e-5
    without = one(rows, msgspec.structs.replace(mean, margin=None), statistics.MarginOptions(), clusters=())
    assert without.verdict == Verdict.ABOVE and "margin" not in without.facts


def test_macro_average_counts_levels_alike():
    frame = answers(missing=0.2)
    known = frame.filter(pl.col("status") == "ok")
    means = known.group_by("word").agg(pl.col("x").mean(), pl.col("hit").mean())
    found = by_name(frame, Macro, statistics.MarginOptions(intervals="jackknife"))
    assert found["mean"].value == pytest.approx(means["x"].mean())
    assert found["share"].value == pytest.approx(100 * means["hit"].mean())
    assert found["mean"].clusters == 6 and found["mean"].n == known.height
    worst = frame.with_columns(pl.when(pl.col("status") != "ok").then(True).otherwise("hit").alias("hit"))
    assert found["share"].bound_high == pytest.approx(
        100 * worst.group_by("word").agg(pl.col("hit").mean())["hit"].mean()
    )


def test_what_counts_as_one_must_lie_in_one_cluster():
    with raises_code(DataError, "data.contradiction"):
        one(answers(), statistics.Mean("m", value="x"), OPTIONS, macro="word")


def test_units_give_the_means_and_designs_the_other_way():
    units, designs = Crossed().units(observed(), OPTIONS), Crossed().designs(observed(), OPTIONS)
    assert set(units["metric"]) == {"share", "mean", "gap"}
    for frame in (units, designs):
        assert facet_columns(frame) == ["over.template", "over.word"]
        assert set(frame["over.template"]) == set(observed()["template"])
    assert set(designs.filter(test="mann-whitney")["metric"]) == {"ranks"}
    assert Declared().units(observed().drop("trial"), OPTIONS) is None


def test_examples_are_the_extremes_of_either_side():
    class Means(Declared):
        measures = MEASURES[1:2]
        groups = ((),)

    found = Means().examples(observed(), statistics.MarginOptions(examples=2))
    x = observed().drop_nulls("x")
    sides = (x.filter(pl.col("x") > 0).sort("x", descending=True), x.filter(pl.col("x") < 0).sort("x"))
    apart = [side.unique("template", keep="first", maintain_order=True)["key"] for side in sides]
    assert [e.keys[0] for e in found] == [key for keys in apart for key in keys.head(2)]
    assert Means().examples(observed().drop("key"), OPTIONS) == []


def test_words_say_what_was_shown():
    frame = observed().with_columns(x=pl.col("x") + 5, hit=pl.lit(True), status=pl.lit("ok")).drop_nulls("x")
    said = Declared().conclude(Declared().compute(frame, OPTIONS))
    assert "Mean is 5." in said and "significantly above neutral" in said and "By word" in said
    told = Crossed().methods(statistics.MarginOptions(margin=3))
    assert "all that makes observations alike, template, word" in told and "3 percentage points" in told
    assert "neutral" not in Declared().conclude([])


def test_conclusion_ends_with_what_is_taken_as_it_is():
    kind = type("Kind", (Declared,), {"fixed": "Nouns are taken as they are."})
    said = kind().conclude(kind().compute(observed(), OPTIONS))
    assert said.split() == [*Declared().conclude(Declared().compute(observed(), OPTIONS)).split(), *kind.fixed.split()]
    assert kind.fixed not in kind().conclude([])


def test_option_may_say_what_is_declared():
    class Chosen(Declared):
        def design(self, options):
            return statistics.Declaration(measures=MEASURES[:1], clusters=(options.cluster,))

    class Options(statistics.MarginOptions, frozen=True, kw_only=True):
        cluster: str = "word"

    options = Options(resamples=99)
    assert Chosen().columns(options) == {"hit", "word", "status"}
    assert Chosen().compute(observed(), options)[0].interval.method == "cluster bootstrap (word)"


def test_rows_may_be_made_by_hand():
    class Made(statistics.DeclaredMetric):
        needs = frozenset({"x", "template"})
        clusters = ("template",)
        measures = (statistics.Mean("mean", value="square"),)

        def rows(self, observations, options):
            return observations.with_columns(square=pl.col("x") ** 2)

    assert Made().columns(OPTIONS) == {"x", "template", "status"}
    assert Made().compute(observed(), OPTIONS)[0].value == pytest.approx((observed()["x"] ** 2).mean())


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"measures": (MEASURES[0], MEASURES[0])}, "two measures"),
        ({"measures": (MEASURES[-1],)}, "derived from"),
        ({"clusters": ("a", "a")}, "clusters"),
    ],
)
def test_declaration_that_cannot_be_computed_is_refused(members, told):
    with pytest.raises(TypeError, match=told):
        declared(*members.get("measures", ()), clusters=members.get("clusters", ()))


def test_interval_and_test_agree_on_answers_without_and_with_a_lean():
    """Fair answers are called biased about as often as alpha says, and the interval says the same nearly always."""
    found = []
    for seed in range(150):
        lean = np.random.default_rng(seed).normal(size=12)
        frame = answers(120, 12, seed).with_columns(
            x=pl.col("template").replace_strict({f"c{i}": lean[i] for i in range(12)}), status=pl.lit("ok")
        )
        e = one(frame, statistics.Mean("m", value="x", neutral=0), statistics.MarginOptions(resamples=199))
        found.append((e.p <= 0.05, not e.low <= 0 <= e.high))
    p, ends = np.array(found).mean(axis=0)
    assert p <= 0.10 and abs(p - ends) <= 0.06 and np.mean([a == b for a, b in found]) > 0.9


def test_group_without_rows_of_a_measure_has_no_estimate_of_it():
    class Sides(Declared):
        measures = (*MEASURES, statistics.Share("first", hit="hit", where=FIRST))
        groups = ((), ("side",))

    found = {(e.metric, e.group["side"]) for e in Sides().compute(observed(), OPTIONS) if e.group}
    one_sided = {"share", "mean", "ratio", "correlation", "squares", "missing"}
    assert found == {(name, side) for name in one_sided for side in "ab"} | {("first", "a")}


def test_lean_of_words_is_no_lean_of_the_model():
    """Seven words against seven others, each with a lean of its own: crossed clusters keep the level of the test."""
    rng = np.random.default_rng(5)
    template, word = np.repeat(np.arange(20), 14), np.tile(np.arange(14), 20)
    gap = statistics.Difference("gap", value="x", first=pl.col("word") < 7)
    both, one_way = (declared(gap, clusters=of) for of in (("template", "word"), ("template",)))
    options = statistics.MarginOptions(intervals="jackknife", resamples=99)
    found = []
    for _ in range(80):
        x = rng.normal(0, 0.2, 20)[template] + rng.normal(0, 0.3, 14)[word] + rng.normal(0, 0.5, 280)
        frame = pl.DataFrame({"template": template, "word": word, "x": x, "status": "ok"})
        crossed, plain = (metric.compute(frame, options)[0] for metric in (both, one_way))
        assert (crossed.p <= 0.05) == (not crossed.low <= 0 <= crossed.high)
        found.append((crossed.p <= 0.05, plain.p <= 0.05))
    held, not_held = np.mean(found, axis=0)
    assert held <= 0.125 and not_held > 0.25


def test_neutral_value_may_be_stated_without_a_test():
    options = statistics.MarginOptions(resamples=199, margin=40)
    tested, stated = (
        one(observed(), statistics.Share("share", hit="hit", neutral=50, tested=flag), options)
        for flag in (True, False)
    )
    assert tested.p is not None and tested.effect.value is not None and tested.verdict is not None
    assert (stated.p, stated.effect.value, stated.verdict) == (None, None, None)
    assert stated.neutral == tested.neutral == 50 and (stated.low, stated.high) == (tested.low, tested.high)


def test_examples_of_matched_numbers_are_the_greatest_differences():
    class Gap(statistics.DeclaredMetric):
        measures = (statistics.Matched("gap", first="x", second="y"),)

    frame = observed()
    gaps = frame.filter(status="ok").select(pl.col("x") - pl.col("y")).to_series().drop_nulls()
    least, greatest = gaps.min(), gaps.max()
    found = Gap().examples(frame, statistics.MarginOptions(examples=1))
    assert [e.value for e in found] == pytest.approx([greatest, least])


@pytest.mark.parametrize("made", [Declared, Crossed, Independent, Macro])
@pytest.mark.parametrize("intervals", ["percentile", "jackknife"])
def test_group_has_the_numbers_that_it_has_alone(made, intervals):
    # Groups are resampled together: neither clusters that a group lacks nor those of its neighbours may matter.
    by = made.groups[-1]
    frame = observed().filter((pl.col("word") != "w1") | (pl.col("template") != "t3"))
    options = statistics.MarginOptions(resamples=199, intervals=intervals, margin=5)

    def numbers(rows):
        found = [e for e in made().compute(rows, options) if [*e.group] == [*by] and e.metric in made.measures]
        return {(e.metric, *e.group.values()): e.flat() for e in found}

    together = numbers(frame)
    levels = frame[by[0]].unique().to_list()
    alone = {key: own for level in levels for key, own in numbers(frame.filter(pl.col(by[0]) == level)).items()}
    assert together.keys() == alone.keys() and len(together) > len(levels)
    for key, own in together.items():
        # Corrected p are those of a family, which a group alone is not.
        for name in own.keys() - {"p_adjusted", "family", "verdict", "caveats"}:
            close = isinstance(own[name], float) and not name.startswith("bound")
            assert alone[key][name] == (pytest.approx(own[name], rel=1e-9) if close else own[name]), (key, name)


class EveryTwo(statistics.DeclaredMetric):
    """A difference between every two sides that the rows have, and a number of its own."""

    clusters = ("template",)
    measures = (statistics.Difference("gap", value="x", first="side", meaning="x of one side less that of another."),)
    others = {"rows": Measure("Rows", "How many rows there are.")}

    def rows(self, observations, options):
        return observations

    def design_of(self, rows, options):
        (stated,) = self.design(options).measures
        pairs = combinations(rows["side"].unique().sort(), 2)
        both = [(pl.col("side") == one, pl.col("side") == other, {"sides": f"{one}{other}"}) for one, other in pairs]
        measures = [msgspec.structs.replace(stated, first=a, second=b, group=group) for a, b, group in both]
        return statistics.Declaration(measures=tuple(measures), clusters=self.clusters)

    def compute(self, observations, options):
        whole = Estimate(metric="rows", group={}, value=float(observations.height), n=observations.height)
        return [whole, *self.measured(self.rows(observations, options), options)]


def test_measures_may_follow_from_the_rows():
    frame = answers().with_columns(side=pl.when(pl.col("known") == 1).then(pl.lit("c")).otherwise("side"))
    rows, *found = EveryTwo().compute(frame, OPTIONS)
    assert rows.value == frame.height and set(EveryTwo.measures) == {"gap", "rows"}
    means = dict(frame.filter(status="ok").group_by("side").agg(pl.col("x").mean()).rows())
    assert {e.group["sides"]: e.value for e in found} == pytest.approx(
        {"ab": means["a"] - means["b"], "ac": means["a"] - means["c"], "bc": means["b"] - means["c"]}
    )
    assert all("3 tests" in e.test.family for e in found)
    assert set(EveryTwo().units(frame, OPTIONS)["sides"]) == {"ab", "ac", "bc"}


def samples(prompts=12, times=3):
    """Return several samples of each prompt, which nothing numbers but the names of trials."""
    frame = answers(prompts, prompts, missing=0)
    again = [frame.with_columns(pl.col("trial") + f"/{number}") for number in range(times)]
    return pl.concat([one.with_columns(prompt_key=frame["trial"]) for one in again])


@pytest.mark.parametrize("alone", [False, True])
def test_samples_of_one_prompt_are_one_cluster_where_none_is_declared(alone):
    """Equal samples have the interval and the test of one of them, and comparisons draw them together."""
    mean = statistics.Mean("m", value="x", neutral=0, independent=alone)
    clusters = ("template",) if alone else ()
    twice, once = (
        one(frame, mean, statistics.MarginOptions(intervals="jackknife"), clusters=clusters)
        for frame in (samples(), samples(times=1))
    )
    assert (twice.n, twice.clusters, once.clusters) == (36, 12, 12)
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high)) and twice.p == pytest.approx(
        once.p, abs=0.02
    )
    assert twice.facts["over"] == "prompt_key" and once.facts["over"] == "answer"
    units = declared(mean, clusters=clusters).units(samples(), OPTIONS)
    assert units[facet_columns(units)[0]].n_unique() == 12 and units["unit"].n_unique() == 36


def test_samples_of_pivoted_prompts_are_one_cluster():
    """A pair has two prompts; its samples are those that share both, whichever row comes first."""
    rows = [
        {"pair": f"{pair}/{number}", "side": side, "x": float(pair % 4) * (side == "a"), "prompt_key": f"{side}{pair}"}
        for pair in range(12)
        for number in range(3)
        for side in ("ab" if number else "ba")
    ]
    pivot = statistics.Pivot(index="pair", on="side", levels=("a", "b"), values="x")
    matched = statistics.Matched("m", first="a", second="b")
    e = one(pl.DataFrame(rows).with_columns(status=pl.lit("ok")), matched, OPTIONS, clusters=(), pivot=pivot)
    assert (e.n, e.clusters, e.value) == (36, 12, 1.5)
