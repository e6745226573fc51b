"""%E, %C, %N, and the halo and horn effects."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.answer.replies import preferences
from prejudge.core.contracts import facet_columns
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.estimates import MISSING, PREFERENCE, Caveat
from prejudge.core.scoring.worded import described
from prejudge.metrics.bistereo.nli import BIStereoNLI, BIStereoNLIMetricOptions
from prejudge.testing import raises_code

FAST = BIStereoNLIMetricOptions(over="template", resamples=199)
CATEGORIES = {
    "attractiveness": ("looks", "positive"),
    "unattractiveness": ("looks", "negative"),
    "good behaviour": ("behaviour", "positive"),
    "bad behaviour": ("behaviour", "negative"),
}


def study(lean=0.0, templates=12, seed=0, base=0.3):
    """Return answers of a model that entails what is stereotypical with probability base + lean, else base."""
    rng = np.random.default_rng(seed)
    rows = []
    for gender in ("women", "men"):
        for category, (kind, sentiment) in CATEGORIES.items():
            for template in range(templates):
                for direction in ("attribute in premise", "skin tone in premise"):
                    for skin in ("fair", "dark"):
                        stereotype = (sentiment == "positive") == (skin == "fair")
                        entails = base + lean * stereotype
                        label = rng.choice(["entailment", "contradiction", "neutral"], p=[entails, 0.1, 0.9 - entails])
                        name = f"{gender}/{category}/{template}/{direction}"
                        rows.append(
                            {
                                "pair": name,
                                "skin": skin,
                                "gender": gender,
                                "kind": kind,
                                "category": category,
                                "sentiment": sentiment,
                                "direction": direction,
                                "template": f"{kind}{template}",
                                "label": str(label),
                                "status": "ok",
                                "reason": None,
                                "key": f"{name}/{skin}".encode(),
                            }
                        )
    return pl.DataFrame(rows, schema_overrides={"reason": pl.String})


def computed(frame, options=FAST):
    return BIStereoNLI().compute(frame, options)


def one(estimates, metric, **group):
    (found,) = [e for e in estimates if e.metric == metric and e.group == group]
    return found


def test_shares_are_those_of_the_cell():
    frame = study()
    found = one(computed(frame), "entailment", gender="women", category="attractiveness", skin="fair")
    cell = frame.filter(gender="women", category="attractiveness", skin="fair")
    assert found.value == pytest.approx(100 * (cell["label"] == "entailment").mean()) and found.n == 24
    assert found.low < found.value < found.high and found.neutral == 0


def test_shares_of_a_cell_sum_to_100():
    found = computed(study(0.2))
    cell = {"gender": "men", "category": "bad behaviour", "skin": "dark"}
    assert sum(one(found, m, **cell).value for m in ("entailment", "contradiction", "neutral")) == pytest.approx(100)


def test_halo_and_horn_are_differences_within_pairs():
    frame = study(0.3)
    for metric, category, first, second in (
        ("halo", "attractiveness", "fair", "dark"),
        ("horn", "unattractiveness", "dark", "fair"),
    ):
        part = frame.filter(gender="women", category=category)
        shares = {skin: 100 * (part.filter(skin=skin)["label"] == "entailment").mean() for skin in ("fair", "dark")}
        found = one(computed(frame), metric, gender="women", kind="looks")
        assert found.value == pytest.approx(shares[first] - shares[second])


def test_halo_and_horn_is_their_mean_and_the_preference_is_half_their_difference():
    label = pl.when(pl.col("skin") == "fair", pl.col("sentiment") == "positive").then(pl.lit("entailment"))
    frame = study(0.3).with_columns(label=label.otherwise("label"))
    found = computed(frame)
    for group in ({}, {"gender": "men", "kind": "looks"}):
        halo, horn = (one(found, name, **group).value for name in ("halo", "horn"))
        assert one(found, "halo_and_horn", **group).value == pytest.approx((halo + horn) / 2)
        assert one(found, "skin_tone_preference", **group).value == pytest.approx((halo - horn) / 2)


def test_preference_weighs_good_and_bad_attributes_alike_however_many_there_are():
    frame = study(0.4).filter((pl.col("sentiment") == "positive") | (pl.col("template").str.contains("[123]$")))
    halo, horn = (one(computed(frame), name).value for name in ("halo", "horn"))
    assert one(computed(frame), "skin_tone_preference").value == pytest.approx((halo - horn) / 2)


class OnlyPairs(BIStereoNLI):
    """The measures of pairs over the whole."""

    def design(self, options):
        """Return the first design, of the whole alone."""
        return (msgspec.structs.replace(super().design(options)[0], groups=((),)),)


def preferring(rng, lean, praise=0.0, blame=0.0):
    """Return answers of a fair model: each word and place has preferences of its own, alike by skin tone in law.

    `lean` is added to the log-odds of fair skin, whatever is said; `praise` and `blame` are those of entailment.
    """
    words, places = 12, 10
    rows = [
        {"attribute": f"{kind[0]}{word}", "place": f"p{place}", "sentiment": kind, "skin": skin}
        for kind in ("positive", "negative")
        for word in range(words)
        for place in range(places)
        for skin in ("fair", "dark")
    ]
    frame = pl.DataFrame(rows)
    own = {name: frame[name].rank("dense").to_numpy() - 1 for name in ("attribute", "place")}
    fair = (frame["skin"] == "fair").to_numpy()
    log_odds = np.where(frame["sentiment"] == "positive", praise, blame) + lean * fair
    for name, levels in (("attribute", 2 * words), ("place", places)):
        log_odds = log_odds + rng.normal(0, 0.7, (levels, 2))[own[name], fair.astype(int)]
    entails = rng.random(len(rows)) < 1 / (1 + np.exp(-log_odds))
    return frame.with_columns(
        pair=pl.format("{}/{}", "attribute", "place"),
        label=pl.Series(np.where(entails, "entailment", "neutral")),
        gender=pl.lit("women"),
        kind=pl.lit("looks"),
        category=pl.col("sentiment"),
        direction=pl.lit("attribute in premise"),
        status=pl.lit("ok"),
        reason=pl.lit(None, pl.String),
    )


@pytest.mark.parametrize("studies", [40, pytest.param(400, marks=pytest.mark.soak)])
def test_preference_for_a_skin_tone_in_praise_and_blame_alike_is_no_bias_and_has_its_own_name(studies):
    """A model that takes fair skin for the likelier one is told to have a halo by the paper's measure."""
    options = BIStereoNLIMetricOptions(over=("place", "attribute"), resamples=99)
    metric, shown = OnlyPairs(), Counter()
    for seed in range(studies):
        found = metric.measured(metric.rows(preferring(np.random.default_rng(seed), 1.5), options), options)
        shown.update(e.metric for e in found if not e.group and e.p_adjusted is not None and e.p_adjusted <= 0.05)
    assert shown["halo"] > studies / 2 and shown["skin_tone_preference"] > 0.9 * studies
    assert shown["halo_and_horn"] <= stats.binom.ppf(0.99, studies, 0.05)


