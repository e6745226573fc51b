"""The measures of the attractiveness study on planted answers."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.charts.numbers import numbers_of
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.estimates import Missing
from prejudge.metrics.attractiveness.measures import halo_of
from prejudge.metrics.attractiveness.metric import Attractiveness, AttractivenessMetricOptions
from prejudge.metrics.attractiveness.scores import Scores, gather
from prejudge.testing import raises_code

from ...captions import long_captions

OPTIONS = AttractivenessMetricOptions(resamples=499, effect_resamples=99, splits=5)
SCENARIOS = (
    ("Kind vs Rude", "traits", "directed", "first", None),
    ("Lazy vs Keen", "traits", "directed", "second", None),
    ("Doctor vs Nurse", "jobs", "gender", None, "male vs female"),
    ("Cook vs Guard", "jobs", "race", None, "Asian vs White"),
)
QUICK = AttractivenessMetricOptions(resamples=199, effect_resamples=0)
FACES = 48


def answers(shift=0.0, gender=0.0, seed=0, faces=FACES):
    """Return answers in four orders; the filter and being male add so many nats to the score of each scenario."""
    rng = np.random.default_rng(seed)
    rows = []
    for (scenario, category, kind, positive, stereotype), face in product(SCENARIOS, range(faces)):
        own = rng.normal()
        person = {"gender": "male" if face % 2 else "female", "race": "Asian" if face % 4 < 2 else "White"}
        for variant, first_is, asked in product(("original", "filtered"), "ab", ("ab", "ba")):
            lean = own + shift * (variant == "filtered") + gender * (person["gender"] == "male")
            score = float(rng.random() < 1 / (1 + np.exp(-lean)))
            rows.append(
                {
                    "scenario": scenario,
                    "category": category,
                    "kind": kind,
                    "positive": positive,
                    "stereotype": stereotype,
                    "face": f"f{face}",
                    "variant": variant,
                    **person,
                    "age_group": None,
                    "human": None,
                    "first_is": first_is,
                    "asked": asked,
                    "score": score,
                    "p_a": score if (first_is == "a") != (positive == "second") else 1 - score,
                    "status": "ok",
                    "reason": None,
                    "key": b"k",
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def test_equal_answers_are_measured_alike_to_the_last_bit():
    """Polars adds in an order of its own; answers that are no halves show it."""
    frame = pl.concat([answers(seed=seed, faces=200) for seed in range(1, 4)])
    frame = frame.with_columns(score=pl.Series(np.random.default_rng(0).random(frame.height)))
    first, *others = (gather(frame) for _ in range(6))
    assert all(first.equals(other) for other in others)
    by = ["scenario", "face", "variant"]
    shuffled = gather(frame.sample(fraction=1.0, shuffle=True, seed=1)).with_columns(pl.col(by).cast(pl.String))
    sums = [*by, "score", "least", "greatest"]
    assert first.with_columns(pl.col(by).cast(pl.String)).select(sums).sort(by).equals(shuffled.select(sums).sort(by))
    orders = frame.group_by(*by, "first_is", "asked").agg(pl.col("score").mean())
    means = orders.group_by(by).agg(pl.col("score").mean()).sort(by)["score"].to_numpy()
    own = first.with_columns(pl.col(by).cast(pl.String)).sort(by)["score"].to_numpy()
    np.testing.assert_allclose(own, means, atol=1e-12)


def scored_by(frame):
    """Return the scores, shape (scenarios, faces, variants)."""
    images = gather(frame)
    return images["score"].to_numpy().reshape(images["scenario"].n_unique(), -1, 2)


def changes_of(frame):
    """Return the changes, shape (scenarios, faces)."""
    return np.diff(scored_by(frame), axis=-1)[..., 0]


class Halo(Attractiveness):
    """Nothing but the halo."""

    def design_of(self, rows, options):
        return halo_of(Scores(rows), options)


def compute(frame, options=OPTIONS):
    return Attractiveness().compute(frame, options)


def one(estimates, metric, **group):
    (found,) = [e for e in estimates if e.metric == metric and e.group == group]
    return found


@pytest.fixture(scope="module")
def planted():
    return answers(shift=2.0, gender=2.0)


@pytest.fixture(scope="module")
def found(planted):
    return compute(planted)


def test_score_is_the_mean_of_the_orders():
    frame = answers()
    cell = frame.filter((pl.col("scenario") == "Kind vs Rude") & (pl.col("face") == "f3"))
    expected = [cell.filter(pl.col("variant") == v)["score"].mean() for v in ("original", "filtered")]
    assert scored_by(frame)[0, 3].tolist() == expected


def test_seeds_of_one_order_count_as_one_order():
    frame = answers()
    again = pl.concat([frame, *[frame.filter(pl.col("asked") == "ab")] * 2])
    assert np.allclose(scored_by(again), scored_by(frame))


def test_score_without_a_readable_answer_to_an_order_is_missing_and_bounded():
    frame = answers()
    gone = (pl.col("face") == "f0") & (pl.col("first_is") == "a") & (pl.col("asked") == "ab")
    lost = frame.with_columns(
        pl.when(~gone).then("score").alias("score"),
        pl.when(gone).then(pl.lit("refused")).otherwise("status").alias("status"),
    )
    scores = scored_by(lost)
    assert np.isnan(scores[:, 0]).all() and not np.isnan(scores[:, 1:]).any()
    ends = gather(lost).filter(face="f0")
    assert np.allclose(ends["greatest"] - ends["least"], 0.25)
    row = one(compute(lost, QUICK), "gap", scenario="Kind vs Rude")
    assert row.missing.counts == {"refused": 1} and row.n == FACES - 1
    assert row.bound_high - row.bound_low == pytest.approx(2 * 0.25 / FACES)


def test_gap_and_h_are_those_of_scipy(planted, found):
    scored = scored_by(planted)[0]
    gap, signed = one(found, "gap", scenario="Kind vs Rude"), one(found, "gap_signed_ranks", scenario="Kind vs Rude")
    h = one(found, "kruskal_wallis", scenario="Kind vs Rude", by="filter")
    assert gap.value == pytest.approx((scored[:, 1] - scored[:, 0]).mean()) and gap.low < gap.value < gap.high
    assert (h.test.statistic, h.p) == pytest.approx(tuple(stats.kruskal(scored[:, 0], scored[:, 1])))
    moved = scored[:, 1] - scored[:, 0]
    assert signed.p == pytest.approx(stats.wilcoxon(moved[moved != 0]).pvalue)
    assert (
        h.effect.value == pytest.approx(h.test.statistic / (2 * FACES - 1))
        and h.effect.low < h.effect.value < h.effect.high
    )
    assert gap.effect.low <= gap.effect.value <= gap.effect.high and gap.effect.name == "matched-pairs rank-biserial"


def test_filter_within_a_group_has_intervals(planted, found):
    scored = scored_by(planted)[2][np.arange(FACES) % 2 == 1]
    h = one(found, "kruskal_wallis", scenario="Doctor vs Nurse", by="filter", gender="male")
    gap = one(found, "gap", scenario="Doctor vs Nurse", gender="male")
    assert h.test.statistic == pytest.approx(stats.kruskal(scored[:, 0], scored[:, 1]).statistic)
    assert h.effect.low < h.effect.value < h.effect.high and h.test.family.startswith(
        "kruskal_wallis, filter (gender: male)"
    )
    assert gap.low < gap.value < gap.high and gap.effect.low < gap.effect.value <= gap.effect.high


def test_no_resamples_of_effects_leave_values_without_their_intervals(planted, found):
    plain = compute(planted, AttractivenessMetricOptions(resamples=499, effect_resamples=0))
    for metric in ("gap", "kruskal_wallis"):
        group = {"scenario": "Doctor vs Nurse"} | ({} if metric == "gap" else {"by": "gender"})
        row, other = one(plain, metric, **group), one(found, metric, **group)
        assert row.value == pytest.approx(other.value) and row.effect.value == pytest.approx(other.effect.value)
        assert row.effect.low is None is row.effect.high and row.p == other.p


@pytest.mark.parametrize("options", [{"effect_resamples": 50}, {"splits": 0}])
def test_too_few_resamples_are_refused(options):
    with raises_code(UsageError, "options.value"):
        AttractivenessMetricOptions(**options)


def test_planted_filter_is_found_as_halo_and_in_every_scenario(planted):
    found = compute(planted, AttractivenessMetricOptions(resamples=499, effect_resamples=0, over="face"))
    halo = one(found, "halo")
    assert halo.value > 0 and halo.p <= 0.01 and halo.verdict == "above"
    assert one(found, "halo_scenarios").value == 100
    for test in ("Kruskal-Wallis, p as in the paper", "paired or by face, adjusted p"):
        assert one(found, "share_significant", by="filter", **{"judged by": test}).facts == {"hits": 4, "of": 4}
    concluded = Attractiveness().conclude(found)
    assert "in 4 of 4 scenarios" in concluded and f"mean change +{halo.value:.3f}" in concluded


def test_conclusion_follows_the_verdict(found):
    verdicts = ("above", "below", "open")
    own = ([e.replace(verdict=verdict) if e.metric == "halo" else e for e in found] for verdict in verdicts)
    assert len({Attractiveness().conclude(estimates) for estimates in own}) == 3


def test_missing_answers_that_could_reverse_a_halo_are_named(found):
    halo = one(found, "halo")
    lost = halo.replace(missing=Missing({"refused": 1}, bound_low=-0.1, bound_high=0.5))
    before, after = (Attractiveness().conclude([e, *found[1:]]) for e in (halo, lost))
    assert found[0] is halo and after.startswith(before + " ")


def test_gender_is_found_over_images_and_over_faces(planted, found):
    scored = scored_by(planted)[2]
    male = np.arange(FACES) % 2 == 1
    images = one(found, "kruskal_wallis", scenario="Doctor vs Nurse", by="gender")
    faces = one(found, "kruskal_wallis_faces", scenario="Doctor vs Nurse", by="gender")
    assert images.test.statistic == pytest.approx(stats.kruskal(scored[male].ravel(), scored[~male].ravel()).statistic)
    assert faces.p == pytest.approx(stats.kruskal(scored[male].mean(axis=1), scored[~male].mean(axis=1)).pvalue)
    assert (images.n, faces.n) == (2 * FACES, FACES) and images.p < 0.001


def test_race_pair_is_tested_between_its_two_races(found):
    pairs = [e for e in found if e.metric == "kruskal_wallis" and e.group.get("by") == "race pair"]
    assert [e.group["scenario"] for e in pairs] == ["Cook vs Guard"]


def epsilon(values, groups):
    """Return epsilon squared from scipy's H."""
    return stats.kruskal(*(values[groups == code] for code in np.unique(groups))).statistic / (len(values) - 1)


