"""TriSentBias from observations to estimates, words and figures."""

from __future__ import annotations

import io

import msgspec
import numpy as np
import polars as pl
import pytest

from prejudge.core.charts.numbers import numbers_of
from prejudge.core.contracts import facet_columns
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.estimates import Caveat, Verdict
from prejudge.metrics.bistereo.trisentbias import TriSentBias, TriSentBiasOptions
from prejudge.metrics.bistereo.trisentbias_charts import MAIN, STAR_BINOMIAL, STAR_CLUSTER
from prejudge.testing import raises_code

from ...captions import long_captions

METRIC = TriSentBias()
QUICK = TriSentBiasOptions(resamples=499, over="template")


def compute(frame, **options):
    return METRIC.compute(frame, msgspec.structs.replace(QUICK, **options))


def pick(estimates, metric, threshold=0.02, **group):
    (found,) = [
        e
        for e in estimates
        if e.metric == metric
        and e.group.get("threshold", threshold) == threshold
        and all(e.group.get(key) == value for key, value in group.items())
    ]
    return found


def cell(sentiment, differences, **more):
    """Pairs of one cell, spread over three templates."""
    return [
        {"sentiment": sentiment, "difference": d, "template": f"t{i % 3}"} | more for i, d in enumerate(differences)
    ]


@pytest.fixture(scope="module")
def biased(study):
    return compute(study(effect=0.8))


@pytest.fixture(scope="module")
def fair(study):
    return compute(study(effect=0.0))


def test_shares_by_hand(observed):
    found = compute(observed(cell("positive", [1, 1, 1, 0, -1])))
    assert [pick(found, name).value for name in ("z1", "z2", "z3")] == [20.0, 60.0, 20.0]
    assert pick(found, "preference").value == 0.75
    assert pick(found, "net_preference").value == pytest.approx(40.0)


def test_higher_threshold_moves_pairs_within(observed):
    found = compute(observed(cell("positive", [0.1, 0.07, 0.05, 0.01])))
    assert [pick(found, "z1", t).value for t in (0.02, 0.04, 0.06)] == [25.0, 75.0, 100.0]


def test_favouritism_and_discrimination_by_hand(observed):
    pairs = cell("positive", [1, 1, 1, -1]) + cell("negative", [1, -1, -1, 0, -1])
    found = compute(observed(pairs))
    assert pick(found, "favouritism").value == pytest.approx(75 - 20)
    assert pick(found, "discrimination").value == pytest.approx(60 - 25)
    assert pick(found, "favouritism_log_odds").value == pytest.approx(0.5 - -0.4)


def test_every_test_has_effect_correction_and_family(biased):
    tested = [e for e in biased if e.p is not None]
    assert {e.metric for e in tested} == {
        "favouritism",
        "discrimination",
        "favouritism_log_odds",
        "log_odds_difference",
        "preference",
        "net_preference",
    }
    assert all(e.p > 0 and e.effect.value is not None and e.effect.low < e.effect.high for e in tested)
    assert all(e.p_adjusted >= e.p and e.test.correction == "Benjamini-Hochberg" for e in tested)
    assert all(e.neutral is not None and e.low < e.value < e.high for e in tested)


def test_families_are_declared_by_threshold(biased):
    assert pick(biased, "preference", 0.04, axis="height", gender="men", sentiment="neutral").test.family == (
        "preference, binomial, threshold 0.04: 12 tests"
    )
    assert len({e.test.family for e in biased if e.test.family}) == 4 * 3 + 2


def test_sentences_swapped_turn_every_sign(study, biased):
    sides = pl.col("side").replace({"desirable": "undesirable", "undesirable": "desirable"})
    turned = compute(study(effect=0.8).with_columns(sides))
    for name in ("net_preference", "log_odds_difference", "favouritism_log_odds"):
        ours = [e.value for e in biased if e.metric == name]
        assert [e.value for e in turned if e.metric == name] == pytest.approx([-v for v in ours])


def test_row_order_changes_nothing(study, biased):
    shuffled = compute(study(effect=0.8).sample(fraction=1.0, shuffle=True, seed=4))
    ours, theirs = (
        {(e.metric, *e.group.values()): (e.value, e.low, e.high, e.p_adjusted) for e in found}
        for found in (biased, shuffled)
    )
    assert ours.keys() == theirs.keys()
    assert all(theirs[key] == pytest.approx(ours[key]) for key in ours)


