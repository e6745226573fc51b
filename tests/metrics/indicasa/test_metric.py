"""Classes by cosine, majorities, the scores of the paper, and what stands beside them."""

from __future__ import annotations

import json
import math

import msgspec
import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.charts.numbers import numbers_of
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.estimates import Caveat
from prejudge.metrics.indicasa.encoder import Errors, correct_share
from prejudge.metrics.indicasa.metric import IndiCASA, IndiCASAMetricOptions
from prejudge.metrics.indicasa.scores import by_chance, chance_p, folded, folded_bounds, least_distances
from prejudge.testing import raises_code

from ...captions import long_captions

FAST = IndiCASAMetricOptions(resamples=199)
S, A, NEITHER = (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)
PERFECT = {"encoder_ss": 10**6, "encoder_sa": 0, "encoder_as": 0, "encoder_aa": 10**6}


COUNTED = ("refused", "filtered", "unreadable", "failed", "lenient")


def rows_of(prompt, completions, category="caste", **facts):
    """Return the rows of one prompt: its two ground truths, and its completions; None is a vector that failed."""
    shared = {"prompt": prompt, "source": facts.pop("source", prompt), "category": category}
    shared |= {
        "asked": facts.pop("asked", len(completions)),
        **dict.fromkeys(COUNTED, 0),
        **dict.fromkeys(PERFECT),
    } | facts
    texts = [("stereotype", S), ("anti-stereotype", A), *(("completion", one) for one in completions)]
    return [
        {
            **shared,
            "kind": kind,
            "vector": None if vector is None else json.dumps(vector),
            "status": "failed" if vector is None else "ok",
            "key": f"{prompt}/{kind}/{number}".encode(),
        }
        for number, (kind, vector) in enumerate(texts)
    ]


def frame_of(*parts):
    return pl.DataFrame([row for part in parts for row in part], infer_schema_length=None)


def verdicts(**cells):
    """Return verdicts by category: stereotypes, anti-stereotypes, skipped."""
    rows = []
    for category, counts in cells.items():
        for verdict, count in zip(("stereotype", "anti-stereotype", None), counts, strict=True):
            rows += [(category, verdict)] * count
    frame = pl.DataFrame(rows, schema={"category": pl.String, "verdict": pl.String}, orient="row")
    return frame.with_row_index("prompt").with_columns(
        pl.col("prompt").cast(pl.String),
        source=pl.col("prompt").cast(pl.String),
        kind=pl.lit("verdict"),
        vector=pl.lit(None, pl.String),
        status=pl.when(pl.col("verdict").is_null()).then(pl.lit("unreadable")).otherwise(pl.lit("ok")),
        **{name: pl.lit(None, pl.Int64) for name in ("asked", *COUNTED, *PERFECT)},
    )


def computed(frame, options=FAST):
    return IndiCASA().compute(frame, options)


def one(estimates, metric, category=None):
    group = {} if category is None else {"category": category}
    (found,) = [e for e in estimates if e.metric == metric and e.group == group]
    return found


def test_majority_of_the_completions_is_the_class_of_a_prompt():
    found = computed(frame_of(rows_of("a", [S, S, S, A, A]), rows_of("b", [S, S, A, A, A]), rows_of("c", [A] * 5)))
    probability = one(found, "stereotype_probability", "caste")
    assert (probability.value, probability.n) == (pytest.approx(1 / 3), 3)
    assert one(found, "stereotype_share", "caste").value == pytest.approx((0.6 + 0.4 + 0) / 3)


def test_cosine_tie_counts_as_anti_stereotype_and_is_counted():
    found = computed(frame_of(rows_of("a", [NEITHER, NEITHER, S])))
    assert one(found, "stereotype_probability", "caste").value == 0
    ties = one(found, "cosine_ties")
    assert ties.value == pytest.approx(200 / 3) and ties.facts == {"hits": 2, "of": 3}


def test_texts_that_the_comparison_itself_places_in_the_other_class_are_counted():
    """A paraphrase in one set alone decides by its other words: here a stereotype is closer to the opposite."""
    rows = rows_of("a", [S, A])
    far = {**rows[0], "vector": json.dumps([-0.1, 1.0]), "key": b"far"}
    near, pair = (one(computed(frame_of(own)), "misplaced_texts") for own in ([*rows, far], rows))
    assert (near.facts, pair.facts) == ({"hits": 1, "of": 3}, {"hits": 0, "of": 2})
    nearest = computed(frame_of([*rows, far]), msgspec.structs.replace(FAST, several="nearest"))
    assert one(nearest, "misplaced_texts").facts == {"hits": 0, "of": 3}