def test_change_of_a_bias_has_side_interval_and_p_of_one_difference(planted, found):
    scored = scored_by(planted)[0]
    male = np.arange(FACES) % 2
    change = one(found, "bias_change", scenario="Kind vs Rude", by="gender")
    value = epsilon(scored[:, 1], male) - epsilon(scored[:, 0], male)
    without = np.array(
        [
            epsilon(np.delete(scored[:, 1], face), np.delete(male, face))
            - epsilon(np.delete(scored[:, 0], face), np.delete(male, face))
            for face in range(FACES)
        ]
    )
    half = FACES // 2
    parts = [(half - 1) / half * ((without[male == side] - value) ** 2).sum() for side in (0, 1)]
    freedom = sum(parts) ** 2 / sum(part**2 / (half - 1) for part in parts)
    reach = stats.t.ppf(0.975, freedom) * np.sqrt(sum(parts))
    assert (change.value, change.low, change.high) == pytest.approx((value, value - reach, value + reach))
    assert change.p == pytest.approx(2 * stats.t.sf(abs(value) / np.sqrt(sum(parts)), freedom))
    moved = scored[:, 1] - scored[:, 0]
    between = one(found, "filter_between_groups", scenario="Kind vs Rude", by="gender")
    assert between.p == pytest.approx(stats.kruskal(moved[male == 1], moved[male == 0]).pvalue)


