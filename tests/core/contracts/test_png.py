"""The one writer of PNG files: bytes that never change, because images are named by them."""

from __future__ import annotations

import hashlib
import io
import struct
import zlib

import pytest

from prejudge.adapters.simulated.pictures import squares
from prejudge.core.contracts.png import encode_png
from prejudge.core.doctor.model import square


@pytest.mark.parametrize(
    ("data", "level", "sha256"),
    [
        (squares(7, 20, 12), 1, "ae0a090afb9ede4daef5f16bd685571ff11bb8108350f02d91b0a83535b38aff"),
        (square(255, 0, 0), -1, "b60fcc8311acfc0e9cd583f711ddceabf46c88d6a09c0c803de81b992eae9c28"),
        (square(255, 0, 0, "another file"), -1, "21074e4feb2ce5cd96b2e4adeb1389929edf0f675af6ae56d1e98182affbdd14"),
    ],
)
def test_bytes_are_those_of_every_version(data, level, sha256):
    # What zlib makes of the rows depends on its version, so the rows and the level are held.
    at = data.index(b"IDAT")
    packed = data[at + 4 : at + 4 + struct.unpack(">I", data[at - 4 : at])[0]]
    rows = zlib.decompress(packed)
    assert packed == zlib.compress(rows, level)
    assert hashlib.sha256(data[: at - 4] + rows).hexdigest() == sha256


def test_pixels_and_comment_read_back():
    image = pytest.importorskip("PIL.Image")
    pixels = bytes(range(3 * 5 * 2))
    read = image.open(io.BytesIO(encode_png(pixels, 5, 2, comment="seen")))
    assert (read.mode, read.size, read.tobytes(), read.text) == ("RGB", (5, 2), pixels, {"Comment": "seen"})
