"""Pairs of a premise and a hypothesis of one's own: a row per pair and group, with the columns of `REQUIRED`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...core.contracts.errors import DataError
from ...core.contracts.records import Scalar
from ...core.design import AnswerForm, By, Context, Design, Fixed, Group, Levels, Sampled
from ...core.design.factors import AnyFactor
from ...core.design.folder import further, parse_data, parts_of
from ...core.design.levels import Value
from ...core.tables import Form, Parsed, Repeats, Row, TableOptions
from .nli_design import FACTORS, Selection
from .tuples_file import NO_GENDER

REQUIRED = ("pair", "group", "premise", "hypothesis", "sentiment")
OPTIONAL = ("gender", "kind", "category", "direction", "template", "noun", "attribute")
SENTIMENTS = ("positive", "negative")
PARTS = (
    *(By("gender"), By("kind"), By("category"), Context("sentiment"), By("direction")),
    *(Sampled("template"), Fixed("noun"), Sampled("attribute")),
)
GROUPS = 2


class Inference(msgspec.Struct, frozen=True):
    """A premise and a hypothesis about one of two groups."""

    pair: str
    group: str
    texts: tuple[str, str]
    factors: dict[str, Scalar]
    """What the two rows of a pair have in common."""


def read_inferences(path: str, options: TableOptions | None = None) -> Parsed[Inference]:
    """Read the pairs of a file or folder; the first group is that of the first row.

    Raises:
        DataError: The table cannot be used, a pair lacks a group or has it twice, or there are not two groups.
    """
    parts = parts_of(path)
    seen: set[tuple[str, str]] = set()
    repeats = Repeats((*REQUIRED, *OPTIONAL, *(part.name for part in parts)))
    common: dict[str, tuple[int, dict[str, Scalar]]] = {}

    def inference_of(row: Row) -> Inference:
        inference = _from_row(row, parts)
        name = (inference.pair, inference.group)
        repeats.check(row, name, f"the group {inference.group!r} of pair {inference.pair!r}")
        line, factors = common.setdefault(inference.pair, (row.line, inference.factors))
        if factors != inference.factors:
            column = next(column for column in factors if factors[column] != inference.factors[column])
            problem = (
                f"{column} is {inference.factors[column]!r}, and on line {line} of the same pair {factors[column]!r}."
            )
            raise row.fault(f"{problem} Make them equal.", "data.contradiction")
        seen.add(name)
        return inference

    parsed = parse_data(path, Form(REQUIRED, OPTIONAL), inference_of, options)
    groups = tuple(dict.fromkeys(inference.group for inference in parsed.values))
    if len(groups) != GROUPS:
        listed = ", ".join(map(repr, groups))
        raise DataError(f"{parsed.path} has the groups {listed}. It needs {GROUPS}.", code="data.groups", groups=groups)
    if lacking := next(((pair, group) for pair in common for group in groups if (pair, group) not in seen), None):
        pair, group = lacking
        raise DataError(f"{parsed.path}: pair {pair!r} has no row of {group!r}. Add it.", code="data.incomplete-pair")
    return parsed


def _from_row(row: Row, own: Sequence[AnyFactor]) -> Inference:
    sentiment = row.choice("sentiment", SENTIMENTS)
    optional: dict[str, Scalar] = {name: row.optional(name) for name in OPTIONAL}
    named: dict[str, Scalar] = {
        "template": optional["template"] or row.filled("pair"),
        "category": optional["category"] or sentiment,
        "gender": optional["gender"] or NO_GENDER,
    }
    factors = optional | named | {"sentiment": sentiment} | further(row, own)
    texts = (row.filled("premise"), row.filled("hypothesis"))
    return Inference(row.filled("pair").strip(), row.filled("group").strip(), texts, factors)


def own_nli_design(listed: Sequence[Inference], selection: Selection, path: str, answers: tuple[str, ...]) -> Design:
    """Return the design of the pairs of own data: a row per pair, and its two groups."""
    groups = tuple(dict.fromkeys(inference.group for inference in listed))
    # A positive control is planted in the first context: praise comes first, whatever the order of the file.
    pairs = {
        inference.pair: inference
        for inference in sorted(listed, key=lambda pair: SENTIMENTS.index(str(pair.factors["sentiment"])))
    }
    texts = {(inference.pair, inference.group): inference.texts for inference in listed}
    rows: list[dict[str, Value]] = [
        {
            "name": f"{pair}/{group}",
            "pair": pair,
            "skin": group,
            "premise": texts[pair, group][0],
            "hypothesis": texts[pair, group][1],
        }
        for pair in pairs
        for group in groups
    ]
    table = Levels.of_rows({"name": inference.pair, **inference.factors} for inference in pairs.values())
    asked = {"gender": selection.genders, "category": selection.categories}
    return Design(
        (
            Sampled("pair", table, (*PARTS, *parts_of(path))),
            Fixed("text", Levels.of_rows(rows), (Group("skin"),), within=("pair",)),
        ),
        columns={"pair": "pair", "skin": "skin", **{name: name for name in FACTORS}},
        id="{pair}/{skin}",
        where={name: levels for name, levels in asked.items() if levels},
        answer=AnswerForm("label", outcome="label", answers=answers, up=answers[:1]),
    )