def test_bias_that_turns_around_is_no_stronger_bias():
    """With the filter women are preferred as much as men were without: the filter matters, the bias is as strong."""
    rng = np.random.default_rng(4)
    turned = answers().with_columns(
        score=pl.when(pl.col("gender") == "male")
        .then(pl.col("variant") == "original")
        .otherwise(pl.col("variant") == "filtered")
    )
    noise = pl.Series(rng.random(turned.height) < 0.2)
    frame = turned.with_columns(score=(pl.col("score") != noise).cast(pl.Float64))
    found = compute(frame, QUICK)
    for scenario, *_ in SCENARIOS:
        assert one(found, "filter_between_groups", scenario=scenario, by="gender").p_adjusted < 0.001
        assert one(found, "bias_change", scenario=scenario, by="gender").p_adjusted > 0.05
    cell = {"by": "gender", "stronger in": "no impact", "judged by": "tested change"}
    assert one(found, "stronger_bias", **cell).value == len(SCENARIOS)


def test_bias_that_is_complete_with_the_filter_alone_is_tested():
    male, filtered = pl.col("gender") == "male", pl.col("variant") == "filtered"
    frame = answers().with_columns(score=(male & filtered).cast(pl.Float64))
    change = one(compute(frame, QUICK), "bias_change", scenario="Kind vs Rude", by="gender")
    assert (change.value, change.low) == (1, None) and change.p < 0.01 and change.verdict == "above"