def test_tied_majority_decides_nothing():
    found = computed(frame_of(rows_of("a", [S, A]), rows_of("b", [S, S])))
    probability = one(found, "stereotype_probability", "caste")
    assert (probability.value, probability.n, probability.missing.counts) == (1, 1, {"tied": 1})
    assert (probability.bound_low, probability.bound_high) == (0.5, 1)
    assert one(found, "majority_ties").facts == {"hits": 1, "of": 2}


def test_no_ties_are_counted_where_nothing_was_classed():
    found = computed(frame_of(rows_of("a", [], asked=5, unreadable=5)))
    for metric in ("majority_ties", "cosine_ties", "lenient_answers", "changed_sentences"):
        assert (one(found, metric).value, one(found, metric).facts["of"]) == (None, 0)


def test_changed_sentences_are_counted_among_completions():
    rows = [*rows_of("a", [S, S, A]), *rows_of("b", [A, None])]
    told = [None, None, True, False, False, None, None, True, True]
    found = computed(frame_of([row | {"changed": changed} for row, changed in zip(rows, told, strict=True)]))
    changed = one(found, "changed_sentences")
    assert (changed.value, changed.facts["hits"], changed.unit) == (50, 2, "%")
    assert not [e for e in computed(frame_of(rows)) if e.metric == "changed_sentences"]


def test_length_of_a_vector_does_not_count():
    found = computed(frame_of(rows_of("a", [(0.9, 1.0), (90.0, 100.0), (0.001, 0.0)])))
    assert one(found, "stereotype_share", "caste").value == pytest.approx(1 / 3)


@pytest.mark.parametrize(("several", "share"), [("mean", 0.0), ("nearest", 1.0)])
def test_several_texts_count_by_their_mean_or_their_nearest(several, share):
    rows = rows_of("a", [(0.8, 0.6)])
    rows.append(rows[0] | {"vector": json.dumps((0.0, -1.0))})
    options = IndiCASAMetricOptions(resamples=99, several=several)
    assert one(computed(frame_of(rows), options), "stereotype_share", "caste").value == share


def test_prompt_with_a_missing_completion_is_skipped_unless_fewer_are_enough():
    frame = frame_of(rows_of("a", [S] * 4, asked=5, unreadable=1), rows_of("b", [A] * 5))
    strict = computed(frame)
    assert one(strict, "stereotype_probability", "caste").missing.counts == {"unreadable": 1}
    assert one(strict, "skip_ratio").value == 50
    loose = computed(frame, IndiCASAMetricOptions(resamples=99, least=3))
    assert one(loose, "stereotype_probability", "caste").value == 0.5 and one(loose, "skip_ratio").value == 0
    share = one(strict, "stereotype_share", "caste")
    assert (share.value, share.n) == (0.5, 2)
    assert (share.bound_low, share.bound_high) == pytest.approx((0.4, 0.5))


def test_completion_that_the_encoder_cannot_take_is_missing():
    found = computed(frame_of(rows_of("a", [S, None, S]), rows_of("b", [(0.0, 0.0)] * 3), rows_of("c", [S] * 3)))
    probability = one(found, "stereotype_probability", "caste")
    assert probability.n == 1 and probability.missing.counts == {"failed": 2}


def test_prompt_without_a_ground_truth_is_missing():
    rows = rows_of("a", [S] * 5)
    rows[1] |= {"status": "failed", "vector": None}
    found = computed(frame_of(rows, rows_of("b", [S] * 5)))
    assert one(found, "stereotype_probability", "caste").missing.counts == {"failed": 1}


def test_scores_are_those_of_the_equations():
    found = computed(verdicts(caste=(30, 18, 0)))
    p = 30 / 48
    assert one(found, "stereotype_probability", "caste").value == p
    assert one(found, "bias_score", "caste").value == pytest.approx(100 * (abs(0.5 - p) + abs(0.5 - (1 - p))))
    assert one(found, "kl_bias_score", "caste").value == pytest.approx(stats.entropy([p, 1 - p], [0.5, 0.5]))


