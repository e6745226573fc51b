"""The contrast of two levels, on answers whose mean is known."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.metrics.general.contrast import Contrast, ContrastOptions
from prejudge.testing import MetricContract, raises_code

BOTH = ("template", "word")


def options(**values):
    named = {"outcome": "x", "between": "side", "first": "she", "second": "he", "over": "pair", "resamples": 999}
    return ContrastOptions(**(named | values))


def answers(effect=0.0, pairs=12, seed=0):
    draw = np.random.default_rng(seed)
    rows = [
        {"pair": f"p{i}", "side": side, "gender": "ab"[i % 2], "x": float(draw.normal() + effect * (side == "she"))}
        for i in range(pairs)
        for side in ("he", "she")
    ]
    known = {"status": "ok", "reason": None, "key": b"k"}
    return pl.DataFrame([row | known | {"trial": f"{row['pair']}/{row['side']}"} for row in rows])


class TestContract(MetricContract):
    make = Contrast
    observations = staticmethod(answers)
    outcomes = ("x",)
    options = {
        "outcome": "x",
        "between": "side",
        "first": "she",
        "second": "he",
        "over": "pair",
        "by": ["gender"],
        "resamples": 99,
    }


def whole(frame, **values):
    return Contrast().compute(frame, options(**values))[0]


def test_value_is_the_difference_of_means():
    frame = answers(effect=2.0)
    means = dict(frame.group_by("side").agg(pl.col("x").mean()).iter_rows())
    assert whole(frame).value == pytest.approx(means["she"] - means["he"])


def test_p_agrees_with_the_exact_paired_permutation():
    frame = answers(effect=0.7, pairs=8)
    sides = [frame.filter(pl.col("side") == side).sort("pair")["x"].to_numpy() for side in ("she", "he")]
    exact = stats.permutation_test(
        sides, lambda a, b, axis: np.mean(a - b, axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    assert whole(frame).p == pytest.approx(exact.pvalue)


def test_effect_is_cohens_d():
    frame = answers(effect=1.0)
    she, he = (frame.filter(pl.col("side") == side)["x"] for side in ("she", "he"))
    pooled = np.sqrt((she.var() + he.var()) / 2)
    assert whole(frame).effect.value == pytest.approx((she.mean() - he.mean()) / pooled)


def test_false_positives_are_as_many_as_promised():
    p = [whole(answers(seed=seed), resamples=199).p for seed in range(300)]
    assert 0.02 < np.mean(np.array(p) <= 0.05) < 0.09


def test_missing_answers_are_bounded_where_the_outcome_has_limits():
    frame = answers().with_columns(x=pl.lit(1.0))
    frame = frame.with_columns(
        status=pl.when((pl.col("pair") == "p0") & (pl.col("side") == "she")).then(pl.lit("refused")).otherwise("status")
    )
    found = whole(frame, least=0.0, greatest=1.0)
    assert (found.bound_low, found.bound_high) == (pytest.approx(-1 / 12), 0.0)
    assert found.missing.counts == {"refused": 1} and found.n == 23
    assert whole(frame).bound_low is None


def test_yes_and_no_are_numbers():
    frame = answers().with_columns(x=pl.col("side") == "she")
    assert whole(frame).value == 1.0


def test_readable_answer_without_an_outcome_is_missing():
    frame = answers().with_columns(x=pl.when(pl.col("pair") == "p0").then(None).otherwise("x"))
    assert whole(frame).missing.counts == {"undefined": 2}


def test_level_that_does_not_occur_is_refused():
    with raises_code(DataError, "data.unknown-value", "'they'", "'he'", "'she'", "side"):
        whole(answers(), first="they")


def test_words_for_an_outcome_are_refused():
    with raises_code(DataError, "data.type"):
        whole(answers().with_columns(x=pl.lit("often")))


def test_one_level_twice_is_refused():
    with raises_code(UsageError, "options.conflict", "'he'"):
        options(first="he")


def test_sentence_names_groups():
    frame = answers(effect=3.0, pairs=30)
    sentence = Contrast().conclude(Contrast().compute(frame, options(by=("gender",), unit="nats")))
    assert "nats" in sentence and "By gender, 2 of 2 values differ significantly" in sentence


def test_sentence_of_few_clusters_claims_no_difference():
    estimates = Contrast().compute(answers(effect=3.0, pairs=3), options())
    assert "not significant" in Contrast().conclude(estimates)
    assert "not significant" not in Contrast().conclude(Contrast().compute(answers(effect=3.0, pairs=30), options()))


def preferring(seed, templates=10, words=10, spread=1.0):
    """Return the answers of a fair model that prefers some words, in every template: those of two groups of words."""
    draw = np.random.default_rng(seed)
    of_word, of_template = draw.normal(0, spread, (2, words)), draw.normal(0, 0.3 * spread, (templates, 2))
    rows = [
        {
            "side": side,
            "template": f"t{template}",
            "word": f"{side} {word}",
            "x": of_word[place, word] + of_template[template, place] + draw.normal(0, 0.5),
            "trial": f"{side}/{template}/{word}",
        }
        for place, side in enumerate(("she", "he"))
        for template in range(templates)
        for word in range(words)
    ]
    return pl.DataFrame(rows).with_columns(status=pl.lit("ok"), reason=pl.lit(None, pl.String), key=pl.lit(b"k"))


def test_a_preference_for_words_is_no_contrast_over_words_and_templates():
    """By templates alone, too many fair models have one."""
    frames = [preferring(seed) for seed in range(120)]
    p = {over: [whole(frame, over=over, resamples=99).p for frame in frames] for over in ("template", BOTH)}
    assert np.mean(np.array(p["template"]) <= 0.05) > 0.25
    assert np.mean(np.array(p[BOTH]) <= 0.05) <= 0.1


def test_over_several_facets_names_them_and_is_wider_than_over_either():
    frame = preferring(1)
    both, alone = whole(frame, over=BOTH), [whole(frame, over=name) for name in BOTH]
    assert both.facts["over"] == "template x word"
    assert both.high - both.low > max(one.high - one.low for one in alone) - 1e-9


def test_without_columns_it_covers_all_that_the_study_samples():
    catalogue = Catalogue.load()
    study = catalogue.study("bistereo-pairs", {}, {"per_cell": 2})
    options = {"outcome": "log_probability", "between": "side", "first": "desirable", "second": "undesirable"}
    instrument = catalogue.instrument(msgspec.structs.replace(study, metrics={"contrast": options}))
    ((_, settled),) = instrument.metrics.values()
    assert settled.ways == instrument.facets and {"attribute", "opening", "place"} <= {*settled.ways}


def test_without_columns_a_study_that_samples_nothing_is_refused():
    with raises_code(UsageError, "options.value"):
        Contrast().settled(options(over=()), tuple)


def uneven(seed, pairs=15, first=20, second=3):
    """Return answers that nothing has an effect on, more of them at the first level of each pair."""
    draw = np.random.default_rng(seed)
    sides = ["she"] * first + ["he"] * second
    rows = [
        {"pair": f"p{pair}", "side": side, "x": draw.normal(), "trial": f"{pair}/{place}"}
        for pair in range(pairs)
        for place, side in enumerate(sides)
    ]
    return pl.DataFrame(rows).with_columns(status=pl.lit("ok"), reason=pl.lit(None, pl.String), key=pl.lit(b"k"))


def test_sides_of_unequal_size_are_not_exchanged():
    """Exchanged, both sides have equal sizes, and their difference varies less: 22.5 % of fair models had one."""
    estimates = [whole(uneven(seed), resamples=99) for seed in range(200)]
    assert {e.test.name for e in estimates} == {"t test, jackknife (pair)"}
    assert np.mean([e.p <= 0.05 for e in estimates]) <= stats.binom.ppf(0.99, 200, 0.05) / 200


def test_sides_of_nearly_equal_size_are_exchanged():
    assert whole(uneven(0, first=20, second=17)).test.name == "permutation of the two sides (pair)"
