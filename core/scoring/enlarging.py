"""A pilot's units, as many as a larger or smaller design would have.

Where what is measured depends on answers, the units of a design cannot be listed before it is run. But how many
clusters it asks about can be counted in its first stage, and each is then taken to be like one of the pilot's.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

import polars as pl

from ..contracts import DESIGN_COLUMNS, UNIT_COLUMNS


def enlarge(units: pl.DataFrame, tried: pl.DataFrame, asked: pl.DataFrame) -> pl.DataFrame | None:
    """Return the pilot's units with as many clusters as are asked about, or None where that cannot be counted.

    `tried` and `asked` have the factors of the first stage, one row per trial of the pilot and of the design. Clusters
    are counted by the factor whose levels are the units' clusters, or else by the one whose levels are the units. A
    group that the design does not ask about is left out.
    """
    if (counted := _counted(units, tried)) is None:
        return None
    parts = list(_parts(units, tried, asked, counted))
    return pl.concat(parts) if parts else units.clear()


def untold(units: pl.DataFrame, tried: pl.DataFrame, asked: pl.DataFrame) -> Iterator[str]:
    """Yield what the design asks about and the pilot did not, in words: a factor of the units' groups, and a level."""
    for name in _factors(units):
        if name in tried.columns and set(units[name].drop_nulls()) <= set(tried[name]):
            known = set(tried[name])
            yield from (f"{name} {level}" for level in asked[name].unique(maintain_order=True) if level not in known)


def _factors(units: pl.DataFrame) -> list[str]:
    known = {*UNIT_COLUMNS, *DESIGN_COLUMNS}
    return [name for name in units.columns if name not in known]


def _counted(units: pl.DataFrame, tried: pl.DataFrame) -> str | None:
    homes = (_home(units[column], tried) for column in ("cluster", "unit"))
    return next((home for home in homes if home is not None), None)


def _home(levels: pl.Series, frame: pl.DataFrame) -> str | None:
    """Return the first factor that has all of these levels."""
    wanted = set(levels.drop_nulls())
    return next((name for name in frame.columns if wanted and wanted <= set(frame[name])), None)


def _parts(units: pl.DataFrame, tried: pl.DataFrame, asked: pl.DataFrame, counted: str) -> Iterator[pl.DataFrame]:
    factors = _factors(units)
    by = ["metric", *(name for name in ("test", *factors) if name in units.columns)]
    for key, part in units.partition_by(by, as_dict=True, maintain_order=True).items():
        group = {name: level for name, level in zip(by, key, strict=True) if name in factors and level is not None}
        told = {n: level for n, level in group.items() if n in tried.columns and level in set(tried[n])}
        before, after = (_count(frame, told, counted) for frame in (tried, asked))
        if before and after and all(_there(units[name], level, tried, asked) for name, level in group.items()):
            yield _repeated(part, max(1, round(part["cluster"].n_unique() * after / before)))


def _there(levels: pl.Series, level: Any, tried: pl.DataFrame, asked: pl.DataFrame) -> bool:
    """Return whether a level is asked about, if it is a factor's: of this name or, as in contrasts, of another."""
    named = levels.name if levels.name in tried.columns else _home(levels, tried)
    return named is None or level not in set(tried[named]) or level in set(asked[named])


def _count(frame: pl.DataFrame, group: dict[str, Any], counted: str) -> int:
    return frame.filter(*(pl.col(name) == level for name, level in group.items()))[counted].n_unique()


def _repeated(part: pl.DataFrame, wanted: int) -> pl.DataFrame:
    """Return so many clusters: the first ones, or all of them again and again under other names."""
    names = part["cluster"].unique(maintain_order=True)
    copies = [
        part.filter(pl.col("cluster").is_in(names.head(wanted - time * len(names)).implode())).with_columns(
            pl.col("unit", "cluster") + (f" ({time + 1})" if time else "")
        )
        for time in range(ceil(wanted / len(names)))
    ]
    return pl.concat(copies)
