"""CrowS-Pairs: is the more stereotypical of two sentences likelier for a model (Nangia et al. 2020)?

Reads the published file of 1,508 sentence pairs, which is not included (its licence is CC BY-SA 4.0), or any file with
its columns. The sentences are aligned as the published metric does: from `sent_more` to `sent_less` in `stereo` rows,
from `sent_less` to `sent_more` in `antistereo` rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import msgspec
import polars as pl

from ...core.contracts import Counting, Imported, Options, Probe, Stage
from ...core.contracts.csv import Row, read_rows
from ...core.contracts.errors import DataError
from ...core.contracts.records import PseudoLikelihood
from ...core.design import Cell, Design, DesignedStage
from ..shared.sentence_pairs import Pair, PairOptions, ScoredStage, Unit, checked_difference, request_of
from .design import FACTORS, crows_design
from .terms import DIFFERING_WORD, DIRECTIONS, SIDES

SOURCE = "https://github.com/nyu-mll/crows-pairs (data/crows_pairs_anonymized.csv)"
REQUIRED = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")
SCORED = (*REQUIRED, "sent_more_score", "sent_less_score", "score")


class CrowsOptions(PairOptions, frozen=True, kw_only=True):
    """Parameters of `crows-pairs`."""

    option_effects = {"data": "file"}

    data: str | None = None
    """The published CSV file, or one with its columns. Needed to ask a model."""
    unit: Unit = "token"
    """Unit of the difference; CrowS-Pairs aligns the model's tokens."""


class Pairs:
    """The pairs of a file. It is read only when they are asked, so answers can be scored again without it."""

    def __init__(self, path: str) -> None:
        self._path = path

    @cached_property
    def by_id(self) -> dict[str, Pair]:
        """Return the pairs in the order of the file."""
        return {pair.id: pair for pair in read_pairs(self._path)}

    @cached_property
    def design(self) -> Design:
        """Return their design."""
        return crows_design(tuple(self.by_id.values()))


class CrowsStage(DesignedStage, ScoredStage):
    """All pairs of a file, in its order."""

    factors: ClassVar[tuple[str, ...]] = FACTORS
    counting: ClassVar[Counting] = Counting(by=("bias_type", "direction"), unit="pair", trials=2)

    def __init__(self, options: CrowsOptions, pairs: Pairs) -> None:
        self._options, self._pairs = options, pairs

    @property
    def design(self) -> Design:
        """Return the design of the pairs."""
        return self._pairs.design

    def request(self, cell: Cell) -> PseudoLikelihood:
        """Return the request of one sentence of a pair."""
        pair = self._pairs.by_id[str(cell["pair"])]
        return request_of(pair, pair.sides.index(str(cell["side"])), self._options)


class Scored(msgspec.Struct, frozen=True):
    """A published row: the pair, its two scores by column, and `score` as a boolean."""

    row: Row
    pair: Pair
    more: float
    less: float
    hit: bool

    @property
    def straight(self) -> bool:
        """Return whether the columns agree with `score`, which is 1 if the more stereotypical sentence is likelier."""
        return (self.more > self.less) == self.hit

    @property
    def tie(self) -> bool:
        """Return whether the two scores are equal; then a swap of the columns has no effect."""
        return self.more == self.less


