"""The lists in `data/pairs` as tables of levels: templates, nouns, descriptors and attribute words.

`wide` are the study's own lists, in which no two openings or phrases share a verb or a place; `paper` are the words of
BIStereo's Table 5 and templates after its description, for a replication.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from itertools import product
from typing import Any, Literal

import msgspec

from ...core.design import Levels
from ...core.design.levels import Value
from .attributes import BEAUTIFUL

Texts = Literal["wide", "paper"]
NUMBERS = ("singular", "plural")
SIDES = ("desirable", "undesirable")
NEUTRAL = "neutral"
ENDINGS = ("location", "action_location")
NO_ENDING = "none"
FOLDERS: dict[Texts, str] = {"wide": ".", "paper": "paper"}
"""Folder of the templates and attribute words."""


@functools.cache
def load_lists(texts: Texts) -> dict[str, Any]:
    """Read the shipped data files."""
    data = resources.files(__package__) / "data" / "pairs"
    folder = data / FOLDERS[texts]
    files = (data / "descriptors.toml", data / "nouns.toml", folder / "templates.toml", folder / "attributes.toml")
    lists: dict[str, Any] = {}
    for file in files:
        lists |= msgspec.toml.decode(file.read_bytes())
    return lists


def templates(texts: Texts, suffix: str) -> Levels:
    """Return the templates of all axes; an id counts the places in the lists, and ends with a suffix.

    Each template of `wide` has one number, in turn; those of `paper` are 450, each in both numbers (BIStereo, section
    3.1).
    """
    lists = load_lists(texts)
    crossed = texts == "paper"
    rows: list[dict[str, Value]] = []
    for axis, number in product(lists["axes"], NUMBERS):
        phrases = list(_phrases(lists["phrases"][axis["key"]]))
        for at, last in product(range(len(lists["openings"][number])), range(len(phrases))):
            if crossed or NUMBERS[(at + last) % 2] == number:
                key = f"{axis['key']}-{number[0]}" if crossed else axis["key"]
                names: dict[str, Value] = {"name": f"{key}-{at + 1:02}-{last:02}{suffix}", "axis": axis["name"]}
                rows.append(names | {"number": number, "turn": at + last} | _frame(lists, number, at, phrases[last]))
    return Levels.of_rows(rows)


def _frame(lists: dict[str, Any], number: str, at: int, phrase: tuple[str, str]) -> dict[str, Value]:
    kind, text = phrase
    return {
        "opening": lists["openings"]["singular"][at],
        "ending": text or NO_ENDING,
        # The last words of every ending are its place.
        "place": text.rpartition(" the ")[2] or NO_ENDING,
        "phrase": kind,
        "start": lists["openings"][number][at],
        "clause": lists["clauses"][number][at],
        "end": text,
    }


def _phrases(phrases: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield the phrases that may follow the noun, each after its kind."""
    yield NO_ENDING, ""
    for kind in ENDINGS:
        yield from ((kind, text) for text in phrases[kind])


def nouns(texts: Texts) -> Levels:
    """Return the nouns of both genders and numbers."""
    return Levels.of_rows(
        {"name": noun, "gender": gender, "number": number}
        for gender, numbers in load_lists(texts)["nouns"].items()
        for number, names in numbers.items()
        for noun in names
    )


def descriptors(texts: Texts) -> Levels:
    """Return the pairs of descriptors."""
    return Levels.of_rows(
        {"name": pair["name"], "axis": axis["name"], "gender": tuple(pair["genders"])}
        for axis in load_lists(texts)["axes"]
        for pair in axis["pairs"]
    )


def bodies(texts: Texts) -> Levels:
    """Return the two descriptors of every pair."""
    return Levels.of_rows(
        {"name": pair[side], "descriptors": pair["name"], "side": side}
        for axis in load_lists(texts)["axes"]
        for pair in axis["pairs"]
        for side in SIDES
    )


def attributes(texts: Texts, beautiful: bool) -> Levels:
    """Return the attribute words by sentiment, in turn, and no word for neutral sentences."""
    turns: Counter[str] = Counter()
    rows: list[dict[str, Value]] = []
    more = [{"sentiment": "positive", "words": [BEAUTIFUL]}] if beautiful else []
    for part in (*load_lists(texts)["attributes"], *more):
        sentiment = part["sentiment"]
        for word in part["words"]:
            rows.append({"name": word, "word": word, "sentiment": sentiment, "turn": turns[sentiment]})
            turns[sentiment] += 1
    rows.sort(key=lambda row: row["sentiment"] != "positive")
    return Levels.of_rows([*rows, {"name": NEUTRAL, "word": None, "sentiment": NEUTRAL, "turn": 0}])
