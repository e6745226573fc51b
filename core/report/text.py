"""Format values for the page: aligned numbers, and text without control characters.

The invariant: what `clean` returns can be encoded as UTF-8 and shows every character that would change how the
text around it reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from markupsafe import Markup

from ..contracts.records import Scalar
from ..contracts.words import UNDEFINED, decimals_for, number

MOST_CHARACTERS = 20_000
"""Longest text that a page shows; the store has the whole."""
MOST_OF_A_SETTING = 80
"""Longest value of a setting that is shown beside others; the manifest has the whole."""
# Control characters, lone surrogates and non-characters: neither HTML nor UTF-8 can carry them.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Embeddings, overrides and isolates reorder what a reader sees, and the two separators break lines where none is
# written: evidence shows them by number instead.
_REORDERING = re.compile("[\u2028-\u202e\u2066-\u2069]")


def clean(value: object) -> object:
    """Return text that is safe to encode and no longer than `MOST_CHARACTERS`.

    Markup made by the templates and other values pass unchanged.
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    value = shorten(value, MOST_CHARACTERS)
    shown = _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    return _REORDERING.sub(lambda found: f"[U+{ord(found.group()):04X}]", shown)


def shorten(text: str, most: int) -> str:
    """Return a text cut to so many characters, which then says how many are left out."""
    rest = len(text) - most
    return text if rest <= 0 else f"{text[:most]} \N{HORIZONTAL ELLIPSIS} [{rest:,} characters left out]"


def scalar(value: Scalar) -> str:
    """Write any plain value."""
    if value is None or isinstance(value, bool):
        return {None: UNDEFINED, True: "yes", False: "no"}[value]
    return number(value, decimals_for([value])) if isinstance(value, int | float) else value


def label(value: Scalar) -> str:
    """Write a factor's value: a name rather than a quantity, so 1990 has no comma and 0.02 no added zeros."""
    return f"{value:.12g}" if isinstance(value, int | float) and not isinstance(value, bool) else scalar(value)


def group_words(group: Mapping[str, Scalar]) -> str:
    """Write the group a number is for."""
    return ", ".join(f"{name}: {label(value)}" for name, value in group.items()) or "whole study"


def settings_words(settings: Mapping[str, Any]) -> str:
    """Write settings as `name = value`; a long value, such as a system prompt, is cut."""
    return ", ".join(f"{name} = {shorten(str(value), MOST_OF_A_SETTING)}" for name, value in settings.items())


def web_link(url: str) -> str:
    """Return the url if a browser may follow it, else nothing: a `javascript:` url never becomes a link."""
    try:
        return url if urlsplit(url.strip()).scheme in {"http", "https"} else ""
    except ValueError:
        return ""
