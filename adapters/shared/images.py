"""Images by their names: fetched whole, read once and normalised before they are used, or a clear error.

A run sends pictures that are normalised already; one that is asked about without a study is normalised here, on white.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from ...core.contracts.errors import DataError, PermanentError
from ...core.pictures.checking import require_pillow as require_pillow
from ...core.pictures.names import converted_name
from ...core.pictures.normalise import PictureSizeError, normalise, pixels_of

Blobs = Callable[[str], bytes]


def fetch_image(name: str, blobs: Blobs | None) -> bytes:
    """Return the bytes of an image, as a PNG, JPEG or WebP of 8-bit sRGB. Blocks while they are read.

    Raises:
        PermanentError: there are no bytes of this name, or those of another image; they are no image or a part of one;
            or they unpack to too many pixels (a decompression bomb), which is told by the header alone.
    """
    if blobs is None:
        raise PermanentError(
            f"image {name}: no store of images is attached, so its bytes cannot be read.",
            code="request.no-image-store",
        )
    try:
        data = blobs(name)
    except (DataError, OSError, KeyError) as error:
        raise PermanentError(f"image {name}: {error}", code="request.image-missing") from error
    if converted_name(name) is None and hashlib.sha256(data).hexdigest() != name.lower():
        raise PermanentError(
            f"image {name} does not match its name (sha256); the store is damaged.", code="request.image-damaged"
        )
    try:
        return normalise(data)
    except ValueError as error:
        raise _unusable(name, data, error) from error


def open_image(name: str, blobs: Blobs | None) -> Any:
    """Return an image in RGB at its own size, as `fetch_image` has it; raises `PermanentError`."""
    data = fetch_image(name, blobs)
    try:
        return pixels_of(data)
    except ValueError as error:
        raise _unusable(name, data, error) from error


def _unusable(name: str, data: bytes, error: ValueError) -> PermanentError:
    code = "request.image-size" if isinstance(error, PictureSizeError) else "request.image-damaged"
    return PermanentError(f"image {name} cannot be read ({len(data)} bytes): {error}.", code=code)