def test_same_seed_gives_the_same_estimates(study, biased):
    assert compute(study(effect=0.8)) == biased


def test_missing_pair_is_left_out_and_bounded(observed):
    pairs = cell("positive", [1, 1, -1, 0]) + [{"status": "refused", "template": "t0"}]
    found = compute(observed(pairs))
    z2 = pick(found, "z2")
    assert (z2.value, z2.n, z2.missing.counts) == (50.0, 4, {"refused": 1})
    assert (z2.bound_low, z2.bound_high) == (40.0, 60.0)
    preference = pick(found, "preference")
    assert (preference.bound_low, preference.bound_high) == (0.5, 0.75)
    net = pick(found, "net_preference")
    assert (net.bound_low, net.bound_high) == (0.0, 40.0)
    assert pick(found, "log_odds_difference").bound_low is None


def test_favouritism_is_bounded_by_both_contexts(observed):
    pairs = cell("positive", [1, 1, -1]) + cell("negative", [1, -1, -1])
    missing = [{"sentiment": s, "status": "failed", "template": "t0"} for s in ("positive", "negative")]
    found = pick(compute(observed(pairs + missing)), "favouritism")
    assert (found.bound_low, found.bound_high) == (0.0, 50.0)
    assert found.missing.counts == {"failed": 2}


def test_bounds_hold_whatever_was_missing(study):
    full = study(effect=0.5, templates=5, size=3)
    rng = np.random.default_rng(0)
    lost = set(rng.choice(full["pair"].unique(maintain_order=True).to_list(), 40, replace=False))
    holes = full.with_columns(status=pl.when(pl.col("pair").is_in(lost)).then(pl.lit("failed")).otherwise("status"))
    bounded = {(e.metric, *e.group.values()): e for e in compute(holes) if e.bound_low is not None}
    truths = [(e, bounded[key]) for e in compute(full) if (key := (e.metric, *e.group.values())) in bounded]
    assert all(b.bound_low - 1e-9 <= e.value <= b.bound_high + 1e-9 for e, b in truths if e.metric != "missing")


def test_no_readable_pair_is_none_not_zero(observed):
    found = compute(observed([{"status": "refused"}]))
    assert {e.value for e in found if e.metric != "missing"} == {None}
    assert {e.p for e in found} == {None}
    assert pick(found, "z2").caveats == ("undefined",)
    assert (pick(found, "z2").bound_low, pick(found, "z2").bound_high) == (0.0, 100.0)


def test_no_decided_pair_leaves_preference_undefined(observed):
    found = compute(observed(cell("positive", [0.0] * 6)))
    preference = pick(found, "preference")
    assert (preference.value, preference.low, preference.p, preference.effect.value) == (None, None, None, None)
    assert pick(found, "z1").value == 100.0
    assert pick(found, "net_preference").p == 1.0


def test_one_cluster_has_no_interval_and_no_p(observed):
    found = compute(observed([{"difference": d} for d in (1.0, 2.0, -1.0)]))
    net = pick(found, "net_preference")
    assert (net.low, net.high, net.p, net.interval.method) == (None, None, None, "")
    assert "one_cluster" in net.caveats
    assert pick(found, "preference").p is not None


def test_no_zero_width_interval(observed):
    found = compute(observed(cell("positive", [1.0] * 9)))
    assert all(e.low is None or e.low < e.high for e in found)
    assert pick(found, "z2").caveats == ("no_variation",)


def test_few_clusters_warn_of_the_least_p(observed):
    found = pick(compute(observed(cell("positive", [1.0, 2.0, 1.5]))), "net_preference")
    assert found.p == 0.25
    assert "p_floor" in found.caveats and found.facts["smallest_p"] == 0.25


def test_no_observations_give_no_claim(study):
    found = compute(study().clear())
    assert METRIC.conclude(found).startswith("Nothing can be concluded")
    assert METRIC.figures(found) == []


def test_cluster_may_be_another_column(study):
    frame = study(effect=0.8).with_columns(noun=pl.col("pair").cast(pl.Int64) % 7)
    found = pick(compute(frame, over="noun"), "favouritism", axis="height", gender="men")
    assert (found.clusters, found.interval.method) == (7, "cluster bootstrap (noun)")


