"""The associations of several runs: what they share, which differ, and all of them in one table. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from .associations import STRATUM, Counts
from .discovered import ALL, Discovered
from .exact import odds_differ, over_answers
from .overlap import Overlap, adjusted, overlap
from .salience import METHODS
from .terms import CELL

SIDES = ("first", "second", "of_first", "of_second")


def shared_by(first: Discovered, second: Discovered, method: str) -> list[tuple[tuple[str, ...], Overlap]]:
    """Return the overlap of two runs in each modality and setting of both, and then in all settings together."""
    kept = [found.kept(method) for found in (first, second)]
    parts = [dict(_cells(pairs)) for pairs in kept]
    both = [(cell, dict(zip(CELL, cell, strict=True))) for cell in parts[0] if cell in parts[1]]
    shared = [(cell, overlap(parts[0][cell], parts[1][cell], _asked(first, second, where))) for cell, where in both]
    asked = [", ".join(found.pairs["modality"].unique().sort()) for found in (first, second)]
    name = asked[0] if asked[0] == asked[1] else " and ".join(asked)
    return [*shared, ((name, ALL), overlap(kept[0], kept[1], _asked(first, second, {})))]


def differing(first: Discovered, second: Discovered) -> pl.DataFrame:
    """Return the pairs of descriptor and word in two runs, and whether they differ, the smallest p first.

    Runs that share a modality and a setting are compared there: is the share of the answers with the word the same?
    Runs of different modalities, whose answers differ in kind, are compared in the words that both say: is the odds
    ratio of the word, for this descriptor against all others, the same? Both tests are exact, within letters and
    settings, and for the wordings that were asked.

    Columns: `CELL`, `descriptor`, `word`, `first`, `second` (answers with the word), `of_first`, `of_second` (answers,
    of the letters in which it was said), `p` (two-sided) and `q`, corrected by Benjamini-Hochberg over all rows. Pairs
    of descriptors that one run was not asked about are out.
    """
    cells = [frozenset(found.counts.answers.select(CELL).unique().rows()) for found in (first, second)]
    found = _in_shares(first, second) if cells[0] & cells[1] else _in_odds(first, second)
    q = pl.Series(adjusted(found["p"].to_list()), dtype=pl.Float64)
    return found.select(*CELL, "descriptor", "word", *SIDES, "p", q=q).sort("p", *CELL, "descriptor", "word")


def _in_shares(first: Discovered, second: Discovered) -> pl.DataFrame:
    place = [*CELL, "descriptor", STRATUM]
    (asked, hits), (other, others) = (_by_letter(found.counts) for found in (first, second))
    answers = asked.rename({"answers": "of_first"}).join(other.rename({"answers": "of_second"}), on=place)
    hits, others = hits.rename({"answers": "first"}), others.rename({"answers": "second"})
    said = hits.join(others, on=[*place, "word"], how="full", coalesce=True)
    rows = said.with_columns(pl.col("first", "second").fill_null(0)).join(answers, on=place)
    rows = rows.sort(*place, "word").with_columns(pair=pl.struct(*CELL, "descriptor", "word").rank("dense") - 1)
    both = {"said": pl.col("first") + pl.col("second"), "all": pl.col("of_first") + pl.col("of_second")}
    upper, lower = (
        over_answers(rows.select("pair", together=pl.col(ours), own=pl.col(f"of_{ours}"), **both))["p"]
        for ours in ("first", "second")
    )
    p = pl.Series([min(1.0, 2 * min(pair)) for pair in zip(upper, lower, strict=True)], dtype=pl.Float64)
    return rows.group_by("pair", *CELL, "descriptor", "word").agg(pl.col(SIDES).sum()).sort("pair").with_columns(p=p)


def _in_odds(first: Discovered, second: Discovered) -> pl.DataFrame:
    counts = [found.counts for found in (first, second)]
    pair, asked = ["descriptor", "word"], _asked(first, second, {})
    said = [one.hits.select(pair).unique() for one in counts]
    words = said[0].select("word").unique().join(said[1], on="word", how="semi")
    pairs = pl.concat(said).unique().join(words, on="word", how="semi").filter(pl.col("descriptor").is_in(asked))
    pairs = pairs.sort(pair).with_row_index("pair")
    sides = [_against_others(one, pairs) for one in counts]
    p = pl.Series(odds_differ(*sides) if pairs.height else [], dtype=pl.Float64)
    for side, name in zip(sides, ("first", "second"), strict=True):
        sums = side.group_by("pair").agg(pl.col("together").sum().alias(name), pl.col("own").sum().alias(f"of_{name}"))
        pairs = pairs.join(sums, on="pair", maintain_order="left")
    modality = " and ".join(", ".join(found.pairs["modality"].unique().sort()) for found in (first, second))
    return pairs.with_columns(p=p, modality=pl.lit(modality), setting=pl.lit(ALL))


def _against_others(counts: Counts, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the 2 x 2 tables of the pairs: a row per setting and letter in which anybody said the word."""
    asked, hits = _by_letter(counts)
    stratum = [*CELL, STRATUM]
    words = hits.group_by(*stratum, "word").agg(said=pl.col("answers").sum())
    every = asked.group_by(stratum).agg(all=pl.col("answers").sum())
    tables = pairs.join(words, on="word").join(every, on=stratum)
    tables = tables.join(asked.rename({"answers": "own"}), on=[*stratum, "descriptor"], how="left")
    hits = hits.rename({"answers": "together"})
    tables = tables.join(hits, on=[*stratum, "descriptor", "word"], how="left")
    return tables.with_columns(pl.col("own", "together").fill_null(0)).sort("pair", *stratum)