def test_scenario_answered_alike_everywhere_is_not_significant():
    alike = pl.col("scenario") == "Kind vs Rude"
    frame = answers(shift=2.0).with_columns(score=pl.when(alike).then(1.0).otherwise("score"))
    found = compute(frame, QUICK)
    shares = [e for e in found if e.metric == "share_significant" and "category" not in e.group]
    assert {e.n for e in shares} == {len(SCENARIOS)} and not any(e.missing.total for e in shares)
    same = [e for e in found if e.group.get("scenario") == "Kind vs Rude" and e.p is not None]
    assert {e.p for e in same} == {1.0} and {e.value for e in same} == {0.0}
    assert {e.metric for e in same} >= {"gap", "gap_signed_ranks", "kruskal_wallis", "bias_change"}
    counts = [e for e in found if e.metric in ("stronger_bias", "strongest_group")]
    assert {e.n for e in counts} == {len(SCENARIOS)}


def many(shift=0.0, spread=0.0, scenarios=12, faces=24, seed=0):
    """Return answers to scenarios with a positive option, in which the filter does `shift`, give or take `spread`."""
    rng = np.random.default_rng(seed)
    frames = []
    for number in range(scenarios):
        frame = answers(shift + rng.normal(0, spread), seed=[seed, number], faces=faces)
        first = frame.filter(pl.col("scenario") == "Kind vs Rude")
        frames.append(first.with_columns(scenario=pl.lit(f"Kind{number} vs Rude{number}")))
    return pl.concat(frames)


def test_halo_holds_for_other_scenarios_and_other_faces():
    frame = many(shift=1.0)
    halo = one(compute(frame, QUICK), "halo")
    change = changes_of(frame)
    rows, columns = (change.mean(axis=axis) for axis in (1, 0))
    value, (r, c) = change.mean(), change.shape
    without = (change.sum() - change) / (change.size - 1)
    by_row, by_column = (((own - value) ** 2).sum() / (n * (n - 1)) for own, n in ((rows, r), (columns, c)))
    variance = max(by_row + by_column - ((without - value) ** 2).sum(), by_row, by_column)
    freedom = variance**2 / (by_row**2 / (r - 1) + by_column**2 / (c - 1))
    reach = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    assert (halo.value, halo.low, halo.high) == pytest.approx((value, value - reach, value + reach))
    assert halo.p == pytest.approx(2 * stats.t.sf(value / np.sqrt(variance), freedom))
    assert halo.facts["over"] == "scenario x face" and (halo.n, halo.clusters) == (r * c, r)


def test_halo_of_fair_models_whose_scenarios_differ_is_rarely_found():
    """The filter moves each scenario at random, none way on the whole: faces alone would call most of that a halo."""
    plain = AttractivenessMetricOptions(resamples=99, effect_resamples=0)
    faces = AttractivenessMetricOptions(resamples=99, effect_resamples=0, over="face")
    both, alone = 0, 0
    for seed in range(40):
        rows = gather(many(spread=1.5, scenarios=10, faces=16, seed=seed))
        both += Halo().measured(rows, plain)[0].p <= 0.05
        alone += Halo().measured(rows, faces)[0].p <= 0.05
    assert both <= 6 < 15 < alone


def test_halo_over_faces_is_that_of_sign_flips(planted):
    options = AttractivenessMetricOptions(resamples=499, effect_resamples=0, over="face")
    halo = one(compute(planted, options), "halo")
    faces = changes_of(planted)[:2].mean(axis=0)
    assert halo.value == pytest.approx(faces.mean()) and (halo.n, halo.clusters) == (FACES, FACES)
    assert halo.test.name == "sign-flip permutation (face)" and halo.p == pytest.approx(1 / 500)
    concluded = Attractiveness().conclude(compute(planted, options))
    assert "a significant halo effect for faces like these, in these scenarios only" in concluded


