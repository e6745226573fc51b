"""Columns on their way to disk, in parts, so that memory does not grow with the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..annotation.levels import NOTHING, as_words
from .columns import Codes, Column, Kind, Role, marks_of

MOST_LEVELS = 20_000
"""Levels of a column that are listed; a column with more has digests, by which a level is found that one knows."""
MOST_NUMBERS = 64
"""Levels of a column of numbers with fractions; one with more is shown in bins."""
BINS = 10


class Described(msgspec.Struct, frozen=True):
    """What the description of an index says of a column; its arrays are files beside it."""

    name: str
    role: Role
    kind: Kind
    levels: tuple[str, ...]


class Writer:
    """One column."""

    def __init__(self, folder: Path, number: int, name: str, role: Role) -> None:
        self.name, self.role = name, role
        self._paths = {kind: folder / f"{number}-{kind}" for kind in ("codes", "values", "marks")}
        self._files: dict[str, BinaryIO] = {}
        self._levels: dict[str, int] | None = {}
        self._numeric, self._fractions, self._height = True, False, 0

    def skip(self, height: int) -> None:
        """Write missing values."""
        self.write(pl.Series([None] * height, dtype=pl.Null))

    def write(self, part: pl.Series) -> None:
        """Write the next part."""
        numeric = part.dtype.is_numeric() or part.dtype == pl.Null
        self._fractions |= part.dtype.is_float()
        self._numeric = self._numeric and numeric
        self._height += len(part)
        words = as_words(part)
        self._put("marks", marks_of(words))
        values = part.cast(pl.Float64) if numeric else pl.Series([None] * len(part), dtype=pl.Float64)
        self._put("values", values.to_numpy().astype(np.float64))
        if self._levels is not None:
            levels = self._levels
            for word in words.unique():
                levels.setdefault(word, len(levels))
            most = MOST_NUMBERS if self._fractions and self._numeric else MOST_LEVELS
            if len(levels) > most:
                self._levels = None
                return
            own = words.unique()
            codes = words.replace_strict(own, [levels[word] for word in own], return_dtype=pl.UInt32)
            self._put("codes", codes.to_numpy())

    def _put(self, kind: str, values: NDArray[Any]) -> None:
        if kind not in self._files:
            self._files[kind] = self._paths[kind].with_suffix(".part").open("wb")
        self._files[kind].write(np.ascontiguousarray(values).tobytes())

    def discard(self) -> None:
        """Close the files of an index that is given up."""
        for file in self._files.values():
            file.close()

    def close(self) -> Described:
        """Settle the kind, write its arrays, and remove the others."""
        for file in self._files.values():
            file.close()
        found = self._settle()
        for path in self._paths.values():
            path.with_suffix(".part").unlink(missing_ok=True)
        return found

    def _settle(self) -> Described:
        if self._levels is not None:
            order, levels = _in_order(self._levels)
            self._save("codes", _small(order[self._read("codes", np.uint32)], len(levels)))
            return Described(self.name, self.role, "levels", levels)
        if self._numeric:
            values = self._read("values", np.float64)
            codes, levels = binned(values)
            self._save("codes", codes)
            self._save("values", values)
            return Described(self.name, self.role, "numbers", levels)
        self._save("marks", self._read("marks", np.uint64))
        return Described(self.name, self.role, "marks", ())

    def _read(self, kind: str, dtype: Any) -> NDArray[Any]:
        path = self._paths[kind].with_suffix(".part")
        return np.fromfile(path, dtype=dtype) if path.exists() else np.zeros(0, dtype=dtype)

    def _save(self, kind: str, values: NDArray[Any]) -> None:
        np.save(self._paths[kind].with_suffix(".npy"), values)


def read_column(folder: Path, number: int, described: Described) -> Column:
    """Return a column whose arrays are read as they are needed."""
    arrays = {
        kind: np.load(path, mmap_mode="r", allow_pickle=False)
        for kind in ("codes", "values", "marks")
        if (path := folder / f"{number}-{kind}.npy").exists()
    }
    return Column(described.name, described.role, described.kind, described.levels, **arrays)


def binned(values: NDArray[np.float64]) -> tuple[Codes, tuple[str, ...]]:
    """Return the bin of each number, about as many in each, and the bins in words; the first is what is missing."""
    known = values[np.isfinite(values)]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1))) if len(known) else np.zeros(0)
    inner = edges[1:-1]
    codes = np.searchsorted(inner, values, side="right").astype(np.uint8) + np.uint8(1)
    codes[np.isnan(values)] = 0
    ends = [f"{edge:.6g}" for edge in edges]
    bins = tuple(f"{low} to {high}" for low, high in zip(ends[:-1], ends[1:], strict=True)) or tuple(ends[:1])
    return codes, (NOTHING, *_distinct(bins))


def _distinct(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word if word not in words[:place] else f"{word} ({place + 1})" for place, word in enumerate(words))


def _in_order(levels: dict[str, int]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the new code by the old one, and the levels in order: numbers by size, what is missing last."""
    try:
        ordered = sorted(levels, key=lambda word: (word == NOTHING, 0.0 if word == NOTHING else float(word), word))
    except ValueError:
        ordered = sorted(levels, key=lambda word: (word == NOTHING, word))
    order = np.zeros(max(len(levels), 1), dtype=np.int64)
    for new, word in enumerate(ordered):
        order[levels[word]] = new
    return order, tuple(ordered)


def _small(codes: NDArray[np.int64], levels: int) -> Codes:
    return codes.astype(np.uint8 if levels <= 256 else np.uint16)
