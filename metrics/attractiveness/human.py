"""How a model's scores rank faces beside people's ratings, and how well people could rank them themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.effects import defined, p_of
from ...core.statistics.estimates import undefined
from ...core.statistics.intervals import Array, percentiles, ratio, stats
from ...probes.attractiveness.terms import VARIANTS
from .options import AttractivenessMetricOptions
from .scores import Scores

AGREEMENT, CEILING = "human_agreement", "human_ceiling"
FEWEST = 4
"""Faces below which a rank correlation says nothing."""
SPLITS_DRAWN = 8
"""Halves of the raters behind each resample of a ceiling."""


def human_estimates(
    observations: pl.DataFrame, scores: Scores, options: AttractivenessMetricOptions
) -> Iterator[Estimate]:
    """Yield Spearman's correlation of scores and mean ratings per rated scenario and variant, with its ceiling."""
    rated = observations.filter(pl.col("human").is_not_null()).select("scenario", "face", "variant", "human")
    cells = rated.unique(["scenario", "face", "variant"], maintain_order=True).cast(pl.String)
    place = {face: number for number, face in enumerate(scores.faces)}
    numbers = {scenario.id: number for number, scenario in enumerate(scores.scenarios)}
    parts = cells.partition_by("scenario", "variant", as_dict=True, maintain_order=True)
    for (scenario, variant), part in parts.items():
        own = scores.score[numbers[scenario], :, VARIANTS.index(variant)]
        scored = np.array([own[place[face]] for face in part["face"]])
        ratings = [[float(x) for x in text.split(";")] for text in part["human"]]
        group: dict[str, Scalar] = {"scenario": scenario, "variant": variant}
        yield _agreement(group, scored, np.array([np.mean(values) for values in ratings]), options)
        yield _ceiling(group, ratings, options)


def _agreement(
    group: dict[str, Scalar], scored: Array, ratings: Array, options: AttractivenessMetricOptions
) -> Estimate:
    there = ~np.isnan(scored)
    x, y = scored[there], ratings[there]
    n, missing = len(x), int((~there).sum())
    if n < FEWEST or len(np.unique(x)) < 2 or len(np.unique(y)) < 2:
        why = undefined(f"fewer than {FEWEST} faces, or all scores or ratings equal")
        return Estimate.from_flat(metric=AGREEMENT, group=group, value=None, n=n, family=AGREEMENT, **why)
    found = stats.spearmanr(x, y)
    low, high = _interval(x, y, options)
    return Estimate.from_flat(
        metric=AGREEMENT,
        group=group,
        value=float(found.statistic),
        unit="Spearman's rho",
        low=low,
        high=high,
        level=options.level,
        interval="bootstrap (face)" if low is not None else "",
        n=n,
        clusters=n,
        missing={"no score": missing} if missing else {},
        test="Spearman, faces",
        statistic=float(found.statistic),
        p=p_of(found.pvalue),
        family=AGREEMENT,
        effect=float(found.statistic),
        effect_name="Spearman's rho",
        effect_low=low,
        effect_high=high,
    )


def _interval(x: Array, y: Array, options: AttractivenessMetricOptions) -> tuple[float | None, float | None]:
    if not options.effect_resamples:
        return None, None
    rng = np.random.default_rng([options.seed, 7])
    drawn = rng.integers(len(x), size=(options.effect_resamples, len(x)))
    low, high = percentiles(_rank_correlations(x[drawn], y[drawn])[:, None], (1 - options.level) / 2)
    return defined(low[0]), defined(high[0])


def _rank_correlations(x: Array, y: Array) -> Array:
    """Return Spearman's correlation of each row; NaN where one side is all alike."""
    one, other = (part - part.mean(axis=-1, keepdims=True) for part in (stats.rankdata(v, axis=-1) for v in (x, y)))
    return ratio((one * other).sum(axis=-1), np.sqrt((one**2).sum(axis=-1) * (other**2).sum(axis=-1)))


def _ceiling(group: dict[str, Scalar], ratings: list[list[float]], options: AttractivenessMetricOptions) -> Estimate:
    """Return the highest correlation to expect: the root of the reliability of the mean rating.

    The reliability is the correlation between the means of two random halves of the raters of each face, stepped up
    to all raters (Spearman 1910, Brown 1910), averaged over splits.
    """
    enough = [np.array(values) for values in ratings if len(values) > 1]
    if len(enough) < FEWEST:
        why = undefined("it needs the ratings of two or more raters for each face")
        return Estimate.from_flat(metric=CEILING, group=group, value=None, n=len(enough), **why)
    halves = _halves(enough, options)
    value = _ceiling_of(_rank_correlations(*halves))
    low, high = _ceiling_interval(halves, options)
    return Estimate.from_flat(
        metric=CEILING,
        group=group,
        value=defined(value),
        unit="Spearman's rho",
        low=low,
        high=high,
        level=options.level,
        interval="bootstrap (face)" if low is not None else "",
        n=len(enough),
        clusters=len(enough),
        facts={"random splits of the raters": options.splits},
    )


def _halves(ratings: list[Array], options: AttractivenessMetricOptions) -> tuple[Array, Array]:
    """Return the means of two random halves of the raters of each face, each (splits, faces)."""
    rng = np.random.default_rng([options.seed, 8])
    columns = []
    for values in ratings:
        mixed = rng.permuted(np.tile(values, (options.splits, 1)), axis=1)
        middle = len(values) // 2
        columns.append((mixed[:, :middle].mean(axis=1), mixed[:, middle:].mean(axis=1)))
    one, other = zip(*columns, strict=True)
    return np.stack(one, axis=1), np.stack(other, axis=1)


def _ceiling_of(correlations: Array) -> float:
    """Return the root of the reliability: half-to-half correlations, stepped up to all raters and averaged."""
    r = correlations[~np.isnan(correlations)]
    stepped = np.where(r > 0, 2 * r / (1 + np.maximum(r, 0)), 0.0)
    return float(np.sqrt(stepped.mean())) if len(r) else np.nan


def _ceiling_interval(
    halves: tuple[Array, Array], options: AttractivenessMetricOptions
) -> tuple[float | None, float | None]:
    if not options.effect_resamples:
        return None, None
    rng, (splits, faces) = np.random.default_rng([options.seed, 9]), halves[0].shape
    found = []
    for _ in range(options.effect_resamples):
        drawn = rng.integers(faces, size=faces)
        # A few of the splits do for each resample: what they add to its spread is small beside that of the faces.
        some = rng.choice(splits, size=min(SPLITS_DRAWN, splits), replace=False)[:, None]
        found.append(_ceiling_of(_rank_correlations(*(half[some, drawn] for half in halves))))
    low, high = percentiles(np.array(found)[:, None], (1 - options.level) / 2)
    return defined(low[0]), defined(high[0])
