"""Thumbnails of stored images for the page, limited in number, and without SVG.

The type is always read from the bytes, never from a stated media type. SVG is refused, because it can contain a script.
"""

from __future__ import annotations

import io
import json
import warnings
from base64 import b64encode
from collections.abc import Iterable, Mapping

import msgspec
from markupsafe import Markup

KINDS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
SIDE = 320
"""Longest side of a thumbnail, in pixels."""
MOST_BYTES = 2_500_000
"""Maximum number of bytes of all images of a page together."""
MOST_UNSCALED = 250_000
"""Maximum number of bytes of an image that is shown unchanged, if Pillow is not installed."""


class Picture(msgspec.Struct, frozen=True):
    """An image of the page, or the reason why it is missing."""

    kind: str = ""
    data: bytes = b""
    problem: str = ""

    @property
    def source(self) -> str:
        """Return the image as a data URL."""
        return f"data:{self.kind};base64,{b64encode(self.data).decode()}"


def kind_of(data: bytes) -> str:
    """Return the media type of an image that is safe to show; empty for others."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in KINDS.items() if data.startswith(start)), "")


def picture(data: bytes) -> Picture:
    """Return a thumbnail made by Pillow; without Pillow, the image itself if it is small."""
    if not kind_of(data):
        return Picture(problem="not a PNG, JPEG, GIF or WebP image")
    try:
        return Picture("image/jpeg", _thumbnail(data))
    except ImportError:
        if len(data) <= MOST_UNSCALED:
            return Picture(kind_of(data), data)
        return Picture(problem=f"too large ({len(data):,} bytes); install 'prejudge[images]' for thumbnails")
    except Exception as error:  # Pillow's exceptions for broken and for huge images have no common class
        return Picture(problem=f"cannot be read: {type(error).__name__}: {error}"[:200])


def within(pictures: Iterable[tuple[str, Picture]], most: int = MOST_BYTES) -> dict[str, Picture]:
    """Return the pictures by name; beyond the maximum of bytes, a note instead."""
    kept: dict[str, Picture] = {}
    for name, one in pictures:
        most -= len(one.data)
        kept[name] = one if most >= 0 else Picture(problem="left out to keep this page small")
    return kept


def island(pictures: Mapping[str, Picture]) -> Markup:
    """Return the images as JSON for a script element, with `<` escaped, so that nothing in it ends the element."""
    text = json.dumps({name: one.source for name, one in pictures.items() if one.data})
    # S704: of models and files it contains only hexadecimal digests and base64.
    return Markup(text.replace("<", "\\u003c"))


def _thumbnail(data: bytes) -> bytes:
    # Imported here, because it is optional and slow to load, and most reports show no image.
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as opened:
            opened.thumbnail((SIDE, SIDE))
            buffer = io.BytesIO()
            opened.convert("RGB").save(buffer, "JPEG", quality=80, optimize=True)
    return buffer.getvalue()
