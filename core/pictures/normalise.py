"""The one normaliser: any picture as 8-bit sRGB, upright, without transparency; the same pixels for every model.

- 16-bit grey is scaled to 8 bits, rounded; 16-bit colours keep their upper 8 bits, as Pillow reads them.
- Colours of another ICC profile are converted to sRGB (relative colorimetric); CMYK without a profile as Pillow does.
- Transparency is composed on the background colour, so the hidden colour of a transparent pixel is never seen.
- The EXIF orientation is applied. Of an animation the first frame is taken.

Nothing is resized. What is returned is a PNG of `core.contracts.png`.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..contracts.png import SIGNATURE, encode_png
from .names import WHITE

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "MPO")
"""Formats that are read."""
SENT = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
"""Media types of the formats that every endpoint takes; a picture of another format is converted."""
MAX_PIXELS = 89_478_485
"""Pillow's own limit: a quarter GiB in RGB."""
ORIENTATION = 0x0112
"""EXIF tag: how a camera was held."""
SAME_COLOUR = 2
"""Largest difference of levels (of 255) between sRGB and a profile that is taken for sRGB."""
_WIDE_GREY = ("I;16", "I;16B", "I;16L", "I;16N")


class PictureSizeError(ValueError):
    """Report a picture with too many pixels."""


class Look(NamedTuple):
    """What a file of a picture is."""

    media: str
    """Its media type, as it would be sent; empty: it is sent converted only."""
    size: tuple[int, int]
    """Width and height in pixels, upright."""
    reasons: tuple[str, ...]
    """Why it is converted; empty: it is shown as it is."""


def look(data: bytes) -> Look:
    """Return what a file of a picture is, decoded once.

    Raises:
        ValueError: the bytes are no complete picture of a format that is read, or one of too many pixels.
    """
    with opened(data) as image:
        return _look(image, data)


def normalise(data: bytes, background: str = WHITE) -> bytes:
    """Return a picture as the PNG that models see; unchanged if it is 8-bit sRGB without transparency, turn or frames.

    Args:
        data: The file.
        background: Colour behind transparent pixels: red, green and blue as six hexadecimal digits.

    Raises:
        ValueError: see `look`.
    """
    with opened(data) as image:
        if not _look(image, data).reasons:
            return data
        pixels = _rgb(image, background)
        return encode_png(pixels.tobytes(), pixels.width, pixels.height)


def pixels_of(data: bytes, background: str = WHITE) -> Image:
    """Return the pixels that models see, in mode RGB; raises `ValueError` as `look` does."""
    with opened(data) as image:
        return _rgb(image, background)


@contextmanager
def opened(data: bytes) -> Iterator[Any]:
    """Open and decode a picture; what decoders raise becomes a `ValueError`.

    Raises:
        ValueError: see `look`.
    """
    from PIL import Image

    # For malformed files, decoders raise many kinds of exceptions.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                limit = min(MAX_PIXELS, Image.MAX_IMAGE_PIXELS or MAX_PIXELS)
                if image.width * image.height > limit:
                    raise PictureSizeError(
                        f"it unpacks to {image.width} x {image.height} pixels, more than {limit}. Give a smaller copy; "
                        "it is not scaled here, since that would change the question"
                    )
                image.load()
                yield image
    except PictureSizeError:
        raise
    except Image.DecompressionBombError as error:
        raise PictureSizeError(str(error).rstrip(".")) from error
    except Exception as error:
        raise ValueError(str(error).partition("<_io")[0].strip().rstrip(".") or type(error).__name__) from error


def _look(image: Any, data: bytes) -> Look:
    tests: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("several frames: the first", lambda: getattr(image, "n_frames", 1) > 1),
        ("turned as EXIF says", lambda: image.getexif().get(ORIENTATION, 1) not in (0, 1)),
        ("transparency", image.has_transparency_data.__bool__),
        ("16 bits per channel", lambda: _depth(data) == 16),
        (f"colour mode {image.mode}", lambda: image.mode not in ("RGB", "RGBA", *_WIDE_GREY)),
        ("another colour space than sRGB", lambda: _foreign(image.info.get("icc_profile"), image.mode)),
        (f"format {image.format}", lambda: image.format not in SENT),
    )
    width, height = image.size
    turned = image.getexif().get(ORIENTATION, 1) in (5, 6, 7, 8)
    reasons = tuple(reason for reason, applies in tests if applies())
    return Look(SENT.get(str(image.format), ""), (height, width) if turned else (width, height), reasons)


def _depth(data: bytes) -> int:
    """Return the bits per channel of a PNG, which Pillow does not tell; 8 for other formats."""
    return data[24] if data.startswith(SIGNATURE) else 8


def _rgb(image: Any, background: str) -> Image:
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    profile, alpha = image.info.get("icc_profile"), None
    if image.mode in (*_WIDE_GREY, "I", "F"):
        image, alpha = _scaled(image)
    elif image.has_transparency_data:
        image = image.convert("RGBA")
        alpha, image = image.getchannel("A"), image.convert("RGB")
    elif image.mode not in ("L", "RGB", "CMYK"):
        image = image.convert("RGB")
    if profile is not None and (convert := _to_srgb(profile, image.mode)) is not None:
        image = convert(image)
    image = image if image.mode == "RGB" else image.convert("RGB")
    if alpha is None:
        return image  # type: ignore[no-any-return]
    behind = Image.new("RGB", image.size, f"#{background}")
    behind.paste(image, mask=alpha)
    return behind


def _scaled(image: Any) -> tuple[Image, Image | None]:
    """Return 16-bit grey as 8-bit grey: 65535 is 255; and its mask, if one level is transparent.

    Raises:
        ValueError: the range of the values is not known.
    """
    import numpy as np
    from PIL import Image

    values = np.asarray(image)
    if image.mode == "F" or values.min() < 0 or values.max() > 65_535 or (image.mode == "I" and image.format == "TIFF"):
        raise ValueError("its grey levels are 32-bit numbers without a range; save it as 8-bit RGB")
    wide, clear = values.astype(np.uint32), image.info.get("transparency")
    alpha = None if clear is None else Image.fromarray(np.where(wide == clear, 0, 255).astype(np.uint8))
    return Image.fromarray(((wide + 128) // 257).astype(np.uint8)), alpha


@lru_cache(maxsize=16)
def _to_srgb(profile: bytes, mode: str) -> Callable[[Any], Any] | None:
    """Return the conversion from a profile to sRGB; None for a profile that cannot be used with the mode."""
    from PIL import ImageCms

    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        transform = ImageCms.buildTransform(
            source, ImageCms.createProfile("sRGB"), mode, "RGB", ImageCms.Intent.RELATIVE_COLORIMETRIC
        )
    except (ImageCms.PyCMSError, OSError, ValueError):
        return None
    return lambda image: ImageCms.applyTransform(image, transform)


@lru_cache(maxsize=256)
def _foreign(profile: bytes | None, mode: str) -> bool:
    """Return whether a profile changes the colours of RGB pixels: profiles of sRGB have many names and contents."""
    if profile is None or mode != "RGB" or (convert := _to_srgb(profile, mode)) is None:
        return False
    from PIL import Image, ImageChops

    levels = range(0, 256, 51)
    cube = Image.frombytes("RGB", (216, 1), bytes(v for r in levels for g in levels for b in levels for v in (r, g, b)))
    extremes: Any = ImageChops.difference(cube, convert(cube)).getextrema()
    return any(high > SAME_COLOUR for _, high in extremes)
