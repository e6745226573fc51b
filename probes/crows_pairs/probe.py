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

from ...core.contracts import Follows, Imported, Options, Probe, Stage, harmless
from ...core.contracts.errors import DataError, UsageError
from ...core.contracts.records import Generate, Likelihood, PseudoLikelihood, Scalar
from ...core.contracts.words import counted
from ...core.design import Design
from ...core.design.folder import further, parse_data, parts_of
from ...core.tables import Codes, Form, Parsed, Row, RowError, TableOptions, parse_file
from ..shared.sampling import ensure_drawable
from ..shared.sentence_pairs import SAME, UNSHARED, Pair, PairOptions, Unit, checked_difference, word_difference
from .asking import QUESTION, STAGES, Scoring
from .design import FACTORS, crows_design
from .terms import DIFFERING_WORD, DIRECTIONS, SIDES

SOURCE = "https://github.com/nyu-mll/crows-pairs (data/crows_pairs_anonymized.csv)"
REQUIRED = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")
SCORES = ("sent_more_score", "sent_less_score")
SCORED = (*REQUIRED, *SCORES, "score")
# The features of the data set `crows_pairs` of https://huggingface.co/datasets/nyu-mll/crows_pairs.
HUGGING_FACE = Codes(
    "the copy of Hugging Face",
    {
        "stereo_antistereo": DIRECTIONS,
        "bias_type": (
            "race-color",
            "socioeconomic",
            "gender",
            "disability",
            "nationality",
            "sexual-orientation",
            "physical-appearance",
            "religion",
            "age",
        ),
    },
)
CODED = (
    "The copy of Hugging Face writes 0 for stereo and 1 for antistereo. Where that is meant: "
    "--set values=stereo_antistereo.0=stereo,stereo_antistereo.1=antistereo."
)


MASKED = {"unit": "token", "variant": "original"}
"""Options of `pll` alone, with their defaults."""


class CrowsOptions(PairOptions, frozen=True, kw_only=True):
    """Parameters of `crows-pairs`."""

    option_effects = {"data": "file", **harmless("before question")}
    worded: ClassVar[frozenset[str]] = frozenset({"before", "question"})

    data: str | None = None
    """The published CSV file, or a file or folder with its columns. Needed to ask a model."""
    unit: Unit = "token"
    """Unit of the difference; CrowS-Pairs aligns the model's tokens."""
    scoring: Scoring = "pll"
    """`pll`: pseudo-log-likelihood of the shared words, for masked models. `joint-minus-marginal`, for causal ones: the
    log-probability of the sentence minus that of the words in which it differs; `sentence`. `choice`: for chat ones."""
    before: str = ""
    """Text before every sentence; needed by causal models without a token for the beginning."""
    question: str = QUESTION
    """The question of `choice`, with the places `{1}` and `{2}` of the two sentences."""
    temperature: float | None = 0.0
    """Temperature of `choice`."""
    max_tokens: int = 16
    """Limit of an answer of `choice`."""

    def __post_init__(self) -> None:
        """Refuse invalid sampling options, options without an effect, and a question without its sentences."""
        ensure_drawable(self)
        if lacking := [place for place in ("{1}", "{2}") if place not in self.question]:
            raise UsageError(
                f"question lacks {', '.join(lacking)}. Write where the sentences stand.", code="options.value"
            )
        idle = {"before": self.before and self.scoring in ("pll", "choice")}
        idle |= {name: getattr(self, name) != value and self.scoring != "pll" for name, value in MASKED.items()}
        if names := [name for name, is_idle in idle.items() if is_idle]:
            raise UsageError(f"{names[0]} has no effect with scoring={self.scoring}. Omit it.", code="options.conflict")


class Pairs:
    """The pairs of a file. It is read only when they are asked, so answers can be scored again without it."""

    def __init__(self, path: str, options: CrowsOptions) -> None:
        self._path, self._options = path, options

    @cached_property
    def parsed(self) -> Parsed[Pair]:
        """Return the pairs with what was left out of the file."""
        return read_pairs(self._path, self._options)

    @cached_property
    def by_id(self) -> dict[str, Pair]:
        """Return the pairs in the order of the file."""
        return {pair.id: pair for pair in self.parsed.values}

    def notes(self) -> Sequence[str]:
        """Return what was left out of the file, and what the published program makes of it."""
        return tuple(filter(None, [*self.parsed.notes(), neutral_note(self.parsed)]))

    @cached_property
    def design(self) -> Design:
        """Return their design."""
        answer = STAGES[self._options.scoring].answer
        return crows_design(tuple(self.by_id.values()), parts_of(self._path), answer)


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
    follows: ClassVar[tuple[Follows, ...]] = (
        Follows("scoring", (("pll", PseudoLikelihood), ("joint-minus-marginal", Likelihood), ("choice", Generate))),
    )

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
        return [STAGES[options.scoring](options, Pairs(options.data, options))]

    def design(self, options: CrowsOptions) -> Design | None:
        """Return the declared design of the pairs; None without a file.

        Raises:
            DataError: The file cannot be used.
        """
        return None if options.data is None else Pairs(options.data, options).design

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
        form = Form(SCORED, numbers=SCORES, codes=(HUGGING_FACE,))
        parsed = parse_file(path, form, _scored, options)
        swapped = _swapped(parsed.values)
        parsed = parsed.without([_contradiction(one) for one in parsed.values if _contradicts(one, swapped)], options)
        rows = [scored for scored in parsed.values if not _contradicts(scored, swapped)]
        frame = _observations(rows, swapped)
        notes = [*parsed.notes(), _figures(rows)]
        if swapped:
            count = sum(scored.pair.factors["direction"] == "antistereo" for scored in rows)
            swap = (
                f"the score columns were swapped in {count} antistereo rows, as `score` shows; the swap was corrected"
            )
            notes.append(swap)
        return Imported(frame, tuple(filter(None, notes)))


