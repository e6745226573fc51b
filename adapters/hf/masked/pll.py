"""The tokens of a sentence that a pseudo-log-likelihood scores; independent of torch and of models."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ....core.contracts.errors import PermanentError
from ....core.contracts.records import PseudoLikelihood, Span


class Tokens(NamedTuple):
    """One sentence as a tokenizer gives it, special tokens included."""

    ids: Sequence[int]
    offsets: Sequence[Span]
    """Start and end in the text, in characters."""
    words: Sequence[int | None]
    special: Sequence[bool]
    """True for tokens that are never scored: those the tokenizer added, and written-out `[MASK]` and the like."""


class Sentence(NamedTuple):
    """One sentence to score."""

    ids: Sequence[int]
    positions: Sequence[int]
    """Tokens to score, in order; each is masked in a separate copy."""
    also_masked: Sequence[int]
    """A number per token: scoring one masks the later ones with the same number too; -1 never matches."""


def plan_sentence(request: PseudoLikelihood, text: Tokens, contrast: Tokens | None) -> Sentence:
    """Return which tokens of a sentence are scored, and which are masked with them.

    Scored is every token that is not special, not overlapped by a `given` span, and, with a `contrast`, inside the
    blocks both share. Under `within_word_l2r` the later scored tokens of a word are masked with the earlier ones;
    conditioned tokens stay visible. Sources: Salazar et al. 2020, section 2; Kauf and Ivanova 2023, section 3;
    Nangia et al. 2020, section 3.

    Raises:
        PermanentError: a span lies outside the text, or nothing is left to score.
    """
    scored = [not special for special in text.special]
    for start, end in request.given:
        if not 0 <= start < end <= len(request.text):
            raise PermanentError(
                f"given span ({start}, {end}) does not fit a text of {len(request.text)} characters.",
                code="request.span",
            )
    if request.given:
        scored = [
            keep and not _covered(request.text, offset, request.given)
            for keep, offset in zip(scored, text.offsets, strict=True)
        ]
    if contrast is not None:
        shared = shared_positions(text.ids, contrast.ids, contrast_first=request.contrast_first)
        scored = [keep and position in shared for position, keep in enumerate(scored)]
    if not any(scored):
        raise PermanentError(
            f"nothing is left to score in {_short(request.text)}: every token is special or conditioned on.",
            code="request.empty",
        )
    return Sentence(text.ids, [p for p, keep in enumerate(scored) if keep], _same_word(request, text, scored))


def shared_positions(ids: Sequence[int], other: Sequence[int], *, contrast_first: bool) -> set[int]:
    """Return the positions of `ids` inside the longest matching blocks of both.

    As the published CrowS-Pairs metric does it: `difflib.SequenceMatcher` with its defaults over token ids, special
    tokens included. The blocks depend on the order, so a pair must use one for both its sentences.
    """
    first, second = (other, ids) if contrast_first else (ids, other)
    blocks = SequenceMatcher(None, first, second).get_matching_blocks()
    return {(b if contrast_first else a) + step for a, b, size in blocks for step in range(size)}


def _same_word(request: PseudoLikelihood, text: Tokens, scored: Sequence[bool]) -> list[int]:
    if request.variant == "original":
        return [-1] * len(scored)
    return [word if keep and word is not None else -1 for word, keep in zip(text.words, scored, strict=True)]


def _covered(text: str, offset: Span, spans: Sequence[Span]) -> bool:
    start, end = offset
    # Byte-level and SentencePiece tokens own the space before them, which belongs to no word.
    bare = text[start:end]
    inner = start + len(bare) - len(bare.lstrip()), start + len(bare.rstrip())
    if inner[0] < inner[1]:
        start, end = inner
    return any(start < high and max(end, start + 1) > low for low, high in spans)


def _short(text: str, width: int = 60) -> str:
    return repr(text if len(text) <= width else text[: width - 3] + "...")
