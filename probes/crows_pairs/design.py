"""What CrowS-Pairs varies: the pairs of a file, each with its two sentences."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.design import AnswerForm, By, Design, Fixed, Group, Levels, Sampled
from ...core.design.factors import AnyFactor
from ...core.design.levels import Value
from ..shared.sentence_pairs import Pair, parts_columns
from .terms import CELL, CHOSEN, DIFFERING_WORD, DIRECTIONS, SHOWN, SIDES

FACTORS = ("pair", "side", *CELL)
LIKELIHOOD = AnswerForm("continuation", outcome="log_probability")
OPTION = AnswerForm("option", outcome=CHOSEN, answers=SHOWN, up=SHOWN[:1])


def crows_design(pairs: Sequence[Pair], own: Sequence[AnyFactor] = (), answer: AnswerForm = LIKELIHOOD) -> Design:
    """Return the design of some pairs: a row per pair, and its two sentences in the order of their alignment.

    Where both sentences are asked together, the side is the one shown first.

    A preference for a word is one for all pairs that differ by it. A pair that differs by several words counts with the
    one that most pairs of the table differ by. `own` are parts that a folder of data declares.
    """
    columns: dict[str, tuple[Value, ...]] = {name: tuple(pair.factors[name] for pair in pairs) for name in CELL}
    differing: dict[str, tuple[Value, ...]] = {DIFFERING_WORD: tuple(differing_words(pair) for pair in pairs)}
    table = Levels(tuple(pair.id for pair in pairs), columns | differing | parts_columns(pairs, own))
    parts = (By("bias_type"), By("direction"), Sampled(DIFFERING_WORD, several="commonest"), *own)
    return Design(
        (Sampled("pair", table, parts), Fixed("sentence", _sentences(), (Group("side"),), within=("direction",))),
        columns={name: name for name in FACTORS},
        id="{pair}/{side}",
        answer=answer,
    )


def differing_words(pair: Pair) -> tuple[str, ...]:
    """Return the distinct words of both sentences that the other one does not share, in lower case."""
    spans = pair.spans or ((), ())
    listed = (text[start:end] for text, own in zip(pair.texts, spans, strict=True) for start, end in own)
    return tuple(dict.fromkeys(word.lower() for word in listed))


def _sentences() -> Levels:
    """Return the two sentences of a pair by direction, the one first from which they are aligned."""
    sides = dict(zip(DIRECTIONS, (SIDES, SIDES[::-1]), strict=True))
    return Levels.of_rows(
        ({"direction": direction, "side": side} for direction, own in sides.items() for side in own),
        name="{direction}/{side}",
    )