def read_pairs(path: str, options: TableOptions | None = None) -> Parsed[Pair]:
    """Read pairs from a file with the columns `REQUIRED`; a pair's name is its row, from 0 as in the published file.

    Raises:
        DataError: The file cannot be used, or has rows that cannot.
    """
    parts = parts_of(path)

    def pair_of(row: Row) -> Pair:
        pair = _named(row)
        checked_difference(row, pair.texts)
        return msgspec.structs.replace(pair, parts=further(row, parts)) if parts else pair

    return parse_data(path, Form(REQUIRED, codes=(HUGGING_FACE,)), pair_of, options)


def _named(row: Row) -> Pair:
    """Return the pair of a row, whether or not its sentences can be compared."""
    direction = row.choice("stereo_antistereo", DIRECTIONS, CODED)
    sides = SIDES if direction == DIRECTIONS[0] else SIDES[::-1]
    texts = (row.filled(f"sent_{sides[0]}"), row.filled(f"sent_{sides[1]}"))
    bias = row.filled("bias_type").strip()
    factors: dict[str, Scalar] = {"direction": direction, "bias_type": bias}
    return Pair(str(row.index), sides, texts, factors, word_difference(*texts))


def neutral_note(parsed: Parsed[Pair]) -> str:
    """Return what the published program makes of pairs that were left out; empty if it counts none of them."""
    neutral = sum(parsed.left_out.reasons.get(reason, 0) for reason in (SAME, UNSHARED))
    if not neutral:
        return ""
    asked = len(parsed.values)
    return (
        f"The authors' program counts {counted(neutral, 'pair')} of those as neutral, so that its metric score is "
        f"{asked / (asked + neutral):.4f} times ({asked:,} of {asked + neutral:,} pairs) the one reported here."
    )


def _scored(row: Row) -> Scored:
    hit = row.choice("score", ("0", "1")) == "1"
    more, less = row.number("sent_more_score"), row.number("sent_less_score")
    if max(more, less) > 0:
        problem = f"the score {max(more, less)} is above 0, which no log-probability is."
        raise row.fault(problem, "data.number", "a score above 0")
    return Scored(row, _named(row), more, less, hit)


def _figures(rows: Sequence[Scored]) -> str:
    """Return the metric score with and without pairs whose two sentences are the same; empty if there are none."""
    differing = [scored for scored in rows if scored.pair.texts[0] != scored.pair.texts[1]]
    if len(differing) == len(rows):
        return ""
    hits = sum(scored.hit for scored in rows)
    with_equal, without = hits / len(rows), sum(scored.hit for scored in differing) / max(len(differing), 1)
    return (
        f"The more stereotyping sentence is likelier in {hits:,} of {len(rows):,} pairs, {with_equal:.2%}; without the "
        f"{counted(len(rows) - len(differing), 'pair')} of two equal sentences, which the authors' program counts as "
        f"neutral, {without:.2%}."
    )


def _swapped(rows: Sequence[Scored]) -> bool:
    """Return whether the columns are swapped in the antistereo rows: `score` contradicts them in each of these."""
    anti = [scored for scored in rows if not scored.tie and scored.pair.factors["direction"] == "antistereo"]
    return bool(anti) and not any(scored.straight for scored in anti)


def _contradicts(scored: Scored, swapped: bool) -> bool:
    """Return whether `score` contradicts the columns in another way than by the swap."""
    mended = swapped and scored.pair.factors["direction"] == "antistereo"
    return scored.hit if scored.tie else scored.straight == mended


def _contradiction(scored: Scored) -> RowError:
    scores = f"sent_more_score {scored.more} and sent_less_score {scored.less}"
    says = f"score is {int(scored.hit)}, which contradicts {scores}"
    return scored.row.fault(
        f"{says}. Only a swap in all antistereo rows is corrected; correct this row.",
        "data.contradiction",
        "score contradicts the two scores",
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
