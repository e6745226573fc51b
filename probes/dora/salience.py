"""Which words go with which descriptors more than chance would have it? Pure functions of co-occurrence counts.

Counts stand in long form, one row per pair that occurs: a sparse matrix of descriptors by words, never a dense one.
Five methods, side by side and labelled (`docs/statistics.md` has the formulas):

- `exact`, the default: the exact test over wordings (`exact.over_prompts`) where a setting was asked in several
  wordings, so that its claim holds for other wordings; where there is one, `fisher`, for this wording only.
- `fisher`: Fisher's exact test per pair over answers, one-sided, within letters; for the wordings that were asked only.
- `log-odds`: log-odds ratio of a descriptor against all others with an informative Dirichlet prior, its z one-sided
  (Monroe, Colaresi and Quinn 2008).
- `pmi`: pointwise mutual information, from the paper's limitations; thresholds of Church and Hanks (1990).
- `tf-idf`: BiasDora (Raj et al. 2024), section 3.1, with its two filters. Table 4 calls a pair *significant* if its
  score falls within the standard-deviation range, and some of these *p-value significant* at the 95 % level. The
  section gives no formula, and its appendix (A.4) is not in the paper; `Reading` has each choice.

The p of the first three are corrected over all pairs, those that never occur included: by Benjamini-Hochberg, and of
the exact test over wordings by the p that each pair can give (`discrete`).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from ...core.contracts.errors import DataError, UnknownNameError
from ...core.statistics.intervals import stats
from .discrete import discrete_adjusted
from .exact import over_answers, over_prompts

Array = npt.NDArray[np.float64]
Method = Literal["exact", "fisher", "log-odds", "pmi", "tf-idf"]
METHODS: dict[Method, str] = {
    "exact": "exact",
    "fisher": "fisher",
    "log-odds": "log_odds",
    "pmi": "pmi",
    "tf-idf": "tf_idf",
}
"""Suffix of the columns, by method."""
STRENGTH = {
    "exact": "p_exact",
    "fisher": "p_fisher",
    "log-odds": "z_log_odds",
    "pmi": "pmi",
    "tf-idf": "tf_idf",
}
"""What each method ranks by: the least p of the exact tests first, and the greatest of the others."""
LEAST_FIRST = ("exact", "fisher")
PAIR = ("descriptor", "word")
COLUMNS = (*PAIR, "count")


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Choices that the paper leaves open, and settings of the other methods."""

    df: Literal["descriptors", "occurrences"] = "descriptors"
    """`df(w)`, "the times w occurs across descriptors": number of its descriptors, or of all its occurrences."""
    idf: Literal["plain", "smooth"] = "plain"
    """`plain`: ln(N / df), as in textbooks. `smooth`: ln((1 + N) / (1 + df)) + 1, scikit-learn's default."""
    deviations: float = 1.0
    """Half the width of the standard-deviation range about the mean score of all pairs."""
    keep: Literal["within", "above"] = "within"
    """`within`: scores inside the range, as in Table 4. `above`: scores above its upper end, the salient ones."""
    tail: Literal["upper", "both"] = "upper"
    """Tail of the normal distribution for p: large scores, or scores far from the mean on either side."""
    correction: Literal["discrete", "bh"] = "discrete"
    """Of `exact` over wordings: by the p each test can give (`discrete.discrete_adjusted`), or as if continuous."""
    prior: float | None = None
    """Weight of the Dirichlet prior, in words; None: the mean count of a descriptor."""
    least_pmi: float = 3.0
    """Minimum in bits. Source: Church and Hanks (1990): 3 and more ..."""
    least_count: int = 6
    """... for pairs that occur more than 5 times. Rarer pairs have no p of the log-odds either, see below."""


class Asked(msgspec.Struct, frozen=True):
    """How often each descriptor was asked, and in how many answers each word was said of it, by prompt."""

    answers: Any
    """A frame: `descriptor`, `wording`, `stratum` (a letter, or empty), `answers` (readable), and `distinct`: the same,
    but 1 where all answers to a prompt are equal, since nothing shows that these are more than one."""
    hits: Any
    """A frame: the same columns and `word`, of the answers with this word."""


def salient(
    pairs: pl.DataFrame, method: str = "exact", level: float = 0.05, reading: Reading | None = None
) -> pl.DataFrame:
    """Return the rows of `measure` that a method keeps, strongest first.

    Raises:
        UnknownNameError: there is no such method.
        DataError: the pairs are not a table of counts.
    """
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    kept = measure(pairs, level, reading).filter(pl.col(f"salient_{METHODS[method]}"))
    return kept.sort([STRENGTH[method], "descriptor", "word"], descending=[method not in LEAST_FIRST, False, False])


