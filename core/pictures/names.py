"""Names of pictures in requests: the sha256 of the bytes, and of a converted one how it was converted."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..contracts.errors import UsageError

NORMALISER = 1
"""Version of the conversion; increase it when pixels change."""
WHITE = "ffffff"
MEDIA = "image/png; picture="
"""Start of the media type of a converted picture in a store; the name follows."""
_NAME = re.compile(r"([0-9a-f]{64})-(\d+)-([0-9a-f]{6})")
_COLOUR = re.compile(r"#?([0-9a-fA-F]{6})")


class ConvertedName(NamedTuple):
    """The name of a picture that was converted."""

    sha256: str
    """Of the original file (hex)."""
    normaliser: int
    """Version of the normaliser."""
    background: str
    """Colour behind transparent pixels, as six hexadecimal digits."""

    @property
    def text(self) -> str:
        """Return the name as requests have it."""
        return f"{self.sha256}-{self.normaliser}-{self.background}"


def converted_name(name: str) -> ConvertedName | None:
    """Return the parts of the name of a converted picture; None for a picture that is shown as it is."""
    match = _NAME.fullmatch(name)
    return ConvertedName(match[1], int(match[2]), match[3]) if match else None


def source_of(name: str) -> str:
    """Return the sha256 of the file that a picture is of."""
    converted = converted_name(name)
    return name if converted is None else converted.sha256


def background_colour(text: str) -> str:
    """Return a colour as six hexadecimal digits.

    Raises:
        UsageError: it is no colour of this form.
    """
    if (match := _COLOUR.fullmatch(text)) is None:
        raise UsageError(
            f"background is {text!r}. Give red, green and blue as six hexadecimal digits, such as ffffff for white.",
            code="options.value",
        )
    return match[1].lower()