def test_preference_is_neither_in_the_headline_nor_a_question_and_the_conclusion_names_it():
    metric = BIStereoNLI()
    options = BIStereoNLIMetricOptions(over=("place", "attribute"), resamples=99)
    made = metric.compute(preferring(np.random.default_rng(0), 3.0), options)
    found = [described(e, metric, options) for e in made]
    preference = one(found, "skin_tone_preference")
    assert preference.subject == PREFERENCE and preference.shown
    assert {e.metric for e in metric.headline(found)} == {"halo_and_horn"} and not one(found, "halo_and_horn").shown
    assert "Fair skin is taken for the likelier one" in metric.conclude(found)
    assert preference.label in preferences(found) and preferences(metric.headline(found)) == ""


def test_above_0_is_the_stereotype_in_all_four():
    label = pl.when((pl.col("sentiment") == "positive") == (pl.col("skin") == "fair"))
    frame = study().with_columns(label=label.then(pl.lit("entailment")).otherwise(pl.lit("contradiction")))
    found = computed(frame)
    for metric in ("halo", "horn", "halo_contradiction", "horn_contradiction"):
        assert one(found, metric).value == 100
    assert one(found, "halo_and_horn").value == one(found, "halo_and_horn_contradiction").value == 100
    assert one(found, "skin_tone_preference").value == 0


def test_planted_lean_is_found_and_its_absence_is_not():
    shown, none = (one(computed(study(lean)), "halo") for lean in (0.5, 0.0))
    assert shown.low > 20 and shown.p_adjusted == 1 / 200 and shown.verdict == "above"
    assert none.low < 0 < none.high and none.p_adjusted > 0.05


def test_effect_rises_with_what_is_planted():
    values = [one(computed(study(lean, 24)), "halo").value for lean in (0.0, 0.2, 0.4, 0.6)]
    assert values == sorted(values) and values[-1] == pytest.approx(60, abs=10)


def test_false_positives_are_nominal_where_nothing_is_planted():
    options = BIStereoNLIMetricOptions(over="template", resamples=99)
    p = [one(computed(study(0.0, 10, seed), options), "halo").p for seed in range(40)]
    assert np.mean(np.array(p) <= 0.05) <= 0.15


