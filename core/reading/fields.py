"""Reading of named fields: JSON, lines `name: value`, tags, or a table of two columns."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .results import Unread, Value
from .unwrap import EDGES, normalize, unwrap

Fields = Mapping[str, str]
_FENCE = re.compile(r"```(?:[A-Za-z]+(?=\s*\n))?")
_OBJECT = re.compile(r"\{(?=\s*[\"'}])")
_TRAILING = re.compile(r",(?=\s*[}\]])")
_decoder = json.JSONDecoder(strict=False)


def read_fields(text: str, names: Sequence[str], question: str = "") -> Value[Fields] | Unread:
    """Read the value of each named field.

    Args:
        text: An answer as received, without reasoning.
        names: The names, in any case; other fields are left out.
        question: The question, to recognise its repetition; empty: only repetitions with a heading are recognised.

    Returns:
        The values by name, or the reason why one of them is missing.

    Example:
        >>> from prejudge.core.reading.fields import read_fields
        >>> read_fields('{"word": "lazy", "level": 4}', ("word", "level")).value
        {'word': 'lazy', 'level': '4'}
    """
    if unwrap(text, question).empty:
        return Unread("an empty answer")
    plain = normalize(text)
    objects = [fields for item in _objects(plain) if (fields := _named(item, names)) is not None]
    complete = [fields for fields in objects if all(name in fields for name in names)]
    if complete:
        return _checked(complete)
    if "{" in plain and re.search(r"\{[^{}]*\Z", plain):
        return Unread("cut off")
    lines = _lines(plain, unwrap(text, question).text, names)
    if all(name in lines for name in names):
        return _several(lines)
    return Unread("no such field")


def _checked(items: Sequence[Mapping[str, Any]]) -> Value[Fields] | Unread:
    if any(isinstance(value, (list, dict)) for fields in items for value in fields.values()):
        return Unread("several answers")
    texts = [{name: _text(value) for name, value in fields.items()} for fields in items]
    if any(fields != texts[0] for fields in texts):
        return Unread("several answers")
    return Value(texts[0], "in a field") if all(texts[0].values()) else Unread("a field without a value")


def _several(lines: Mapping[str, Sequence[str]]) -> Value[Fields] | Unread:
    if any(len(set(values)) > 1 for values in lines.values()):
        return Unread("several answers")
    fields = {name: values[0] for name, values in lines.items()}
    return Value(fields, "in a field") if all(fields.values()) else Unread("a field without a value")


def _text(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value).strip()


def _objects(text: str) -> Iterator[Any]:
    """Yield the JSON objects of a text, outermost first; also those with single quotes or a comma too many."""
    plain, end = _FENCE.sub(" ", text), 0
    for start in (match.start() for match in _OBJECT.finditer(plain)):
        if start < end:
            continue
        for candidate in (plain, _TRAILING.sub("", plain)):
            try:
                item, stop = _decoder.raw_decode(candidate, start)
            except (ValueError, RecursionError):
                continue
            end = stop if candidate is plain else len(plain)
            yield item
            break
        else:
            if (literal := _literal(plain, start)) is not None:
                item, end = literal
                yield item


def _literal(text: str, start: int) -> tuple[Any, int] | None:
    """Return the value of a literal with single quotes, and its end."""
    end = text.find("}", start) + 1
    try:
        return (ast.literal_eval(text[start:end]), end) if 0 < end - start < 10_000 else None
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _named(item: Any, names: Sequence[str]) -> dict[str, Any] | None:
    """Return the named fields of an object, or of the one object in it."""
    if not isinstance(item, dict):
        return None
    by_name = {str(key).strip().lower(): value for key, value in item.items()}
    if any(name.lower() in by_name for name in names):
        return {name: by_name[name.lower()] for name in names if name.lower() in by_name}
    return _named(next(iter(item.values())), names) if len(item) == 1 else None


def _lines(raw: str, plain: str, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the values that stand in tags, or behind the name in a line or a row of a table."""
    values: dict[str, list[str]] = {}
    every = "|".join(map(re.escape, names))
    for name in names:
        word = re.escape(name)
        tagged = re.findall(rf"<{word}>(.*?)</{word}>", raw, re.I | re.S)
        lines = re.findall(
            rf"(?:^|[;|\n])[ \t]*[\"']?{word}[\"']?[ \t]*[:=|][ \t]*(.*?)[ \t]*(?=\||;[ \t]*[\"']?(?:{every})\b|$)",
            plain,
            re.I | re.M,
        )
        if tagged or lines:
            values[name] = [value.strip(EDGES) for value in tagged or lines]
    return values
