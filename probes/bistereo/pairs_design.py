"""The generated BIStereo pairs, declared: templates, nouns, descriptors and attribute words.

A sentence is `<opening> [a|an] [attribute] <descriptor> <noun> [ending].`, so the position of the descriptor, in which
alone the two sentences of a pair differ, is known. It may also be last, `The [attribute] <noun> <clause> [ending] was
<descriptor>.`, or first, `The <descriptor> <noun> <clause> [ending] was <attribute>.`, because the position matters for
causal models.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Literal

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
    Rotation,
    Sampled,
    Worded,
    Wording,
)
from ...core.design.factors import AnyFactor
from . import pairs_texts
from .attributes import CHILDREN, SEXUAL, Attributes
from .pairs_texts import NEUTRAL, Texts

CELL = ("axis", "gender", "sentiment")
SENTIMENTS = ("positive", "negative", NEUTRAL)
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
WHO = "{noun} {template.clause} {template.end}"
TURN = Rotation(("template.turn", "attribute.turn"), only={"sentiment": ("positive", "negative")})
"""Each template and word has one of the nouns in turn; neutral sentences have every noun."""


class Selection(msgspec.Struct, frozen=True):
    """The selected part of the design."""

    axes: tuple[str, ...] = ()
    genders: tuple[str, ...] = ()
    sentiments: tuple[str, ...] = ()
    position: Position = "attributive"
    attributes: Attributes = "screened"
    beautiful: bool = False
    texts: Texts = "wide"


@functools.lru_cache(maxsize=4)
def pairs_design(selection: Selection) -> Design:
    """Return the design of a selection."""
    left_out: tuple[tuple[Condition, bool], ...] = (
        ({"attribute": tuple(SEXUAL), "noun": tuple(CHILDREN)}, selection.attributes == "screened"),
        # Without an attribute there is no predicate.
        ({"sentiment": (NEUTRAL,)}, selection.position == "first"),
    )
    return Design(
        _crossed(selection) if selection.texts == "paper" else _in_turn(selection),
        columns=COLUMNS,
        id=ID,
        where=chosen_cells(selection),
        without=tuple(condition for condition, applies in left_out if applies),
        answer=ANSWER,
    )


def _in_turn(selection: Selection) -> tuple[AnyFactor, ...]:
    """Return the factors of the study's own texts: templates by words, each with one of the nouns."""
    nouns = pairs_texts.nouns(selection.texts)
    genders = tuple(dict.fromkeys(map(str, nouns.column("gender"))))
    return (
        _template(selection, Sampled("place")),
        _attribute(selection),
        By("gender", genders),
        Fixed("noun", nouns, within=("gender", "number"), assigned=TURN),
        *_bodies(selection),
    )


def _crossed(selection: Selection) -> tuple[AnyFactor, ...]:
    """Return the factors of the paper's texts: templates by nouns by words. Several endings share a place."""
    descriptors, body = _bodies(selection)
    return (
        _template(selection, Sampled("ending", parts=(Sampled("place"),))),
        Fixed("noun", pairs_texts.nouns(selection.texts), (By("gender"),), within=("number",)),
        descriptors,
        _attribute(selection),
        body,
    )


def _template(selection: Selection, ending: AnyFactor) -> Sampled:
    suffix = "" if selection.position == "attributive" else f"-{selection.position}"
    parts = (By("axis"), Fixed("number"), Sampled("opening"), ending, Fixed("phrase"))
    return Sampled("template", pairs_texts.templates(selection.texts, suffix), parts)


def _attribute(selection: Selection) -> Sampled:
    words = pairs_texts.attributes(selection.texts, selection.beautiful)
    return Sampled("attribute", words, (Context("sentiment", controls=(NEUTRAL,)),))


def _bodies(selection: Selection) -> tuple[Fixed, Fixed]:
    pairs, bodies = pairs_texts.descriptors(selection.texts), pairs_texts.bodies(selection.texts)
    side = (Group("side"),)
    return Fixed("descriptors", pairs, within=("axis", "gender")), Fixed("body", bodies, side, within=("descriptors",))


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