def test_both_directions_have_estimates_of_their_own():
    found = computed(study(0.3))
    halves = [
        one(found, "halo", gender="men", kind="looks", direction=name).value
        for name in ("attribute in premise", "skin tone in premise")
    ]
    assert one(found, "halo", gender="men", kind="looks").value == pytest.approx(np.mean(halves))


def test_probabilities_are_measured_where_there_are_any():
    frame = study(0.3)
    assert not [e for e in computed(frame) if "probability" in e.metric]
    p = pl.when(pl.col("skin") == "fair").then(0.5).otherwise(0.25)
    told = frame.with_columns(p_entailment=p, p_contradiction=0.5 - p, p_neutral=pl.lit(0.5))
    found = computed(told)
    assert one(found, "halo_probability").value == pytest.approx(25)
    assert one(found, "horn_probability").value == pytest.approx(-25)
    cell = {"gender": "women", "category": "attractiveness", "skin": "fair"}
    assert one(found, "entailment_probability", **cell).value == pytest.approx(50)


def test_missing_side_leaves_the_pair_out_and_bounds_it():
    frame = study(0.3).with_row_index()
    lost = pl.col("index") == 0
    frame = frame.with_columns(
        label=pl.when(lost).then(None).otherwise("label"),
        status=pl.when(lost).then(pl.lit("unreadable")).otherwise("status"),
        reason=pl.when(lost).then(pl.lit("several labels")).otherwise("reason"),
    )
    found = computed(frame)
    halo = one(found, "halo")
    assert halo.n == 95 and halo.missing.counts == {"unreadable": 1}
    assert halo.bound_low < halo.bound_high and halo.bound_high - halo.bound_low == pytest.approx(100 / 96)
    kind = one(found, "unreadable", kind="several labels", skin="fair")
    assert kind.value == pytest.approx(100 / 192) and kind.subject == MISSING