def _by_letter(counts: Counts) -> tuple[pl.DataFrame, pl.DataFrame]:
    place = [*CELL, "descriptor", STRATUM]
    total = pl.col("distinct").sum().alias("answers")
    return counts.answers.group_by(place).agg(total), counts.hits.group_by(*place, "word").agg(total)


def atlas(found: Sequence[Discovered], method: str) -> pl.DataFrame:
    """Return a row per dimension, descriptor and word that a method keeps anywhere, and columns per run and setting.

    Of each run, modality and setting the columns say in how many answers the word was said (`answers`), and whether
    the method keeps it (`kept`); empty where it was not said. The pairs that are kept most often (`kept_in`) are first.
    """
    column = "count" if method == ALL else f"salient_{METHODS[method]}"  # type: ignore[index]
    row = ["dimension", "descriptor", "word"]
    whole: pl.DataFrame = pl.concat(
        one.pairs.select(
            *row,
            where=pl.concat_str(pl.lit(one.run), *CELL, separator=" "),
            answers="documents",
            kept=pl.col(column) > 0 if method == ALL else pl.col(column),
        )
        for one in found
    )
    kept = whole.group_by(row).agg(kept_in=pl.col("kept").sum().cast(pl.Int64)).filter(pl.col("kept_in") > 0)
    # Every run and setting has its columns, also where it keeps nothing.
    places = whole["where"].unique(maintain_order=True).to_list()
    long = whole.join(kept, on=row, how="semi")
    wide = long.pivot("where", on_columns=places, index=row, values=["answers", "kept"], aggregate_function="first")
    return kept.join(wide, on=row).sort("kept_in", *row, descending=[True, False, False, False])


def _asked(first: Discovered, second: Discovered, cell: Mapping[str, str]) -> frozenset[str]:
    return first.counts.descriptors(cell) & second.counts.descriptors(cell)


def _cells(pairs: pl.DataFrame) -> list[tuple[tuple[str, ...], pl.DataFrame]]:
    return [(cell, part) for cell, part in pairs.group_by(*CELL, maintain_order=True)]