@pytest.mark.parametrize(("counts", "p"), [((5, 0, 0), 1.0), ((0, 5, 0), 0.0)])
def test_kl_of_one_class_alone_is_finite_and_has_an_interval(counts, p):
    found = computed(verdicts(caste=counts))
    assert one(found, "kl_bias_score", "caste").value == pytest.approx(math.log(2))
    probability = one(found, "stereotype_probability", "caste")
    assert probability.value == p and probability.interval.method == "exact (Clopper-Pearson), prompts"
    assert probability.low < probability.high


def test_overall_is_the_unweighted_mean():
    found = computed(verdicts(caste=(9, 1, 0), gender=(20, 80, 0)))
    assert one(found, "stereotype_probability").value == pytest.approx((0.9 + 0.2) / 2)
    assert one(found, "bias_score").value == pytest.approx((80 + 60) / 2)


def test_overall_is_undefined_where_a_category_is_empty():
    found = computed(verdicts(caste=(9, 1, 0), gender=(0, 0, 4)))
    whole = one(found, "stereotype_probability")
    assert whole.value is None and whole.caveats == (Caveat.UNDEFINED,)
    assert (whole.bound_low, whole.bound_high) == pytest.approx((0.45, 0.95))
    assert "probability" not in IndiCASA().conclude(found) and "4 of 14" in IndiCASA().conclude(found)


def test_binomial_test_and_its_correction():
    found = computed(verdicts(caste=(30, 10, 0), gender=(25, 25, 0)))
    caste, gender = (one(found, "stereotype_probability", name) for name in ("caste", "gender"))
    assert caste.p == pytest.approx(stats.binomtest(30, 40).pvalue)
    assert caste.p_adjusted == pytest.approx(2 * caste.p) and gender.p_adjusted == 1
    assert caste.verdict == "above" and gender.verdict == "open"
    assert "caste" in IndiCASA().conclude(found) and "gender" not in IndiCASA().conclude(found)


def test_conclusion_follows_the_verdict():
    found = computed(verdicts(caste=(30, 10, 3), gender=(25, 25, 0)))
    whole = one(found, "stereotype_probability")
    own = ([e.replace(verdict=v) if e is whole else e for e in found] for v in ("above", "below", "open"))
    assert len({IndiCASA().conclude(estimates) for estimates in own}) == 3


def test_bounds_cover_every_class_of_the_skipped():
    bias = one(computed(verdicts(caste=(6, 4, 5))), "bias_score", "caste")
    every = [100 * abs(2 * (6 + k) / 15 - 1) for k in range(6)]
    assert (bias.bound_low, bias.bound_high) == pytest.approx((min(every), max(every)))
    assert folded_bounds(0, 0, 0) == (None, None)


def test_interval_of_the_score_is_that_of_the_probability_folded():
    assert folded(0.4, 0.55) == pytest.approx((0.5, 0.6)) and folded(0.2, 0.4) == pytest.approx((0.6, 0.8))
    found = computed(verdicts(caste=(30, 18, 0)))
    p, bias = (one(found, name, "caste") for name in ("stereotype_probability", "bias_score"))
    assert p.low < 0.5 < p.high and bias.low == 0
    assert bias.high == pytest.approx(100 * (2 * p.high - 1))


def test_duplicates_are_drawn_together_and_counted():
    pairs = [rows_of(f"{n}{m}", [S if n % 2 else A], source=f"{n}") for n in range(20) for m in range(4)]
    apart = [rows_of(f"{n}{m}", [S if n % 2 else A]) for n in range(20) for m in range(4)]
    found, other = computed(frame_of(*pairs)), computed(frame_of(*apart))
    wide, narrow = (one(x, "stereotype_probability", "caste") for x in (found, other))
    assert wide.clusters == 20 and wide.high - wide.low > 1.5 * (narrow.high - narrow.low)
    assert (
        one(found, "duplicate_prompts").facts == {"hits": 60, "of": 80} and one(other, "duplicate_prompts").value == 0
    )


def test_score_by_chance_is_exact_and_large_for_few_prompts():
    assert by_chance(1) == pytest.approx(100) and by_chance(2) == pytest.approx(50)
    assert by_chance(24) == pytest.approx(16.118, abs=0.001)
    drawn = np.random.default_rng(1).binomial(24, 0.5, 200_000) / 24
    assert by_chance(24) == pytest.approx(100 * np.abs(2 * drawn - 1).mean(), abs=0.1)


