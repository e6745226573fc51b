"""Exact tests of a word with a descriptor, conditional on the totals of every stratum. Pure.

Two units of analysis. `over_answers` counts answers: Fisher's exact test, within letters where there are letters (the
exact conditional form of Cochran, Mantel and Haenszel's test), for the wordings that were asked; so does `odds_differ`,
which compares two sets of answers. `over_prompts` counts prompts, so that its claim holds for other wordings: under the
hypothesis that a descriptor is like the others, its answers to a prompt are those of a descriptor drawn at random among
all that were asked it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from ...core.statistics.intervals import stats
from .discrete import Nulls

Array = npt.NDArray[np.float64]
CAP = 24
"""Answers to one prompt that are told apart; the shares of more are rounded, which makes p larger, never smaller."""
MARGINS = ("all", "own", "said")
"""Of a 2 x 2 table: all answers, those of the descriptor, and those with the word."""
CHUNK = 50_000
"""Pairs that are computed together."""


def over_answers(cells: pl.DataFrame) -> pl.DataFrame:
    """Return `p`, and the margins of each pair over the strata in which its word was said.

    Args:
        cells: One row per pair and stratum in which the word was said: `pair` (0 to n - 1), `together`, `own`, `said`
            and `all`: answers with both, of the descriptor, with the word, and all, in this stratum.

    Returns:
        One row per pair, in order: `p`, `expected` (answers with both, if independent), and `together`, `own`, `said`
        and `all`, summed over these strata.
    """
    tables = cells.select(MARGINS).unique(maintain_order=True).with_row_index("table")
    rows = cells.join(tables, on=MARGINS, how="left", maintain_order="left")
    expected = (pl.col("own") * pl.col("said") / pl.col("all")).sum().alias("expected")
    found = rows.group_by("pair").agg(
        pl.col("together", *MARGINS).sum(), expected, strata=pl.len(), tables=pl.col("table")
    )
    found = found.sort("pair")
    # Most words have one stratum, the letter they begin with: each distinct table is computed once.
    single, place = np.unique(found.select("together", *MARGINS).cast(pl.Int64).to_numpy(), axis=0, return_inverse=True)
    p: Array = stats.hypergeom.sf(single[:, 0] - 1, *single[:, 1:].T)[place.ravel()]
    several = np.flatnonzero(found["strata"].to_numpy() > 1)
    if len(several):
        least = found["together"].to_numpy()[several]
        p[several] = _tails(_masses(tables), found["tables"].gather(several), least)
    return found.select("together", "own", "said", "all", "expected").with_columns(p=pl.Series(p))


def odds_differ(first: pl.DataFrame, second: pl.DataFrame) -> Array:
    """Return the two-sided p of each pair that its odds ratio is not the same in two sets of strata.

    Given all margins and the hits of both sets together, the hits of one have a distribution in which a common odds
    ratio cancels. Source: Zelen (1971), Biometrika 58, whose exact test of one odds ratio in several 2 x 2 tables this
    is for two sets of tables.

    Args:
        first: The cells of one set, as for `over_answers`; each pair stands in both sets.
        second: Those of the other.
    """
    sides = []
    for cells in (first, second):
        tables = cells.select(MARGINS).unique(maintain_order=True).with_row_index("table")
        rows = cells.join(tables, on=MARGINS, how="left", maintain_order="left")
        found = rows.group_by("pair").agg(pl.col("together").sum(), tables=pl.col("table")).sort("pair")
        sides.append((_sums(_masses(tables), found["tables"]), found["together"].to_numpy().astype(np.int64)))
    (ours, own), (theirs, other) = sides
    p = np.empty(len(own))
    for (part, one), (_, two) in zip(ours, theirs, strict=True):
        rest = (own + other)[part, None] - np.arange(one.shape[1])
        there = (rest >= 0) & (rest < two.shape[1])
        mass = np.where(there, one * np.take_along_axis(two, np.clip(rest, 0, two.shape[1] - 1), axis=1), 0.0)
        mass /= mass.sum(axis=1, keepdims=True)
        here = np.take_along_axis(mass, own[part, None], axis=1)[:, 0]
        lower = np.take_along_axis(np.cumsum(mass, axis=1), own[part, None], axis=1)[:, 0]
        p[part] = np.minimum(1.0, 2 * np.minimum(lower, 1 - lower + here))
    return p


def over_prompts(hits: pl.DataFrame, asked: pl.DataFrame) -> tuple[pl.DataFrame, Nulls]:
    """Return `p` of each pair by the exact permutation of descriptors within prompts, and what p all pairs can give.

    A descriptor with fewer readable answers to a prompt than another is compared with as many of the other's, drawn
    at random; of one with still fewer the share is taken and rounded up. So refusals make p larger, not smaller.

    Args:
        hits: `descriptor`, `word`, `prompt` and `hits`, the readable answers with the word, where there are any.
        asked: `descriptor`, `prompt` and `answers`, the readable answers.

    Returns:
        `descriptor`, `word`, `prompts` (in how many of them the word was said) and `p`; and the possible p of all
        pairs of a descriptor that was asked and a word that was said: exact for descriptors with as many answers to
        each prompt as most have.
    """
    answers, said = pl.col("answers").cast(pl.Int64), pl.col("hits").cast(pl.Int64)
    capped = pl.min_horizontal(answers, CAP)
    rows = hits.join(asked, on=["descriptor", "prompt"], how="left", maintain_order="left").with_columns(
        capped.alias("size"), own=said * capped // answers, theirs=(said * capped + answers - 1) // answers
    )
    asked = asked.with_columns(capped.alias("size")).drop("answers")
    others = rows.group_by("word", "prompt", "size", "theirs").len("times")
    # Every descriptor with the word anywhere is compared at each prompt at which anybody said it.
    pairs = rows.group_by("descriptor", "word", maintain_order=True).agg(pl.col("own").sum(), prompts=pl.len())
    pairs = pairs.with_row_index("pair")
    places = pairs.select("pair", "descriptor", "word").join(others.select("word", "prompt").unique(), on="word")
    places = places.join(asked, on=["descriptor", "prompt"])
    usual = asked.group_by("prompt").agg(pl.col("size").mode().max())
    spoken = others.select("word", "prompt").unique().join(usual, on="prompt")
    wanted = pl.concat([places.select(spoken.columns), spoken]).unique().sort(spoken.columns).with_row_index("table")
    places = places.join(wanted, on=["word", "prompt", "size"]).sort("pair", "prompt")
    tables = wanted.rename({"size": "drawn"}).join(others, on=["word", "prompt"])
    tables = tables.join(asked.group_by("prompt").len("descriptors"), on="prompt").sort("table", "size", "theirs")
    masses = _mixtures(tables, wanted.height)
    indexes = places.group_by("pair").agg("table").sort("pair")["table"]
    found = pairs.select("descriptor", "word", "prompts").with_columns(
        p=pl.Series(_tails(masses, indexes, pairs["own"].to_numpy()))
    )
    kinds = spoken.join(wanted, on=spoken.columns).sort("word", "prompt").group_by("word", maintain_order=True)
    return found, _nulls(masses, kinds.agg("table"), spoken, asked, usual)


def _nulls(masses: Array, kinds: pl.DataFrame, spoken: pl.DataFrame, asked: pl.DataFrame, usual: pl.DataFrame) -> Nulls:
    """Return the possible p by word for the descriptors with the usual number of answers to all of its prompts."""
    sums = [np.cumsum(total[:, ::-1], axis=1)[:, ::-1] for _, total in _sums(masses, kinds["table"])]
    every = asked.select("descriptor").unique()
    ordinary = asked.join(usual, on=["prompt", "size"], how="semi").select("descriptor", "prompt")
    others = every.join(usual.select("prompt"), how="cross").join(ordinary, on=["descriptor", "prompt"], how="anti")
    unusual = spoken.join(others, on="prompt").group_by("word").agg(pl.col("descriptor").n_unique().alias("few"))
    few = kinds.join(unusual, on="word", how="left", maintain_order="left")["few"].fill_null(0).to_numpy()
    tails = np.concatenate(sums) if sums else np.zeros((0, 1))
    return Nulls(tails, (every.height - few).astype(np.float64), float(few.sum()))


def _mixtures(tables: pl.DataFrame, count: int) -> Array:
    """Return the chances (tables, hits) of so many hits of a descriptor drawn at random, in `drawn` of its answers."""
    size, theirs, drawn = (tables[name].to_numpy().astype(np.int64) for name in ("size", "theirs", "drawn"))
    weight = tables["times"].to_numpy() / tables["descriptors"].to_numpy()
    found = np.zeros((count, int(drawn.max(initial=0)) + 1))
    cases, place = np.unique(np.column_stack([size, theirs, drawn]), axis=0, return_inverse=True)
    masses = np.zeros((len(cases), found.shape[1]))
    for row, (of, with_it, few) in enumerate(cases):
        if of >= few:
            masses[row] = stats.hypergeom.pmf(np.arange(found.shape[1]), of, with_it, few)
        else:
            masses[row, -(-few * with_it // of)] = 1.0
    np.add.at(found, tables["table"].to_numpy(), weight[:, None] * masses[place.ravel()])
    # Descriptors of which the word was not said at this prompt.
    found[:, 0] += 1.0 - found.sum(axis=1)
    return found


def _masses(tables: pl.DataFrame) -> Array:
    """Return the hypergeometric chances (tables, hits) of 2 x 2 tables with these margins."""
    totals = tables.select(MARGINS).cast(pl.Int64).to_numpy()
    most = int(np.minimum(totals[:, 1], totals[:, 2]).max(initial=0))
    masses: Array = stats.hypergeom.pmf(np.arange(most + 1)[None], *(totals[:, [n]] for n in range(3)))
    return masses


def _tails(masses: Array, indexes: pl.Series, least: npt.NDArray[np.int64]) -> Array:
    """Return the chance that each sum of `_sums` is at least `least`."""
    found = np.empty(len(least))
    for part, total in _sums(masses, indexes):
        upper = np.cumsum(total[:, ::-1], axis=1)[:, ::-1]
        found[part] = np.take_along_axis(upper, least[part, None].astype(np.int64), axis=1)[:, 0]
    return np.minimum(found, 1.0)


def _sums(masses: Array, indexes: pl.Series) -> Iterator[tuple[slice, Array]]:
    """Yield the distributions of sums of independent counts, some rows at a time.

    `masses` (tables, values) are distributions, and `indexes` lists those that each sum has.
    """
    width = int(indexes.list.len().max() or 0)  # type: ignore[arg-type]
    steps, nothing = masses.shape[1] - 1, len(masses)
    masses = np.vstack([masses, np.eye(1, steps + 1)])
    padded = indexes.list.to_struct(fields=[str(n) for n in range(width)]).struct.unnest().fill_null(nothing)
    places = padded.to_numpy().astype(np.int64)
    for start in range(0, len(places), CHUNK):
        part = slice(start, start + CHUNK)
        total = np.zeros((len(places[part]), width * steps + 1))
        total[:, 0] = 1.0
        for slot in range(width):
            one, added = masses[places[part, slot]], np.zeros_like(total)
            for value in range(steps + 1):
                added[:, value:] += one[:, [value]] * total[:, : total.shape[1] - value]
            total = added
        yield part, total
