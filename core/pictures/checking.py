"""The check of a picture of a study: its name in requests, and whether it is blank."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, NamedTuple

from ..contracts.errors import MissingExtraError
from ..contracts.words import counted
from .names import NORMALISER, WHITE, ConvertedName
from .normalise import Look, look, pixels_of

SAME = 8
"""Range of levels (of 255) in a blank picture: a lossy format changes a single colour slightly."""
BITS = 4
"""Maximum bits per pixel of a blank picture, besides `HEADER` bytes: larger files need not be decoded."""
HEADER = 200


class CheckedPicture(NamedTuple):
    """A file of a picture that can be shown."""

    sha256: str
    """Of the file (hex)."""
    name: str
    """In requests: the sha256, or how it is converted."""
    media: str
    size: tuple[int, int]
    """Width and height in pixels, upright."""
    reasons: tuple[str, ...]
    """Why it is converted; empty: it is shown as it is."""
    blank: bool
    """Whether it has only one colour."""


def require_pillow(what: str, extra: str = "images") -> None:
    """Raise `MissingExtraError` if Pillow is not installed; `what` needs it. Imports nothing."""
    if find_spec("PIL") is None:
        raise MissingExtraError(what, extra)


def check_picture(data: bytes, background: str = WHITE) -> CheckedPicture:
    """Decode a picture, and return what a study needs to know of it.

    Args:
        data: The file.
        background: Colour behind transparent pixels: red, green and blue as six hexadecimal digits.

    Raises:
        ValueError: the bytes are no complete picture of a format that is read, or one of too many pixels.
    """
    seen = look(data)
    sha256 = hashlib.sha256(data).hexdigest()
    name = ConvertedName(sha256, NORMALISER, background).text if seen.reasons else sha256
    media = seen.media or "application/octet-stream"
    return CheckedPicture(sha256, name, media, seen.size, seen.reasons, _blank(data, background, seen))


def conversion_notes(pictures: Iterable[CheckedPicture], background: str) -> list[str]:
    """Return how many pictures are converted before they are shown, and why, as at most one sentence."""
    converted = [picture for picture in pictures if picture.reasons]
    if not converted:
        return []
    reasons = Counter(reason for picture in converted for reason in picture.reasons)
    listed = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common())
    return [
        f"{counted(len(converted), 'picture')} converted to 8-bit sRGB for every model alike, transparent pixels on "
        f"#{background}: {listed}."
    ]


def _blank(data: bytes, background: str, seen: Look) -> bool:
    width, height = seen.size
    if not seen.reasons and 8 * (len(data) - HEADER) > BITS * width * height:
        return False
    extremes: Any = pixels_of(data, background).getextrema()
    return all(high - low <= SAME for low, high in extremes)