def test_overall_score_is_tested_against_chance():
    assert chance_p([24], 0.0, 999, 0) == 1
    share = chance_p([24], 100 / 3, 9999, 0)
    assert share == pytest.approx(stats.binomtest(16, 24).pvalue, abs=0.01)
    found = one(computed(verdicts(caste=(30, 10, 0))), "bias_score")
    assert found.p < 0.05 and found.test.family == "bias score Overall, Monte Carlo: 1 test"


def test_low_end_of_the_overall_score_holds_zero_for_a_model_without_a_lean():
    rng, sizes = np.random.default_rng(5), np.array([48.0, 81, 197, 24, 108])
    drawn = rng.binomial(sizes.astype(int), 0.5, (400, 5))
    held = [not least_distances(hits, sizes, 0.95, squared=False).any() for hits in drawn]
    assert 0.92 <= np.mean(held) <= 0.98
    estimate = one(computed(verdicts(caste=(26, 24, 0), gender=(23, 27, 0))), "bias_score")
    assert estimate.low == 0 < estimate.value < estimate.high and "joint region" in estimate.interval.method


@pytest.mark.parametrize("squared", [False, True])
def test_low_end_is_the_least_score_in_the_region(squared):
    hits, n = np.array([80.0, 30.0]), np.array([100.0, 100.0])
    least = least_distances(hits, n, 0.95, squared)
    near = (hits + 2) / (n + 4)
    spread = np.sqrt(near * (1 - near) / n) * math.sqrt(stats.chi2.ppf(0.95, 2))
    turn = np.linspace(0, 2 * np.pi, 20_001)
    ring = hits / n + spread * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    power = 2 if squared else 1
    assert (least**power).sum() == pytest.approx((np.abs(ring - 0.5) ** power).sum(axis=1).min(), rel=1e-4)


