"""CrowS-Pairs: counting as published, and the published figures themselves."""

from __future__ import annotations

import io
from collections import Counter

import msgspec
import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.estimates import PREFERENCE, Caveat
from prejudge.metrics.crows_pairs.metric import CrowsPairs, CrowsPairsOptions
from prejudge.testing import raises_code

METRIC = CrowsPairs()
QUICK = CrowsPairsOptions(resamples=499)
PUBLISHED = {
    "race-color": 58.1,
    "gender": 58.0,
    "socioeconomic": 59.9,
    "nationality": 62.9,
    "religion": 71.4,
    "age": 55.2,
    "sexual-orientation": 67.9,
    "physical-appearance": 63.5,
    "disability": 61.7,
}


def observe(pairs):
    """Observations of (more, less, direction, bias type); None is a failed side."""
    rows = [
        {
            "pair": str(number),
            "side": side,
            "direction": direction,
            "bias_type": kind,
            "log_probability": score,
            "status": "failed" if score is None else "ok",
        }
        for number, (more, less, direction, kind) in enumerate(pairs)
        for side, score in (("more", more), ("less", less))
    ]
    return pl.DataFrame(rows, schema_overrides={"log_probability": pl.Float64})


def compute(pairs, **options):
    return METRIC.compute(observe(pairs), msgspec.structs.replace(QUICK, **options))


def pick(estimates, metric, bias_type=None):
    (found,) = [e for e in estimates if e.metric == metric and e.group.get("bias_type") == bias_type]
    return found


@pytest.fixture(scope="module")
def published(shared_data):
    table = pl.read_csv(shared_data / "crows_pairs" / "bert_crows_score.csv")
    # The two score columns of that file are swapped in its antistereo rows.
    scores = [
        (less, more, direction, kind) if direction == "antistereo" else (more, less, direction, kind)
        for more, less, direction, kind in table.select(
            "sent_more_score", "sent_less_score", "stereo_antistereo", "bias_type"
        ).iter_rows()
    ]
    return compute(scores)


def test_published_scores_come_out(published):
    names = ("metric_score", "stereotype_score", "antistereotype_score")
    assert [round(pick(published, name).value, 2) for name in names] == [60.48, 61.09, 56.88]
    assert [pick(published, name).n for name in names] == [1508, 1290, 218]


@pytest.mark.parametrize("bias_type", PUBLISHED)
def test_published_types_come_out(published, bias_type):
    assert round(pick(published, "metric_score", bias_type).value, 1) == PUBLISHED[bias_type]


def test_published_scores_are_concluded(published):
    sentence = METRIC.conclude(published)
    # The mean of 61.09 % and 56.88 %, less 50.
    assert sentence.startswith("For pairs like these: Stereotypes in both directions is 8.98")
    assert "Metric score is 60.48 %" in sentence
    assert "significantly above neutral, the more stereotyping sentence likelier more often" in sentence
    assert "By bias type, 6 of 9 values differ significantly from neutral." in sentence


def preferring(rng, lean):
    """Return pairs of a fair model that prefers words for disadvantaged groups, whatever is said of them."""
    directions = ["stereo"] * 240 + ["antistereo"] * 60
    gaps = rng.normal(lean, 1.0, len(directions))
    # Of an anti-stereotype the less stereotyping sentence is about the disadvantaged group.
    return [(gap * (-1 if d == "antistereo" else 1), 0.0, d, "age") for gap, d in zip(gaps, directions, strict=True)]


class Whole(CrowsPairs):
    """The scores over all pairs."""

    groups = ((),)


@pytest.mark.parametrize("studies", [60, pytest.param(400, marks=pytest.mark.soak)])
def test_preference_for_disadvantaged_groups_is_no_stereotype_and_has_its_own_name(studies):
    shown = Counter()
    options = msgspec.structs.replace(QUICK, resamples=199)
    for seed in range(studies):
        found = Whole().compute(observe(preferring(np.random.default_rng(seed), 0.5)), options)
        shown.update(e.metric for e in found if e.p_adjusted is not None and e.p_adjusted <= 0.05)
    assert shown["metric_score"] > 0.9 * studies and shown["disadvantaged_preference"] > 0.9 * studies
    assert shown["both_directions"] <= stats.binom.ppf(0.99, studies, 0.05)


def test_both_directions_is_the_mean_of_both_scores_and_the_preference_half_their_difference():
    found = compute(preferring(np.random.default_rng(1), 0.3))
    stereo, anti = (pick(found, name).value for name in ("stereotype_score", "antistereotype_score"))
    assert pick(found, "both_directions").value == pytest.approx((stereo + anti) / 2 - 50)
    assert pick(found, "disadvantaged_preference").value == pytest.approx((stereo - anti) / 2)
    assert pick(found, "disadvantaged_preference").subject == PREFERENCE
    assert not [e for e in METRIC.headline(found) if e.subject]


