"""Items of the subtle-bias studies: a sentence with a BLANK, a given term, and three options."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from ...core.contracts.records import Scalar

DIRECTIONS = ("sai", "asa")
"""Stimulus to attribute inference, and attribute to stimulus association."""
DOMAINS = ("ageism", "beauty", "beauty profession", "institution", "nationality")
PRONOUNS = ("masculine", "feminine", "non-binary")
BLANK = "BLANK"
CELL = ("domain", "pronoun", "given")
OPTIONS = ("stereotype", "anti_stereotype", "unrelated")
"""Columns of the options in the published files."""
AS_PUBLISHED = ("bias_type", "target_gender", "item_category", "type_category")
"""Columns of the published files that, with `context`, identify a row."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence to complete."""

    id: str
    direction: str
    domain: str
    pronoun: str
    given: str
    """Polarity of the given stimulus (SAI) or attribute (ASA)."""
    template: str
    """Equal for sentences that differ only in pronoun and given term; if the term is not known, only in the pronoun."""
    term: str | None
    """The given stimulus or attribute; None where it is not known."""
    context: str
    options: tuple[str, str, str]
    """The positive, the negative and the neutral option."""
    published: tuple[str, ...] = ()
    """The cells of `AS_PUBLISHED`, as written; empty for generated items."""
    parts: dict[str, Scalar] = {}
    """Levels of the parts that a folder of data declares."""

    def factors(self) -> dict[str, Scalar]:
        """Return its levels by factor, without the order of its options."""
        positive, negative, neutral = self.options
        cell: dict[str, Scalar] = {
            "item": self.id,
            "direction": self.direction,
            "domain": self.domain,
            "pronoun": self.pronoun,
            "given": self.given,
            "template": self.template,
            "term": self.term,
            "context": self.context,
            "positive": positive,
            "negative": negative,
            "neutral": neutral,
        }
        return cell | dict(zip(AS_PUBLISHED, self.published, strict=False))


def pick(count: int, *names: object) -> int:
    """Return a number below `count` that depends on `names` alone: a seeded sample, equal on every machine."""
    text = "\x1f".join(map(str, names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) % count


def select(items: Iterable[Item], domains: Sequence[str], pronouns: Sequence[str]) -> list[Item]:
    """Return the items of some domains and pronouns; without names, of all."""
    return [i for i in items if (not domains or i.domain in domains) and (not pronouns or i.pronoun in pronouns)]
