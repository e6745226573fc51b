"""The premise-hypothesis pairs of BIStereo-NLI, from the templates and word lists in `data/nli`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from importlib import resources
from itertools import product
from typing import Literal, NamedTuple

import msgspec

from ..shared.sentence_pairs import Pair
from .attributes import BEAUTIFUL, Attributes, is_asked
from .terms import SKINS

Number = Literal["singular", "plural"]
ATTRIBUTE, SKIN = "attribute in premise", "skin tone in premise"
DIRECTIONS = (ATTRIBUTE, SKIN)
"""Which of the two words of a template is in the premise; the other is in the hypothesis."""
CELL = ("gender", "category")
FACTORS = ("gender", "kind", "category", "sentiment", "direction", "template", "noun", "attribute")
VOWELS = (*"aeiou", "honest")
"""Words in the lists that take `an`."""


class Premise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence about a person."""

    premise: str
    place: str | None = None
    """A form of the hypothesis' subject."""
    number: Number = "singular"
    genders: tuple[str, ...] = ("women", "men")


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A list of attributes."""

    name: str
    kind: str
    """`looks` or `behaviour`."""
    sentiment: str
    words: tuple[str, ...]


class Design(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts that are combined to pairs."""

    forms: dict[Number, tuple[str, ...]]
    looks: tuple[Premise, ...]
    behaviour: tuple[Premise, ...]
    skin: dict[str, str]
    pronouns: dict[str, str]
    nouns: dict[str, dict[Number, tuple[str, ...]]]
    every_noun: dict[str, bool]
    categories: tuple[Category, ...]


class Template(msgspec.Struct, frozen=True):
    """A premise with a form of the hypothesis, for one gender."""

    id: str
    kind: str
    gender: str
    number: Number
    premise: str
    hypothesis: str
    place: str
    nouns: tuple[str, ...]


class Words(NamedTuple):
    """Which attribute words are asked."""

    attributes: Attributes = "screened"
    beautiful: bool = False

    def of(self, category: Category) -> tuple[str, ...]:
        """Return the words of a category."""
        more = (BEAUTIFUL,) if self.beautiful and category.name == "attractiveness" else ()
        return (*category.words, *more)


@functools.cache
def load_design() -> Design:
    """Read the shipped data files."""
    parts: dict[str, object] = {}
    for name in ("templates", "words"):
        file = resources.files(__package__) / "data" / "nli" / f"{name}.toml"
        parts |= msgspec.toml.decode(file.read_bytes())
    return msgspec.convert(parts, Design)


def templates(design: Design, gender: str) -> Iterator[Template]:
    """Yield the templates of a gender (BIStereo, section 3.2: 246 for women, 213 for men)."""
    for kind, premises in (("looks", design.looks), ("behaviour", design.behaviour)):
        for at, premise in enumerate(premises, 1):
            if gender not in premise.genders:
                continue
            nouns = design.nouns[gender][premise.number]
            for form, hypothesis in enumerate(design.forms[premise.number], 1):
                if premise.place is None and "{place}" in hypothesis:
                    continue
                own = nouns if design.every_noun[kind] else (nouns[(at + form) % len(nouns)],)
                name, place = f"{kind}-{at:02}-{form}", premise.place or ""
                yield Template(name, kind, gender, premise.number, premise.premise, hypothesis, place, own)


def generate(design: Design, genders: Iterable[str], categories: Iterable[str], words: Words) -> Iterator[Pair]:
    """Yield pairs of a fair and a dark skin tone; a text is the premise, a line end and the hypothesis."""
    chosen = set(categories)
    for gender in genders:
        for template in templates(design, gender):
            lists = [c for c in design.categories if c.name in chosen and c.kind == template.kind]
            for noun, category in product(template.nouns, lists):
                for word, direction in product(words.of(category), DIRECTIONS):
                    if is_asked(word, noun, words.attributes):
                        yield _pair(design, template, noun, category, (word, direction))


def _pair(design: Design, template: Template, noun: str, category: Category, what: tuple[str, str]) -> Pair:
    word, direction = what
    fair, dark = (_text(template, noun, design, (design.skin[side], word, direction)) for side in SKINS)
    short = "attribute-skin" if direction == ATTRIBUTE else "skin-attribute"
    cell = (template.gender, template.kind, category.name, category.sentiment, direction, template.id, noun, word)
    name = f"{template.id}/{noun}/{word}/{short}"
    return Pair(name, SKINS, (fair, dark), dict(zip(FACTORS, cell, strict=True)))


def _text(template: Template, noun: str, design: Design, words: tuple[str, str, str]) -> str:
    skin, attribute, direction = words
    x, y = (attribute, skin) if direction == ATTRIBUTE else (skin, attribute)
    told = {"x": x, "y": y, "noun": noun, "place": template.place, "She": design.pronouns[template.gender]}
    premise, hypothesis = template.premise, template.hypothesis
    return f"{premise.format(a=_article(x), **told)}\n{hypothesis.format(a=_article(y), **told)}"


def _article(word: str) -> str:
    return "an" if word.startswith(VOWELS) else "a"
