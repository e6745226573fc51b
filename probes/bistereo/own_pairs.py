"""Pairs of one's own, read from a file or folder with the columns of `REQUIRED` and `OPTIONAL`."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ...core.contracts.records import Scalar
from ...core.design import By, Context, Design, Fixed, Group, Levels, Sampled
from ...core.design.factors import AnyFactor
from ...core.design.folder import further, parse_data, parts_of
from ...core.design.levels import Value
from ...core.tables import Form, Parsed, Repeats, Row, TableOptions
from ..shared.sentence_pairs import Pair, Spans, checked_difference, parts_columns, words
from .pairs_design import ANSWER, CELL, COLUMNS, ID, SENTIMENTS, Selection, chosen_cells
from .pairs_texts import SIDES

REQUIRED = (*SIDES, *CELL)
OPTIONAL = ("template", "number", "phrase", "attribute", "noun", "pair")
PARTS = (
    *(By("axis"), By("gender"), Context("sentiment", controls=("neutral",)), Fixed("number"), Fixed("phrase")),
    *(Sampled("template"), Fixed("noun"), Sampled("attribute"), Fixed("descriptors")),
)


def own_design(listed: Iterable[Pair], selection: Selection, own: tuple[AnyFactor, ...] = ()) -> Design:
    """Return the design of the selected pairs: a row per pair, and its two sides; `own` are parts of a folder."""
    pairs = list(listed)
    columns_known: dict[str, tuple[Value, ...]] = {
        part.name: tuple(pair.factors[part.name] for pair in pairs) for part in PARTS
    }
    table = Levels(tuple(pair.id for pair in pairs), columns_known | parts_columns(pairs, own))
    columns = {name: name for name in COLUMNS}
    factors = (Sampled("pair", table, (*PARTS, *own)), Group("side", SIDES))
    return Design(factors, columns=columns, id=ID, where=chosen_cells(selection), answer=ANSWER)


def read_pairs(path: str, options: TableOptions | None = None) -> Parsed[Pair]:
    """Read pairs from a file.

    Raises:
        DataError: The file cannot be used, or has rows that cannot.
    """
    parts = parts_of(path)
    repeats = Repeats((*REQUIRED, *OPTIONAL, *(part.name for part in parts)))

    def pair_of(row: Row) -> Pair:
        pair = _from_row(row, f"row-{row.index + 1}")
        repeats.check(row, pair.id, f"pair {pair.id!r}")
        return msgspec.structs.replace(pair, parts=further(row, parts)) if parts else pair

    return parse_data(path, Form(REQUIRED, OPTIONAL), pair_of, options)


def _from_row(row: Row, number: str) -> Pair:
    texts = (row.filled("desirable"), row.filled("undesirable"))
    spans = checked_difference(row, texts)
    sentiment = row.choice("sentiment", SENTIMENTS)
    differing = "/".join(
        " ".join(text[start:end] for start, end in places) for text, places in zip(texts, spans, strict=True)
    )
    factors: dict[str, Scalar] = {
        "axis": row.filled("axis"),
        "gender": row.filled("gender"),
        "sentiment": sentiment,
        "number": row.optional("number"),
        "phrase": row.optional("phrase"),
        "template": row.optional("template") or _frame(texts[0], spans[0], row),
        "noun": row.optional("noun"),
        "attribute": row.optional("attribute"),
        "descriptors": differing,
    }
    return Pair(row.optional("pair") or number, SIDES, texts, factors, spans)


def _frame(text: str, spans: Spans, row: Row) -> str:
    """Name the cluster of a row without a template: its text, with the words that vary within a template removed."""
    varying = {row.optional("attribute"), row.optional("noun")}
    kept = ("_" if span in spans or word in varying else word for word, span in words(text))
    return " ".join("a" if word == "an" else word for word in kept)
