"""The images that `simulated` draws, and the faces that it knows: a drawn face has its name and filter in a text chunk.

The schematic faces of the study `attractiveness` carry that chunk; a vision-language model, which looks at pixels,
never sees it. An option of a question about such a face scores, besides what its words do,

    filter / 2 * valued * (strength + face_spread * z(face) + word_spread * z(option))
        + spread / sqrt(2) * z(face, option)

so the log-odds of a positive option over a negative one rise by `filter * strength` from a face without a filter to the
same face with it, more for some faces (`face_spread`) and for some options (`word_spread`), which is no bias; and faces
differ by `spread`, alike in both pictures. All in nats.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec
import numpy as np

from ...core.contracts.errors import DataError
from ...core.contracts.png import SIGNATURE, encode_png
from ...core.contracts.records import Image, Message, Prompt
from ..shared.images import Blobs
from .noise import LARGEST, Leans, Noise
from .planted import Planted

CHUNK = b"prejudge-face"
"""Keyword of the text chunk; what draws the faces writes it."""
SQUARES = 8
"""In each row and column of a drawing."""
CACHED = 1 << 16


class Face(msgspec.Struct, frozen=True):
    """A drawn face."""

    face: str
    filter: float
    """How far the picture is filtered, from 0 (not) to 1."""


_decode = msgspec.json.Decoder(Face).decode


class Faces:
    """The drawn faces in prompts, and how options lean to them."""

    def __init__(self, noise: Noise, leans: Leans, planted: Planted) -> None:
        """Take the noise, the random effects, and the numbers that are planted."""
        self._strength, self._spread = planted.strength, planted.spread
        self._leans, self._face_spread, self._word_spread = leans, planted.face_spread, planted.word_spread
        self._known: dict[str, Face | None] = {}
        self._own = lru_cache(CACHED)(lambda face, option: noise.normal("face", f"{face}|{option}"))

    @property
    def reach(self) -> float:
        """Return the largest possible distance of a lean from 0."""
        leans = LARGEST * (self._face_spread + self._word_spread)
        return (abs(self._strength) + leans) / 2 + LARGEST * self._spread / math.sqrt(2)

    def seen(self, prompt: Prompt, blobs: Blobs | None) -> Face | None:
        """Return the drawn face of a prompt with one picture; None if there is none, or its bytes are not at hand."""
        if isinstance(prompt, str) or blobs is None or (name := only_image(prompt)) is None:
            return None
        if name not in self._known:
            try:
                self._known[name] = face_in(blobs(name))
            except DataError:
                # Looked for once: a store that has no bytes of a picture is asked about it with every question.
                self._known[name] = None
        return self._known[name]

    def lean(self, face: Face | None, option: str, valued: int) -> float:
        """Return the term of a face in the score of an option with positive (1), negative (-1) or other words."""
        if face is None:
            return 0.0
        own = self._spread / math.sqrt(2) * self._own(face.face, option.lower()) if self._spread else 0.0
        filtered = self._strength
        if self._face_spread:
            filtered += self._face_spread * self._leans.of("filtered face", face.face)
        if self._word_spread:
            filtered += self._word_spread * self._leans.of("word lean", option.lower())
        return min(max(face.filter, 0.0), 1.0) * filtered / 2 * valued + own


def face_in(data: bytes) -> Face | None:
    """Return the description in a PNG of its drawn face; None for every other image."""
    for text in _texts(data):
        keyword, _, value = text.partition(b"\0")
        if keyword == CHUNK:
            try:
                return _decode(value)
            except msgspec.DecodeError:
                return None
    return None


def comment_in(data: bytes) -> str:
    """Return the comment of a PNG; empty if it has none."""
    found = (text.partition(b"\0") for text in _texts(data))
    return next((value.decode("latin-1") for keyword, _, value in found if keyword == b"Comment"), "")


def only_image(messages: Sequence[Message]) -> str | None:
    """Return the name of the only picture; None if there is none, or several."""
    names = [part.sha256 for message in messages for part in message.parts if isinstance(part, Image)]
    return names[0] if len(names) == 1 else None


def _texts(data: bytes) -> Iterator[bytes]:
    """Yield the text chunks before the pixels."""
    at = len(SIGNATURE)
    while data.startswith(SIGNATURE) and at + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IDAT":
            return
        if kind == b"tEXt":
            yield data[at + 8 : at + 8 + length]
        at += 12 + length


def squares(key: int, width: int, height: int, comment: str = "") -> bytes:
    """Return the bytes of a PNG of 8 by 8 squares in colours drawn from the key, and with a comment."""
    colours = np.random.Generator(np.random.Philox(key=key)).integers(0, 256, (SQUARES, SQUARES, 3), np.uint8)
    rows, columns = (np.arange(size) * SQUARES // size for size in (height, width))
    return encode_png(colours[rows][:, columns].tobytes(), width, height, level=1, comment=comment)