def measure(
    pairs: pl.DataFrame, level: float = 0.05, reading: Reading | None = None, asked: Asked | None = None
) -> pl.DataFrame:
    """Return every pair with the result of each method.

    Args:
        pairs: One row per pair that occurs: `descriptor`, `word` and `count`, its mentions, which tf-idf counts.
        level: A pair is kept by tf-idf if its p is below `level`; by the others if p adjusted is at most it.
        reading: Choices that the paper leaves open.
        asked: The answers, which the methods other than tf-idf count: they suppose that what they count is
            independent, and a word repeated within one answer is not. None: every mention is an answer.

    Returns:
        The rows of `pairs` with `tf`, `df`, `idf`, `tf_idf`, `in_range`, `z`, `p_tf_idf` (null outside the range or
        where undefined); `together` (answers with the word), `expected` (if word and descriptor were independent),
        `p_fisher`, `q_fisher`; `wordings` (asked), `prompts` (with the word), `p_exact`, `q_exact`; `log_odds`,
        `z_log_odds`, and `p_log_odds`, `q_log_odds` of pairs that are no rarer than `Reading.least_count`; `pmi` in
        bits; and `salient_exact`, `salient_fisher`, `salient_log_odds`, `salient_pmi`, `salient_tf_idf`.

    Raises:
        DataError: a column is absent, a pair occurs twice, or a count is below 1.
    """
    _check(pairs)
    reading = reading or Reading()
    table = _tested(_frequencies(pairs, reading), asked or _each_mention(pairs), reading, level)
    return table.with_columns(
        salient_exact=(pl.col("q_exact") <= level).fill_null(False),
        salient_fisher=(pl.col("q_fisher") <= level).fill_null(False),
        salient_log_odds=(pl.col("q_log_odds") <= level).fill_null(False),
        salient_pmi=(pl.col("pmi") >= reading.least_pmi) & (pl.col("together") >= reading.least_count),
        salient_tf_idf=(pl.col("p_tf_idf") < level).fill_null(False),
    )


def _each_mention(pairs: pl.DataFrame) -> Asked:
    counted = {"wording": pl.lit(0), "stratum": pl.lit("")} | dict.fromkeys(("answers", "distinct"), pl.col("count"))
    hits = pairs.select("descriptor", "word", **counted)
    totals = hits.group_by("descriptor", "wording", "stratum", maintain_order=True)
    return Asked(totals.agg(pl.col("answers", "distinct").sum()), hits)


def _check(pairs: pl.DataFrame) -> None:
    if lacking := [name for name in COLUMNS if name not in pairs.columns]:
        raise DataError(
            f"the co-occurrences have no column {', '.join(lacking)}. Give {', '.join(COLUMNS)}.",
            code="data.column-missing",
        )
    if not pairs.select("descriptor", "word").is_unique().all():
        twice = pairs.filter(pairs.select("descriptor", "word").is_duplicated()).row(0, named=True)
        raise DataError(
            f"the pair {twice['descriptor']!r}, {twice['word']!r} appears twice. Add up its counts.",
            code="data.duplicate",
        )
    if bad := pairs.filter(~(pl.col("count") >= 1).fill_null(False))["count"].to_list():
        raise DataError(f"a count is {bad[0]}. Leave out the pairs that do not occur.", code="data.value")