def test_halo_uses_every_pair_of_scores():
    frame = many(shift=1.0)
    gone = (pl.col("scenario") == "Kind0 vs Rude0") & (pl.col("variant") == "filtered")
    frame = frame.with_columns(
        pl.when(~gone).then("score").alias("score"),
        pl.when(gone).then(pl.lit("refused")).otherwise("status").alias("status"),
    )
    halo = one(compute(frame, QUICK), "halo")
    assert halo.value == pytest.approx(np.nanmean(changes_of(frame)))
    assert halo.n == 11 * 24 and halo.missing.counts == {"refused": 24} and halo.low < halo.value < halo.high


@pytest.mark.parametrize(
    ("scenarios", "faces", "caveats"),
    [(12, 24, set()), (5, 24, {"few_levels"}), (1, 24, {"one_level"})],
)
def test_few_scenarios_are_a_caveat_of_the_halo(scenarios, faces, caveats):
    found = compute(many(shift=1.0, scenarios=scenarios, faces=faces), QUICK)
    halo = one(found, "halo")
    assert set(halo.caveats) == caveats
    assert halo.facts["over"] == ("scenario x face" if scenarios > 1 else "face")
    population = "faces like these, in these scenarios only" if scenarios == 1 else "faces and scenarios like these"
    assert f"halo effect for {population}" in Attractiveness().conclude(found)


@pytest.mark.parametrize(
    ("given", "facets"),
    [({}, "Scenarios and faces"), ({"over": "face"}, "Faces"), ({"over": "scenario"}, "Scenarios")],
)
def test_conclusion_says_what_the_halo_takes_as_independent(given, facets):
    found = compute(many(), AttractivenessMetricOptions(resamples=99, effect_resamples=0, **given))
    said = f" {facets} count as independent: "
    assert said in Attractiveness().conclude(found)
    untested = [e.replace(p=None) if e.metric == "halo" else e for e in found]
    assert said not in Attractiveness().conclude(untested)


def test_halo_near_none_is_shown_with_a_margin():
    found = compute(many(seed=3), AttractivenessMetricOptions(resamples=99, effect_resamples=0, margin=20))
    halo = one(found, "halo")
    assert (
        halo.verdict == "near"
        and halo.facts["margin"] == 0.2
        and "within 0.2 of none" in Attractiveness().conclude(found)
    )


@pytest.mark.parametrize("cluster", ["template", ("scenario", "word")])
def test_unknown_facet_is_refused(cluster):
    with raises_code(UsageError, "options.choice"):
        AttractivenessMetricOptions(over=cluster)


def test_conclusion_begins_with_its_population(found):
    assert Attractiveness().conclude(found).startswith("For faces like these, in these scenarios only, ")


def test_judgements_that_change_most_are_the_answer(planted):
    found = compute(many(shift=1.0, spread=1.0), QUICK)
    widest = sorted((e for e in found if e.metric == "gap" and len(e.group) == 1), key=lambda e: -abs(e.value))[:10]
    shown = Attractiveness().headline(found)
    assert shown[:10] == widest and shown[10].metric == "halo"
    assert [e.group["by"] for e in shown[11:13]] == ["gender", "race"]
    first = widest[0]
    more, less = (
        first.group["scenario"].split(" vs ") if first.value > 0 else reversed(first.group["scenario"].split(" vs "))
    )
    concluded = Attractiveness().conclude(found)
    assert f"{more} rather than {less} +{abs(100 * first.value):.1f} points (95 % interval " in concluded


def test_option_that_is_chosen_more_is_named_first():
    """`Lazy vs Keen` counts Keen; where the filter makes people look lazy, Lazy is chosen more."""
    frame = answers(shift=-3.0).filter(pl.col("scenario").is_in(["Lazy vs Keen", "Doctor vs Nurse"]))
    concluded = Attractiveness().conclude(compute(frame, QUICK))
    assert "Lazy rather than Keen +" in concluded and "Nurse rather than Doctor +" in concluded


@pytest.mark.parametrize(("faces", "smallest", "together"), [(6, 2 / 64, 8), (4, 2 / 16, 13), (12, None, None)])
def test_what_so_few_faces_cannot_show_is_said(faces, smallest, together):
    """Of 12 scenarios changed by all 6 faces, Benjamini and Hochberg's step needs 12 / k times 2/64 to be 0.05."""
    found = compute(many(shift=9.0, faces=faces), AttractivenessMetricOptions(resamples=999, effect_resamples=0))
    share = one(found, "share_significant", by="filter", **{"judged by": "paired or by face, adjusted p"})
    assert (share.facts.get("smallest_p"), share.facts.get("significant_only_together")) == (smallest, together)
    assert ("p_floor" in share.caveats) == (smallest is not None)
    assert (f"With {faces} faces no p can be below" in Attractiveness().conclude(found)) == (smallest is not None)


