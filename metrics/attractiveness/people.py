"""What people say of the faces: whether the filter makes them more attractive, and whether scores follow ratings."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.contracts.records import Scalar
from ...core.contracts.words import HITS, OF
from ...core.statistics.effects import defined, p_of
from ...core.statistics.estimates import interval_caveats, undefined
from ...core.statistics.intervals import Array, Codes, percentiles, ratio, stats
from ...core.statistics.observations import exact_share
from ...core.statistics.ranks import places
from ...probes.attractiveness.terms import ATTRACTIVENESS, VARIANTS
from .measures import AGREEMENT, CEILING, CHECK, AttractivenessMetricOptions
from .scores import Scores

FEWEST = 4
"""Minimum number of faces for a rank correlation."""
RHO = "Spearman's rho"
SPLITS_DRAWN = 8
"""Halves of the raters behind each resample of a ceiling."""


def check_estimate(observations: pl.DataFrame, options: AttractivenessMetricOptions) -> Estimate:
    """Return the share of rated faces whose filtered image people rate more attractive: does the filter do its work?

    The paper has 96.1 %, and no face that was rated less attractive (section 3.2).
    """
    if ATTRACTIVENESS not in observations.columns or not observations[ATTRACTIVENESS].count():
        why = "the faces have no ratings of attractiveness (`rating_attractiveness` in their table)"
        return exact_share(CHECK, {}, (0, 0), options.level, "faces", **undefined(why))
    rated = observations.select("face", "variant", pl.col(ATTRACTIVENESS).cast(pl.String)).unique()
    means: dict[str, dict[str, Fraction]] = {}
    for face, variant, text in rated.drop_nulls().iter_rows():
        ratings = [Fraction(part) for part in text.split(";")]
        means.setdefault(face, {})[variant] = sum(ratings, Fraction()) / len(ratings)
    changes = [own[VARIANTS[1]] - own[VARIANTS[0]] for own in means.values() if len(own) == len(VARIANTS)]
    more, n, faces = sum(change > 0 for change in changes), len(changes), observations["face"].n_unique()
    return exact_share(
        CHECK,
        {},
        (more, n),
        options.level,
        "faces",
        missing={"not rated": faces - n} if n < faces else {},
        facts={HITS: more, OF: n, "rated_less_attractive": sum(change < 0 for change in changes)},
        **({} if n else undefined("no face has ratings of both images")),
    )


def human_estimates(
    observations: pl.DataFrame, scores: Scores, options: AttractivenessMetricOptions
) -> Iterator[Estimate]:
    """Yield Spearman's correlation of scores and mean ratings per rated scenario and variant, with its ceiling."""
    rated = observations.filter(pl.col("human").is_not_null()).select("scenario", "face", "variant", "human")
    cells = rated.unique(["scenario", "face", "variant"], maintain_order=True).cast(pl.String)
    images = scores.images.select(pl.col("scenario", "face", "variant").cast(pl.String), own="score")
    cells = cells.join(images, on=["scenario", "face", "variant"], how="left", maintain_order="left")
    parts = cells.partition_by("scenario", "variant", as_dict=True, maintain_order=True)
    for (scenario, variant), part in parts.items():
        scored = part["own"].fill_null(np.nan).to_numpy()
        ratings = [[float(x) for x in text.split(";")] for text in part["human"]]
        group: dict[str, Scalar] = {"scenario": scenario, "variant": variant}
        yield _agreement(group, scored, np.array([np.mean(values) for values in ratings]), options)
        yield _ceiling(group, ratings, options)


def _agreement(
    group: dict[str, Scalar], scored: Array, ratings: Array, options: AttractivenessMetricOptions
) -> Estimate:
    there = ~np.isnan(scored)
    x, y = places(scored[there]), places(ratings[there])
    n, missing = len(x), int((~there).sum())
    if n < FEWEST or not x.any() or not y.any():
        why = undefined(f"fewer than {FEWEST} faces, or all scores or ratings equal")
        return Estimate.from_flat(metric=AGREEMENT, group=group, value=None, n=n, family=AGREEMENT, **why)
    found = stats.spearmanr(x, y)
    low, high = _interval(x, y, options)
    value = float(found.statistic)
    return Estimate.from_flat(
        metric=AGREEMENT,
        group=group,
        **_row(value, (low, high), n, options),
        missing={"no score": missing} if missing else {},
        test="Spearman, faces",
        statistic=value,
        p=p_of(found.pvalue),
        family=AGREEMENT,
        effect=value,
        effect_name=RHO,
        effect_low=low,
        effect_high=high,
    )


def _row(
    value: float, ends: tuple[float | None, float | None], n: int, options: AttractivenessMetricOptions
) -> dict[str, Any]:
    low, high = ends
    method = "bootstrap (face)" if low is not None else ""
    row = {"value": defined(value), "low": low, "high": high, "level": options.level, "interval": method}
    caveats = interval_caveats(n, low) if options.effect_resamples else ()
    return row | {"unit": RHO, "n": n, "clusters": n, "caveats": caveats}


def _interval(x: Codes, y: Codes, options: AttractivenessMetricOptions) -> tuple[float | None, float | None]:
    if not options.effect_resamples:
        return None, None
    rng = np.random.default_rng([options.seed, 7])
    drawn = rng.integers(len(x), size=(options.effect_resamples, len(x)))
    low, high = percentiles(_rank_correlations(x[drawn], y[drawn])[:, None], (1 - options.level) / 2)
    return defined(low[0]), defined(high[0])


def _rank_correlations(x: Array | Codes, y: Array | Codes) -> Array:
    """Return Spearman's correlation of each row; NaN if all values of one side are equal."""
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
    row = _row(value, _ceiling_interval(halves, options), len(enough), options)
    return Estimate.from_flat(metric=CEILING, group=group, facts={"random_splits": options.splits}, **row)


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