def _frequencies(pairs: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """Add the scores of section 3.1, and the two filters of Table 4."""
    descriptors = pl.col("descriptor").n_unique() if reading.df == "descriptors" else pl.col("count").sum()
    df = (pl.len() if reading.df == "descriptors" else pl.col("count").sum()).over("word")
    total, found = descriptors.cast(pl.Float64), pl.col("df").cast(pl.Float64)
    idf = (total / found).log() if reading.idf == "plain" else ((1 + total) / (1 + found)).log() + 1
    table = pairs.with_columns(tf=pl.col("count"), df=df).with_columns(idf=idf)
    table = table.with_columns(tf_idf=pl.col("tf") * pl.col("idf"))
    scores = table["tf_idf"].to_numpy()
    inside = _in_range(scores, reading)
    z, p = _normal(scores, inside, reading)
    return table.with_columns(in_range=pl.Series(inside, dtype=pl.Boolean), z=_nullable(z), p_tf_idf=_nullable(p))


def _in_range(scores: Array, reading: Reading) -> npt.NDArray[np.bool_]:
    if len(scores) < 2:
        return np.zeros(len(scores), dtype=np.bool_)
    apart, reach = scores - scores.mean(), reading.deviations * scores.std(ddof=1)
    inside: npt.NDArray[np.bool_] = np.abs(apart) <= reach if reading.keep == "within" else apart > reach
    return inside


def _normal(scores: Array, kept: npt.NDArray[np.bool_], reading: Reading) -> tuple[Array, Array]:
    """Return z and p of the kept scores; NaN elsewhere.

    Scores within one standard deviation of the mean cannot have z = 1.64, so `within` uses the mean and standard
    deviation of the kept scores; `above` uses those of all pairs.
    """
    z, p = np.full((2, len(scores)), np.nan)
    base = scores[kept] if reading.keep == "within" else scores
    if len(base) < 2 or (spread := base.std(ddof=1)) == 0:
        return z, p
    z[kept] = (scores[kept] - base.mean()) / spread
    p[kept] = stats.norm.sf(z[kept]) if reading.tail == "upper" else 2 * stats.norm.sf(np.abs(z[kept]))
    return z, p


def _tested(table: pl.DataFrame, asked: Asked, reading: Reading, level: float) -> pl.DataFrame:
    """Add the results of the methods with a null hypothesis."""
    found = _answers(table, asked)
    together, own, word, everything = (found[name].to_numpy() for name in ("together", "own", "said", "all"))
    possible = table["descriptor"].n_unique() * table["word"].n_unique()
    fisher = found["p"].to_numpy()
    prior = np.full(len(own), reading.prior) if reading.prior else everything / max(table["descriptor"].n_unique(), 1)
    odds, z = _log_odds(together, own, word, everything, prior)
    # The normal approximation is poor for rarer pairs, and with many rare words most discoveries would be false.
    tail = np.where(together >= reading.least_count, stats.norm.sf(z), np.nan)
    wordings = asked.answers["wording"].n_unique()
    q = corrected_over(fisher, possible)
    exact = pl.DataFrame({"prompts": np.ones(len(q), dtype=np.int64), "p_exact": fisher, "q_exact": q})
    if wordings > 1:
        prompt = pl.concat_str("wording", "stratum", separator="/").alias("prompt")
        hits = asked.hits.select("descriptor", "word", prompt, hits="answers")
        tested = tested_over_prompts(hits, asked.answers.select("descriptor", prompt, "answers"), reading, level)
        exact = table.select(PAIR).join(tested, on=PAIR, how="left", maintain_order="left")
    return table.with_columns(
        together=pl.Series(together).cast(pl.Int64),
        expected=found["expected"],
        p_fisher=pl.Series(fisher),
        q_fisher=pl.Series(q),
        wordings=pl.lit(wordings),
        prompts=exact["prompts"].cast(pl.Int64),
        p_exact=exact["p_exact"],
        q_exact=exact["q_exact"],
        log_odds=_nullable(odds),
        z_log_odds=_nullable(z),
        p_log_odds=_nullable(tail),
        q_log_odds=_nullable(corrected_over(tail, possible)),
        pmi=(pl.Series(together) / found["expected"]).log(2),
    )


def _answers(table: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """Return what `over_answers` gives for the rows of `table`."""
    of_descriptor = asked.answers.group_by("descriptor", "stratum").agg(own=pl.col("distinct").sum())
    every = of_descriptor.group_by("stratum").agg(all=pl.col("own").sum())
    together = asked.hits.group_by("descriptor", "word", "stratum").agg(together=pl.col("distinct").sum())
    words = together.group_by("word", "stratum").agg(said=pl.col("together").sum())
    pairs = table.select("descriptor", "word").with_row_index("pair")
    cells = (
        pairs.join(words, on="word")
        .join(every, on="stratum")
        .join(of_descriptor, on=["descriptor", "stratum"], how="left")
        .join(together, on=["descriptor", "word", "stratum"], how="left")
        .with_columns(pl.col("own", "together").fill_null(0))
        .sort("pair", "stratum")
    )
    return over_answers(cells)


def tested_over_prompts(hits: pl.DataFrame, asked: pl.DataFrame, reading: Reading, level: float) -> pl.DataFrame:
    """Return what `over_prompts` gives: `prompts`, `p_exact`, and `q_exact`, adjusted over all pairs."""
    found, nulls = over_prompts(hits, asked)
    p = found["p"].to_numpy()
    if reading.correction == "discrete":
        q = discrete_adjusted(p, nulls, level)
    else:
        q = corrected_over(p, found["descriptor"].n_unique() * found["word"].n_unique())
    return found.select("descriptor", "word", "prompts", p_exact="p", q_exact=pl.Series(q))


def _log_odds(together: Array, own: Array, word: Array, everything: Array, prior: Array) -> tuple[Array, Array]:
    """Return the log-odds ratio against all other descriptors and its z; NaN if there is no other descriptor.

    Source: Monroe, Colaresi and Quinn (2008), equations 15, 16, 20, 22; a word's prior is its share of all occurrences.
    """
    weight = prior * word / everything
    other, rest = word - together, everything - own
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.log((together + weight) / (own + prior - together - weight))
        outside = np.log((other + weight) / (rest + prior - other - weight))
        odds = np.where(rest > 0, inside - outside, np.nan)
        z = odds / np.sqrt(1 / (together + weight) + 1 / (other + weight))
    finite = np.isfinite(odds)
    return np.where(finite, odds, np.nan), np.where(finite, z, np.nan)


def corrected_over(p: Array, tests: int) -> Array:
    """Return Benjamini-Hochberg's p over so many tests; tests without a p have p = 1, as pairs that never occur.

    Without these, the outcome would decide which tests are counted, and the false-discovery rate would be too high.
    """
    adjusted = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known])[::-1]]
    ranks = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.minimum.accumulate(p[order] * tests / ranks), 1.0)
    return adjusted


def _nullable(values: Array) -> pl.Series:
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)
