"""The numbers behind the replies: their order, and what measures and groups are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ..catalogue.questions import Question
from ..contracts.estimates import Estimate
from ..contracts.records import Scalar
from .records import Number, Reply, Row
from .verdicts import state_of

MOST_ROWS = 6
LEFT = "{shown} of {every} numbers; all of them stand under Estimates of the report."


class Asked(NamedTuple):
    """A question with the estimates that answer it, in the order in which they are told of, and finer ones."""

    question: Question
    answering: list[Estimate]
    finer: list[Estimate]


def furthest(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return estimates, those furthest from neutral first."""

    def distance(e: Estimate) -> float:
        return -1.0 if e.value is None else abs(e.value - (e.neutral or 0.0))

    return sorted(estimates, key=distance, reverse=True)


def most_precise(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return estimates, those of most answers first, and of as many those furthest from neutral."""
    return sorted(furthest(estimates), key=lambda e: e.n if e.value is not None else -1, reverse=True)


def with_rows(replies: Sequence[Reply], asked: Sequence[Asked]) -> tuple[tuple[Reply, ...], str]:
    """Return the replies with the numbers behind them, `MOST_ROWS` at most, and in words which others there are."""
    share = max(1, MOST_ROWS // max(len(asked), 1))
    chosen = [(one, one.answering[:share]) for one in asked]
    free = MOST_ROWS - sum(len(rows) for _, rows in chosen)
    for one, own in chosen:
        # More groups of the same grouping first, then those of the next.
        more = [*one.answering[share:], *(one.finer if len(own) == len(one.answering) else [])]
        take = more[: free if one is asked[-1] else -(-free // 2)]
        own += take
        free -= len(take)
    varying = varying_of([e for _, rows in chosen for e in rows])
    every = sum(len(one.answering) + len(one.finer) for one in asked)
    rows = [[row_of(one.question, e, varying) for e in own if e.value is not None] for one, own in chosen]
    shown = sum(map(len, rows))
    filled = [msgspec.structs.replace(reply, rows=tuple(own)) for reply, own in zip(replies, rows, strict=True)]
    return tuple(filled), LEFT.format(shown=shown, every=every) if rows and every > shown else ""


def varying_of(estimates: Sequence[Estimate]) -> frozenset[str]:
    """Return the factors whose levels tell estimates of one measure apart."""
    found: dict[tuple[str, str], set[Any]] = {}
    for e in estimates:
        for name in {name for other in estimates if other.metric == e.metric for name in other.group}:
            found.setdefault((e.metric, name), set()).add(e.group.get(name))
    return frozenset(name for (_, name), levels in found.items() if len(levels) > 1)


def row_of(question: Question, e: Estimate, varying: frozenset[str]) -> Row:
    """Return the row of an estimate that belongs to a question; `varying`: factors whose levels name it."""
    return Row(label_of(e), e.meaning, about_of(e, varying), Number.of(e), state_of(question, e), e)


def label_of(e: Estimate) -> str:
    """Return what a measure is called; never its identifier as it stands."""
    return e.label or e.metric.replace("_", " ")


def about_of(e: Estimate, varying: frozenset[str] | None = None) -> str:
    """Return the levels of a group in words, those that tell it apart; empty for the whole."""
    return levels_in_words({n: v for n, v in e.group.items() if varying is None or n in varying})


def levels_in_words(group: Mapping[str, Scalar]) -> str:
    """Return the levels of a group in words."""
    levels = (_level(n, v) for n, v in group.items() if v is not None)
    return ", ".join(level.replace("_", " ") for level in levels)


def _level(name: str, value: Scalar) -> str:
    """Return a level that is a word as it is, and one that is or begins with a number with its factor's name."""
    if isinstance(value, str) and value[:1].isalpha():
        return value
    return f"{name} {value:.12g}" if isinstance(value, float) else f"{name} {value}"
