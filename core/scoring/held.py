"""What a study holds: how many templates, words or faces there are of it, asked or not. More of them nobody can ask."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING, Any

import polars as pl

from ..catalogue.study import Catalogue

if TYPE_CHECKING:
    from .score import Scores

MOST_TRIALS = 300_000
"""Trials above which those of a whole study are not gone through for a sentence of a report."""


def held_by(catalogue: Catalogue, scores: Scores) -> pl.DataFrame | None:
    """Return the factors of the first stage's trials, of the whole study of a run; None where they are too many.

    The whole study is the run's own, without the limit on how much is asked of each cell.
    """
    study, whole = scores.made, catalogue.whole(scores.made)
    if whole == study:
        return scores.asked
    # A catalogue of its own: the one at hand keeps the instrument that the run is scored with.
    stage = Catalogue(catalogue.registry, catalogue.plugins).instrument(whole).every_stage()[0]
    if stage.count({}) > MOST_TRIALS:
        return None
    rows = [dict(trial.factors) for trial in stage.trials({})]
    return pl.DataFrame(rows, infer_schema_length=None, orient="row")


def levels_held(
    held: pl.DataFrame | None, asked: pl.DataFrame, levels: pl.Series, group: Mapping[str, Any]
) -> int | None:
    """Return how many levels a study holds of the factor that has some `levels`, within a group; None: not known.

    `asked` has the factors of the trials that were asked, which tell the factor by its levels. Where only a kind of
    these has the levels, such as templates that praise or disparage, others of the study are not counted.
    """
    home = home_of(levels, asked)
    if held is None or home is None or home not in held.columns:
        return None
    told = {n: level for n, level in group.items() if n in held.columns and level in set(asked[n].unique())}
    within = [pl.col(name) == level for name, level in told.items()]
    there, own = held.filter(*within), asked.filter(*within)
    mine = own.filter(pl.col(home).is_in(levels.drop_nulls().implode()))
    for name in set(own.columns) - {home, *told}:
        kinds = set(mine[name].unique())
        of_level = own.group_by(home).agg(pl.col(name).n_unique())[name].max()
        if of_level == 1 and kinds < set(own[name].unique()) and mine[home].n_unique() > len(kinds):
            there = there.filter(pl.col(name).is_in(list(kinds)))
    return there[home].n_unique()


def grown(units: pl.DataFrame, levels: Mapping[str, int]) -> pl.DataFrame:
    """Return units of one test as planned for a larger design, with so many levels of `cluster`, and of `row`.

    Levels are those of all sides together. A crossed design is as full as it was; the units have no values.
    """
    every = {name: units[name].n_unique() for name in levels}
    if "row" not in levels:
        return repeated(units, levels["cluster"])
    sides = []
    for (sign,), part in units.partition_by("sign", as_dict=True, maintain_order=True).items():
        # Sides may share levels, or have each their own.
        rows, columns = (round(part[name].n_unique() * levels[name] / every[name]) for name in ("row", "cluster"))
        there = part.select("row", "cluster").n_unique()
        fill = there / (part["row"].n_unique() * part["cluster"].n_unique())
        cells = pl.DataFrame({"at": range(rows * columns)}).filter(
            ((pl.col("at") + 1) * fill).floor() > (pl.col("at") * fill).floor()
        )
        same = part.head(1).drop("row", "cluster", "unit").with_columns(sign=pl.lit(sign).cast(part.schema["sign"]))
        names = cells.select(
            (pl.col("at") // columns).cast(pl.String).alias("row"),
            (pl.col("at") % columns).cast(pl.String).alias("cluster"),
            pl.format("{} {}", pl.lit(sign), "at").alias("unit"),
        )
        sides.append(names.join(same, how="cross").select(units.columns))
    return pl.concat(sides)


def repeated(part: pl.DataFrame, wanted: int) -> pl.DataFrame:
    """Return this many clusters: the first ones, or all of them repeatedly under other names."""
    names = part["cluster"].unique(maintain_order=True)
    copies = [
        part.filter(pl.col("cluster").is_in(names.head(wanted - time * len(names)).implode())).with_columns(
            pl.col("unit", "cluster") + (f" ({time + 1})" if time else "")
        )
        for time in range(ceil(wanted / len(names)))
    ]
    return pl.concat(copies)


def home_of(levels: pl.Series, frame: pl.DataFrame) -> str | None:
    """Return the first factor that has all of these levels."""
    wanted = set(levels.drop_nulls())
    return next((name for name in frame.columns if wanted and wanted <= set(frame[name].unique())), None)
