"""A user's folder of images: its table, and decoding of its files."""

from __future__ import annotations

import io
import re
import warnings
from importlib.util import find_spec
from pathlib import Path

from ...core.contracts.errors import MissingExtraError

METADATA = "metadata.csv"
"""Name of the table of a folder of images."""
MEDIA = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}


def inside(folder: Path, name: str) -> Path:
    """Return the file that a table in a folder names.

    Raises:
        ValueError: the name is not one below the folder. A table that came with a folder names no other files of yours.
    """
    named = name.strip()
    if Path(named).anchor or ".." in re.split(r"[\\/]", named):
        raise ValueError("it is not below the folder of the table; put the image there")
    return folder / named


def require_pillow(what: str) -> None:
    """Raise `MissingExtraError` if Pillow is not installed; `what` needs it."""
    if find_spec("PIL") is None:
        raise MissingExtraError(what, "images")


TURN = 0x0112
"""EXIF tag: how a camera was held."""


def upright(data: bytes) -> bytes:
    """Return an image as its EXIF orientation says it is to be seen, as a PNG; unchanged where it says nothing.

    A viewer turns it, and most models do not: they would see people lying on their side. What cannot be read is left
    to `probe_image`.
    """
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data)) as image:
                if image.getexif().get(TURN, 1) == 1:
                    return data
                turned = ImageOps.exif_transpose(image)
                if turned.mode not in ("L", "RGB", "RGBA"):
                    turned = turned.convert("RGB")
                out = io.BytesIO()
                turned.save(out, "PNG")
    except Exception:
        return data
    return out.getvalue()


def probe_image(data: bytes) -> tuple[str, tuple[int, int]]:
    """Decode an image, and return its media type, width and height.

    Raises:
        ValueError: the bytes are not a complete PNG, JPEG or WebP.
    """
    from PIL import Image

    # For malformed files, decoders raise many kinds of exceptions.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data)) as image:
                kind, size = str(image.format), (image.width, image.height)
                image.load()
    except Exception as error:
        raise ValueError(str(error).partition("<_io")[0].strip() or type(error).__name__) from error
    if kind not in MEDIA:
        raise ValueError(f"the format is {kind}; save it as PNG, JPEG or WebP")
    return MEDIA[kind], size
