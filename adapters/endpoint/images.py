"""Images in and out, as base64: of every picture the bytes that the normaliser gives all adapters."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...core.contracts.adapter import Worker
from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Image, Message, Request, prompt_of
from ..shared.images import Blobs, fetch_image, require_pillow

Keep = Callable[[bytes, str], str]
_KINDS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_REMEMBERED = 8


def media_type(data: bytes) -> str | None:
    """Return the media type that the first bytes show, or None."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _KINDS if data.startswith(magic)), None)


class Picture(NamedTuple):
    """An image as an endpoint takes it."""

    url: str
    """As a `data:` url."""

    @property
    def kind(self) -> str:
        """Return the media type, such as image/png."""
        return self.url[len("data:") : self.url.index(";")]

    @property
    def data(self) -> str:
        """Return the bytes as base64."""
        return self.url[self.url.index(",") + 1 :]


Look = Callable[[str], Picture]
"""Returns an image by its sha256."""


def no_picture(sha256: str) -> Picture:
    """Return the image of a request that has none, which nobody asks for."""
    raise KeyError(sha256)


def any_picture(sha256: str) -> Picture:
    """Return a picture without bytes, for a request that is written and not sent."""
    return Picture("data:image/png;base64,")


class Pictures:
    """Makes pictures. Many questions ask about one image, so the last few are remembered."""

    def __init__(self, adapter: str) -> None:
        self._adapter = adapter
        self._made: OrderedDict[str, Picture] = OrderedDict()

    async def of(self, messages: Sequence[Message], blobs: Blobs | None, worker: Worker) -> Look:
        """Return a function that gives each image in some messages.

        Raises:
            PermanentError: an image that cannot be sent; see `make`.
        """
        names = {part.sha256 for message in messages for part in message.parts if isinstance(part, Image)}
        found: dict[str, Picture] = {}
        for name in names:
            known = self._made.get(name)
            found[name] = await worker.run(self.make, name, blobs) if known is None else known
        return found.__getitem__

    def ensure_readable(self, request: Request) -> None:
        """Check that the images of a request can be read, if it has some.

        Raises:
            MissingExtraError: Pillow is not installed.
        """
        if any(isinstance(part, Image) for message in prompt_of(request) for part in message.parts):
            self._ensure_pillow()

    def _ensure_pillow(self) -> None:
        """Check that images can be read.

        Raises:
            MissingExtraError: Pillow is not installed.
        """
        require_pillow(f"adapter {self._adapter!r} with images", "images")

    def make(self, name: str, blobs: Blobs | None) -> Picture:
        """Return an image as every model sees it. Blocks while its bytes are read.

        Raises:
            MissingExtraError: Pillow, which checks images, is not installed.
            PermanentError: no bytes, no image, a damaged one, or a decompression bomb.
        """
        if (picture := self._made.get(name)) is not None:
            return picture
        self._ensure_pillow()
        data = fetch_image(name, blobs)
        self._made[name] = Picture(f"data:{media_type(data)};base64,{base64.b64encode(data).decode()}")
        while len(self._made) > _REMEMBERED:
            self._made.popitem(last=False)
        return self._made[name]


def keep_image(encoded: str, keep: Keep | None) -> str:
    """Keep an image that came as base64, and return its sha256 (hex). Blocks while it is written.

    Raises:
        PermanentError: there is no store for it, or it is not an image.
    """
    if keep is None:
        raise PermanentError(
            "an image cannot be stored: no store of images is attached (adapter.services).",
            code="request.no-image-store",
        )
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise PermanentError("the endpoint sent an image that is not base64.", code="endpoint.image") from None
    if (kind := media_type(data)) is None:
        raise PermanentError("the endpoint sent bytes that are no PNG, JPEG, GIF or WebP image.", code="endpoint.image")
    return keep(data, kind)
