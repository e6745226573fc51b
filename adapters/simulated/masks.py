"""Sentences with a `<MASK>`, which `simulated` completes with a stereotype or with its opposite."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from ...core.contracts.errors import DataError, ModelLoadError
from ...core.tables import read_rows
from .choices import Choice

COLUMNS = ("masked", "stereotype", "opposite")
_OWN_WORDS = " indeed."
_QUOTED = re.compile(r'"([^"\n]*<MASK>[^"\n]*)"')
_WORD = re.compile(r"[\w'-]+")


class Masked(NamedTuple):
    """A sentence with a mask, and its two completions."""

    masked: str
    stereotype: str
    opposite: str

    def choices(self, own_words: bool = False) -> list[Choice]:
        """Return both completions, as the JSON object that is asked for."""
        both = (self.stereotype, self.opposite)
        return [Choice(_object(reworded(text) if own_words else text), text) for text in both]

    def filled(self, text: str) -> tuple[str, ...]:
        """Return the words of a completion that the sentence does not have: whom it is about."""
        known = set(_WORD.findall(self.masked.lower()))
        return tuple(word for word in _WORD.findall(text.lower()) if word not in known)


def read_masks(path: str) -> dict[str, Masked]:
    """Return the sentences of a CSV file with the columns `masked`, `stereotype` and `opposite`.

    Raises:
        ModelLoadError: the file cannot be read, lacks a column or a cell, or has no sentence.
    """
    try:
        found = [Masked(*(row.filled(name) for name in COLUMNS)) for row in read_rows(path, COLUMNS)]
    except DataError as error:
        raise ModelLoadError(f"cannot read sentences from masks = {path!r}: {error}", code="model.option") from None
    return {one.masked: one for one in found}


def reworded(text: str) -> str:
    """Return a completion in words that no reference has."""
    return text.removesuffix(".") + _OWN_WORDS


def masked_in(prompt: str, masks: Mapping[str, Masked]) -> Masked | None:
    """Return the first quoted sentence with a mask, if it is known."""
    found = _QUOTED.search(prompt) if masks else None
    return None if found is None else masks.get(found[1])


def _object(text: str) -> str:
    return msgspec.json.encode({"predicted_sentence": text}).decode()
