"""Images of the store for the page: small, limited in number, and without SVG.

What the bytes are is read from the bytes, never from what somebody said of them: SVG, which can hold a script, is no
image here.
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
"""Of all images of a page together."""
MOST_UNSCALED = 250_000
"""Bytes of an image that is shown as it is, where Pillow is not installed to make it smaller."""


class Picture(msgspec.Struct, frozen=True):
    """An image as the page carries it, or why it carries none."""

    kind: str = ""
    data: bytes = b""
    problem: str = ""

    @property
    def source(self) -> str:
        """Return the image as a data url."""
        return f"data:{self.kind};base64,{b64encode(self.data).decode()}"


def kind_of(data: bytes) -> str:
    """Return the media type of an image that is safe to show, or nothing."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in KINDS.items() if data.startswith(start)), "")


def picture(data: bytes) -> Picture:
    """Return an image made small by Pillow, if that is installed; else as it is, if it is small."""
    if not kind_of(data):
        return Picture(problem="not a PNG, JPEG, GIF or WebP image")
    try:
        return Picture("image/jpeg", _thumbnail(data))
    except ImportError:
        if len(data) <= MOST_UNSCALED:
            return Picture(kind_of(data), data)
        return Picture(problem=f"too large ({len(data):,} bytes); 'prejudge[images]' makes it smaller")
    except Exception as error:  # what Pillow raises for broken and for gigantic images has no common class
        return Picture(problem=f"cannot be read: {type(error).__name__}: {error}"[:200])


def within(pictures: Iterable[tuple[str, Picture]], most: int = MOST_BYTES) -> dict[str, Picture]:
    """Return the pictures by name; those beyond so many bytes give way to a note."""
    kept: dict[str, Picture] = {}
    for name, one in pictures:
        most -= len(one.data)
        kept[name] = one if most >= 0 else Picture(problem="left out to keep this page small")
    return kept


def island(pictures: Mapping[str, Picture]) -> Markup:
    """Return the images as JSON for a script element; no `<` in it can end that element."""
    text = json.dumps({name: one.source for name, one in pictures.items() if one.data})
    # S704: nothing that a model or a file said is in it but the digits of digests and base64.
    return Markup(text.replace("<", "\\u003c"))


def _thumbnail(data: bytes) -> bytes:
    # Inside, since it is optional and slow to load: most reports show no image.
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as opened:
            opened.thumbnail((SIDE, SIDE))
            buffer = io.BytesIO()
            opened.convert("RGB").save(buffer, "JPEG", quality=80, optimize=True)
    return buffer.getvalue()
