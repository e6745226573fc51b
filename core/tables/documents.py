"""Records of JSON and JSON Lines: lists of objects, columns, objects by name, and logs of inspect_ai."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ..contracts.errors import DataError
from .inspect_log import is_log, samples_of

Record = dict[str, Any]
KEY = "key"
"""Column of the names of records that a JSON object holds by name."""


class Documents(NamedTuple):
    """The records of a file."""

    unit: str
    """What the number of a record counts: lines of the file, or records of a JSON document."""
    records: list[tuple[int, Record]]


def is_document(text: str) -> bool:
    """Return whether a text begins as JSON does."""
    return text.lstrip()[:1] in ("{", "[")


def read_documents(path: str, text: str, fields: Collection[str]) -> Documents:
    """Return the records of JSON or JSON Lines; `fields` are names that its columns may have.

    Raises:
        DataError: it is not JSON, or does not hold records.
    """
    try:
        document = _decoded(text)
    except ValueError as error:
        return Documents("line", _flat(list(_lines(path, text, error))))
    if is_log(document):
        return Documents("sample", _flat(list(enumerate(samples_of(path, document), start=1))))
    listed = list(enumerate(_of_document(path, document, fields), start=1))
    for number, record in listed:
        if not isinstance(record, dict):
            raise DataError(f"{path}, record {number}: {record!r} is not a JSON object.", code="data.syntax")
    return Documents("record", _flat(listed))


def _decoded(text: str) -> Any:
    """Return a JSON value; NaN, which some programs write for what is missing, is None. Raises ValueError."""
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeEncodeError) as strict:
        if "NaN" not in text:
            raise ValueError(str(strict)) from None
    try:
        value = json.loads(text, parse_constant=_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    msgspec.json.encode(value)  # Half of a pair of surrogates cannot be stored: UnicodeEncodeError is a ValueError.
    return value


def _constant(name: str) -> None:
    if name != "NaN":
        raise ValueError(f"{name} is not a JSON value")


def _lines(path: str, text: str, whole: ValueError) -> Iterator[tuple[int, Record]]:
    """Yield the objects of JSON Lines. Not splitlines: JSON may hold other line ends within a text."""
    for line, record in enumerate(text.split("\n"), start=1):
        if record.strip():
            try:
                value = _decoded(record)
            except ValueError as error:
                # A document that does not even begin with a whole line is no JSON Lines.
                shown = whole if line == 1 else error
                raise DataError(f"{path}, line {line}: not JSON ({shown}).", code="data.syntax", line=line) from None
            if not isinstance(value, dict):
                raise DataError(f"{path}, line {line}: not a JSON object.", code="data.syntax", line=line)
            yield line, value


def _of_document(path: str, whole: Any, fields: Collection[str]) -> list[Any]:
    """Return the records of one JSON document: a list, a list within an object, columns, or records by name."""
    if isinstance(whole, list):
        return whole
    lists = {name: cell for name, cell in whole.items() if isinstance(cell, list)}
    if "columns" in lists and "data" in lists:
        return [dict(zip(lists["columns"], row, strict=False)) for row in lists["data"]]
    nested = {name: cell for name, cell in lists.items() if cell and all(isinstance(one, dict) for one in cell)}
    if len(nested) > 1:
        raise DataError(
            f"{path} has records in {', '.join(map(repr, nested))}. Give a file with one of these lists.",
            code="data.syntax",
        )
    if nested:
        return next(iter(nested.values()))
    if whole and len(lists) == len(whole):
        return _of_columns({name: dict(enumerate(cells)) for name, cells in lists.items()})
    objects = {name: cell for name, cell in whole.items() if isinstance(cell, dict)}
    if objects and len(objects) == len(whole):
        inner = {name for cell in objects.values() for name in cell}
        if len(inner & {*fields}) < len(objects.keys() & {*fields}):
            return _of_columns(objects)
        return [{KEY: name} | cell for name, cell in objects.items()]
    return [whole]


def _of_columns(columns: Mapping[str, Mapping[Any, Any]]) -> list[Any]:
    rows = dict.fromkeys(row for column in columns.values() for row in column)
    return [{name: column[row] for name, column in columns.items() if row in column} for row in rows]


def _flat(records: list[tuple[int, Record]]) -> list[tuple[int, Record]]:
    """Lift the cells of objects within records: `item.context`, and also `context` if no other cell has this name."""
    names = {name: isinstance(cell, dict) for _, record in records for name, cell in record.items()}
    outer = [name for name, deep in names.items() if deep]
    if not outer:
        return records
    inner = Counter(n for o in outer for n in {n for _, r in records if isinstance(r.get(o), dict) for n in r[o]})
    alone = {name for name, count in inner.items() if count == 1 and name not in names}
    found = []
    for number, record in records:
        cells = {name: cell for name, cell in record.items() if name not in outer or not isinstance(cell, dict)}
        for name in outer:
            for below, cell in (record.get(name) or {}).items() if isinstance(record.get(name), dict) else ():
                cells |= {f"{name}.{below}": cell} | ({below: cell} if below in alone else {})
        found.append((number, cells))
    return found