@pytest.mark.parametrize(("lost", "uneven"), [({}, False), ({"fair": 8, "dark": 8}, False), ({"dark": 4}, True)])
def test_share_of_unreadable_answers_is_given_by_skin_tone_and_has_a_caveat_where_it_differs(lost, uneven):
    gone = pl.lit(False)
    for skin, every in lost.items():
        gone = gone | ((pl.col("skin") == skin) & (pl.col("index") % every < 2))
    frame = study(0.3).with_row_index().with_columns(index=pl.col("index") // 2)
    frame = frame.with_columns(
        label=pl.when(gone).then(None).otherwise("label"),
        status=pl.when(gone).then(pl.lit("unreadable")).otherwise("status"),
    )
    found = computed(frame)
    for skin in ("fair", "dark"):
        part = frame.filter(pl.col("skin") == skin)
        share = 100 * (part["status"] == "unreadable").mean()
        assert one(found, "unreadable", skin=skin).value == pytest.approx(share)
    assert (Caveat.UNEVEN_MISSING in one(found, "unreadable").caveats) is uneven


def test_label_that_is_null_is_not_counted_as_no_entailment():
    frame = study().with_columns(label=pl.when(pl.col("skin") == "dark").then(None).otherwise("label"))
    found = computed(frame)
    assert one(found, "halo").value is None
    assert one(found, "entailment", gender="women", category="attractiveness", skin="dark").value is None
    assert BIStereoNLI().conclude(found).startswith("Nothing can be concluded")


def test_every_test_has_family_correction_and_effect():
    tests = [e for e in computed(study(0.2)) if e.p is not None and e.metric != "missing"]
    assert len(tests) == 7 * (1 + 4 + 8)
    for e in tests:
        assert (
            e.test.family
            and e.test.correction
            and e.effect.value is not None
            and e.p_adjusted >= e.p
            and e.neutral == 0
        )


def test_one_cluster_has_no_interval_and_no_test():
    found = one(computed(study(0.3, templates=1)), "halo", gender="women", kind="looks")
    assert found.low is None and found.p is None and found.caveats == ("one_cluster",)


def test_margin_gives_a_verdict():
    found = computed(study(), BIStereoNLIMetricOptions(over="template", resamples=199, margin=60))
    assert one(found, "halo").verdict == "near"


def test_order_of_rows_does_not_matter():
    frame = study(0.2)
    first, second = (computed(f) for f in (frame, frame.reverse()))
    one_way, other = ({(e.metric, str(sorted(e.group.items()))): e.value for e in found} for found in (first, second))
    assert one_way == other


def test_units_have_the_means_of_the_estimates():
    frame = study(0.3)
    units, found = BIStereoNLI().units(frame, FAST), computed(frame)
    own = units.filter(pl.col("metric") == "halo", pl.col("gender").is_null())
    assert own["value"].mean() == pytest.approx(one(found, "halo").value)
    cell = units.filter(metric="entailment", gender="men", category="good behaviour", skin="dark")
    expected = one(found, "entailment", gender="men", category="good behaviour", skin="dark").value
    assert cell["value"].mean() == pytest.approx(expected)


def test_conclusion_names_what_was_shown():
    said = BIStereoNLI().conclude(computed(study(0.5)))
    assert (
        said.startswith("For these words only, in sentences like these: A halo and horn effect was shown")
        and "looks of women" in said
        and "neutral, is given" in said
    )


def test_conclusion_says_the_opposite_where_it_is_so():
    frame = study(0.5).with_columns(
        skin=pl.when(pl.col("skin") == "fair").then(pl.lit("dark")).otherwise(pl.lit("fair"))
    )
    assert "the opposite of a halo and horn effect was shown" in BIStereoNLI().conclude(computed(frame)).lower()


def test_figures_and_examples_are_made():
    frame = study(0.5)
    charts = BIStereoNLI().figures(computed(frame))
    assert [c.name for c in charts] == ["bistereo-nli-men", "bistereo-nli-women", "bistereo-nli-effects"]
    examples = BIStereoNLI().examples(frame, FAST)
    assert {e.title.split(",")[0] for e in examples} == {"Halo effect", "Horn effect"}
    labels = {row["key"]: row["label"] for row in frame.iter_rows(named=True)}
    for e in examples:
        fair, dark = (labels[key] == "entailment" for key in e.keys)
        assert b"fair" in e.keys[0] and fair != dark
        assert fair == ((e.value > 0) == e.title.startswith("Halo"))


@pytest.mark.parametrize(("column", "value"), [("label", "yes"), ("sentiment", "mixed")])
def test_unknown_value_is_named(column, value):
    with raises_code(DataError, "data.unknown-value", column, value):
        computed(study().with_columns(pl.lit(value).alias(column)))


def test_other_than_two_groups_are_refused():
    with raises_code(DataError, "data.groups", "'brown'"):
        computed(study().with_columns(pl.lit("brown").alias("skin")))


def test_pair_with_a_skin_tone_twice_is_refused():
    with raises_code(DataError, "data.duplicate"):
        computed(pl.concat([study(), study()]))


def test_options_are_checked():
    with pytest.raises(UsageError):
        BIStereoNLIMetricOptions(level=2)


def leaning(seed, spread=2.0, templates=10, words=8):
    """Return answers of a fair model whose words lean: each is entailed more for the one or the other skin tone."""
    rng = np.random.default_rng(seed)
    rows = []
    for category, (kind, sentiment) in CATEGORIES.items():
        for word in range(words):
            lean = rng.normal(0, spread)
            for template in range(templates):
                for skin, sign in (("fair", 1), ("dark", -1)):
                    entails = 1 / (1 + np.exp(0.8 - sign * lean / 2))
                    label = rng.choice(["entailment", "neutral"], p=[entails, 1 - entails])
                    name = f"{category}/{word}/{template}"
                    rows.append(
                        {
                            "pair": name,
                            "skin": skin,
                            "gender": "women",
                            "kind": kind,
                            "category": category,
                            "sentiment": sentiment,
                            "direction": "attribute in premise",
                            "template": f"{kind}{template}",
                            "attribute": f"{category} {word}",
                            "label": str(label),
                            "status": "ok",
                            "reason": None,
                            "key": f"{name}/{skin}".encode(),
                        }
                    )
    return pl.DataFrame(rows, schema_overrides={"reason": pl.String})


def test_words_that_lean_make_no_halo_and_no_horn():
    # Halo and horn of 10 fair models: at 5 % more than 4 of 20 have a chance of 0.3 %, at least 7 one of 1 in 100,000.
    frames = [leaning(seed) for seed in range(10)]
    ps = {
        cluster: [
            one(computed(frame, BIStereoNLIMetricOptions(over=cluster, resamples=199)), name).p
            for frame in frames
            for name in ("halo", "horn")
        ]
        for cluster in ("template", ("template", "attribute"))
    }
    assert sum(p <= 0.05 for p in ps["template"]) >= 7
    assert sum(p <= 0.05 for p in ps["template", "attribute"]) <= 4


def test_two_ways_name_their_population():
    both = BIStereoNLIMetricOptions(over=("template", "attribute"))
    found = computed(leaning(0), both)
    assert one(found, "halo").interval.method == "crossed jackknife (template x attribute)"
    assert BIStereoNLI().conclude(found).startswith("For words like these in sentences like these: ")
    units = BIStereoNLI().units(leaning(0), both)
    assert facet_columns(units) == ["over.template", "over.attribute"]
