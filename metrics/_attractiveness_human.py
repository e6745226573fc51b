"""How a model's scores rank faces beside people's ratings, and how well people could rank them themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from scipy import stats

from ..core.estimates import Estimate
from ..core.records import Scalar
from ._arrays import Array
from ._attractiveness_options import AttractivenessMetricOptions
from ._attractiveness_scores import VARIANTS, Scores
from ._effects import defined, p_of
from ._ends import percentiles

AGREEMENT, CEILING = "human_agreement", "human_ceiling"
FEWEST = 4
"""Faces below which a rank correlation says nothing."""


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
        why = f"undefined: fewer than {FEWEST} faces, or all alike"
        return Estimate(metric=AGREEMENT, group=group, value=None, neutral=None, n=n, family=AGREEMENT, note=why)
    found = stats.spearmanr(x, y)
    low, high = _interval(x, y, options)
    return Estimate(
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
        note="0 is no agreement",
    )


def _interval(x: Array, y: Array, options: AttractivenessMetricOptions) -> tuple[float | None, float | None]:
    rng = np.random.default_rng([options.seed, 7])
    drawn = rng.integers(len(x), size=(options.effect_resamples, len(x)))
    ranks = [stats.rankdata(values[drawn], axis=1) for values in (x, y)]
    one, other = (part - part.mean(axis=1, keepdims=True) for part in ranks)
    below = np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    with np.errstate(invalid="ignore"):
        found = (one * other).sum(axis=1) / below
    low, high = percentiles(found[:, None], (1 - options.level) / 2)
    return defined(low[0]), defined(high[0])


def _ceiling(group: dict[str, Scalar], ratings: list[list[float]], options: AttractivenessMetricOptions) -> Estimate:
    """Return the highest correlation to expect: the root of the reliability of the mean rating.

    The reliability is the correlation between the means of two random halves of the raters of each face, stepped up
    to all raters (Spearman 1910, Brown 1910), averaged over splits.
    """
    enough = [np.array(values) for values in ratings if len(values) > 1]
    if len(enough) < FEWEST:
        why = "undefined: it needs the ratings of two or more raters for each face"
        return Estimate(metric=CEILING, group=group, value=None, n=len(enough), note=why)
    rng = np.random.default_rng([options.seed, 8])
    found = []
    for _ in range(options.splits):
        mixed = [rng.permutation(values) for values in enough]
        halves = [[part[: len(part) // 2].mean() for part in mixed], [part[len(part) // 2 :].mean() for part in mixed]]
        if len(set(halves[0])) > 1 and len(set(halves[1])) > 1:
            r = float(stats.spearmanr(*halves).statistic)
            found.append(2 * r / (1 + r) if r > 0 else 0.0)
    value = float(np.sqrt(np.mean(found))) if found else None
    return Estimate(
        metric=CEILING,
        group=group,
        value=value,
        unit="Spearman's rho",
        n=len(enough),
        note=f"from {options.splits} random halves of the raters; no interval",
    )
