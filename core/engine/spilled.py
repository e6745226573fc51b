"""Observations of more rows than are held in memory: Parquet files in a folder, read column by column."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl

SPILL = 1_000_000
"""Rows of a stage from which on its observations are kept in files, and those of a run are a folder of parts."""
PART = 250_000
"""Most rows of a part."""


class Spilled:
    """The observations of a stage in files, which are removed with it."""

    def __init__(self, frames: Iterable[pl.DataFrame]) -> None:
        folder = folder_of(self, "prejudge-observations-")
        self.height, self.files = 0, list[Path]()
        schemas: list[pl.Schema] = []
        for frame in _full(frames):
            self.files.append(folder / part_name(len(self.files)))
            frame.write_parquet(self.files[-1])
            self.height += frame.height
            schemas.append(frame.schema)
        self.schema = shared_schema(schemas)
        for path, schema in zip(self.files, schemas, strict=True):
            if schema != self.schema:  # a factor may be null in all rows of a part, or a number whole in them
                fitted(pl.read_parquet(path), self.schema).write_parquet(path)

    def lazy(self) -> pl.LazyFrame:
        """Return a query of all rows, in plan order."""
        return pl.scan_parquet(self.files).select(self.schema.names())

    def without(self, name: str) -> None:
        """Leave a column out of what is read."""
        self.schema = pl.Schema({key: kind for key, kind in self.schema.items() if key != name})

    def parts(self) -> Iterator[pl.DataFrame]:
        """Yield all rows, part by part."""
        return (pl.read_parquet(path, columns=self.schema.names()) for path in self.files)


class Frames(Mapping[str, pl.DataFrame]):
    """Observations by stage. Those in files are read anew each time, with all columns; `lazy` reads what is needed."""

    def __init__(self, kept: Mapping[str, pl.DataFrame | Spilled]) -> None:
        self._kept = dict(kept)

    def __getitem__(self, stage: str) -> pl.DataFrame:
        frame = self._kept[stage]
        return frame.lazy().collect() if isinstance(frame, Spilled) else frame

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def lazy(self, stage: str) -> pl.LazyFrame:
        """Return a query of a stage's rows, in plan order."""
        return self._kept[stage].lazy()

    def schema(self, stage: str) -> pl.Schema:
        """Return the columns and their types."""
        return self._kept[stage].schema

    def height(self, stage: str) -> int:
        """Return the number of rows."""
        height: int = self._kept[stage].height
        return height

    def spilled(self, stage: str) -> bool:
        """Return whether the rows of a stage are in files."""
        return isinstance(self._kept[stage], Spilled)

    def parts(self, stage: str) -> Iterator[pl.DataFrame]:
        """Yield the rows, a limited number at a time."""
        frame = self._kept[stage]
        return frame.parts() if isinstance(frame, Spilled) else frame.iter_slices(PART)


def folder_of(owner: object, prefix: str) -> Path:
    """Return a new temporary folder, which is removed with its owner."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return folder


def part_name(number: int) -> str:
    """Return the name of the file of a part; in their order the files have all rows in plan order."""
    return f"part-{number:05}.parquet"


def shared_schema(schemas: Iterable[pl.Schema]) -> pl.Schema:
    """Return the columns of frames that become one, with types that hold the values of all."""
    empty = [pl.DataFrame(schema=schema) for schema in schemas]
    return pl.concat(empty, how="diagonal_relaxed").schema if empty else pl.Schema()


def fitted(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """Return a frame with these columns; those that it lacks are null."""
    present = frame.schema
    return frame.select(
        (pl.col(name) if name in present else pl.lit(None)).cast(kind).alias(name) for name, kind in schema.items()
    )


def _full(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Put small frames together, up to the size of a part."""
    waiting: list[pl.DataFrame] = []
    for frame in frames:
        if waiting and sum(part.height for part in waiting) + frame.height > PART:
            yield pl.concat(waiting, how="diagonal_relaxed")
            waiting = []
        waiting.append(frame)
    if waiting:
        yield pl.concat(waiting, how="diagonal_relaxed")