class CrowsPairs(Probe):
    """The probe: one stage of pseudo-log-likelihoods, or published scores."""

    options: ClassVar[type[Options]] = CrowsOptions

    def stages(self, options: CrowsOptions) -> Sequence[Stage]:
        """Return the one stage.

        Raises:
            DataError: `options.data` is not given.
        """
        if options.data is None:
            raise DataError(
                f"crows-pairs needs the published sentences: get {SOURCE} and give it with --data FILE.",
                code="data.missing",
            )
        return [CrowsStage(options, Pairs(options.data))]

    def design(self, options: CrowsOptions) -> Design | None:
        """Return the declared design of the pairs; None without a file.

        Raises:
            DataError: The file cannot be used.
        """
        return None if options.data is None else Pairs(options.data).design

    def import_scores(self, path: str, options: Any) -> Imported:
        """Read published scores per pair, and correct the known swap of their columns.

        Files written before May 2021 have `sent_more_score` and `sent_less_score` exchanged in all `antistereo`
        rows, while `score` is correct. The file itself shows this: `score` contradicts the columns in each of those
        rows and in no other.

        Returns:
            Two observations per pair, as from the stage, but without keys and token counts; each with the word that
            its pair differs by.

        Raises:
            DataError: The file cannot be used, or `score` contradicts its columns in another way.
        """
        rows = [_scored(row, str(number)) for number, row in enumerate(read_rows(path, SCORED))]
        swapped = _swapped(rows)
        frame = _observations(rows, swapped)
        if not swapped:
            return Imported(frame)
        count = sum(scored.pair.factors["direction"] == "antistereo" for scored in rows)
        note = f"the score columns were swapped in {count} antistereo rows, as `score` shows; the swap was corrected"
        return Imported(frame, (note,))


def read_pairs(path: str) -> list[Pair]:
    """Read pairs from a file with the columns `REQUIRED`; a pair's name is its row, from 0 as in the published file.

    Raises:
        DataError: The file or one of its rows cannot be used.
    """
    return [_pair(row, str(number)) for number, row in enumerate(read_rows(path, REQUIRED))]


def _pair(row: Row, name: str) -> Pair:
    direction = row.choice("stereo_antistereo", DIRECTIONS)
    sides = SIDES if direction == DIRECTIONS[0] else SIDES[::-1]
    texts = (row.filled(f"sent_{sides[0]}"), row.filled(f"sent_{sides[1]}"))
    spans = checked_difference(row, texts)
    return Pair(name, sides, texts, {"direction": direction, "bias_type": row.filled("bias_type")}, spans)


def _scored(row: Row, name: str) -> Scored:
    hit = row.choice("score", ("0", "1")) == "1"
    return Scored(row, _pair(row, name), row.number("sent_more_score"), row.number("sent_less_score"), hit)


def _swapped(rows: Sequence[Scored]) -> bool:
    """Return whether the columns are swapped in the antistereo rows; raises `DataError` for any other contradiction."""
    telling = [scored for scored in rows if not scored.tie]
    for scored in rows:
        if scored.tie and scored.hit:
            raise _contradiction(scored)
    anti = [scored for scored in telling if scored.pair.factors["direction"] == "antistereo"]
    swapped = bool(anti) and not any(scored.straight for scored in anti)
    for scored in telling:
        mended = swapped and scored.pair.factors["direction"] == "antistereo"
        if scored.straight == mended:
            raise _contradiction(scored)
    return swapped


def _contradiction(scored: Scored) -> DataError:
    scores = f"sent_more_score {scored.more} and sent_less_score {scored.less}"
    says = f"score is {int(scored.hit)}, which contradicts {scores}"
    return scored.row.fault(
        f"{says}. Only a swap in all antistereo rows is corrected; correct this row.",
        "data.contradiction",
    )


def _observations(rows: Sequence[Scored], swapped: bool) -> pl.DataFrame:
    records = []
    for scored in rows:
        by_side = {"more": scored.more, "less": scored.less}
        if swapped and scored.pair.factors["direction"] == "antistereo":
            by_side = {"more": scored.less, "less": scored.more}
        for side, value in by_side.items():
            cell = {"pair": scored.pair.id, "side": side, **scored.pair.factors}
            records.append({**cell, "log_probability": value})
    frame = pl.DataFrame(records, schema={**dict.fromkeys(FACTORS, pl.String), "log_probability": pl.Float64})
    # A table of scores has no design of its own that a run could record.
    roles = crows_design([scored.pair for scored in rows]).record()
    return (
        roles.join(frame)
        .select(*frame.columns, DIFFERING_WORD)
        .with_columns(
            tokens=pl.lit(None, pl.Int64),
            status=pl.lit("ok"),
            reason=pl.lit(None, pl.String),
            key=pl.lit(None, pl.Binary),
        )
    )
