"""The associations of a run, from its observations: no model, no backend, no metric. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from ...core.contracts.errors import DataError, UnknownNameError
from .associations import STRATUM, Counts, count, measure_cells, ranked, with_answers
from .exact import over_answers
from .overlap import Overlap, adjusted, overlap
from .salience import METHODS, Reading
from .terms import CELL, STAGES

ALL = "all"


class Discovered(msgspec.Struct, frozen=True):
    """The associations of one run."""

    run: str
    model: str
    """The name of the model that was asked."""
    pairs: Any
    """A polars frame: the columns of `salience.measure` and `with_answers` for every association."""
    counts: Counts

    def kept(self, method: str, descriptors: Sequence[str] = (), setting: str | None = None) -> pl.DataFrame:
        """Return the associations that a method (or `all`) keeps, strongest first.

        Raises:
            UnknownNameError: no such method, descriptor or setting.
        """
        frame: pl.DataFrame = self.pairs
        if method not in (*METHODS, ALL):
            raise UnknownNameError("method", method, [*METHODS, ALL])
        if descriptors:
            frame = frame.filter(pl.col("descriptor").is_in(_known(frame, "descriptor", descriptors)))
        if setting is not None:
            frame = frame.filter(pl.col("setting").is_in(_known(frame, "setting", [setting])))
        kept = frame if method == ALL else frame.filter(f"salient_{METHODS[method]}")  # type: ignore[index]
        return ranked(kept, method)


def discover(
    run: str, model: str, observations: pl.DataFrame, level: float = 0.05, reading: Reading | None = None
) -> Discovered:
    """Measure the associations in the observations of a run, all stages stacked.

    Raises:
        DataError: the run has no stage with answers in words, or no readable answer.
    """
    if not observations["stage"].is_in(STAGES).any():
        raise DataError(f"run {run} is not of a study dora-*. Name a run of one.", code="run.other-study")
    counts = count(observations)
    if counts.pairs.is_empty():
        raise DataError(f"run {run} has no readable word.", code="run.no-answers")
    return Discovered(run, model, with_answers(measure_cells(counts, level, reading), observations), counts)


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
    """Return the pairs said in either of two runs with the answers of each and whether their shares differ.

    Columns: `CELL`, `descriptor`, `word`, `first`, `second` (answers with the word), `of_first`, `of_second` (answers,
    of the letters in which it was said), `p` (exact, two-sided, within letters; for the wordings that were asked) and
    `q`, corrected by Benjamini-Hochberg over all rows. Pairs of descriptors that one run was not asked about are out.
    """
    place = [*CELL, "descriptor", STRATUM]
    sides = [_by_letter(found.counts) for found in (first, second)]
    answers = sides[0][0].join(sides[1][0], on=place, suffix="_second").rename({"answers": "of_first"})
    answers = answers.rename({"answers_second": "of_second"})
    hits = [side[1].rename({"answers": name}) for side, name in zip(sides, ("first", "second"), strict=True)]
    said = hits[0].join(hits[1], on=[*place, "word"], how="full", coalesce=True)
    rows = said.with_columns(pl.col("first", "second").fill_null(0)).join(answers, on=place, maintain_order="left")
    rows = rows.sort(*place, "word").with_columns(pair=pl.struct(*CELL, "descriptor", "word").rank("dense") - 1)
    both = {"said": pl.col("first") + pl.col("second"), "all": pl.col("of_first") + pl.col("of_second")}
    upper, lower = (
        over_answers(rows.select("pair", together=pl.col(ours), own=pl.col(f"of_{ours}"), **both))["p"]
        for ours in ("first", "second")
    )
    found = rows.group_by("pair", *CELL, "descriptor", "word").agg(
        pl.col("first", "second", "of_first", "of_second").sum()
    )
    p = pl.Series([min(1.0, 2 * min(pair)) for pair in zip(upper, lower, strict=True)], dtype=pl.Float64)
    found = found.sort("pair").drop("pair").with_columns(p=p)
    return found.with_columns(q=pl.Series(adjusted(p.to_list()), dtype=pl.Float64)).sort(
        "p", *CELL, "descriptor", "word"
    )


def _by_letter(counts: Counts) -> tuple[pl.DataFrame, pl.DataFrame]:
    place = [*CELL, "descriptor", STRATUM]
    total = pl.col("distinct").sum().alias("answers")
    return counts.answers.group_by(place).agg(total), counts.hits.group_by(*place, "word").agg(total)


def atlas(found: Sequence[Discovered], method: str) -> pl.DataFrame:
    """Return a row per dimension, descriptor and word that a method keeps anywhere, and columns per run and setting.

    Of each run, modality and setting the columns say in how many answers the word was said (`answers`), and whether
    the method keeps it (`kept`); empty where it was not said.
    """
    column = "count" if method == ALL else f"salient_{METHODS[method]}"  # type: ignore[index]
    rows = [
        one.pairs.select(
            "dimension",
            "descriptor",
            "word",
            where=pl.concat_str(pl.lit(one.run), *CELL, separator=" "),
            answers="documents",
            kept=pl.col(column) > 0 if method == ALL else pl.col(column),
        )
        for one in found
    ]
    whole: pl.DataFrame = pl.concat(rows)
    kept = whole.filter("kept").select("dimension", "descriptor", "word").unique()
    wide = whole.join(kept, on=["dimension", "descriptor", "word"], how="semi")
    return wide.pivot("where", index=["dimension", "descriptor", "word"], values=["answers", "kept"]).sort(
        "dimension", "descriptor", "word"
    )


def _asked(first: Discovered, second: Discovered, cell: Mapping[str, str]) -> frozenset[str]:
    return first.counts.descriptors(cell) & second.counts.descriptors(cell)


def _cells(pairs: pl.DataFrame) -> list[tuple[tuple[str, ...], pl.DataFrame]]:
    return [(cell, part) for cell, part in pairs.group_by(*CELL, maintain_order=True)]


def _known(frame: pl.DataFrame, column: str, names: Sequence[str]) -> list[str]:
    """Return the levels of a column with this name, in any case."""
    levels = [str(level) for level in frame[column].unique().sort()]
    found = [level for name in names for level in levels if level.casefold() == name.strip().casefold()]
    for name in names:
        if not any(level.casefold() == name.strip().casefold() for level in levels):
            raise UnknownNameError(column, name, levels)
    return found
