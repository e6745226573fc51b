"""What was asked and answered, once per distinct text, so that a million answers are searched in one pass.

Only letter case is ignored: a search finds the words as they stand. Texts lie in parts of bounded size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

PART = 100_000
"""Texts of a part; one with more characters than `PART_SIZE` ends earlier."""
PART_SIZE = 64_000_000
REMEMBERED = 400_000
"""Distinct texts that are recognised when they come again; a later one is written anew."""


class TextWriter:
    """The texts of one kind, such as the answers."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._known: dict[int, int] = {}
        self._texts: list[str] = []
        self._size = self._count = self._parts = 0
        self._numbers = (folder / f"{name}.part").open("wb")

    def write(self, texts: Sequence[str]) -> None:
        """Write the texts of the next rows."""
        self._numbers.write(np.array([self._number(text) for text in texts], dtype=np.uint32).tobytes())

    def _number(self, text: str) -> int:
        mark = hash(text)
        number = self._known.get(mark)
        if number is None:
            number = self._count
            self._count += 1
            if len(self._known) < REMEMBERED:
                self._known[mark] = number
            self._texts.append(text.casefold())
            self._size += len(text)
            if len(self._texts) >= PART or self._size >= PART_SIZE:
                self._flush()
        return number

    def _flush(self) -> None:
        frame = pl.DataFrame({"text": self._texts}, schema={"text": pl.String})
        frame.write_ipc(self._folder / f"{self._name}-{self._parts:05}.arrow")
        self._texts, self._size = [], 0
        self._parts += 1

    def discard(self) -> None:
        """Close the file of an index that is given up."""
        self._numbers.close()

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._numbers.close()
        path = self._folder / f"{self._name}.part"
        np.save(self._folder / f"{self._name}.npy", np.fromfile(path, dtype=np.uint32))
        path.unlink()


class Texts:
    """The texts of one kind, to be searched."""

    def __init__(self, folder: Path, name: str) -> None:
        self._parts = sorted(folder.glob(f"{name}-*.arrow"))
        self.numbers: NDArray[np.uint32] = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)

    def containing(self, words: str) -> NDArray[np.bool_]:
        """Return which rows have a text that contains these words, whatever their case."""
        wanted = words.casefold()
        found = [pl.read_ipc(part)["text"].str.contains(wanted, literal=True).to_numpy() for part in self._parts]
        return np.asarray(np.concatenate([*found, np.zeros(1, dtype=np.bool_)])[self.numbers])