def test_attribute_clusters_differ_between_contexts(study):
    number = (pl.col("pair").cast(pl.Int64) % 7).cast(pl.String)
    named = pl.when(pl.col("sentiment") != "neutral").then(pl.col("sentiment") + number)
    found = compute(study(effect=0.8).with_columns(attribute=named), over="attribute")
    favouritism = pick(found, "favouritism", axis="height", gender="men")
    assert (favouritism.clusters, favouritism.p < 0.05) == (14, True)
    neutral = pick(found, "net_preference", axis="height", gender="men", sentiment="neutral")
    assert (neutral.clusters, neutral.low, neutral.p) == (1, None, None)


def test_absent_cluster_column_is_named(study):
    with raises_code(DataError, "data.column-missing", "'face'"):
        compute(study(), over="face")


def test_unknown_sentiment_is_refused(observed):
    with raises_code(DataError, "data.unknown-value", "'good'", "'positive'", "'negative'", "'neutral'"):
        compute(observed([{"sentiment": "good"}]))


def test_needs_are_what_compute_reads(study):
    frame = study(templates=3).select(*METRIC.needs, "template")
    assert compute(frame)
    for name in METRIC.needs:
        with raises_code(DataError, "data.column-missing", name):
            compute(frame.drop(name))


def test_stars_follow_the_papers_direction(observed):
    praised = cell("positive", [1.0] * 12, template=None) + cell("negative", [1.0] * 12, template=None)
    spread = [pair | {"template": f"t{i % 12}"} for i, pair in enumerate(praised)]
    found = compute(observed(spread))
    positive, negative = (pick(found, "preference", sentiment=s).facts for s in ("positive", "negative"))
    assert STAR_BINOMIAL in positive
    assert STAR_BINOMIAL not in negative
    assert STAR_CLUSTER in pick(found, "net_preference", sentiment="positive").facts
    assert STAR_CLUSTER not in pick(found, "net_preference", sentiment="negative").facts


def test_biased_study_is_concluded_biased(biased):
    sentence = METRIC.conclude(biased)
    assert sentence.startswith(
        "At threshold 0.02, for these words only, in sentences like these, the model prefers the"
    )
    assert "for 4 of 4 groups" in sentence
    assert "discrimination was shown for 4 groups" in sentence


def test_fair_study_is_not_concluded_biased(fair):
    sentence = METRIC.conclude(fair)
    assert sentence.startswith("No favouritism for the stereotypically desirable description was shown")
    assert "95 % interval" in sentence


def test_none_of_equal_groups_is_called_the_largest(fair):
    flat = [e.replace(value=0.0) if e.metric == "favouritism" else e for e in fair]
    assert "it is 0.0 percentage points in each of 4 groups" in METRIC.conclude(flat)
    assert "the largest favouritism of 4 groups is" in METRIC.conclude(fair)


def test_opposite_direction_is_said(study):
    sentence = METRIC.conclude(compute(study(effect=-0.8)))
    assert sentence.startswith("No favouritism")
    assert "but the opposite direction was, for 4 groups (strongest \N{MINUS SIGN}" in sentence


def test_missing_answers_are_said(study):
    lost = pl.col("pair").cast(pl.Int64) % 2 == 0
    frame = study(effect=0.8).with_columns(status=pl.when(lost).then(pl.lit("refused")).otherwise("status"))
    sentence = METRIC.conclude(compute(frame))
    assert "288 of 576 pairs have no readable answer" in sentence
    assert "might undo the result for 4 groups" in sentence


def test_shift_hidden_by_saturated_shares_is_said(observed):
    rng = np.random.default_rng(0)
    pairs = [
        {"sentiment": s, "difference": mean + rng.normal(0, 0.3), "template": f"t{i % 12}"}
        for s, mean in (("positive", 6.0), ("negative", 3.0))
        for i in range(60)
    ]
    sentence = METRIC.conclude(compute(observed(pairs)))
    assert sentence.startswith("No favouritism")
    assert "the mean log-odds difference does show favouritism for height, women" in sentence


def test_planted_log_odds_are_recovered(study):
    found = compute(study(effect=0.8, templates=40, size=10))
    values = [e for e in found if e.metric == "favouritism_log_odds"]
    assert all(e.low < 1.6 < e.high for e in values)


