"""Bundles as somebody may hand them on: changed by SQL, with or without new digests."""

from __future__ import annotations

import gzip
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...forging import reseal


@contextmanager
def expanded(path: Path) -> Iterator[Path]:
    """Give the store in a bundle, which is compressed again at the end."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bundle.db"
        file.write_bytes(gzip.decompress(path.read_bytes()))
        yield file
        path.write_bytes(gzip.compress(file.read_bytes()))


def edit(path: Path, *statements: str, digests: bool = True) -> Path:
    """Change a bundle by SQL; with `digests` they are made anew from its rows."""
    with expanded(path) as file:
        plain = sqlite3.connect(file)
        plain.execute("PRAGMA journal_mode=DELETE")
        with plain:
            for statement in statements:
                plain.execute(statement)
        plain.close()
        if digests:
            reseal(file)
    return path