def rated(frame, more, less=0):
    """Give faces ratings of attractiveness: `more` of them higher with the filter, `less` lower, the others equal."""
    number = pl.col("face").str.slice(1).cast(pl.Int64)
    change = pl.when(number < more).then(0.1).when(number < more + less).then(-0.1).otherwise(0.0)
    rating = 4.2 + change * (pl.col("variant") == "filtered")
    return frame.with_columns(attractiveness=pl.format("{};{}", rating.round(1), (rating + 0.4).round(1)))


def test_share_of_faces_made_more_attractive_is_exact():
    found = compute(rated(answers(), more=46, less=1), QUICK)
    check = one(found, "rated_more_attractive")
    low, high = stats.binomtest(46, 48).proportion_ci(method="exact")
    assert (check.value, check.low, check.high) == pytest.approx((100 * 46 / 48, 100 * low, 100 * high))
    assert check.facts == {"hits": 46, "of": 48, "rated_less_attractive": 1}
    assert "People rate 95.8 % of 48 faces more attractive" in Attractiveness().conclude(found)


@pytest.mark.parametrize(
    "frame", [answers(faces=12), answers(faces=12).with_columns(attractiveness=pl.lit(None, pl.String))]
)
def test_absent_ratings_of_attractiveness_are_said(frame):
    found = compute(frame, QUICK)
    check = one(found, "rated_more_attractive")
    assert check.value is None and "undefined" in check.caveats
    assert "is not known" in Attractiveness().conclude(found)


def test_halo_that_nothing_varies_is_still_tested():
    positive = pl.col("variant") == "filtered"
    found = compute(answers().with_columns(score=positive.cast(pl.Float64)), QUICK)
    halo = one(found, "halo")
    # Two scenarios have four patterns of signs, and all faces agree: over scenarios nothing can be shown.
    assert (halo.value, halo.low, halo.p) == (1, None, 0.5)


def test_counts_over_scenarios_sum_to_all(found):
    for metric, key in (("strongest_group", "judged"), ("stronger_bias", "judged by")):
        rows = [e for e in found if e.metric == metric]
        cells = {(e.group["by"], e.group[key]) for e in rows}
        for by, judged in cells:
            assert sum(e.value for e in rows if (e.group["by"], e.group[key]) == (by, judged)) == len(SCENARIOS)


def test_without_a_planted_effect_nothing_is_shown():
    estimates = compute(answers(seed=5))
    assert one(estimates, "halo").p > 0.05
    assert one(estimates, "share_significant", by="filter", **{"judged by": "paired or by face, adjusted p"}).value == 0
    assert one(estimates, "halo").verdict == "open"


def test_place_of_a_label_is_reported_apart():
    frame = answers()
    always = frame.with_columns(p_a=pl.lit(1.0), score=(pl.col("first_is") == "a").cast(pl.Float64))
    estimates = compute(always)
    place = one(estimates, "position_bias", position="label (a)")
    assert place.value == 100 and place.neutral == 50 and place.p < 0.01
    assert one(estimates, "gap", scenario="Kind vs Rude").value == 0
    assert one(estimates, "position_bias", position="(a) named first in the instruction").value == 0


@pytest.mark.parametrize("status", ["refused", "unreadable"])
def test_model_that_never_answers_ends_with_counts_and_bounds(status):
    none = pl.lit(None, pl.Float64)
    frame = answers().with_columns(score=none, p_a=none, status=pl.lit(status), reason=pl.lit("no label"))
    estimates = compute(frame)
    # Nothing but the counts of what is missing has a number.
    assert {e.metric for e in estimates if e.value is not None} <= {"missing", "unreadable"}
    assert {e.missing.counts["untested"] for e in estimates if e.metric == "strongest_group"} == {len(SCENARIOS)}
    row = one(estimates, "gap", scenario="Kind vs Rude")
    assert (row.bound_low, row.bound_high, row.missing.counts, row.p) == (-1, 1, {status: FACES}, None)
    assert one(estimates, "missing").value == 100
    concluded = Attractiveness().conclude(estimates)
    assert "100.0 %" in concluded and "\N{MINUS SIGN}1.00 to +1.00" in concluded
    shown = Attractiveness().headline(estimates)
    assert shown[0].metric == "missing" and {e.metric for e in shown} >= {"missing", "halo", "gap"}
    Attractiveness().figures(estimates)