def test_methods_name_the_options():
    words = METRIC.methods(TriSentBiasOptions(thresholds=(0.02, 0.1), correction="holm", over="noun", seed=7))
    assert all(part in words for part in ("0.02, 0.1", "Holm", "whole noun", "seed 7", "9,999"))


def test_figures_are_one_per_axis_and_two_forests(biased):
    charts = METRIC.figures(biased)
    assert [chart.name for chart in charts] == [
        "trisentbias-skin-complexion",
        "trisentbias-height",
        "trisentbias-contrasts",
        "trisentbias-magnitude",
    ]
    assert long_captions(charts) == []
    told = [row[0] for row in numbers_of(charts[0].figure)[0].rows]
    assert "women, positive" in told and "women, positive" not in charts[0].caption


def test_figures_show_percentages_and_stars(biased):
    texts = [text.get_text() for text in METRIC.figures(biased)[1].figure.axes[0].texts]
    assert f"{pick(biased, 'z2', axis='height', gender='women', sentiment='positive').value:.1f}" in texts
    assert "*\N{DAGGER}" in texts


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_figures_can_be_saved(observed, biased, kind):
    undefined = compute(observed([{"status": "failed"}, {"sentiment": "negative", "status": "failed"}]))
    for chart in [*METRIC.figures(biased), *METRIC.figures(undefined)]:
        chart.figure.savefig(file := io.BytesIO(), format=kind)
        assert file.tell() > 1000


def test_examples_lean_the_papers_way(observed):
    pairs = cell("positive", [1, 3, -2]) + cell("negative", [2, -4, -1])
    shown = METRIC.examples(observed(pairs), QUICK)
    assert [example.value for example in shown] == pytest.approx([3, 1, -4, -1])
    assert shown[0].keys == (b"p1d", b"p1u")
    assert "prefers the undesirable description in a negative context" in shown[2].title


def test_examples_show_a_template_once(observed):
    pairs = [{"difference": d, "template": t} for d, t in ((3.0, "a"), (2.0, "a"), (1.0, "b"))]
    assert [e.value for e in METRIC.examples(observed(pairs), QUICK)] == pytest.approx([3.0, 1.0])


def test_examples_of_missing_pairs_are_none(observed):
    assert METRIC.examples(observed([{"status": "refused"}]), QUICK) == []


def test_tiny_shift_is_not_called_favouritism(observed):
    pairs = [
        {"sentiment": s, "difference": mean, "template": f"t{i % 12}"}
        for s, mean in (("positive", 0.002), ("negative", 0.001))
        for i in range(60)
    ]
    found = compute(observed(pairs))
    (shift,) = (e for e in found if e.metric == "favouritism_log_odds")
    assert shift.verdict is Verdict.ABOVE
    assert "log-odds" not in METRIC.conclude(found)


def test_headline_is_the_contrasts_and_the_three_shares(study):
    names = sorted((e.metric, MAIN in e.facts) for e in METRIC.headline(compute(study())))
    contrasts = [("discrimination", True)] * 4 + [("favouritism", True)] * 4 + [("favouritism_log_odds", False)] * 4
    assert names == contrasts + [(name, True) for name in ("z1", "z2", "z3") for _ in range(12)]


def test_three_clusters_show_nothing_whatever_a_caveat_is_called(observed):
    pairs = [
        pair | {"template": f"t{i % 3}"}
        for sign, name in ((1.0, "positive"), (-1.0, "negative"))
        for i, pair in enumerate(cell(name, [sign] * 12, template=None))
    ]
    found = compute(observed(pairs))
    sentence = METRIC.conclude(found)
    assert sentence.startswith("Nothing can be shown with 3 clusters")
    floors = [e for e in found if "p_floor" in e.caveats]
    assert METRIC.conclude([e.replace(note="not enough clusters") for e in found]) == sentence
    without = [e.replace(caveats=tuple(c for c in e.caveats if c != "p_floor")) for e in found]
    assert floors and METRIC.conclude(without) != sentence


WOMEN = {"axis": "height", "gender": "women"}
WORDS = {"positive": [f"good{number}" for number in range(7)], "negative": [f"bad{number}" for number in range(7)]}


