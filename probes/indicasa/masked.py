"""Masked sentences of IndiCASA's evaluation, in the format of the authors' `Masked_IndiBias.csv`."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ...core.contracts.records import Scalar
from ...core.design.factors import AnyFactor
from ...core.design.folder import further, parse_data, parts_of
from ...core.tables import Form, Parsed, Repeats, Row, TableOptions
from .asking import MASK, mask_left
from .terms import KINDS

PAIRS = "https://github.com/sahoonihar/IndiBias (IndiBias_v1_sample.csv)"
CATEGORIES = ("caste", "religion", "gender", "disability", "socioeconomic")
"""The five of the paper; the published files also have `age` and `physical-appearance`."""
KNOWN = (*CATEGORIES, "age", "physical-appearance")
"""Categories of the published files. Data with any other have categories of their own."""
DIRECTIONS = ("stereo", "antistereo")
MASKED = ("Stereo_Antistereo", "Bias_Type", "Masked_Sentence", "Ground_Truths")
_TOUCHING = re.compile(rf"{MASK}{MASK}")


class Masked(msgspec.Struct, frozen=True):
    """A row of the file of prompts."""

    row: Row
    id: str
    category: str
    direction: str
    masked: str
    filled: str
    parts: dict[str, Scalar] = {}
    """Levels of the parts that a folder of data declares."""

    @property
    def kind(self) -> str:
        """Return the class of the original sentence."""
        return KINDS[DIRECTIONS.index(self.direction)]


def read_masked(path: str, options: TableOptions | None = None) -> Parsed[Masked]:
    """Read the prompts in the order of the file; raises `DataError` if it has rows that cannot be used."""
    parts = parts_of(path)
    repeats = Repeats((*MASKED, *(part.name for part in parts)))

    def prompt_of(row: Row) -> Masked:
        name = name_of(row, row.index)
        prompt = _masked(row, name, parts)
        repeats.check(row, name, f"prompt {name!r}")
        return prompt

    return parse_data(path, Form(MASKED, ("id",)), prompt_of, options)


def name_of(row: Row, number: int) -> str:
    """Return the name of a prompt or pair: its `id`, its unnamed first column, or its number, from 0."""
    return row.optional("id") or row.optional("") or str(number)


def _masked(row: Row, name: str, own: Sequence[AnyFactor]) -> Masked:
    category = category_of(row, "Bias_Type")
    direction = row.choice("Stereo_Antistereo", DIRECTIONS)
    masked = row.filled("Masked_Sentence").strip()
    return Masked(row, name, category, direction, masked, _filled(row, masked), further(row, own))


def category_of(row: Row, column: str) -> str:
    """Return a category: one of the published files in lower case, any other as it is written; raises `DataError`."""
    return category_named(row.filled(column))


def category_named(name: str) -> str:
    """Return the category of a name: see `category_of`."""
    plain = name.strip()
    return plain.lower() if plain.lower() in KNOWN else plain


def _filled(row: Row, masked: str) -> str:
    """Return the original sentence: one ground truth for all masks, or one per mask."""
    count = masked.count(MASK)
    if not count:
        raise row.fault(
            f"the sentence has no {MASK}: {masked!r}. Write {MASK} instead of the words to fill in.", "data.text"
        )
    if _TOUCHING.search(masked):
        raise row.fault(f"two {MASK} are adjacent in {masked!r}. Remove one, or put a space between them.", "data.text")
    words = [word.strip() for word in row.filled("Ground_Truths").split(",")]
    if len(words) not in (1, count) or not all(words):
        given = f"{len(words)} ground truths for {count} {MASK}"
        raise row.fault(f"{given} in {masked!r}. Give one for all, or one for each, separated by commas.", "data.text")
    for number in range(count):
        masked = masked.replace(MASK, words[number % len(words)], 1)
    if mask_left(masked):
        raise row.fault(f"the Ground_Truths leave a mask in {masked!r}. Write the words that fill it.", "data.text")
    return masked
