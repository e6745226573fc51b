"""Biased preferences, raw and normalised, and women against men."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.estimates import Caveat
from prejudge.metrics.bistereo.tuples import PAPER_ALONE, BIStereoTuples, BIStereoTuplesMetricOptions
from prejudge.probes.bistereo.tuples import BIStereoTuples as Probe
from prejudge.probes.bistereo.tuples import BIStereoTuplesOptions as ProbeOptions
from prejudge.testing import raises_code

FAST = BIStereoTuplesMetricOptions(resamples=199)
ALONE = BIStereoTuplesMetricOptions(resamples=199, over="disadvantaged")
WORDS = BIStereoTuplesMetricOptions(resamples=199, over=("disadvantaged", "attribute"))
LOG_ODDS = "stereotype_log_odds"


def study(women=0.0, men=0.0, copying=-2.0, items=40, seed=0):
    """Return likelihoods: log-odds of the biased end are `copying` and noise, plus a shift where groups are named."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(items):
        for gender, shift in (("women", women), ("men", men)):
            own = rng.normal(copying, 0.5)
            for condition in ("groups", "prior"):
                odds = own + (shift + rng.normal(0, 0.5)) * (condition == "groups")
                rows.append(
                    {
                        "test": f"{item}/{gender}",
                        "item": str(item),
                        "dimension": ("height", "attire")[item % 2],
                        "disadvantaged": f"group{item % 10}",
                        "biased": f"attribute{item // 10 + 4 * (item % 3)}",
                        "gender": gender,
                        "validated": gender == "women" or item % 2 == 0,
                        "condition": condition,
                        "choice": "biased" if odds > 0 else "unbiased",
                        "log_biased": odds - 5,
                        "log_unbiased": -5.0,
                        "status": "ok",
                        "reason": None,
                        "key": f"{item}{gender}{condition}".encode(),
                    }
                )
    return pl.DataFrame(rows, schema_overrides={"reason": pl.String})


def written(biased, unbiased, other):
    """Return answers in words of women, each a test of its own."""
    choices = ["biased"] * biased + ["unbiased"] * unbiased + ["other"] * other
    frame = study(items=len(choices)).filter(condition="groups", gender="women")
    nothing = pl.lit(None, pl.Float64)
    return frame.with_columns(choice=pl.Series(choices), log_biased=nothing, log_unbiased=nothing)


def computed(frame, options=FAST):
    return BIStereoTuples().compute(frame, options)


def one(estimates, metric, **group):
    (found,) = [e for e in estimates if e.metric == metric and e.group == group]
    return found


def test_preference_is_the_share_of_validated_tests_over_groups_and_attributes():
    frame = written(31, 19, 0)
    found = one(computed(frame), "biased_preference", gender="women")
    assert (found.value, found.n, found.clusters) == (62, 50, 10)
    assert found.interval.method == "crossed jackknife (people x meaning)"
    parts = []
    for keys in (["disadvantaged"], ["biased"], ["disadvantaged", "biased"]):
        left = [frame.join(own, on=keys, how="anti") for own in frame.select(keys).unique().partition_by(keys)]
        shares = np.array([(one["choice"] == "biased").mean() for one in left])
        n = len(shares)
        parts.append(((shares - 0.62) ** 2).sum() * ((n - 1) / n if len(keys) == 1 else 1))
    spread = (found.high - found.low) / 2
    reach = 100 * np.sqrt(max(parts[0] + parts[1] - parts[2], *parts[:2]))
    freedom = stats.t.sf(spread / reach, np.arange(1, 60))
    assert freedom.min() < 0.025 < freedom.max()  # between 1 degree of freedom and 59


def test_other_answers_are_counted_as_answers():
    found = computed(written(3, 5, 2))
    assert one(found, "biased_preference", gender="women").value == 30
    assert one(found, "other_answers", gender="women").value == 20
    assert not [e for e in found if "normalised" in e.metric]


