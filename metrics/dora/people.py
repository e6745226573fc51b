"""The judge against people: their agreement, and the judge's levels corrected by theirs, with the error of both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ...core.contracts.estimates import Caveat, Estimate
from ...core.statistics.declared_rows import Design, part, prepared
from ...core.statistics.estimates import undefined
from ...core.statistics.inference import estimate
from ...core.statistics.intervals import Array, ratio
from ...core.statistics.measures import Mean, Statistic
from ...core.statistics.ranks import Scale, agreement, rating_table
from ...probes.dora.people import read_levels, stratum
from ...probes.dora.terms import CELL
from .counts import SEPARATOR, Associations
from .options import DoraAssociationsOptions

AMONG, ALPHA, ABOVE, CORRECTED = "people_alpha", "calibration_alpha", "calibration_difference", "level_corrected"
NAMED = ("name", "lemma")
FEW = 10
"""Descriptors below which an interval may be too narrow."""


def calibration(found: Associations, path: str, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield the agreement of people, that of the judge with them, and the mean difference, over what both judged.

    Raises:
        DataError: the file cannot be read, lacks a column, or a level is not a number from 1 to 5.
    """
    ratings = read_levels([path])
    named = ratings.with_columns(unit=pl.concat_str(NAMED, separator=SEPARATOR))
    table = rating_table(named, ("unit", "annotator", "level"))
    clusters = [unit.split(SEPARATOR)[0] for unit in np.unique(named["unit"].to_numpy())]
    yield _alpha(AMONG, table, "ordinal", clusters, {"raters": "people"}, options)
    both = _means(_named(found.levels), "judge").join(_means(ratings, "human"), on=NAMED).sort(NAMED)
    pairs = both.select("judge", "human").to_numpy().astype(np.float64)
    yield _alpha(ALPHA, pairs, "interval", both["name"].to_list(), {"judge": "people"}, options)
    mean = Mean(ABOVE, value="above", neutral=0.0, unit="levels, judge less people", group={"judge": "people"})
    design = Design(measures=(mean,), clusters=("name",))
    rows = prepared(both.with_columns(above=pl.col("judge") - pl.col("human"), status=pl.lit("ok")), design)
    yield estimate(mean, part({}, rows, design), design, options).replace(family="calibration")


def corrected_levels(found: Associations, path: str, options: DoraAssociationsOptions) -> Iterator[Estimate]:
    """Yield the mean level by setting, corrected by people: the judge's mean less its mean error.

    The error is that of the associations that people judged, each weighted by how many of its stratum (the judge's
    level, rounded) there are. The interval draws descriptors with all of both, so that it has the error of the
    correction. Source: the difference estimator of stratified sampling (Cochran 1977, chapters 5 and 7), now called
    prediction-powered inference (Angelopoulos et al. 2023).
    """
    people = _means(read_levels([path]), "human")
    # The sheets are drawn by the judge's level over all settings.
    whole = _means(_named(found.levels), "level")
    measure = Statistic(
        CORRECTED,
        sums=("one", "judge", "weight", "error"),
        by=_corrected,
        unit="1 to 5",
        limits=(1.0, 5.0),
    )
    design = Design(measures=(measure,), clusters=("descriptor",))
    for cell, levels in found.levels.group_by(*CELL, maintain_order=True):
        rows = _means(_named(levels), "judge", "descriptor").join(whole, on=NAMED, maintain_order="left")
        rows = rows.join(people, on=NAMED, how="left", maintain_order="left")
        known = rows["human"].is_not_null()
        facts = {"people": int(known.sum()), "descriptors": rows.filter(known)["descriptor"].n_unique()}
        weighted = rows.with_columns(_weights(rows), one=pl.lit(1.0), status=pl.lit("ok")).with_columns(
            error=pl.col("weight") * (pl.col("human") - pl.col("judge")).fill_null(0.0)
        )
        group = dict(zip(CELL, map(str, cell), strict=True))
        if facts["people"] < 2:
            why = undefined("people judged fewer than two of the associations")
            yield Estimate.from_flat(metric=CORRECTED, group=group, value=None, n=rows.height, facts=facts, **why)
            continue
        one = estimate(measure, part(dict(group), prepared(weighted, design), design), design, options)
        caveats = one.caveats if facts["descriptors"] >= FEW else tuple({*one.caveats, Caveat.FEW_CLUSTERS})
        yield one.replace(caveats=caveats, facts={**one.facts, **facts})


def _corrected(one: Array, judge: Array, weight: Array, error: Array) -> Array:
    corrected: Array = ratio(judge, one) + ratio(error, weight)
    return corrected


def _weights(rows: pl.DataFrame) -> pl.Series:
    """Return, of each association that people judged, how many it stands for; 0 of the others.

    A stratum in which people judged none joins the nearest in which they did.
    """
    levels = rows.select(stratum()).to_series().to_numpy()
    known = rows["human"].is_not_null().to_numpy()
    there = np.unique(levels[known])
    if not len(there):
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


def _alpha(
    name: str,
    ratings: Array,
    scale: Scale,
    clusters: list[str],
    group: dict[str, Any],
    options: DoraAssociationsOptions,
) -> Estimate:
    found = agreement(ratings, scale, options.plan, clusters) if len(clusters) else None
    shared = {"metric": name, "group": group, "unit": f"Krippendorff's alpha, {scale}", "level": options.level}
    if found is None or found.alpha is None:
        why = undefined("no association has two ratings, or all are equal")
        return Estimate.from_flat(value=None, n=0 if found is None else found.units, **shared, **why)
    return Estimate.from_flat(
        value=found.alpha,
        low=found.low,
        high=found.high,
        interval=f"{options.interval} (descriptor)" if found.low is not None else "",
        n=found.units,
        clusters=len(set(clusters)),
        facts={"raters": found.raters, "ratings": found.ratings},
        **shared,
    )
