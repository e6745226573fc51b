"""How large the pages of a Parquet file are when they are decompressed, read from its headers before any of it is.

A page of 100 kB can hold gigabytes, and the file's own sums need not be true: the header of each page is what a reader
allocates by. Headers are in Thrift's compact protocol, of which this reads what Parquet uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

MAGIC = b"PAR1"
DEEPEST, MOST_PAGES = 16, 1_000_000
"""Levels of nesting, and pages, that no file of a bundle reaches."""
_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY = 1, 2, 3, (4, 5, 6), 7, 8
_LISTS, _STRUCT = (9, 10), 12
# Numbers of fields, as parquet.thrift has them.
_ROW_GROUPS, _COLUMNS, _META, _COMPRESSED, _FIRST_PAGE, _DICTIONARY_PAGE = 4, 1, 3, 7, 9, 11
_PAGE_EXPANDED, _PAGE_COMPRESSED = 2, 3


def expanded_bytes(data: bytes) -> int:
    """Return how many bytes all pages of a Parquet file have when they are decompressed.

    Raises:
        ValueError: the headers cannot be read.
    """
    try:
        sizes = list(islice((size for chunk in _chunks(data) for size in _pages(data, *chunk)), MOST_PAGES + 1))
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"its headers cannot be read ({error})") from None
    if len(sizes) > MOST_PAGES:
        raise ValueError(f"it has more than {MOST_PAGES:,} pages")
    return sum(sizes)


def _chunks(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the pages of each column of each group of rows begin and end."""
    if len(data) < 12 or data[-4:] != MAGIC:
        raise ValueError("it is no Parquet file")
    length = int.from_bytes(data[-8:-4], "little")
    footer, _ = _struct(data, len(data) - 8 - length)
    for group in footer[_ROW_GROUPS]:
        for column in group[_COLUMNS]:
            meta = column[_META]
            start = min(meta[name] for name in (_FIRST_PAGE, _DICTIONARY_PAGE) if meta.get(name))
            end = start + meta[_COMPRESSED]
            if not 0 <= start <= end <= len(data):
                raise ValueError("a column is outside the file")
            yield start, end


def _pages(data: bytes, start: int, end: int) -> Iterator[int]:
    while start < end:
        header, body = _struct(data, start)
        expanded, compressed = header[_PAGE_EXPANDED], header[_PAGE_COMPRESSED]
        if expanded < 0 or compressed < 0:
            raise ValueError("a page has a negative size")
        yield expanded
        start = body + compressed


def _struct(data: bytes, at: int, deep: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of a struct by number, and where it ends."""
    if at < 0 or deep > DEEPEST:
        raise ValueError("its headers are nested too deeply, or begin before the file")
    fields: dict[int, Any] = {}
    number = 0
    while kind := data[at]:
        at += 1
        if kind >> 4:
            number += kind >> 4
        else:
            number, at = _integer(data, at)
        fields[number], at = _value(data, at, kind & 15, deep)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, deep: int) -> tuple[Any, int]:
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, at
    if kind == _BYTE:
        return data[at], at + 1
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind == _DOUBLE:
        return None, at + 8
    if kind == _BINARY:
        length, at = _natural(data, at)
        return None, at + length  # no text of the headers is needed
    if kind in _LISTS:
        return _list(data, at, deep)
    if kind == _STRUCT:
        return _struct(data, at, deep + 1)
    raise ValueError(f"its headers have a value of the unknown kind {kind}")


def _list(data: bytes, at: int, deep: int) -> tuple[list[Any], int]:
    length, kind = data[at] >> 4, data[at] & 15
    at += 1
    if deep > DEEPEST:
        raise ValueError("its headers are nested too deeply")
    if length == 15:
        length, at = _natural(data, at)
    if length > len(data):
        raise ValueError("a list of its headers is longer than the file")
    items = []
    for _ in range(length):
        # In a list, unlike in a struct, a truth value has a byte of its own.
        item, at = (data[at], at + 1) if kind in (_TRUE, _FALSE) else _value(data, at, kind, deep + 1)
        items.append(item)
    return items, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _natural(data, at)
    return (value >> 1) ^ -(value & 1), at


def _natural(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of its headers is too long")


__all__ = ["expanded_bytes"]