def test_tie_is_neutral_never_a_hit():
    pairs = [(-1.0, -2.0, "stereo", "age"), (-1.0, -1.0, "stereo", "age"), (-2.0, -1.0, "antistereo", "age")]
    found = compute(pairs)
    assert pick(found, "metric_score").value == pytest.approx(100 / 3)
    assert (pick(found, "stereotype_score").value, pick(found, "stereotype_score").n) == (100.0, 1)
    assert pick(found, "ties").value == pytest.approx(100 / 3)


def test_ties_lower_the_neutral_value_and_leave_the_test():
    found = pick(compute([(-1.0, -1.0, "stereo", "age")] * 6 + [(-1.0, -2.0, "stereo", "age")] * 2), "metric_score")
    assert (found.value, found.neutral, found.p, found.effect.value) == (25.0, 12.5, 0.5, 0.5)
    assert found.facts["ties"] == 6


@pytest.mark.parametrize(("decimals", "ties"), [(3, 100.0), (None, 0.0)])
def test_scores_are_rounded_before_comparing(decimals, ties):
    assert pick(compute([(-1.0001, -1.0002, "stereo", "age")], decimals=decimals), "ties").value == ties


def test_missing_pair_is_bounded():
    found = compute([(-1.0, -2.0, "stereo", "age")] * 3 + [(None, -2.0, "stereo", "age")])
    score = pick(found, "metric_score")
    assert (score.value, score.n, score.missing.counts) == (100.0, 3, {"failed": 1})
    assert (score.bound_low, score.bound_high) == (75.0, 100.0)
    assert "1 of 4 are missing" in METRIC.conclude(found)


def test_type_without_readable_pair_is_undefined():
    found = compute([(-1.0, -2.0, "stereo", "age"), (None, -2.0, "stereo", "gender")])
    gender = pick(found, "metric_score", "gender")
    assert (gender.value, gender.low, gender.p, gender.effect.value) == (None, None, None, None)
    assert pick(found, "metric_score", "age").test.family.endswith(": 1 test")


def test_nothing_readable_gives_no_claim():
    found = compute([(None, -2.0, "stereo", "age")])
    assert METRIC.conclude(found).startswith("Nothing can be concluded")
    assert pick(found, "metric_score").value is None


def test_no_observations_give_no_claim():
    empty = METRIC.compute(observe([(-1.0, -2.0, "stereo", "age")]).clear(), QUICK)
    assert METRIC.conclude(empty).startswith("Nothing can be concluded")


def test_magnitude_is_the_mean_difference():
    found = pick(compute([(-1.0, -2.0, "stereo", "age"), (-5.0, -2.0, "stereo", "age")]), "log_odds_difference")
    assert (found.value, found.clusters, found.p) == (-1.0, 2, 1.0)


def test_opposite_lean_is_said():
    sentence = METRIC.conclude(compute([(-2.0, -1.0, "stereo", "age")] * 20))
    assert "significantly below neutral" in sentence
    assert "By bias type, 1 of 1 value differs significantly from neutral, below it: age." in sentence


def test_unknown_direction_is_refused():
    with raises_code(DataError, "data.unknown-value", "'up'", "'stereo'", "'antistereo'"):
        compute([(-1.0, -2.0, "up", "age")])


def test_needs_are_what_compute_reads():
    frame = observe([(-1.0, -2.0, "stereo", "age")]).select(*METRIC.needs)
    assert METRIC.compute(frame, QUICK)


def test_figure_draws_every_type(published):
    chart = METRIC.figures(published)[1]
    labels = [tick.get_text() for tick in chart.figure.axes[0].get_yticklabels()]
    assert chart.name == "metric_score" and {"all", *PUBLISHED} == {*labels}
    chart.figure.savefig(file := io.BytesIO(), format="svg")
    assert file.tell() > 1000


def test_examples_are_the_strongest_per_type():
    pairs = [(-1.0, -2.0, "stereo", "age"), (-1.0, -9.0, "stereo", "age"), (-9.0, -1.0, "stereo", "gender")]
    frame = observe(pairs).with_columns(key=pl.concat_str("pair", "side").cast(pl.Binary))
    found = METRIC.examples(frame, QUICK)
    assert [e.value for e in found] == [8.0, 1.0, -8.0] and found[0].keys == (b"1more", b"1less")


def test_few_pairs_are_told():
    found = compute([(-1.0, -2.0 - n, "stereo", "age") for n in range(5)])
    assert pick(found, "log_odds_difference").caveats == (Caveat.FEW_CLUSTERS, Caveat.P_FLOOR)
    assert pick(found, "metric_score").caveats == ()  # Its interval is exact.


def test_methods_say_what_was_compared():
    said = METRIC.methods(QUICK)
    assert "rounded as the option decimals says" in said
    assert "differing_word" in said and "flips the signs of whole clusters' deviations" in said
