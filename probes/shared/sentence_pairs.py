"""Sentence pairs that differ in a few words: the word difference, requests, and how answers are read.

Invariant: the same words are scored in the two sentences of a pair, because both have the same alignment. With the
unit `word` it is computed here and given as spans; with `token` the adapter aligns the model's own tokens, and
`contrast_first` makes the direction of the alignment the same for both sentences.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ...core.contracts import Counting, LargeStage, Unreadable
from ...core.contracts.records import AnyResponse, Likelihoods, PseudoLikelihood, Scalar, Span, TokenScores, Variant
from ...core.design import Design, Rows
from ...core.design.factors import AnyFactor
from ...core.design.levels import Value
from ...core.tables import Row, TableOptions

if TYPE_CHECKING:
    from ...core.contracts.records import Request

Unit = Literal["word", "token"]
Spans = tuple[Span, ...]

# Python's \w does not match combining marks, and would split a Hindi or Arabic word at every vowel sign.
_LETTER = r"[\w\u0300-\u036f\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u0e30-\u0e4e\u200c\u200d]"
_WORD = re.compile(rf"{_LETTER}+(?:[-'’]{_LETTER}+)*|[^\w\s]")
SAME, UNSHARED = "the two sentences are the same", "the two sentences share no word"
"""Reasons for which a pair cannot be asked."""
SHOWN = 120
"""Characters of a sentence that a message shows."""
_SCORES = pl.Struct({"type": pl.String, "count": pl.Int64, "log_probability": pl.Float64})


class PairOptions(TableOptions, frozen=True, kw_only=True):
    """Common options of studies of sentence pairs."""

    unit: Unit = "word"
    """Unit of the difference: words, or the model's tokens as in CrowS-Pairs."""
    variant: Variant = "original"
    """Pseudo-log-likelihood of Salazar et al. 2020, or `within_word_l2r` of Kauf and Ivanova 2023."""


class Pair(msgspec.Struct, frozen=True):
    """A pair of sentences, aligned from the first to the second."""

    id: str
    sides: tuple[str, str]
    texts: tuple[str, str]
    factors: dict[str, Scalar]
    """Levels by factor, without `pair` and `side`."""
    spans: tuple[Spans, Spans] | None = None
    """Spans in each text that the other does not share; None: from the word difference."""
    parts: dict[str, Scalar] = {}
    """Levels of the parts that a folder of data declares."""


def parts_columns(pairs: Sequence[Pair], parts: Sequence[AnyFactor]) -> dict[str, tuple[Value, ...]]:
    """Return the columns of the parts that a folder of data declares."""
    return {part.name: tuple(pair.parts[part.name] for pair in pairs) for part in parts}


def words(text: str) -> list[tuple[str, Span]]:
    """Split a text into words and punctuation marks with their spans; a hyphenated word is one word."""
    return [(match.group(), match.span()) for match in _WORD.finditer(text)]


def word_difference(first: str, second: str) -> tuple[Spans, Spans]:
    """Return the spans of the words in which two texts differ.

    The longest matching blocks of the two lists of words are shared, and the words outside them differ
    (Nangia et al. 2020 use token ids). Both texts have the same alignment, from first to second.

    Args:
        first: A sentence.
        second: The sentence compared with it. Case counts.

    Returns:
        Character spans in the first and in the second text, in order; one of them may be empty.
    """
    left, right = words(first), words(second)
    matcher = SequenceMatcher(None, [word for word, _ in left], [word for word, _ in right], autojunk=False)
    mine: list[Span] = []
    theirs: list[Span] = []
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        if tag != "equal":
            mine += [span for _, span in left[start:end]]
            theirs += [span for _, span in right[other_start:other_end]]
    return tuple(mine), tuple(theirs)


def checked_difference(row: Row, texts: tuple[str, str]) -> tuple[Spans, Spans]:
    """Return the word difference of a row's two sentences; raises `DataError` if there is nothing to compare."""
    spans = word_difference(*texts)
    if spans == ((), ()):
        problem = f"the two sentences are the same: {shortened(texts[0])}. They must differ in a word."
        raise row.fault(problem, "data.text", SAME)
    if len(spans[0]) == len(words(texts[0])):
        problem = f"the two sentences share no word: {shortened(texts[0])}. Only shared words are scored."
        raise row.fault(problem, "data.text", UNSHARED)
    return spans


def shortened(text: str) -> str:
    """Return a sentence as a message shows it."""
    return repr(text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}...")


def request_of(pair: Pair, place: int, options: PairOptions) -> PseudoLikelihood:
    """Return the request of the first (0) or the second (1) sentence of a pair."""
    spans: tuple[Spans, Spans] = ((), ())
    if options.unit == "word":
        spans = pair.spans or word_difference(*pair.texts)
    return PseudoLikelihood(
        text=pair.texts[place],
        given=spans[place],
        contrast=pair.texts[1 - place] if options.unit == "token" else None,
        contrast_first=options.unit == "token" and place == 1,
        variant=options.variant,
    )


