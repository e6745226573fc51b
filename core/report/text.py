"""Format values for the page: aligned numbers, and text without control characters.

Invariant: the result of `clean` can be encoded as UTF-8, and makes visible every character that would change the
surrounding text.
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
"""Maximum length of a text on the page; the store has the full text."""
MOST_OF_A_SETTING = 80
"""Maximum length of a setting's value in a list; the manifest has the full value."""
# Control characters, lone surrogates and non-characters: not allowed in HTML or UTF-8.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Embeddings, overrides and isolates reorder the visible text, and the two separators break lines, so they are shown
# by number.
_REORDERING = re.compile("[\u2028-\u202e\u2066-\u2069]")


def clean(value: object, most: int = MOST_CHARACTERS) -> object:
    """Return text that is safe to encode and not longer than `most` characters.

    Markup of the templates and values other than text are returned unchanged.
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return visible(shorten(value, most))


def visible(text: str) -> str:
    """Return a text that can be encoded, with every character that would change the surrounding text made visible."""
    shown = _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return _REORDERING.sub(lambda found: f"[U+{ord(found.group()):04X}]", shown)


def shorten(text: str, most: int) -> str:
    """Return a text cut to so many characters, with a note on the number left out."""
    rest = len(text) - most
    return text if rest <= 0 else f"{text[:most]} \N{HORIZONTAL ELLIPSIS} [{rest:,} characters left out]"


def scalar(value: Scalar) -> str:
    """Format any plain value."""
    if value is None or isinstance(value, bool):
        return {None: UNDEFINED, True: "yes", False: "no"}[value]
    return number(value, decimals_for([value])) if isinstance(value, int | float) else value


def label(value: Scalar) -> str:
    """Format a factor's value: it is a name, so 1990 has no comma and 0.02 no added zeros."""
    return f"{value:.12g}" if isinstance(value, int | float) and not isinstance(value, bool) else scalar(value)


def group_words(group: Mapping[str, Scalar]) -> str:
    """Format the group of an estimate."""
    return ", ".join(f"{name}: {label(value)}" for name, value in group.items()) or "whole study"


def settings_words(settings: Mapping[str, Any]) -> str:
    """Format settings as `name = value`; a long value, such as a system prompt, is cut."""
    return ", ".join(f"{name} = {shorten(str(value), MOST_OF_A_SETTING)}" for name, value in settings.items())


def web_link(url: str) -> str:
    """Return the URL if it is a web address, else an empty text: a `javascript:` URL never becomes a link."""
    try:
        return url if urlsplit(url.strip()).scheme in {"http", "https"} else ""
    except ValueError:
        return ""
