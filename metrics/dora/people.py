"""The judge against people: their agreement, and the judge's levels corrected by theirs, with the error of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.estimates import undefined
from ...core.statistics.intervals import Array
from ...core.statistics.ranks import Scale, agreement, rating_table
from ...probes.dora.people import stratum
from ...probes.dora.terms import CELL, PAIR
from .counts import Associations
from .measures import AGREEMENT, ALPHA, AMONG, VALUE
from .options import DoraAssociationsOptions

NAMED = ("name", "lemma")
SEPARATOR = "\x1f"


def agreements(found: Associations, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield alpha of the judgements of one association, by setting; of people; and of the judge with them."""
    for (modality, setting), part in found.levels.group_by(*CELL, maintain_order=True):
        group = {"modality": modality, "setting": setting}
        table, names = _ratings(part, ("descriptor", *PAIR), "judgement")
        yield _alpha(AGREEMENT, group, table, "ordinal", names, options)
    if found.people is not None:
        table, names = _ratings(found.people, NAMED, "annotator")
        yield _alpha(AMONG, {"raters": "people"}, table, "ordinal", names, options)
        both = _both(found, found.people)
        table = both.select("judge", "human").to_numpy().astype(np.float64)
        yield _alpha(ALPHA, {"judge": "people"}, table, "interval", both["name"].to_list(), options)


def _ratings(rows: pl.DataFrame, unit: Sequence[str], rater: str) -> tuple[Array, list[str]]:
    """Return the table of ratings, and the descriptor of each of its rows; it comes first in the name of a unit."""
    named = rows.with_columns(unit=pl.concat_str(unit, separator=SEPARATOR))
    names = np.unique(named["unit"].to_numpy())
    return rating_table(named, ("unit", rater, "level")), [name.split(SEPARATOR)[0] for name in names]


def _alpha(
    name: str,
    group: dict[str, Scalar],
    table: Array,
    scale: Scale,
    descriptors: list[str],
    options: DoraAssociationsOptions,
) -> Estimate:
    found = agreement(table, scale, options.plan, descriptors)
    left_out = {"one judgement": found.single, "no judgement": found.unrated}
    return Estimate.from_flat(
        metric=name,
        group=group,
        value=found.alpha,
        unit=f"Krippendorff's alpha, {scale}",
        low=found.low,
        high=found.high,
        level=options.level,
        interval=f"{options.interval} (descriptor)" if found.low is not None else "",
        n=found.units,
        clusters=len(set(descriptors)),
        missing={why: count for why, count in left_out.items() if count},
        facts={"raters": found.raters, "ratings": found.ratings},
        **({} if found.alpha is not None else undefined("no two judgements of one association, or all equal")),
    )


def people_rows(found: Associations, people: pl.DataFrame) -> pl.DataFrame:
    """Return how far the judge's mean level is above that of people, for each association that both judged."""
    both = _both(found, people)
    return both.select(pl.lit("ok").alias("status"), descriptor="name", value=pl.col("judge") - pl.col("human"))


def error_rows(found: Associations, people: pl.DataFrame) -> pl.DataFrame:
    """Return the judge's mean level of each association by setting, with the error of those that people judged.

    `known` says whether people judged it, `weight` how many of its stratum (the judge's level, rounded) it stands for,
    `error` is the error times that. Source: the difference estimator of stratified sampling (Cochran 1977, chapters 5
    and 7), now called prediction-powered inference (Angelopoulos et al. 2023).
    """
    # The sheets are drawn by the judge's level over all settings.
    whole, means = _means(_named(found.levels), "level"), _means(people, "human")
    parts = [pl.DataFrame(schema=dict.fromkeys((*CELL, "descriptor"), pl.String))]
    for (modality, setting), levels in found.levels.group_by(*CELL, maintain_order=True):
        rows = _means(_named(levels), VALUE, "descriptor").join(whole, on=NAMED, maintain_order="left")
        rows = rows.join(means, on=NAMED, how="left", maintain_order="left")
        rows = rows.with_columns(
            modality=pl.lit(modality), setting=pl.lit(setting), known=pl.col("human").is_not_null()
        )
        error = pl.col("weight") * (pl.col("human") - pl.col(VALUE)).fill_null(0.0)
        parts.append(rows.with_columns(_weights(rows)).with_columns(error=error))
    return pl.concat(parts, how="diagonal_relaxed").with_columns(status=pl.lit("ok"))


def _weights(rows: pl.DataFrame) -> pl.Series:
    """Return, of each association that people judged, how many it stands for; 0 of the others.

    A stratum in which people judged none joins the nearest in which they did. One judgement corrects nothing.
    """
    levels = rows.select(stratum()).to_series().to_numpy()
    known = rows["human"].is_not_null().to_numpy()
    there = np.unique(levels[known])
    if known.sum() < 2:
        return pl.Series("weight", np.zeros(len(levels)))
    nearest = there[np.abs(levels[:, None] - there).argmin(axis=1)]
    alike = nearest[:, None] == there
    stands_for = alike.sum(axis=0) / (alike & known[:, None]).sum(axis=0)
    return pl.Series("weight", known * stands_for[np.searchsorted(there, nearest)])


def _named(levels: pl.DataFrame) -> pl.DataFrame:
    """Return judgements with the columns by which those of people are found."""
    name = pl.Series("name", list(map(str.casefold, levels["descriptor"])), dtype=pl.String)
    return levels.with_columns(name, lemma="word").drop_nulls("level")


def _means(ratings: pl.DataFrame, mean: str, *more: str) -> pl.DataFrame:
    rated = ratings.drop_nulls("level").group_by(*NAMED, *more, maintain_order=True)
    return rated.agg(pl.col("level").mean().alias(mean))


def _both(found: Associations, people: pl.DataFrame) -> pl.DataFrame:
    return _means(_named(found.levels), "judge").join(_means(people, "human"), on=NAMED).sort(NAMED)
