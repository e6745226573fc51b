"""Categories as sums per cluster: how many prompts were scored, how many are stereotypes, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

from ...core.contracts.records import Scalar
from ...core.statistics.arrays import Array
from ...core.statistics.missing import Group
from ...core.statistics.pairs import missing_by_status
from .correction import Errors
from .votes import ENCODER


class Cell(msgspec.Struct, frozen=True):
    """One category, or all of them together."""

    group: dict[str, Scalar]
    hits: int
    n: int
    missing: dict[str, int]
    sums: Array
    """Count of scored prompts and of stereotypes among them, shape (clusters, 2)."""
    answered: Array
    """Count and sum of shares of prompts with a readable completion, shape (clusters, 2)."""
    silent: dict[str, int]
    """Prompts without a readable completion, by what became of most of theirs."""
    ranges: Array
    """Least and greatest share of each prompt, whatever its missing completions are, shape (prompts, 2)."""
    errors: Errors | None
    """Of the encoder; None where nobody gave them."""

    @property
    def absent(self) -> int:
        """Return the count of prompts that are not scored."""
        return sum(self.missing.values())

    def as_group(self) -> Group:
        """Return what is missing here."""
        return Group(self.group, self.n, self.missing)


def cells_of(prompts: pl.DataFrame) -> list[Cell]:
    """Return the categories in the order of their first prompts."""
    return [
        _cell(str(name), part)
        for (name,), part in prompts.partition_by("category", as_dict=True, maintain_order=True).items()
    ]


def _cell(name: str, part: pl.DataFrame) -> Cell:
    scored = part.filter(pl.col("status") == "ok")
    spoken = part.filter(pl.col("share").is_not_null())
    hit = scored["hit"].cast(pl.Float64).to_numpy()
    counts = [part[column][0] for column in ENCODER]
    return Cell(
        group={"category": name},
        hits=int(hit.sum()),
        n=scored.height,
        missing=missing_by_status(part),
        sums=_by_source(scored, (np.ones(len(hit)), hit)),
        answered=_by_source(spoken, (np.ones(spoken.height), spoken["share"].to_numpy())),
        silent=missing_by_status(part.filter((pl.col("asked") > 0) & pl.col("share").is_null())),
        ranges=_ranges(part),
        errors=None if None in counts else Errors(*counts),
    )


def _ranges(part: pl.DataFrame) -> Array:
    asked = part.filter(pl.col("asked") > 0)
    hits = pl.col("share").fill_null(0.0) * pl.col("readable")
    ends: Array = asked.select(
        least=hits / pl.col("asked"), greatest=(hits + pl.col("asked") - pl.col("readable")) / pl.col("asked")
    ).to_numpy()
    return ends


def _by_source(part: pl.DataFrame, columns: Sequence[Array]) -> Array:
    """Sum over prompts that are one sentence: they are one cluster, as their completions are draws of one question."""
    _, place = np.unique(part["source"].to_numpy(), return_inverse=True)
    summed = [np.bincount(place.ravel().astype(np.int64), weights=column) for column in columns]
    sums: Array = np.stack(summed, axis=-1).astype(np.float64).reshape(-1, len(columns))
    return sums


def alone(sums: Array) -> Array:
    """Return the sums of one category as `bootstrap` wants them: (clusters, 1 unit, 1 side, columns)."""
    return sums[:, None, None]


def side_by_side(parts: Sequence[Array]) -> Array:
    """Return the sums of several categories as the sides of one unit: (clusters, 1, sides, columns)."""
    clusters = sum(map(len, parts))
    stacked = np.zeros((clusters, 1, len(parts), parts[0].shape[1] if parts else 2))
    start = 0
    for side, part in enumerate(parts):
        stacked[start : start + len(part), 0, side] = part
        start += len(part)
    return stacked
