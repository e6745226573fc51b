"""Images by their sha256: fetched whole and read once before they are used, or a clear error.

Nothing is resized or re-encoded here; the processing of pixels is left to each adapter.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

from ...core.contracts.errors import DataError, MissingExtraError, PermanentError

MAX_PIXELS = 89_478_485
"""Pillow's own limit: a quarter GiB in RGB."""
Blobs = Callable[[str], bytes]
T = TypeVar("T")


def require_pillow(what: str, extra: str) -> None:
    """Raise `MissingExtraError` unless Pillow is installed; imports nothing."""
    if find_spec("PIL") is None:
        raise MissingExtraError(what, extra)


def fetch_image(sha256: str, blobs: Blobs | None) -> bytes:
    """Return the bytes of an image. Blocks while they are read.

    Raises:
        PermanentError: there are no bytes with this digest, or the bytes are those of another image.
    """
    if blobs is None:
        raise PermanentError(
            f"image {sha256}: no store of images is attached, so its bytes cannot be read.",
            code="request.no-image-store",
        )
    try:
        data = blobs(sha256)
    except (DataError, OSError, KeyError) as error:
        raise PermanentError(f"image {sha256}: {error}", code="request.image-missing") from error
    if hashlib.sha256(data).hexdigest() != sha256.lower():
        raise PermanentError(
            f"image {sha256} does not match its name (sha256); the store is damaged.", code="request.image-damaged"
        )
    return data


def decode_image(sha256: str, data: bytes, then: Callable[[Any], T]) -> T:
    """Return the result of `then` for an image that Pillow opened; an error in it is attributed to the image.

    Raises:
        PermanentError: the bytes are no image or a part of one, or they unpack to too many pixels (a decompression
            bomb), which is told by the header alone.
    """
    from PIL import Image

    # Decoders fail in every way that a malformed file can make them.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data))
        limit = min(MAX_PIXELS, Image.MAX_IMAGE_PIXELS or MAX_PIXELS)
        if image.width * image.height <= limit:
            return then(image)
    except Exception as error:
        shown = str(error).partition("<_io")[0].strip() or type(error).__name__
        code = "request.image-size" if isinstance(error, Image.DecompressionBombError) else "request.image-damaged"
        raise PermanentError(f"image {sha256} cannot be read ({len(data)} bytes): {shown}.", code=code) from error
    raise PermanentError(
        f"image {sha256} unpacks to {image.width} x {image.height} pixels, more than {limit}. Give a smaller copy; "
        "it is not scaled here, since that would change the question.",
        code="request.image-size",
    )
