"""Open the images of a message: by their sha256, whole, or a clear error."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

from ..core.errors import DataError, PermanentError

MAX_PIXELS = 89_478_485
"""Pillow's own limit: a quarter GiB in RGB."""


def open_image(sha256: str, blobs: Callable[[str], bytes] | None) -> Any:
    """Return an image in RGB, upright as its EXIF data say, at its own size; of an animation the first frame.

    Raises:
        PermanentError: there are no bytes of that name, they are no image, or they unpack to too many pixels.
    """
    if blobs is None:
        raise PermanentError(f"image {sha256}: no store of images is attached, so its bytes are not at hand.")
    try:
        data = blobs(sha256)
    except DataError as error:
        raise PermanentError(f"image {sha256}: {error}") from error
    return _decode(sha256, data)


def _decode(sha256: str, data: bytes) -> Any:
    from PIL import Image, ImageOps

    # Decoders fail in every way that a malformed file can make them.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data))
        limit = min(MAX_PIXELS, Image.MAX_IMAGE_PIXELS or MAX_PIXELS)
        if image.width * image.height <= limit:
            return ImageOps.exif_transpose(image).convert("RGB")
    except Exception as error:
        shown = str(error).partition("<_io")[0].strip() or type(error).__name__
        raise PermanentError(f"image {sha256} cannot be read ({len(data)} bytes): {shown}.") from error
    raise PermanentError(
        f"image {sha256} unpacks to {image.width} x {image.height} pixels, more than {limit}. Give a smaller copy; "
        "making one here would be asking about another image."
    )