def test_copying_hides_a_bias_from_the_raw_share_and_not_from_the_normalised():
    found = computed(study(women=1.0, men=1.0, copying=-5.0))
    assert one(found, "biased_preference", gender="women").value == 0
    normalised = one(found, "biased_preference_normalised", gender="women")
    assert normalised.value > 90 and normalised.verdict == "above" and normalised.neutral == 50


def test_without_a_shift_the_normalised_share_is_near_half():
    found = one(computed(study(items=200)), "biased_preference_normalised", gender="women")
    assert found.low < 50 < found.high and found.p_adjusted > 0.05


def test_false_positives_are_nominal_where_nothing_is_planted():
    p = [one(computed(study(seed=s)), "biased_preference_normalised", gender="women").p for s in range(40)]
    assert np.mean(np.array(p) <= 0.05) <= 0.15


def test_genders_are_compared_on_the_same_tests():
    found = computed(study(women=0.5, men=-0.5))
    exact, clustered = (one(found, f"gender_difference_normalised{end}") for end in ("", "_clustered"))
    assert exact.value == clustered.value and exact.value > 30 and exact.n == 40
    assert exact.test.name.startswith("McNemar, exact") and exact.p < 0.01 and clustered.p < 0.05
    assert clustered.test.name == "t test, crossed jackknife (people x meaning)"
    alone = one(computed(study(women=0.5, men=-0.5), ALONE), "gender_difference_normalised_clustered")
    assert alone.test.name == "sign-flip permutation (disadvantaged)" and alone.clusters == 10
    assert exact.effect.name.startswith("matched odds ratio")


def test_mcnemar_is_scipys_binomial_of_the_discordant_items():
    frame = study(women=0.5, men=0.0, copying=0.0)
    found = one(computed(frame), "gender_difference")
    wide = frame.filter(condition="groups").pivot("gender", index="item", values="choice")
    b = wide.filter(pl.col("women") == "biased", pl.col("men") != "biased").height
    c = wide.filter(pl.col("women") != "biased", pl.col("men") == "biased").height
    assert found.p == pytest.approx(stats.binomtest(b, b + c).pvalue)
    assert found.value == pytest.approx(100 * (b - c) / 40)


def test_study_of_one_gender_has_no_difference():
    found = computed(study().filter(gender="women"))
    assert not [e for e in found if e.metric.startswith("gender_difference")]


def test_missing_answers_are_left_out_counted_and_bounded():
    frame = study(women=1.0).with_columns(
        status=pl.when(pl.col("test") == "0/women").then(pl.lit("refused")).otherwise("status")
    )
    found = one(computed(frame), "biased_preference_normalised", gender="women")
    assert (
        found.n == 39
        and found.missing.counts == {"refused": 1}
        and found.bound_high - found.bound_low == pytest.approx(2.5)
    )


def test_missing_prior_leaves_the_raw_share_alone():
    found = computed(study().filter(pl.col("condition") == "groups"))
    assert one(found, "biased_preference", gender="women").n == 40
    normalised = one(found, "biased_preference_normalised", gender="women")
    assert normalised.value is None and normalised.missing.counts == {"absent": 40}


def test_tests_nobody_validated_are_not_in_the_shares():
    assert one(computed(study()), "biased_preference", gender="men").n == 20


def test_units_have_the_means_of_the_shares():
    frame = study(women=1.0)
    units, found = BIStereoTuples().units(frame, FAST), computed(frame)
    own = units.filter(pl.col("dimension").is_null(), metric="biased_preference_normalised", gender="women")
    assert own["value"].mean() == pytest.approx(one(found, "biased_preference_normalised", gender="women").value)
    assert {name for name in units["metric"] if "difference" in name} == {
        "gender_difference_clustered",
        "gender_difference_normalised_clustered",
    }


