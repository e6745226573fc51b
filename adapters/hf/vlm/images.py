"""Open the images of a message as a vision-language model takes them."""

from __future__ import annotations

from typing import Any

from ...shared.images import Blobs, decode_image, fetch_image


def open_image(sha256: str, blobs: Blobs | None) -> Any:
    """Return an image in RGB, upright as its EXIF data say, at its own size; of an animation the first frame.

    Raises:
        PermanentError: there are no bytes of that name, they are no image, or they unpack to too many pixels.
    """
    return decode_image(sha256, fetch_image(sha256, blobs), _upright)


def _upright(image: Any) -> Any:
    from PIL import ImageOps

    return ImageOps.exif_transpose(image).convert("RGB")
