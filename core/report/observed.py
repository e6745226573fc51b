"""The observations in the folder of a run: one Parquet file, or of a large run a folder of parts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ..catalogue.instrument import STAGE
from ..contracts.inputs import ensure_file
from ..engine.spilled import SPILL, fitted, part_name, shared_schema
from ..scoring.score import Scores

OBSERVATIONS = "observations.parquet"


def write_observations(scores: Scores, path: Path) -> None:
    """Write the observations, as a folder of parts from `SPILL` rows on. What is there is replaced when all is written.

    Raises:
        OSError: they cannot be written.
    """
    rows = sum(map(scores.height, scores.observations))
    if rows < SPILL:
        _remove(path, folder=True)
        scores.frame.write_parquet(path)
        return
    beside = path.with_name(f"{path.name}.new")
    _remove(beside)
    beside.mkdir()
    for number, part in enumerate(_parts(scores)):
        part.write_parquet(beside / part_name(number))
    _remove(path)
    beside.rename(path)


def read_observations(path: Path) -> pl.DataFrame:
    """Read what `write_observations` wrote.

    Raises:
        OSError, PolarsError: it cannot be read.
    """
    if not path.is_dir():
        ensure_file(path)
        return pl.read_parquet(path)
    files = sorted(path.glob("part-*.parquet"))
    for file in files:
        ensure_file(file)
    return pl.concat(map(pl.read_parquet, files))


def _parts(scores: Scores) -> Iterator[pl.DataFrame]:
    frames = scores.frames
    stages = [*frames] if len(frames) > 1 else []
    named = [pl.Schema({STAGE: pl.String})] if stages else []
    whole = shared_schema([*(frames.schema(stage) for stage in frames), *named])
    for stage in frames:
        for part in frames.parts(stage):
            own = part.with_columns(pl.lit(stage).alias(STAGE)) if stages else part
            yield fitted(own, whole)


def _remove(path: Path, *, folder: bool = False) -> None:
    """Remove a file, link or folder of parts; with `folder` a folder only."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif not folder:
        path.unlink(missing_ok=True)
