"""Texts that many requests repeat, stored once.

A study may ask a few hundred prompts about thousands of images; repeated prompts would be most of the store. So a long
text that requests share is moved to the table `part`, and the stored request has `{"part": ID}` instead. Unpacking
restores the canonical request exactly; keys are made from the canonical request.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from .bulk import LOOKUP, batched, byte_length, marks, rows_among, run_plain, table_of
from .tables import Part

SHORTEST = 64
"""Characters of JSON below which a separate row would need more space."""
REMEMBERED = 16_000_000
"""Maximum number of characters of parts in memory."""

PART_BEGINS = '{"part":'
"""What a stored request has in place of each shared text."""
# Quotes inside a JSON string are escaped, so neither pattern can match within a text.
_TEXT = re.compile(r'("(?:text|pair|prompt)":)("[^"\\]*(?:\\.[^"\\]*)*")')
_PART = re.compile(r'\{"part":(\d+)\}')


class Parts:
    """The parts of one store that were read or written so far."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._size = 0

    def pack(self, connection: sa.Connection, requests: Sequence[str]) -> tuple[list[str], Mapping[str, int]]:
        """Return requests in stored form, and the parts for `remember` after the commit."""
        counts = Counter(text for request in requests for text in long_texts(request))
        met = self._find(connection, [text for text in counts if text not in self._numbers])
        met |= _add(connection, [text for text, n in counts.items() if n > 1 and not self._knows(text, met)])
        numbers = {text: number for text in counts if (number := self._number(text, met)) is not None}
        return [_replace(request, numbers) if numbers else request for request in requests], met

    def remember(self, met: Mapping[str, int]) -> None:
        """Keep committed parts in memory for later requests."""
        self._size += sum(map(len, met))
        if self._size > REMEMBERED:
            self._numbers, self._size = {}, sum(map(len, met))
        self._numbers |= met

    def _knows(self, text: str, met: Mapping[str, int]) -> bool:
        return self._number(text, met) is not None

    def _number(self, text: str, met: Mapping[str, int]) -> int | None:
        return self._numbers.get(text, met.get(text))

    def _find(self, connection: sa.Connection, texts: Sequence[str]) -> dict[str, int]:
        if not texts or not run_plain(connection, "SELECT id FROM part LIMIT 1"):
            return {}
        numbers: dict[bytes, int] = {}
        digests = {text_digest(text): text for text in texts}
        for some in batched(digests, LOOKUP):
            rows = rows_among(connection, "SELECT digest, id FROM part WHERE digest", some)
            numbers.update((bytes(digest), number) for digest, number in rows)
        return {digests[digest]: number for digest, number in numbers.items()}


def unpack(connection: sa.Connection, requests: Iterable[str]) -> list[str]:
    """Return the canonical requests of stored ones."""
    requests = list(requests)
    table, texts = table_of(Part), {}
    for some in batched({number for request in requests for number in part_numbers(request)}, LOOKUP):
        query = sa.select(table.c.id, table.c.literal).where(table.c.id.in_(some))
        texts.update({str(number): literal for number, literal in connection.execute(query)})
    if not texts:
        return requests
    return [_PART.sub(lambda match: str(texts.get(match[1], match[0])), request) for request in requests]


class PartLengths:
    """The bytes of shared texts, of each of which the length is read once."""

    def __init__(self, connection: sa.Connection) -> None:
        length = byte_length(connection, table_of(Part).c.literal).compile(dialect=connection.dialect)
        self._query = f"SELECT {length} FROM part WHERE id = {marks(connection, 1)}"
        self._connection, self._lengths = connection, dict[str, int]()

    def of(self, request: str) -> int:
        """Return how many bytes the shared texts of a stored request have together."""
        if PART_BEGINS not in request:
            return 0
        lengths = self._lengths
        return sum(lengths[number] if number in lengths else self._read(number) for number in _PART.findall(request))

    def _read(self, number: str) -> int:
        rows = run_plain(self._connection, self._query, [int(number)])
        self._lengths[number] = int(rows[0][0]) if rows else 0
        return self._lengths[number]


def part_numbers(request: str) -> set[int]:
    """Return the ids of the parts of a stored request."""
    return {int(number) for number in _PART.findall(request)}


def split_parts(request: str) -> list[str]:
    """Return the pieces of a stored request, at odd places the ids of its parts."""
    return _PART.split(request)


def long_texts(request: str) -> list[str]:
    """Return the texts of a request that may be stored once, as JSON."""
    return [text for _, text in _TEXT.findall(request) if len(text) >= SHORTEST]


def _replace(request: str, numbers: Mapping[str, int]) -> str:
    def part(match: re.Match[str]) -> str:
        number = numbers.get(match[2])
        return match[0] if number is None else f'{match[1]}{{"part":{number}}}'

    return _TEXT.sub(part, request)


def _add(connection: sa.Connection, texts: Sequence[str]) -> dict[str, int]:
    table = table_of(Part)
    added = {}
    for text in texts:
        row = {"digest": text_digest(text), "literal": text}
        added[text] = int(connection.execute(sa.insert(table).values(row).returning(table.c.id)).scalar_one())
    return added


def text_digest(text: str) -> bytes:
    """Return the digest of a shared text."""
    return hashlib.sha256(text.encode()).digest()
