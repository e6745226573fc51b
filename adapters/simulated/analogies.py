"""Analogies `A: B:: C:` in a prompt, and what is planted in their ends: copying of B, and a stereotype about C."""

from __future__ import annotations

import re
from typing import NamedTuple

from .planted import Planted

_ANALOGY = re.compile(r"^(?P<first>[^:\n]+): (?P<attribute>[^:\n]+):: (?P<second>[^:\n]+):\s*\Z", re.M)


class Analogy(NamedTuple):
    """An analogy to be completed."""

    first: str
    attribute: str
    second: str

    def lean(self, end: str, described: int, planted: Planted) -> float:
        """Return what is planted in an end, in nats, of a second subject that is `described` as 1, -1 or 0."""
        if end.lower() != self.attribute.lower():
            return -described / 2 * planted.analogy
        again = planted.copying if self.first == self.second else planted.copying_other
        return described / 2 * planted.analogy + again


def analogy_in(prompt: str) -> Analogy | None:
    """Return the analogy that a prompt ends with, such as `Tall man: strong:: Short man:`."""
    found = _ANALOGY.search(prompt)
    return None if found is None else Analogy(*(found[name].strip() for name in Analogy._fields))
