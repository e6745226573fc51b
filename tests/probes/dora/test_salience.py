import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.contracts.errors import DataError, UnknownNameError
from prejudge.probes.dora.salience import METHODS, Reading, measure, salient
from prejudge.testing import raises_code

SMALL = pl.DataFrame(
    [("a", "x", 8), ("a", "y", 1), ("b", "y", 9), ("b", "z", 2), ("c", "y", 4), ("c", "z", 5)],
    schema=["descriptor", "word", "count"],
    orient="row",
)


def row(frame, descriptor, word):
    return frame.filter((pl.col("descriptor") == descriptor) & (pl.col("word") == word)).row(0, named=True)


def simulate(seed, planted=0, descriptors=40, words=60, each=120):
    """Draw `each` words per descriptor, some of `planted` own ones, one per descriptor: (pairs, planted pairs)."""
    rng = np.random.default_rng(seed)
    chances = 1 / np.arange(1, words + 1)
    drawn = rng.choice(words, size=(descriptors, each), p=chances / chances.sum())
    own = {d: int(rng.integers(10, words)) for d in range(descriptors)} if planted else {}
    for d, w in own.items():
        drawn[d, :planted] = w
    of, said = pl.Series(np.repeat(np.arange(descriptors), each)), pl.Series(drawn.ravel())
    frame = pl.select(descriptor="d" + of.cast(pl.String), word="w" + said.cast(pl.String))
    return frame.group_by("descriptor", "word", maintain_order=True).agg(count=pl.len()), {
        (f"d{d}", f"w{w}") for d, w in own.items()
    }


def kept(pairs, method):
    return set(salient(pairs, method).select("descriptor", "word").iter_rows())


def test_tf_idf_is_the_paper_s_product():
    found = row(measure(SMALL), "c", "z")
    assert (found["tf"], found["df"]) == (5, 2)
    assert found["tf_idf"] == pytest.approx(5 * math.log(3 / 2))


def test_df_may_count_occurrences_and_idf_may_be_smoothed():
    found = row(measure(SMALL, reading=Reading(df="occurrences", idf="smooth")), "c", "z")
    assert found["df"] == 7
    assert found["idf"] == pytest.approx(math.log(30 / 8) + 1)


def test_the_range_is_one_deviation_about_the_mean_and_p_is_of_what_is_inside():
    found = measure(SMALL)
    scores = found["tf_idf"].to_numpy()
    inside = np.abs(scores - scores.mean()) <= scores.std(ddof=1)
    assert found["in_range"].to_list() == inside.tolist()
    kept_scores = scores[inside]
    expected = stats.norm.sf((kept_scores - kept_scores.mean()) / kept_scores.std(ddof=1))
    assert found["p_tf_idf"].drop_nulls().to_list() == pytest.approx(expected.tolist())
    assert found.filter(~pl.col("in_range"))["p_tf_idf"].null_count() == (~inside).sum()


def test_above_keeps_what_within_drops():
    strong, _ = simulate(1, planted=40)
    within, above = (measure(strong, reading=Reading(keep=keep)) for keep in ("within", "above"))
    assert not (within["in_range"] & above["in_range"]).any()
    top = above.sort("tf_idf", descending=True).row(0, named=True)
    assert top["salient_tf_idf"]


def test_fisher_and_log_odds_agree_with_their_definitions():
    found = row(measure(SMALL, reading=Reading(prior=10.0)), "b", "z")
    table = [[2, 9], [5, 13]]
    assert found["p_fisher"] == pytest.approx(stats.fisher_exact(table, alternative="greater").pvalue)
    weight = 10 * 7 / 29
    inside = math.log((2 + weight) / (11 + 10 - 2 - weight))
    outside = math.log((5 + weight) / (18 + 10 - 5 - weight))
    assert found["log_odds"] == pytest.approx(inside - outside)
    assert found["z_log_odds"] == pytest.approx((inside - outside) / math.sqrt(1 / (2 + weight) + 1 / (5 + weight)))


@pytest.mark.parametrize("method", ["fisher", "log-odds"])
def test_rare_words_by_the_thousand_are_no_discoveries(method):
    rng = np.random.default_rng(5)
    words = np.minimum(rng.zipf(1.3, 40_000), 5_000)
    frame = pl.DataFrame({"descriptor": rng.integers(0, 200, 40_000), "word": words}).cast(pl.String)
    assert len(kept(frame.group_by("descriptor", "word").agg(count=pl.len()), method)) <= 1


def test_pmi_is_in_bits():
    assert row(measure(SMALL), "a", "x")["pmi"] == pytest.approx(math.log2(8 * 29 / (9 * 8)))


def test_q_counts_the_pairs_that_never_occur():
    found = measure(SMALL)
    p = np.concatenate([found["p_fisher"].to_numpy(), np.ones(9 - SMALL.height)])
    adjusted = stats.false_discovery_control(p)[: SMALL.height]
    assert found["q_fisher"].to_list() == pytest.approx(adjusted.tolist())


def test_nothing_planted_keeps_the_false_discovery_rate():
    # With nothing to find every discovery is false: the rate is the share of runs with any. 200 runs at 5 %: at most
    # 18 with a chance of 99 %.
    found = [measure(simulate(seed)[0]) for seed in range(200)]
    for method in ("fisher", "log-odds"):
        assert sum(table[f"salient_{METHODS[method]}"].any() for table in found) <= 18, method


@pytest.mark.parametrize("method", ["fisher", "log-odds"])
def test_what_is_planted_strongly_is_found_and_little_else(method):
    found = [(kept(pairs, method), planted) for pairs, planted in (simulate(s, planted=15) for s in range(5))]
    hits, all_found, all_planted = (sum(x) for x in zip(*((len(f & p), len(f), len(p)) for f, p in found), strict=True))
    assert hits / all_planted > 0.9
    assert hits / all_found > 0.9


def test_more_is_found_the_more_is_planted():
    found = []
    for planted in (2, 6, 12):
        pairs, truth = simulate(3, planted=planted)
        found.append(len(kept(pairs, "fisher") & truth))
    assert found[0] < found[1] < found[2]


def test_salient_gives_the_strongest_first():
    pairs, truth = simulate(2, planted=30)
    p = salient(pairs, "fisher")["p_fisher"].to_list()
    assert p == sorted(p)
    first = salient(pairs, "fisher").row(0, named=True)
    assert (first["descriptor"], first["word"]) in truth


def test_no_spread_is_undefined_not_significant():
    flat = pl.DataFrame({"descriptor": ["a", "b"], "word": ["x", "y"], "count": [3, 3]})
    found = measure(flat)
    assert found["p_tf_idf"].null_count() == 2
    assert not found["salient_tf_idf"].any()


def test_one_descriptor_has_no_log_odds():
    assert measure(SMALL.filter(pl.col("descriptor") == "a"))["log_odds"].null_count() == 2


@pytest.mark.parametrize("method", METHODS)
def test_no_pairs_give_no_rows(method):
    assert salient(SMALL.clear(), method).is_empty()


def test_an_unknown_method_is_named():
    with raises_code(UnknownNameError, "unknown-method", "'fischer'", "'fisher'"):
        salient(SMALL, "fischer")


@pytest.mark.parametrize(
    ("pairs", "code", "named"),
    [
        (SMALL.drop("count"), "data.column-missing", "count"),
        (pl.concat([SMALL, SMALL[:1]]), "data.duplicate", ""),
        (SMALL.with_columns(count=pl.lit(0)), "data.value", "0"),
    ],
)
def test_a_wrong_table_is_refused(pairs, code, named):
    with raises_code(DataError, code, named):
        measure(pairs)
