"""How often the samples of one prompt had one answer, counted as answers are read.

Equal answers alone do not show what made them: draws of one prompt are exchangeable, so a model that is sure of its
answer and an endpoint that repeats itself give the same counts, and no number of alike prompts is expected. The canary
tells the two apart.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ..spilled import SPILL, folder_of, part_name
from .records import Repeats

COUNTED = 2_000_000
"""Answers that are counted at once."""


class Tally:
    """Collects 24 bytes per answer of a stage, and no text; of a large stage in files, which are removed with it."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []
        self._files: list[Path] = []
        self._folder: Path | None = None
        self._rows = 0

    def see(self, part: pl.DataFrame) -> None:
        """Receive trials, with `key`, `prompt`, `status` and `response`."""
        answered = part.filter(pl.col("status") == "ok")
        texts = answered["response"].str.json_path_match("$.text").fill_null("")
        hashes = {"prompt": answered["prompt"].hash(), "key": answered["key"].hash(), "text": texts.hash()}
        self._parts.append(pl.DataFrame(hashes))
        self._rows += answered.height
        if self._rows >= SPILL * (len(self._files) + 1):
            self._spill()

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = folder_of(self, "prejudge-repeats-")
        self._files.append(self._folder / part_name(len(self._files)))
        pl.concat(self._parts).write_parquet(self._files[-1])
        self._parts.clear()

    def count(self) -> Repeats | None:
        """Return the counts; None if no prompt has several answers."""
        if not self._rows:
            return None
        every = pl.concat([*map(pl.scan_parquet, self._files), *(part.lazy() for part in self._parts)])
        # Some prompts at a time: what counting takes is several times what is counted.
        shares = 1 + self._rows // COUNTED
        chosen = (every.filter(pl.col("prompt") % shares == remainder) for remainder in range(shares))
        counts = ["draws", "distinct", "alike"]
        # Sorted, so that sums are the same to the last bit whatever order the prompts come in.
        counted = pl.concat(map(_by_counts, chosen)).group_by(counts).agg(pl.col("prompts").sum()).sort(counts)
        if counted.is_empty():
            return None
        prompts, draws = counted["prompts"], counted["draws"]
        return Repeats(
            prompts=int(prompts.sum()),
            draws=int((prompts * draws).sum()),
            alike=int(prompts.filter(counted["distinct"] == 1).sum()),
            distinct=int((prompts * counted["distinct"]).sum()),
            pairs=float((prompts * counted["alike"] / (draws * (draws - 1))).sum()) / int(prompts.sum()),
        )


def _by_counts(part: pl.LazyFrame) -> pl.DataFrame:
    """Return how many prompts have so many draws, distinct ones, and ordered pairs of equal ones, of those with two."""
    texts = part.unique("key").group_by("prompt", "text").agg(pl.len().cast(pl.Int64).alias("same"))
    same = pl.col("same")
    prompts = texts.group_by("prompt").agg(
        draws=same.sum(), distinct=pl.len().cast(pl.Int64), alike=(same * (same - 1)).sum()
    )
    several = prompts.filter(pl.col("draws") > 1).group_by("draws", "distinct", "alike")
    return several.agg(pl.len().cast(pl.Int64).alias("prompts")).collect()