@pytest.fixture
def with_words(study):
    """Return a function that gives every context words of its own, with a lean each."""

    def build(lean=0.0, words=7, seed=0, **more):
        frame = study(seed=seed, **more)
        rng = np.random.default_rng(seed)
        of_pair = {pair: int(pair) % words for pair in frame["pair"].unique(maintain_order=True)}
        chosen = [
            None if sentiment == "neutral" else WORDS[sentiment][of_pair[pair]]
            for pair, sentiment in zip(frame["pair"], frame["sentiment"], strict=True)
        ]
        leans = {None: 0.0} | {word: rng.normal(0, lean) for names in WORDS.values() for word in names}
        moved = [leans[word] if side == "desirable" else 0.0 for word, side in zip(chosen, frame["side"], strict=True)]
        return frame.with_columns(
            attribute=pl.Series(chosen, dtype=pl.String), log_probability=pl.col("log_probability") + pl.Series(moved)
        )

    return build


BOTH = ("template", "attribute")


def over(frame, over=BOTH, **options):
    return METRIC.compute(frame, TriSentBiasOptions(over=over, resamples=499, **options))


def test_two_ways_cover_words_and_templates(with_words):
    found = over(with_words(effect=0.8))
    effect = pick(found, "favouritism", **WOMEN)
    assert effect.interval.method == "crossed jackknife (template x attribute)"
    assert effect.test.name == "t test, crossed jackknife (template x attribute)"
    assert effect.facts["over"] == "template x attribute"
    assert METRIC.conclude(found).startswith(
        "At threshold 0.02, for words like these in sentences like these, the model"
    )


def test_words_that_lean_do_not_make_a_fair_model_biased(with_words):
    frames = [with_words(lean=1.5, templates=30, seed=seed) for seed in range(12)]
    claims = {
        cluster: sum(
            any(e.shown for e in over(frame, over=cluster, thresholds=(0.02,)) if e.metric == "favouritism")
            for frame in frames
        )
        for cluster in ("template", ("template", "attribute"))
    }
    assert claims["template"] >= 6
    assert claims["template", "attribute"] <= 2  # of 12 at 5 %: 3 or more have a chance of 2 %


def test_words_that_are_not_known_are_not_generalised_over(study):
    found = over(study(effect=0.8).with_columns(attribute=pl.lit(None, dtype=pl.String)))
    assert pick(found, "favouritism", **WOMEN).facts["over"] == "template"
    assert Caveat.ONE_LEVEL in pick(found, "favouritism", **WOMEN).caveats
    assert "for these words only, in sentences like these" in METRIC.conclude(found)


def test_few_words_are_a_caveat(with_words):
    found = over(with_words(effect=0.8, words=4))
    assert Caveat.FEW_LEVELS in pick(found, "favouritism", **WOMEN).caveats
    assert Caveat.FEW_LEVELS not in pick(over(with_words(effect=0.8)), "favouritism", **WOMEN).caveats


def test_one_way_gives_what_it_gave(with_words):
    frame = with_words(lean=0.3, effect=0.2)
    by_name, by_tuple = (over(frame, over=cluster) for cluster in ("template", ("template",)))
    assert by_name == by_tuple == compute(frame)
    assert pick(by_name, "favouritism", **WOMEN).interval.method == "cluster bootstrap (template)"


def test_each_cluster_is_named_once():
    with raises_code(UsageError, "options.value"):
        TriSentBiasOptions(over=("template", "template"))


def test_a_study_says_what_it_samples_where_no_cluster_is_named():
    settled = METRIC.settled(TriSentBiasOptions(over=()), lambda: ("opening", "place", "attribute"))
    assert settled.ways == ("opening", "place", "attribute")
    assert METRIC.settled(TriSentBiasOptions(over=()), tuple).ways == ("template", "attribute")
    assert METRIC.settled(TriSentBiasOptions(over="noun"), lambda: ("opening",)).ways == ("noun",)


def test_crossed_clusters_have_no_bca():
    with raises_code(UsageError, "options.conflict"):
        TriSentBiasOptions(over=BOTH, intervals="bca")
    assert TriSentBiasOptions(intervals="bca", over="template").ways == ("template",)


def test_units_name_both_ways(with_words):
    found = METRIC.units(with_words(), TriSentBiasOptions(over=BOTH))
    assert facet_columns(found) == ["over.template", "over.attribute"]
    assert set(found["over.attribute"]) >= {word for words in WORDS.values() for word in words}
    assert found["over.template"].n_unique() == 24
