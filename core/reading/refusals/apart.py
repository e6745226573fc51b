"""Sentences about the request apart from what an answer says besides."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from .decide import AROUND, CAUSE, DIRECT, DISCLAIMS, OPENS_LECTURE, Marked, mark
from .indirect import ADDRESS_RULES, OF_SOMEBODY
from .rule import Mark
from .rules import RULES
from .sentences import Span, sentences_of

DECLINING: frozenset[Mark] = DIRECT | DISCLAIMS | OPENS_LECTURE | {"regret", "unable", "evasion"}
"""Acts of a sentence that declines, disclaims or apologises: no answer stands in it."""
ABOUT_REQUEST: frozenset[Mark] = DIRECT | DISCLAIMS | {"regret", "norm", "evasion", "address"}
"""Acts that are about the question, whatever answer they stand in."""

FORMULA_WORDS, FORMULA_ANSWERS = 3, 5
"""Fewest words of a formula, also between its commas, and fewest answers that share it."""
SPOKEN = re.compile(
    r"\b(?:i|me|my|we|us|our|you|your|that|this|these|those|not|no|nobody|none|nothing|somebody|someone|anybody|anyone"
    r"|something|anything|other|another|else)\b"
)
"""Words for the speaker, the reader, what was said, or nobody in particular."""
DESCRIBES = re.compile(
    rf"{OF_SOMEBODY}|\b(?:see|sees|feel\w*|think|imagine|notice|sense\w*|love|like|likes|perceive|evok\w+|remind\w*"
    r"|makes?|looks?|seems?|appears?|convey\w*|suggest\w*|express\w*|emotions?|impressions?|moods?|shows?|words?"
    r"|scene|drawing|portrait|background|vibes?|mind)\b"
)
"""Words for a person, a picture, or what somebody makes of it."""


def behind_refusal(text: str) -> str:
    """Return a text without its sentences that decline; a JSON object is no sentence, whatever it says.

    Args:
        text: An answer that declines, without its reasoning.
    """
    start, end = text.find("{"), text.rfind("}") + 1
    parts = (text[:start], text[start:end], text[end:]) if 0 <= start < end else (text, "", "")
    before, after = (
        "\n".join(_words(piece, spoken) for spoken in mark(piece, len(piece)) if not spoken.marks & DECLINING)
        for piece in (parts[0], parts[2])
    )
    return f"{before}{parts[1]}{after}".strip()


def formulas_in(texts: Iterable[str | None]) -> frozenset[str]:
    """Return the sentences, in one wording, that answers to several questions share and that speak of nobody in them.

    Whatever its words, a sentence about the speaker, the reader or nobody in particular that is the same about several
    people or pictures describes none of them. One that names a person, a picture or a perception is no such sentence.

    Args:
        texts: Answers without their reasoning, each to a question about somebody else; None for a missing one.
    """
    counts = Counter(
        words
        for text in texts
        if text
        for words in {sentence.words for sentence in sentences_of(text)}
        if SPOKEN.search(words) and not DESCRIBES.search(words) and _is_sentence(words)
    )
    return frozenset(words for words, count in counts.items() if count >= FORMULA_ANSWERS)


def about_request(text: str, formulas: frozenset[str] = frozenset()) -> tuple[Span, ...]:
    """Return the sentences of an answer that talk about the question, or about answering it, and about nobody.

    A sentence of courtesy or exhortation belongs to them where it stands beside one of them, and nothing but such
    sentences stands between.

    Args:
        text: An answer without its reasoning.
        formulas: Further sentences that do (`formulas_in`).
    """
    if not (formulas or CAUSE.search(text)):
        return ()
    marked = mark(text, len(text), (*RULES, *ADDRESS_RULES))
    chosen = {at for at, spoken in enumerate(marked) if spoken.marks & ABOUT_REQUEST and "turn" not in spoken.marks}
    chosen |= {at for at, spoken in enumerate(marked) if spoken.sentence.words in formulas}
    for step in (1, -1):
        for at in range(len(marked))[::step]:
            if at - step in chosen and marked[at].marks & (AROUND | OPENS_LECTURE) and "turn" not in marked[at].marks:
                chosen.add(at)
    return tuple(marked[at].sentence.span for at in sorted(chosen))


def without(text: str, spans: tuple[Span, ...]) -> str:
    """Return a text without some of its sentences.

    Args:
        text: The text.
        spans: Where they stand, in order, apart from each other.
    """
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text.strip()


def _is_sentence(words: str) -> bool:
    """Return whether words are no short answer and no list."""
    length = len(words.split())
    return length >= FORMULA_WORDS and FORMULA_WORDS * words.count(",") <= length


def _words(text: str, spoken: Marked) -> str:
    start, end = spoken.sentence.span
    return text[start:end].strip()