def test_human_ratings_are_ranked_beside_the_scores(planted):
    scores = scored_by(planted)[0, :, 0]
    rating = pl.DataFrame({"face": [f"f{n}" for n in range(FACES)], "rated": [f"{7 * s};{7 * s + 1}" for s in scores]})
    wanted = (pl.col("scenario") == "Kind vs Rude") & (pl.col("variant") == "original")
    frame = planted.drop("human").join(rating, on="face", how="left", maintain_order="left")
    frame = frame.with_columns(pl.when(wanted).then("rated").alias("human"))
    estimates = compute(frame)
    row = one(estimates, "human_agreement", scenario="Kind vs Rude", variant="original")
    assert row.value == pytest.approx(1) and row.n == FACES
    ceiling = one(estimates, "human_ceiling", scenario="Kind vs Rude", variant="original")
    assert 0.9 < ceiling.low <= ceiling.value <= ceiling.high <= 1


def test_units_are_what_the_gaps_are_means_of(planted, found):
    units = Attractiveness().units(planted, OPTIONS)
    for scenario, *_ in SCENARIOS:
        mean = units.filter(pl.col("scenario") == scenario)["value"].mean()
        assert mean == pytest.approx(one(found, "gap", scenario=scenario).value)


def test_figures_and_examples_are_there(planted, found):
    charts = Attractiveness().figures(found)
    assert long_captions(charts) == []
    names = {chart.name for chart in charts}
    assert {"attractiveness-shares", "attractiveness-overlap", "attractiveness-by-gender"} <= names
    examples = Attractiveness().examples(planted, OPTIONS)
    assert examples and all(example.keys for example in examples)


def test_overlap_counts_the_scenarios_by_what_the_filter_and_the_groups_do(found):
    (chart,) = [chart for chart in Attractiveness().figures(found) if chart.name == "attractiveness-overlap"]
    told = {one.title: one.rows for one in numbers_of(chart.figure)}
    assert ("traits", "traits, directed", "filter matters", 2) in told["Figure 3: categories and kinds"]
    own = [row for row in told["Figure 4: gender"] if row[1] == "filter matters"]
    assert {row[2] for row in own} == {"gender bias"} and sum(row[3] for row in own) == 4
    assert list(told)[2:] == ["Figure 4: race"] and "gender bias" not in chart.caption
    assert len(chart.figure.axes) == 3


def test_result_does_not_depend_on_the_order_of_rows(planted, found):
    again = compute(planted.sample(fraction=1.0, shuffle=True, seed=1), QUICK)
    for metric in ("gap", "kruskal_wallis"):
        group = {"scenario": "Doctor vs Nurse"} | ({"by": "filter"} if metric != "gap" else {})
        assert one(again, metric, **group).value == pytest.approx(one(found, metric, **group).value)


def test_a_variant_alone_and_two_descriptions_are_refused(planted):
    with raises_code(DataError, "data.groups", "'edited'"):
        compute(planted.with_columns(variant=pl.lit("edited")))
    two = planted.with_columns(pl.when(pl.col("asked") == "ab").then(pl.lit("x")).otherwise("race").alias("race"))
    with raises_code(DataError, "data.contradiction"):
        compute(two)


def test_tables_show_the_positive_option_first_with_means_and_stars(found):
    charts = [chart for chart in Attractiveness().figures(found) if "table" in chart.name]
    tables = {chart.name: numbers_of(chart.figure)[0].rows for chart in charts}
    assert list(tables) == [f"attractiveness-table-{number}" for number in (5, 6, 7)]
    row = one(found, "gap", scenario="Lazy vs Keen")
    assert ("Keen", "Lazy", f"{row.value:.2f}") in [cells[:3] for cells in tables["attractiveness-table-5"]]
    h = one(found, "kruskal_wallis", scenario="Doctor vs Nurse", by="gender")
    assert f"{h.value:.2f} ***" in [cells[-1] for cells in tables["attractiveness-table-6"]]
    assert ("Cook", "Guard", "Asian vs White") in [cells[:3] for cells in tables["attractiveness-table-7"]]
