"""A picture of coloured squares, as PNG: its bytes are a function of the prompt, the seed and the size."""

from __future__ import annotations

import struct
import zlib

import numpy as np

SQUARES = 8


def squares(key: int, width: int, height: int) -> bytes:
    """Return the bytes of a PNG (8 bits per channel, RGB) of 8 by 8 squares in colours drawn from the key."""
    colours = np.random.Generator(np.random.Philox(key=key)).integers(0, 256, (SQUARES, SQUARES, 3), np.uint8)
    rows, columns = (np.arange(size) * SQUARES // size for size in (height, width))
    pixels = colours[rows][:, columns].reshape(height, width * 3)
    # Every line of a PNG begins with the number of its filter; 0 is none.
    lines = np.pad(pixels, ((0, 0), (1, 0)))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 1)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