def draw_rows(design: Design, cell: Sequence[str], limit: int, seed: int, evenly: str = "") -> Rows:
    """Draw at most `limit` pairs per cell of a design of pairs, spread over templates; see `draw_places`.

    Args:
        design: A design with the columns `template` and `pair`.
        cell: Factors or parts that define a cell.
        limit: Pairs per cell.
        seed: Seed of the sample.
        evenly: A column whose values each cell uses evenly, such as its words; empty: none.

    Returns:
        The trials of the drawn pairs, by place.
    """
    first = np.unique(design.units, return_index=True)[1]
    cells = zip(*(design.column(name, first) for name in cell), strict=True)
    words = design.column(evenly, first) if evenly else [None] * len(first)
    rows = zip(cells, *(design.column(name, first) for name in ("template", "pair")), words, strict=True)
    return np.flatnonzero(np.isin(design.units, list(draw_places(rows, limit, seed))))


def draw_places(rows: Iterable[tuple[Sequence[object], object, object, object]], limit: int, seed: int) -> set[int]:
    """Draw the places of at most `limit` rows per cell, spread over templates, and over words.

    Every template gives one row before any gives a second, and templates have the same order in all cells, so that
    cells are compared on the same templates. Of a template's rows, one whose word the cell has used least is next. A
    larger limit includes the sample of a smaller one. Digests determine the order, so the sample does not depend on a
    library's random numbers.

    Args:
        rows: Levels of the cell, template, id and word of each row.
        limit: Rows per cell.
        seed: Seed of the sample.
    """
    cells: dict[tuple[object, ...], dict[object, list[_Drawn]]] = defaultdict(lambda: defaultdict(list))
    for place, (cell, template, name, word) in enumerate(rows):
        cells[tuple(cell)][template].append(_Drawn(_digest(seed, str(name)), place, word))
    return {place for templates in cells.values() for place in islice(_in_turn(templates, seed), limit)}


class _Drawn(NamedTuple):
    order: bytes
    place: int
    word: object


def _in_turn(templates: Mapping[object, list[_Drawn]], seed: int) -> Iterator[int]:
    """Yield the places of a cell, one of each template before a second of any."""
    used: Counter[object] = Counter()
    remaining = [list(templates[name]) for name in sorted(templates, key=lambda name: _digest(seed, str(name)))]
    while remaining:
        for members in remaining:
            drawn = min(members, key=lambda row: (used[row.word], row.order))
            members.remove(drawn)
            used[drawn.word] += 1
            yield drawn.place
        remaining = [members for members in remaining if members]


class ScoredStage(LargeStage):
    """A stage of pseudo-log-likelihoods of the sentences of pairs."""

    name: ClassVar[str] = "pairs"
    operation: ClassVar[type[Request]] = PseudoLikelihood
    outcomes: ClassVar[tuple[str, ...]] = ("log_probability", "tokens")
    counting: ClassVar[Counting] = Counting(unit="pair", trials=2)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Read the summed log-probability (natural logarithm) and the number of scored tokens."""
        if not isinstance(response, TokenScores):
            return Unreadable("no token scores")
        if response.count < 1:
            # The sum over no tokens is 0, which would mean a probability of 1.
            return Unreadable("no token was scored")
        return {"log_probability": response.log_probability, "tokens": response.count}

    def read_frame(self, frame: pl.DataFrame) -> pl.DataFrame | None:
        """Read all responses at once, or return None if one of them needs `read`."""
        read = frame.select(scored=pl.col("response").str.json_decode(_SCORES)).unnest("scored")
        usable = (pl.col("type") == "token_scores") & (pl.col("tokens") > 0) & pl.col("log_probability").is_not_null()
        read = read.rename({"count": "tokens"})
        if not read.select(usable.fill_null(False).all()).item():
            return None
        return read.select(self.outcomes)


def text_scores(response: AnyResponse, count: int | None = None) -> list[tuple[float, int]] | Unreadable:
    """Return log-probability (nats) and tokens of each continuation, of which there are `count`; None: any number."""
    if not isinstance(response, Likelihoods) or len(response.scores) != (count or len(response.scores)):
        return Unreadable("no likelihoods")
    if not response.scores or any(score.count < 1 or math.isinf(score.log_probability) for score in response.scores):
        return Unreadable("no token was scored")
    return [(score.log_probability, score.count) for score in response.scores]


def _digest(seed: int, text: str) -> bytes:
    return hashlib.sha256(f"{seed}|{text}".encode("utf-8", "surrogatepass")).digest()