def test_perfect_encoder_changes_nothing_and_an_erring_one_moves_away_from_half():
    rng = np.random.default_rng(0)
    assert correct_share(30, 40, Errors(*PERFECT.values()), rng, 99).value == pytest.approx(0.75)
    found = correct_share(30, 40, Errors(90, 10, 20, 80), rng, 4999)
    assert found.value == pytest.approx((0.75 + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert np.quantile(found.low, 0.025) < found.value < np.quantile(found.high, 0.975) <= 1


def test_correction_recovers_the_truth_on_average():
    rng, truth, covered, values = np.random.default_rng(3), 0.7, 0, []
    for _ in range(300):
        true = rng.binomial(200, truth)
        seen = rng.binomial(true, 0.85) + rng.binomial(200 - true, 0.25)
        held = (rng.binomial(150, 0.85), rng.binomial(150, 0.75))
        found = correct_share(seen, 200, Errors(held[0], 150 - held[0], 150 - held[1], held[1]), rng, 499)
        values.append(found.value)
        covered += np.quantile(found.low, 0.025) <= truth <= np.quantile(found.high, 0.975)
    assert np.mean(values) == pytest.approx(truth, abs=0.02)
    assert 0.92 <= covered / 300 <= 0.985


def test_useless_encoder_leaves_the_share_unknown():
    facts = {"encoder_ss": 10, "encoder_sa": 10, "encoder_as": 12, "encoder_aa": 8}
    found = computed(frame_of(*(rows_of(f"{n}", [S], **facts) for n in range(20))))
    share = one(found, "stereotype_probability_corrected", "caste")
    assert share.value is None and share.caveats == (Caveat.UNDEFINED,)
    assert (share.low, share.high) == (0, 1)
    whole = one(found, "stereotype_probability_corrected")
    assert whole.caveats == (Caveat.UNDEFINED,) and "caste" in whole.note
    score = one(found, "bias_score_corrected", "caste")
    assert (score.low, score.high) == (0, 100)


def test_correction_stands_beside_the_scores_where_the_confusion_is_known():
    rows = [rows_of(f"{n}", [S if n < 15 else A], **PERFECT) for n in range(20)]
    found = computed(frame_of(*rows))
    share = one(found, "stereotype_probability_corrected", "caste")
    assert share.value == pytest.approx(0.75) and share.interval.method.startswith("Rogan-Gladen")
    assert one(found, "bias_score_corrected").value == pytest.approx(50)
    plain = computed(verdicts(caste=(15, 5, 0)))
    assert not [e for e in plain if e.metric.endswith("corrected")]


def test_overall_correction_names_the_categories_it_lacks():
    known = frame_of(*(rows_of(f"{n}", [S], **PERFECT) for n in range(3)))
    other = frame_of(rows_of("x", [S], "gender"), rows_of("y", [S], "religion"))
    whole = one(computed(pl.concat([known, other], how="vertical_relaxed")), "bias_score_corrected")
    assert whole.caveats == (Caveat.UNDEFINED,) and "gender, religion" in whole.note


def test_prompts_without_an_answer_are_called_alike_everywhere():
    frame = frame_of(
        rows_of("a", [S] * 3), rows_of("b", [], asked=3, unreadable=3), rows_of("c", [], asked=3, refused=3)
    )
    found = computed(frame)
    lost = {"unreadable": 1, "refused": 1}
    for metric in ("stereotype_probability", "stereotype_share"):
        assert one(found, metric, "caste").missing.counts == one(found, metric).missing.counts == lost
        units = IndiCASA().units(frame, FAST).filter(metric=metric)
        assert units["status"].to_list() == ["ok", "unreadable", "refused"]


def test_model_that_never_answers_gets_no_numbers():
    found = computed(frame_of(*(rows_of(f"{n}", [], asked=5, unreadable=5) for n in range(3))))
    assert {e.value for e in found if "score" in e.metric or "stereotype" in e.metric} == {None}
    assert one(found, "skip_ratio").value == 100
    metric = IndiCASA()
    assert "none of the 3 prompts" in metric.conclude(found)
    assert metric.figures(found) == []


def test_figures_say_what_they_show():
    probabilities, scores = IndiCASA().figures(computed(verdicts(caste=(30, 10, 0), gender=(5, 5, 0))))
    assert ("caste", 12.5) in [(row[0], round(row[1], 1)) for row in numbers_of(scores.figure)[-1].rows]
    assert "is not a test" in scores.caption and "12.5" not in scores.caption
    assert "significant after correction" in probabilities.caption and long_captions([probabilities, scores]) == []


def test_units_are_the_prompts_behind_the_probability():
    frame = frame_of(rows_of("a", [S] * 3), rows_of("b", [A, A, S]), rows_of("c", [S], asked=3, refused=2))
    units = IndiCASA().units(frame, FAST)
    own = units.filter(metric="stereotype_probability")
    assert own["value"].to_list() == [1.0, 0.0, None] and own["status"].to_list() == ["ok", "ok", "refused"]
    shares = units.filter(metric="stereotype_share")["value"].to_list()
    assert shares == pytest.approx([1.0, 1 / 3, 1.0])


def test_examples_name_the_completions_that_are_stereotypes():
    found = IndiCASA().examples(frame_of(rows_of("a", [S, S, A]), rows_of("b", [A] * 3)), FAST)
    assert [example.keys for example in found] == [(b"a/completion/2",), (b"b/completion/2",)]
    assert [example.value for example in found] == pytest.approx([2 / 3, 0])


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        ({"kind": "truth"}, "data.unknown-value", "'truth'"),
        ({"vector": "[1.0, 2.0, 3.0]", "kind": "completion"}, "data.shape", ""),
    ],
)
def test_unusable_observations_are_refused(change, code, named):
    rows = rows_of("a", [S])
    with raises_code(DataError, code, named):
        computed(frame_of([*rows, rows[0] | change]))


def test_confusion_of_another_cosine_is_refused():
    frame = frame_of([row | {"encoder_several": "nearest"} for row in rows_of("a", [S], **PERFECT)])
    with raises_code(UsageError, "options.conflict", "nearest", "indicasa.several", "mean", "confusion.json"):
        computed(frame)
    options = IndiCASAMetricOptions(resamples=99, several="nearest")
    assert one(computed(frame, options), "bias_score_corrected", "caste").value == 100


def test_more_completions_than_were_asked_for_cannot_be_wanted():
    frame = frame_of(rows_of("a", [S] * 5))
    with raises_code(UsageError, "options.conflict", "least is 9", "samples is 5"):
        computed(frame, IndiCASAMetricOptions(resamples=99, least=9))
    assert one(computed(frame, IndiCASAMetricOptions(resamples=99, least=5)), "bias_score", "caste").value == 100
    # Nothing is known of single completions in counts.
    computed(verdicts(caste=(1, 1, 0)), IndiCASAMetricOptions(resamples=99, least=9))


def test_options_are_checked():
    with raises_code(UsageError, "options.value", "least", "0"):
        IndiCASAMetricOptions(least=0)
