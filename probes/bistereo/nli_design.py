"""The premise-hypothesis pairs of BIStereo-NLI, from the templates and word lists in `data/nli`."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Literal

import msgspec

from ...core.contracts.records import Scalar
from ...core.design import AnswerForm, By, Cell, Context, Design, Fixed, Group, Levels, Rotation, Sampled
from ...core.design.levels import Value
from .attributes import BEAUTIFUL, CHILDREN, SEXUAL, Attributes
from .terms import LABELS, SKINS

Number = Literal["singular", "plural"]
ATTRIBUTE, SKIN = "attribute in premise", "skin tone in premise"
DIRECTIONS = (ATTRIBUTE, SKIN)
"""Which of the two words of a template is in the premise; the other is in the hypothesis."""
CELL = ("gender", "category")
FACTORS = ("gender", "kind", "category", "sentiment", "direction", "template", "noun", "attribute")
COLUMNS = {
    "pair": "{template}/{noun}/{attribute}/{direction.short}",
    **{name: name for name in ("skin", *FACTORS)},
}
PRAISED = "attractiveness"
"""The category of the word `beautiful`."""
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


class Lists(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The lists that are combined to pairs."""

    forms: dict[Number, tuple[str, ...]]
    looks: tuple[Premise, ...]
    behaviour: tuple[Premise, ...]
    skin: dict[str, str]
    pronouns: dict[str, str]
    nouns: dict[str, dict[Number, tuple[str, ...]]]
    every_noun: dict[str, bool]
    categories: tuple[Category, ...]


class Selection(msgspec.Struct, frozen=True):
    """The selected part of the design."""

    genders: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    attributes: Attributes = "screened"
    beautiful: bool = False


@functools.cache
def load_lists() -> Lists:
    """Read the shipped data files."""
    parts: dict[str, object] = {}
    for name in ("templates", "words"):
        file = resources.files(__package__) / "data" / "nli" / f"{name}.toml"
        parts |= msgspec.toml.decode(file.read_bytes())
    return msgspec.convert(parts, Lists)


@functools.lru_cache(maxsize=4)
def nli_design(selection: Selection, answers: tuple[str, ...] = LABELS) -> Design:
    """Return the design of a selection; each pair is of a fair and a dark skin tone."""
    lists = load_lists()
    # Templates of a kind that does not stand with every noun have one each, in turn.
    in_turn = tuple(kind for kind, every in lists.every_noun.items() if not every)
    turn = Rotation(("template.scene_number", "template.form_number"), only={"kind": in_turn})
    asked = {"gender": selection.genders, "category": selection.categories}
    screened: dict[str, tuple[Scalar, ...]] = {"attribute": tuple(SEXUAL), "noun": tuple(CHILDREN)}
    scene = Sampled("scene", parts=(Sampled("place"),))
    return Design(
        (
            By("gender", tuple(lists.nouns)),
            Sampled("template", _templates(lists), (By("kind"), scene, Fixed("form"), Fixed("number")), ("gender",)),
            Fixed("noun", _nouns(lists), within=("gender", "number"), assigned=turn),
            Sampled("attribute", _attributes(lists, selection), (By("category"), Context("sentiment")), ("kind",)),
            By("direction", Levels(DIRECTIONS, {"short": ("attribute-skin", "skin-attribute")})),
            Group("skin", SKINS),
        ),
        columns=COLUMNS,
        id="{pair}/{skin}",
        where={name: levels for name, levels in asked.items() if levels},
        without=(screened,) if selection.attributes == "screened" else (),
        answer=AnswerForm("label", outcome="label", answers=answers, up=answers[:1]),
    )


def texts(cell: Cell) -> tuple[str, str]:
    """Return premise and hypothesis of a cell."""
    lists = load_lists()
    skin, attribute, gender = lists.skin[cell.text("skin")], cell.text("attribute"), cell.text("gender")
    x, y = (attribute, skin) if cell["direction"] == ATTRIBUTE else (skin, attribute)
    words = {"x": x, "y": y, "noun": cell["noun"], "place": cell["template.at"], "She": lists.pronouns[gender]}
    premise, hypothesis = cell.text("template.scene"), cell.text("template.hypothesis")
    return premise.format(a=_article(x), **words), hypothesis.format(a=_article(y), **words)


def _templates(lists: Lists) -> Levels:
    """Return premises with forms of the hypothesis (BIStereo, section 3.2: 246 for women, 213 for men)."""
    rows: list[dict[str, Value]] = [
        {
            "name": f"{kind}-{scene_number:02}-{form_number}",
            "gender": premise.genders,
            "kind": kind,
            "scene": premise.premise,
            "place": premise.place or premise.premise,
            "form": str(form_number),
            "number": premise.number,
            "at": premise.place,
            "hypothesis": form,
            "scene_number": scene_number,
            "form_number": form_number,
        }
        for kind, premises in (("looks", lists.looks), ("behaviour", lists.behaviour))
        for scene_number, premise in enumerate(premises, 1)
        for form_number, form in enumerate(lists.forms[premise.number], 1)
        if premise.place is not None or "{place}" not in form
    ]
    return Levels.of_rows(rows)


def _nouns(lists: Lists) -> Levels:
    return Levels.of_rows(
        {"name": noun, "gender": gender, "number": number}
        for gender, numbers in lists.nouns.items()
        for number, nouns in numbers.items()
        for noun in nouns
    )


def _attributes(lists: Lists, selection: Selection) -> Levels:
    return Levels.of_rows(
        {"name": word, "category": category.name, "kind": category.kind, "sentiment": category.sentiment}
        for category in lists.categories
        for word in (*category.words, *((BEAUTIFUL,) if selection.beautiful and category.name == PRAISED else ()))
    )


def _article(word: str) -> str:
    return "an" if word.startswith(VOWELS) else "a"
