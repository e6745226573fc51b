"""The only writer of PNG files (RGB, 8 bits per channel): an image is named by its sha256, so bytes must not vary."""

from __future__ import annotations

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def encode_png(pixels: bytes, width: int, height: int, *, level: int = -1, comment: str = "") -> bytes:
    """Return the bytes of a PNG.

    Args:
        pixels: red, green and blue of each pixel, row by row from the top.
        width: pixels of a row.
        height: rows.
        level: compression level of zlib, from 0 to 9; -1: zlib's default.
        comment: a text in Latin-1; it changes the file, not the pixels.
    """
    stride = 3 * width
    # Every row of a PNG begins with the number of its filter; 0 means no filter.
    rows = b"".join(b"\0" + pixels[at : at + stride] for at in range(0, height * stride, stride))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    note = ((b"tEXt", b"Comment\0" + comment.encode("latin-1")),) if comment else ()
    chunks = ((b"IHDR", header), *note, (b"IDAT", zlib.compress(rows, level)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
