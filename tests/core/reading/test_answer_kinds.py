"""The figures of the page on readers are those of the kinds of answers to options, labels and words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import prejudge
from prejudge.core.reading.choice import Choice, read_choice
from prejudge.core.reading.results import Unread, Value
from prejudge.core.reading.words import Blank, read_word
from prejudge.probes.bistereo.nli_reading import read_words

from .answer_kinds import PAIR, choices, completions, kinds_of, labelled

PAGE = Path(prejudge.__file__).parent / "docs" / "reading.md"
Pairs = Iterator[tuple[Value | Unread, str | None]]


def of_choice() -> Pairs:
    for kind in kinds_of("choice"):
        for text, sentence, words, shown, must in choices(kind):
            asked = Choice(options=dict(zip("xyz", words, strict=True)), shown=shown, sentence=sentence)
            yield read_choice(text, asked), must


def of_stated() -> Pairs:
    for kind in kinds_of("stated"):
        for text, must in labelled(kind):
            yield read_words(text, numbered=False, pair=PAIR), must


def of_words() -> Pairs:
    for kind in kinds_of("words"):
        for text, letter, form, stem, must in completions(kind):
            yield read_word(text, Blank(letter=letter, about=form, stem=stem)), must


@pytest.mark.parametrize("reader", [of_choice, of_stated, of_words])
def test_figures_of_the_page_are_those_of_the_kinds(reader):
    pairs = [(found.value if isinstance(found, Value) else None, must) for found, must in reader()]
    read, required = ([pair for pair in pairs if pair[place] is not None] for place in (0, 1))
    wrong, missed = sum(value != must for value, must in read), sum(value is None for value, _ in required)
    name = reader.__name__.removeprefix("of_")
    row = re.search(rf"^\| `{name}` \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert row is not None
    cells = [int(cell.replace(",", "")) for cell in row[1].split("|")[1:5]]
    assert cells == [len(read), wrong, len(required), missed]
    assert wrong == 0


def test_a_third_of_the_kinds_was_read_at_the_end():
    kinds = [kind for reader in ("choice", "stated", "words") for kind in kinds_of(reader)]
    later = sum(kind.later for kind in kinds)
    assert len(kinds) >= 340 and 0.28 < later / len(kinds) < 0.4
