"""Names of columns: equal but for how they were typed, named by the user, or paths into nested cells."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ..contracts.errors import DataError

SHOWN_COLUMNS = 40
"""Columns that a message lists."""
Path = tuple[str, ...]
"""A column, and the keys or numbers of what is within its cells."""
_UNSEEN = re.compile(r"[\W_]+")
_ABSENT = object()


def folded_name(name: str) -> str:
    """Return a name that is equal for names that differ in case, blanks, signs, or a byte-order mark only."""
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", name).casefold()) or name.strip()


def parse_columns(texts: Iterable[str]) -> dict[str, str]:
    """Read `field=COLUMN,...` texts as columns by field.

    Raises:
        DataError: a text without `=`, or a field twice.
    """
    columns: dict[str, str] = {}
    for text in (item for listed in texts for item in listed.split(",")):
        field, equals, column = (item.strip() for item in text.partition("="))
        if not (field and equals and column):
            raise DataError(
                f"cannot read {text!r} in --columns. Write FIELD=COLUMN, such as response=answer.",
                code="import.columns",
            )
        if field in columns:
            raise DataError(
                f"--columns names two columns for {field!r}: {columns[field]!r} and {column!r}.", code="import.columns"
            )
        columns[field] = column
    return columns


def resolve_columns(
    path: str, names: Sequence[str], columns: Mapping[str, str], fields: Collection[str]
) -> dict[str, Path]:
    """Return where each field of a file is: the columns that are named, then all others by their names.

    Args:
        path: The file, for errors.
        names: Its columns.
        columns: Column, or path, of each field that has another name.
        fields: Names that columns may have in another way of writing: a column is renamed to such a field.

    Raises:
        DataError: there is no such column.
    """
    named = {field: _path_of(path, column, names) for field, column in columns.items()}
    taken = {where[0] for where in named.values() if len(where) == 1}
    others = [name for name in names if name not in taken and name not in named]
    unnamed = {folded_name(field): field for field in fields if field not in {*others, *named}}
    return named | {unnamed.pop(folded_name(name), name): (name,) for name in others}


def _path_of(path: str, column: str, names: Sequence[str]) -> Path:
    keys: list[str] = []
    head = column
    while head:
        equal = [head] if head in names else [name for name in names if folded_name(name) == folded_name(head)]
        if len(equal) == 1:
            return (equal[0], *keys)
        head, dot, key = head.rpartition(".")
        keys.insert(0, key)
    raise no_column(path, names, [column])


def value_at(record: Mapping[str, Any], where: Path, absent: Any = _ABSENT) -> Any:
    """Return the value at a path in a record, `absent` where it has none; text that is JSON is looked into."""
    value: Any = record.get(where[0], absent)
    for key in where[1:]:
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            try:
                value = msgspec.json.decode(value)
            except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
                return absent
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.lstrip("-").isdecimal() and -len(value) <= int(key) < len(value):
            value = value[int(key)]
        else:
            return absent
    return value


def renamed(record: Mapping[str, Any], fields: Mapping[str, Path]) -> dict[str, Any]:
    """Return the values of the fields that a record has."""
    values = ((field, value_at(record, where)) for field, where in fields.items())
    return {field: value for field, value in values if value is not _ABSENT}


def no_column(path: str, names: Sequence[str], missing: Sequence[str], between: str = ", ") -> DataError:
    """Return the error of columns that a file lacks, with names that are near and those that it has."""
    shown = ", ".join(map(repr, names[:SHOWN_COLUMNS]))
    shown += f" and {len(names) - SHOWN_COLUMNS:,} more" if len(names) > SHOWN_COLUMNS else ""
    message = f"{path}: no column {between.join(_near(name, names) for name in missing)}. It has: {shown}."
    return DataError(message, code="data.column-missing", path=path, column=missing[0])


def _near(name: str, header: Sequence[str]) -> str:
    by_lower = {column.strip().lower(): column for column in header}
    near = difflib.get_close_matches(name, list(by_lower), n=1, cutoff=0.7)
    return f"{name!r} (is {by_lower[near[0]]!r} meant?)" if near else repr(name)