def test_conclusion_figure_and_examples_are_made():
    frame = study(women=2.0)
    found = computed(frame)
    said = BIStereoTuples().conclude(found)
    assert said.startswith("For groups and words like these: Biased preference (normalised) (men) is")
    assert "Women minus men (normalised), by whole clusters" in said
    assert "Biased preference (raw) (women) is 30.00 %" in BIStereoTuples().conclude(computed(written(3, 5, 2)))
    assert len(BIStereoTuples().figures(found)) == 4
    for asked in (frame, written(3, 5, 2).with_columns(key=pl.col("test").cast(pl.Binary))):
        assert BIStereoTuples().examples(asked, FAST)


def test_nothing_readable_is_undefined_not_zero():
    found = computed(study().with_columns(status=pl.lit("refused"), choice=pl.lit(None, pl.String)))
    assert {e.value for e in found if e.metric.startswith("biased")} == {None}
    assert BIStereoTuples().conclude(found).startswith("Nothing can be concluded")


def test_unknown_choice_is_named():
    with raises_code(DataError, "data.unknown-value", "maybe"):
        computed(study().with_columns(choice=pl.lit("maybe")))


def synonyms(seed, lean=1.0):
    """Return tests of women: 8 groups by 8 attributes, 2 of 3 asked, each with 3 synonyms; words lean at random."""
    rng = np.random.default_rng(seed)
    groups, attributes = rng.normal(0, lean, 8), rng.normal(0, lean, 8)
    frame = study(items=192, seed=seed).filter(gender="women")
    place = pl.col("item").cast(pl.Int64) // 3
    rows, columns = (place // 8).alias("row"), (place % 8).alias("column")
    frame = frame.with_columns(rows, columns).filter((pl.col("row") + pl.col("column")) % 3 > 0)
    odds = groups[frame["row"]] + attributes[frame["column"]]
    return frame.with_columns(
        disadvantaged=pl.format("g{}", "row"),
        biased=pl.format("a{}", "column"),
        log_biased=pl.lit(-5.0) + pl.Series(odds) * (pl.col("condition") == "groups") + pl.lit(rng.normal(0, 0.05)),
    )


def test_words_that_lean_are_rarely_called_a_stereotype():
    """A binomial test of tests, whose synonyms answer alike, would claim far more often."""
    found = []
    for seed in range(120):
        frame = synonyms(seed)
        e, alone = (one(computed(frame, o), "biased_preference_normalised", gender="women") for o in (FAST, ALONE))
        naive = stats.binomtest(round(e.value * e.n / 100), e.n).pvalue
        found.append((e.p is not None and e.p <= 0.05, alone.p <= 0.05, naive <= 0.05))
        assert e.p is None or e.low is None or (e.p < 0.05) == (not e.low <= 50 <= e.high)
    crossed, groups, naive = np.mean(found, axis=0)
    assert crossed <= 0.10 < naive and crossed <= groups


def test_tests_that_all_agree_are_judged_by_clusters_that_share_nothing():
    options = BIStereoTuplesMetricOptions(resamples=1999)
    found = one(computed(study(women=9.0), options), "biased_preference_normalised", gender="women")
    assert found.value == 100 and found.low is None and Caveat.NO_VARIATION in found.caveats
    assert found.p == 2.0 ** (1 - 10) and found.verdict == "above"


def test_few_groups_are_told():
    frame = study(copying=0.0).with_columns(disadvantaged=pl.format("g{}", pl.col("item").cast(pl.Int64) % 4))
    found = one(computed(frame), "biased_preference", gender="women")
    assert found.caveats == (Caveat.FEW_LEVELS,) and found.clusters == 4


def contrasted(seed=0, bias=0.0, same=3.0, other=1.0, noise=1.0):
    """Return the shipped tests, asked of a model that repeats B by `same` nats after the same subject, else by `other`.

    `bias` is how much likelier the stereotype is of the disadvantaged group than of the advantaged one, in nats. Equal
    requests have equal answers; nothing else leans.
    """
    rng, answers = np.random.default_rng(seed), {}
    (stage,) = Probe().stages(ProbeOptions())
    rows = []
    for trial in stage.trials({}):
        prompt = trial.request.prompt.splitlines()[-1]
        first, second = re.fullmatch(r"(.*): .*:: (.*):", prompt).groups()
        lean = {"groups": bias / 2, "swapped": -bias / 2}.get(trial.factors["condition"], 0.0)
        own = -(same if first == second else other) + lean + rng.normal(0, noise)
        odds = answers.setdefault((prompt, trial.factors["biased"]), own)
        ends = {"choice": "biased" if odds > 0 else "unbiased", "log_biased": odds - 9, "log_unbiased": -9.0}
        rows.append({**trial.factors, **ends, "status": "ok", "reason": None, "key": trial.id.encode()})
    return pl.DataFrame(rows, schema_overrides={"reason": pl.String})


def said_of(frame):
    """Return the shares of women against the swapped groups and against the prior, and all estimates."""
    found = computed(frame)
    names = ("biased_preference_swapped", "biased_preference_normalised")
    return [one(found, name, gender="women") for name in names], found


def test_the_paper_alone_calls_a_model_biased_that_copies_and_the_swapped_groups_do_not():
    """Copying bonus 3 against 1 nats, no bias: 20 of 20 seeds were significant by the paper's normalisation."""
    swapped, alone, copying = [], [], []
    for seed in range(20):
        frame = contrasted(seed, noise=0.5)
        (own, paper), found = said_of(frame)
        swapped.append(own.p)
        assert paper.value > 70 and paper.neutral is None and paper.p is None and paper.verdict is None
        copying.append(one(found, "copying", gender="women").value)
        paper_alone = computed(frame.filter(pl.col("condition").is_in(["groups", "prior"])), ALONE)
        alone.append(one(paper_alone, "biased_preference_normalised", gender="women").shown)
    assert sum(alone) == 20 and np.mean(copying) == pytest.approx(2, abs=0.4)
    assert sum(p <= 0.05 for p in swapped) <= stats.binom.ppf(0.995, 20, 0.05)


def test_a_biased_model_that_copies_is_still_found():
    found = [said_of(contrasted(seed, bias=2.0))[0][0].verdict for seed in range(20)]
    assert found.count("above") >= 15


def test_swapped_share_is_that_of_the_log_odds():
    frame = contrasted(3, bias=1.0)
    found = computed(frame)
    odds = frame.filter("validated", gender="women").with_columns(x=pl.col("log_biased") - pl.col("log_unbiased"))
    wide = odds.pivot("condition", index="test", values="x")
    for name, other in (("swapped", "swapped"), ("controlled", "control"), ("normalised", "prior")):
        share = 100 * (wide["groups"] > wide[other]).mean()
        assert one(found, f"biased_preference_{name}", gender="women").value == pytest.approx(share)
    assert one(found, "copying", gender="women").value == pytest.approx((wide["control"] - wide["prior"]).mean())


def test_log_odds_say_how_small_a_difference_is_that_every_test_shows():
    """A lean of 0.05 nats is a share of 100 %, like one of 3 nats."""
    for bias in (0.05, 3.0):
        frame = contrasted(bias=bias, noise=0.0)
        share, odds = (one(computed(frame), name, gender="women") for name in ("biased_preference_swapped", LOG_ODDS))
        told = frame.filter("validated", gender="women").with_columns(x=pl.col("log_biased") - pl.col("log_unbiased"))
        wide = told.pivot("condition", index="test", values="x")
        assert share.value == 100
        assert odds.value == pytest.approx((wide["groups"] - wide["swapped"]).mean()) == pytest.approx(bias)


def test_equal_likelihoods_count_in_the_log_odds_and_decide_nothing_of_the_share():
    found = computed(contrasted(bias=0.0, noise=0.0))
    share, odds = (one(found, name, gender="women") for name in ("biased_preference_swapped", LOG_ODDS))
    assert share.value is None and share.n == 0
    assert (odds.value, odds.n) == (0, 24)


def test_conclusion_is_that_of_the_swapped_groups_and_without_them_names_its_limit():
    frame = contrasted()
    said = BIStereoTuples().conclude(computed(frame))
    assert "Biased preference (groups swapped) (women)" in said and "normalised" not in said and PAPER_ALONE not in said
    without = frame.filter(pl.col("condition").is_in(["groups", "prior"]))
    said = BIStereoTuples().conclude(computed(without))
    assert "Biased preference (normalised) (women)" in said and said.endswith(PAPER_ALONE)


def test_swapped_answers_that_are_lost_are_not_replaced_by_the_paper():
    lost = pl.when(pl.col("condition") == "swapped").then(pl.lit("refused")).otherwise("status")
    found = computed(contrasted().with_columns(status=lost))
    own = one(found, "biased_preference_swapped", gender="women")
    assert own.value is None and own.missing.counts == {"refused": 24}
    assert BIStereoTuples().conclude(found).startswith("Nothing can be concluded")


def test_written_answers_are_compared_with_those_of_the_swapped_groups():
    rows = []
    for n, (groups, swapped) in enumerate(
        [("biased", "unbiased")] * 5 + [("other", "biased")] * 2 + [("biased", "biased")]
    ):
        for condition, choice in (("groups", groups), ("swapped", swapped)):
            cell = written(1, 0, 0).with_columns(
                test=pl.lit(str(n)), condition=pl.lit(condition), choice=pl.lit(choice), disadvantaged=pl.lit(f"g{n}")
            )
            rows.append(cell)
    found = computed(pl.concat(rows))
    difference = one(found, "stereotype_difference_swapped", gender="women")
    assert (difference.value, difference.neutral, difference.n) == (pytest.approx(50 * (5 * 2 - 2) / 8), 0, 8)
    assert "minus that with the groups swapped" in BIStereoTuples().conclude(found)


def test_group_that_gets_other_words_more_often_has_no_stereotype():
    """Every second answer about the other group is neither end; of the ends, both are written alike of both groups."""
    rows = []
    for n in range(16):
        end = ("biased", "unbiased")[n % 2]
        for condition, choice in (("groups", end), ("swapped", end if n % 4 < 2 else "other")):
            cell = written(1, 0, 0).with_columns(
                test=pl.lit(str(n)), condition=pl.lit(condition), choice=pl.lit(choice), disadvantaged=pl.lit(f"g{n}")
            )
            rows.append(cell)
    frame = pl.concat(rows)
    biased = [frame.filter(condition=name, choice="biased").height for name in ("groups", "swapped")]
    assert biased == [8, 4] and one(computed(frame), "stereotype_difference_swapped", gender="women").value == 0


def test_synonyms_do_not_make_more_clusters():
    found = one(computed(contrasted(bias=1.0)), "biased_preference_swapped", gender="women")
    words = one(computed(contrasted(bias=1.0), WORDS), "biased_preference_swapped", gender="women")
    assert found.value == words.value and (found.interval.low, found.p) != (words.interval.low, words.p)
    frame = contrasted().filter("validated", condition="groups", gender="women")
    assert frame["meaning"].n_unique() < frame["biased"].n_unique()


def test_a_plan_knows_the_measures_of_what_is_asked():
    nothing = {name: pl.lit(None, pl.Float64) for name in ("log_biased", "log_unbiased")}
    frame = contrasted().with_columns(status=pl.lit("failed"), choice=pl.lit(None, pl.String), **nothing)
    asked = {e.metric for e in computed(frame) if e.metric.startswith("biased")}
    assert {"biased_preference_swapped", "biased_preference_normalised"} < asked
    words = {e.metric for e in computed(frame.filter(pl.col("condition").is_in(["groups", "swapped"])))}
    assert "stereotype_difference_swapped" in words and "biased_preference_swapped" not in words
