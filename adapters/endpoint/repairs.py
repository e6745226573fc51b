"""JSON that is nearly JSON: what a sound answer may have around it, or in fields that nobody reads."""

from __future__ import annotations

import json
from typing import Any

import msgspec

BOM = b"\xef\xbb\xbf"
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of a body that is not JSON, or is nested too deeply."""


def repaired(body: bytes) -> bytes | None:
    """Return a body as strict JSON; None if it is none in any way.

    A byte-order mark is dropped; NaN and infinities become null, halves of a surrogate pair and bytes that are no UTF-8
    become U+FFFD. A field that must be a number and was NaN is then an error of that field.
    """
    try:
        document = json.loads(body.removeprefix(BOM).decode("utf-8", "replace"), parse_constant=lambda name: None)
        return msgspec.json.encode(_readable(document))
    except (ValueError, RecursionError):
        return None


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_readable(item) for item in value]
    return {_readable(name): _readable(item) for name, item in value.items()} if isinstance(value, dict) else value
