"""The generated BIStereo pairs, declared: frames and word lists from `data/pairs`, crossed.

A sentence is `<opening> [a|an] [attribute] <descriptor> <noun> [ending].`, so the position of the descriptor, in which
alone the two sentences of a pair differ, is known. It may also be last, `The [attribute] <noun> <clause> [ending] was
<descriptor>.`, or first, `The <descriptor> <noun> <clause> [ending] was <attribute>.`, because the position matters for
causal models.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import product
from typing import Any, Literal

import msgspec

from ...core.contracts.records import Scalar
from ...core.design import (
    AnswerForm,
    By,
    Cell,
    Context,
    Design,
    Fixed,
    Group,
    Levels,
    Sampled,
    Worded,
    Wording,
)
from ...core.design.levels import Value
from .attributes import BEAUTIFUL, CHILDREN, SEXUAL, Attributes

CELL = ("axis", "gender", "sentiment")
SIDES = ("desirable", "undesirable")
SENTIMENTS = ("positive", "negative", "neutral")
COLUMNS = {
    "pair": "{template}/{noun}/{attribute}/{descriptors}",
    "side": "side",
    **{name: name for name in (*CELL, "number", "phrase", "template", "noun")},
    "attribute": "attribute.word",
    "descriptors": "descriptors",
}
FACTORS = tuple(COLUMNS)
ID = "{pair}/{side}"
ANSWER = AnswerForm("continuation", outcome="log_probability")
Position = Literal["attributive", "last", "first"]
Condition = dict[str, tuple[Scalar, ...]]
NUMBERS = ("singular", "plural")
WHO = "{noun} {template.clause} {template.end}"
ENDINGS = ("location", "action_location")
NO_ENDING = "none"


class Selection(msgspec.Struct, frozen=True):
    """The selected part of the design."""

    axes: tuple[str, ...] = ()
    genders: tuple[str, ...] = ()
    sentiments: tuple[str, ...] = ()
    position: Position = "attributive"
    attributes: Attributes = "screened"
    beautiful: bool = False


@functools.cache
def load_lists() -> dict[str, Any]:
    """Read the shipped data files."""
    parts: dict[str, Any] = {}
    for name in ("templates", "descriptors", "words"):
        file = resources.files(__package__) / "data" / "pairs" / f"{name}.toml"
        parts |= msgspec.toml.decode(file.read_bytes())
    return parts


@functools.lru_cache(maxsize=4)
def pairs_design(selection: Selection) -> Design:
    """Return the design of a selection."""
    lists = load_lists()
    templates = (By("axis"), Fixed("number"), Sampled("opening"), Sampled("ending", parts=(Sampled("place"),)))
    left_out: tuple[tuple[Condition, bool], ...] = (
        ({"attribute": tuple(SEXUAL), "noun": tuple(CHILDREN)}, selection.attributes == "screened"),
        # Without an attribute there is no predicate.
        ({"sentiment": ("neutral",)}, selection.position == "first"),
    )
    return Design(
        (
            Sampled("template", _templates(lists, selection.position), (*templates, Fixed("phrase"))),
            Fixed("noun", _nouns(lists), (By("gender"),), within=("number",)),
            Fixed("descriptors", _descriptors(lists), within=("axis", "gender")),
            Sampled("attribute", _attributes(lists, selection), (Context("sentiment", controls=("neutral",)),)),
            Fixed("body", _bodies(lists), (Group("side"),), within=("descriptors",)),
        ),
        columns=COLUMNS,
        id=ID,
        where=chosen_cells(selection),
        without=tuple(condition for condition, applies in left_out if applies),
        answer=ANSWER,
    )


def chosen_cells(selection: Selection) -> Condition:
    """Return what every cell of a selection meets."""
    asked = zip(CELL, (selection.axes, selection.genders, selection.sentiments), strict=True)
    return {name: levels for name, levels in asked if levels}


def sentence(cell: Cell, position: Position) -> Worded:
    """Return the sentence of a cell, with the place of its descriptor."""
    return _wordings(position)[str(cell["number"])].fill(cell)


@functools.cache
def _wordings(position: Position) -> Mapping[str, Wording]:
    patterns = {
        "attributive": ("{template.start} {article} {attribute.word} {body} {noun} {template.end}.",) * 2,
        "last": tuple(f"The {{attribute.word}} {WHO} {verb} {{body}}." for verb in ("was", "were")),
        "first": tuple(f"The {{body}} {WHO} {verb} {{attribute.word}}." for verb in ("was", "were")),
    }
    singular, plural = patterns[position]
    marked = ("body",)
    return {"singular": Wording(singular, marked), "plural": Wording(plural.replace("{article} ", ""), marked)}


def _templates(lists: dict[str, Any], position: Position) -> Levels:
    """Return the templates (BIStereo, section 3.1: 450); an id counts the places in the lists."""
    suffix = "" if position == "attributive" else f"-{position}"
    rows: list[dict[str, Value]] = []
    for axis, number in product(lists["axes"], NUMBERS):
        endings = enumerate(_endings(lists["phrases"][axis["key"]]))
        openings = enumerate(lists["openings"]["singular"])
        for (at, opening), (last, (phrase, ending)) in product(openings, endings):
            rows.append(
                {
                    "name": f"{axis['key']}-{number[0]}-{at + 1:02}-{last:02}{suffix}",
                    "axis": axis["name"],
                    "number": number,
                    "opening": opening,
                    "ending": ending or NO_ENDING,
                    # The last words of every ending are its place.
                    "place": ending.rpartition(" the ")[2] or NO_ENDING,
                    "phrase": phrase,
                    "start": lists["openings"][number][at],
                    "clause": lists["clauses"][number][at],
                    "end": ending,
                }
            )
    return Levels.of_rows(rows)


def _endings(phrases: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return the phrases that may follow the noun, each after its kind."""
    return [(NO_ENDING, ""), *((kind, text) for kind in ENDINGS for text in phrases[kind])]


def _nouns(lists: dict[str, Any]) -> Levels:
    return Levels.of_rows(
        {"name": noun, "gender": gender, "number": number}
        for gender, numbers in lists["nouns"].items()
        for number, nouns in numbers.items()
        for noun in nouns
    )


def _descriptors(lists: dict[str, Any]) -> Levels:
    return Levels.of_rows(
        {"name": pair["name"], "axis": axis["name"], "gender": tuple(pair["genders"])}
        for axis in lists["axes"]
        for pair in axis["pairs"]
    )


def _bodies(lists: dict[str, Any]) -> Levels:
    return Levels.of_rows(
        {"name": pair[side], "descriptors": pair["name"], "side": side}
        for axis in lists["axes"]
        for pair in axis["pairs"]
        for side in SIDES
    )


def _attributes(lists: dict[str, Any], selection: Selection) -> Levels:
    words = {sentiment: list(lists["attributes"].get(sentiment, ())) for sentiment in SENTIMENTS}
    words["positive"] += [BEAUTIFUL] if selection.beautiful else []
    rows = [{"name": word, "word": word, "sentiment": sentiment} for sentiment in words for word in words[sentiment]]
    return Levels.of_rows([*rows, {"name": "neutral", "word": None, "sentiment": "neutral"}])
