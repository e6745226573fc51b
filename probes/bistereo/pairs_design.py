"""The generated BIStereo pairs: frames and word lists from `data/pairs`, combined without a word diff.

A sentence is `<opening> [a|an] [attribute] <descriptor> <noun> [phrase].`, so the position of the descriptor, in which
alone the two sentences of a pair differ, is known. It may also be last, `The [attribute] <noun> <clause> [phrase] was
<descriptor>.`, or first, `The <descriptor> <noun> <clause> [phrase] was <attribute>.`, because the position matters for
causal models.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib import resources
from itertools import product
from typing import Literal, NamedTuple

import msgspec

from ...core.contracts.records import Scalar
from ..shared.sentence_pairs import Pair
from .attributes import BEAUTIFUL, Attributes, is_asked

CELL = ("axis", "gender", "sentiment")
FACTORS = ("pair", "side", *CELL, "number", "phrase", "template", "noun", "attribute", "descriptors")
Number = Literal["singular", "plural"]
Position = Literal["attributive", "last", "first"]


class DescriptorPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stereotypically desirable and undesirable descriptor."""

    name: str
    desirable: str
    undesirable: str
    genders: tuple[str, ...]
    """Gender of the nouns that the pair is combined with."""


class Axis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dimension of body image."""

    name: str
    key: str
    """Short name in template ids."""
    pairs: tuple[DescriptorPair, ...]


class Phrases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Phrases that may follow the noun."""

    location: tuple[str, ...]
    action_location: tuple[str, ...]


class Design(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts that are combined to pairs."""

    axes: tuple[Axis, ...]
    openings: dict[Number, tuple[str, ...]]
    clauses: dict[Number, tuple[str, ...]]
    """Clause that replaces each opening if the descriptor is last or first."""
    phrases: dict[str, Phrases]
    """By the key of the axis."""
    nouns: dict[str, dict[Number, tuple[str, ...]]]
    """By gender."""
    attributes: dict[str, tuple[str, ...]]
    """By sentiment; `neutral` has none."""


class Template(msgspec.Struct, frozen=True):
    """A frame: axis, number, opening and phrase."""

    id: str
    axis: Axis
    number: Number
    opening: str
    clause: str
    kind: str
    """`none`, `location` or `action_location`."""
    tail: str
    """The phrase with a leading space, and the full stop."""


class Selection(msgspec.Struct, frozen=True):
    """The selected part of the design."""

    axes: tuple[str, ...]
    genders: tuple[str, ...]
    sentiments: tuple[str, ...]
    position: Position = "attributive"
    attributes: Attributes = "screened"
    beautiful: bool = False


@functools.cache
def load_design() -> Design:
    """Read the shipped data files."""
    parts: dict[str, object] = {}
    for name in ("templates", "descriptors", "words"):
        file = resources.files(__package__) / "data" / "pairs" / f"{name}.toml"
        parts |= msgspec.toml.decode(file.read_bytes())
    return msgspec.convert(parts, Design)


def templates(design: Design) -> Iterator[Template]:
    """Yield the templates in the order of their ids (BIStereo, section 3.1: 450)."""
    for axis in design.axes:
        phrases = [("none", "")]
        phrases += [("location", f" {text}") for text in design.phrases[axis.key].location]
        phrases += [("action_location", f" {text}") for text in design.phrases[axis.key].action_location]
        for number, openings in design.openings.items():
            starts = enumerate(zip(openings, design.clauses[number], strict=True), 1)
            for (at, start), (place, (kind, text)) in product(starts, enumerate(phrases)):
                name = f"{axis.key}-{number[0]}-{at:02}-{place:02}"
                yield Template(name, axis, number, *start, kind, f"{text}.")


def generate(design: Design, selection: Selection) -> Iterator[Pair]:
    """Yield the pairs of a selection lazily, template by template.

    If the descriptor is first, the attribute is the predicate, and there are no neutral pairs.
    """
    neutral = () if selection.position == "first" else (None,)
    more = {"positive": (BEAUTIFUL,) if selection.beautiful else ()}
    attributes = [
        (sentiment, word)
        for sentiment in selection.sentiments
        for word in (*design.attributes.get(sentiment, neutral), *more.get(sentiment, ()))
    ]
    for template in templates(design):
        if template.axis.name not in selection.axes:
            continue
        for gender in selection.genders:
            nouns = design.nouns[gender][template.number]
            for noun, descriptors in product(nouns, template.axis.pairs):
                if gender in descriptors.genders:
                    for sentiment, attribute in attributes:
                        if is_asked(attribute, noun, selection.attributes):
                            frame = _Frame(template, selection.position, noun, attribute)
                            yield _pair(frame, descriptors, gender, sentiment)


class _Frame(NamedTuple):
    """A template with its noun and attribute: a sentence without its descriptor."""

    template: Template
    position: Position
    noun: str
    attribute: str | None

    @property
    def id(self) -> str:
        return self.template.id if self.position == "attributive" else f"{self.template.id}-{self.position}"

    def around(self, descriptor: str) -> tuple[str, str]:
        """Return the text before and the text after the descriptor."""
        if self.position == "attributive":
            return _head(self.template, self.attribute, descriptor), f" {self.noun}{self.template.tail}"
        who = f"{self.noun} {self.template.clause}{self.template.tail[:-1]}"
        was = "was" if self.template.number == "singular" else "were"
        if self.position == "first":
            return "The ", f" {who} {was} {self.attribute}."
        return f"The {f'{self.attribute} ' if self.attribute else ''}{who} {was} ", "."


def _pair(frame: _Frame, descriptors: DescriptorPair, gender: str, sentiment: str) -> Pair:
    template, noun, attribute = frame.template, frame.noun, frame.attribute
    name = f"{frame.id}/{noun}/{attribute or sentiment}/{descriptors.name}"
    good, bad = descriptors.desirable, descriptors.undesirable
    (head, tail), (other, _) = frame.around(good), frame.around(bad)
    factors: dict[str, Scalar] = {
        "axis": template.axis.name,
        "gender": gender,
        "sentiment": sentiment,
        "number": template.number,
        "phrase": template.kind,
        "template": frame.id,
        "noun": noun,
        "attribute": attribute,
        "descriptors": descriptors.name,
    }
    spans = (((len(head), len(head) + len(good)),), ((len(other), len(other) + len(bad)),))
    return Pair(name, ("desirable", "undesirable"), (f"{head}{good}{tail}", f"{other}{bad}{tail}"), factors, spans)


def _head(template: Template, attribute: str | None, descriptor: str) -> str:
    """Return the text before the descriptor."""
    between = f"{attribute} " if attribute else ""
    if template.number == "plural":
        return f"{template.opening} {between}"
    # The first letter decides the article for every word in the lists; a test checks this for new words.
    article = "an" if (attribute or descriptor)[0] in "aeiou" else "a"
    return f"{template.opening} {article} {between}"
