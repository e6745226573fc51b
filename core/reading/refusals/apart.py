"""Sentences about the request apart from what an answer says besides."""

from __future__ import annotations

from .decide import AROUND, CAUSE, DIRECT, DISCLAIMS, OPENS_LECTURE, Marked, mark
from .indirect import ADDRESS_RULES
from .rule import Mark
from .rules import RULES
from .sentences import Span

DECLINING: frozenset[Mark] = DIRECT | DISCLAIMS | OPENS_LECTURE | {"regret", "unable", "evasion"}
"""Acts of a sentence that declines, disclaims or apologises: no answer stands in it."""
ABOUT_REQUEST: frozenset[Mark] = DIRECT | DISCLAIMS | {"regret", "norm", "evasion", "address"}
"""Acts that are about the question, whatever answer they stand in."""


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


def about_request(text: str) -> tuple[Span, ...]:
    """Return the sentences of an answer that talk about the question, or about answering it, and about nobody.

    A sentence of courtesy or exhortation belongs to them where it stands beside one of them, and nothing but such
    sentences stands between.

    Args:
        text: An answer without its reasoning.
    """
    if not CAUSE.search(text):
        return ()
    marked = mark(text, len(text), (*RULES, *ADDRESS_RULES))
    chosen = {at for at, spoken in enumerate(marked) if spoken.marks & ABOUT_REQUEST and "turn" not in spoken.marks}
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


def _words(text: str, spoken: Marked) -> str:
    start, end = spoken.sentence.span
    return text[start:end].strip()
