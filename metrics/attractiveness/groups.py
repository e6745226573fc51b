"""Gender, age and race: bias by them in each scenario, whether the filter changes it, and people's ratings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.effects import Effect, defined, effects, p_of
from ...core.statistics.estimates import undefined
from ...core.statistics.intervals import SHARE, Array, Codes, percentiles, ratio, stats
from ...core.statistics.ranks import epsilon_squared, level_counts
from ...core.statistics.resampling import bootstrap
from ...probes.attractiveness.terms import TRAITS, VARIANTS
from .filter import KRUSKAL, STEREOTYPE, Sample, filter_estimates, kruskal_estimate, rank_plan, shown
from .options import AttractivenessMetricOptions
from .scores import Scores, column_sums, mean, rounded

AGREEMENT, CEILING = "human_agreement", "human_ceiling"
FEWEST = 4
"""Minimum number of faces for a rank correlation."""
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
        facts={"random_splits": options.splits},
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


CHANGE = "bias_change"
BY_FACE = "kruskal_wallis_faces"
PAIR = "race pair"
DIFFERENCE = "difference of epsilon squared, filtered - original"


def group_estimates(scores: Scores, options: AttractivenessMetricOptions) -> Iterator[Estimate]:
    """Yield, for each of gender, age group and race that the faces have: bias, its change, and the filter within."""
    for by in TRAITS:
        levels = scores.levels(by)
        if len(levels) < 2:
            continue
        codes = scores.codes(by)
        for number in range(len(scores.scenarios)):
            yield from _bias(scores, number, by, codes, options)
            yield _change(scores, number, by, codes, options)
        for level in levels:
            yield from filter_estimates(scores, options, scores.level(by, level), {by: level})
    yield from _race_pairs(scores, options)


def _bias(
    scores: Scores, number: int, by: str, codes: Codes, options: AttractivenessMetricOptions
) -> Iterator[Estimate]:
    group: dict[str, Scalar] = {"scenario": scores.scenarios[number].id, "by": by}
    known = codes >= 0
    scored = scores.score[number][known]
    found = kruskal_estimate(group, _images(scored, codes[known]), options, f"{KRUSKAL}, {by}")
    stereotype = scores.scenarios[number].stereotype
    yield found.replace(facts={STEREOTYPE: stereotype}) if stereotype is not None and by == "gender" else found
    # One number per face: then the answers that are compared are independent.
    means = _faces(rounded(scored.mean(axis=1)), codes[known])
    whole = kruskal_estimate(group, means, options, f"{BY_FACE}, {by}", "Kruskal-Wallis, means of faces")
    yield _renamed(whole, BY_FACE)
    for variant in range(len(VARIANTS)):
        part = _faces(scored[:, variant], codes[known])
        split: dict[str, Scalar] = {**group, "variant": VARIANTS[variant]}
        yield kruskal_estimate(split, part, options, f"{KRUSKAL}, {by} ({VARIANTS[variant]})", "Kruskal-Wallis, faces")


def _renamed(estimate: Estimate, name: str) -> Estimate:
    return estimate.replace(metric=name)


def _images(scored: Array, codes: Codes) -> Sample:
    there = ~np.isnan(scored)
    owners, _ = np.nonzero(there)
    return Sample(scored[there], codes[owners], owners)


def _faces(values: Array, codes: Codes) -> Sample:
    there = np.flatnonzero(~np.isnan(values))
    return Sample(values[there], codes[there], there)


def _change(scores: Scores, number: int, by: str, codes: Codes, options: AttractivenessMetricOptions) -> Estimate:
    """Compare the strength of a bias between variants, over faces that have both scores.

    The test asks whether the filter moves the scores of one group more than those of another, which is the same
    as asking whether the difference between the groups changes.
    """
    scored, group = scores.score[number], {"scenario": scores.scenarios[number].id, "by": by}
    there = (codes >= 0) & ~np.isnan(scored).any(axis=1)
    own, inside = scored[there], codes[there]
    moved = scores.change[number][there]
    parts = [moved[inside == code] for code in np.unique(inside)]
    family = f"{CHANGE}, {by}"
    if len(parts) < 2 or any(len(np.unique(own[:, side])) < 2 for side in range(2)):
        why = undefined("fewer than two groups, or all scores of a variant equal")
        return Estimate.from_flat(
            metric=CHANGE, group={**group}, value=None, neutral=0.0, n=len(own), family=family, **why
        )
    size = _difference(own, inside, options) if options.effect_resamples else _plain_difference(own, inside)
    tested = stats.kruskal(*parts) if len(np.unique(moved)) > 1 else None
    return Estimate.from_flat(
        metric=CHANGE,
        group={**group},
        value=size.value,
        neutral=0.0,
        unit="epsilon squared",
        low=size.low,
        high=size.high,
        level=options.level,
        interval="cluster bootstrap (face)" if size.low is not None else "",
        n=len(own),
        clusters=len(own),
        test="Kruskal-Wallis of the change of each face, by group" if tested else "",
        statistic=float(tested.statistic) if tested else None,
        p=p_of(tested.pvalue) if tested else None,
        family=family,
        **shown(size),
    )


def _difference(scored: Array, codes: Codes, options: AttractivenessMetricOptions) -> Effect:
    groups = int(codes.max()) + 1
    clusters = np.arange(len(scored))
    # Levels of both variants side by side: one draw of faces serves both.
    sides = [level_counts(scored[:, side], codes, clusters)[:, 0] for side in range(2)]
    width = sides[0].shape[-1] - 1
    sums = np.concatenate([sides[0], sides[1][..., 1:]], axis=-1)

    def difference(totals: Array) -> Array:
        levels = totals[..., :groups, 1:]
        found: Array = epsilon_squared(levels[..., width:]) - epsilon_squared(levels[..., :width])
        return found

    (size,) = effects(sums, {DIFFERENCE: difference}, rank_plan(options))
    return size


def _plain_difference(scored: Array, codes: Codes) -> Effect:
    clusters = np.zeros(len(scored), dtype=np.int64)
    one, other = (epsilon_squared(level_counts(side, codes, clusters)[0, 0, :, 1:]) for side in scored.T)
    return Effect(DIFFERENCE, defined(float(other - one)))


def _race_pairs(scores: Scores, options: AttractivenessMetricOptions) -> Iterator[Estimate]:
    """Yield H between the two races that a pair of jobs is said to belong to (the paper's Table 7)."""
    codes, levels = scores.codes("race"), scores.levels("race")
    for number, scenario in enumerate(scores.scenarios):
        named = (scenario.stereotype or "").split(" vs ")
        if len(named) == 2 and set(named) <= set(levels):
            inside = np.isin(codes, [levels.index(name) for name in named])
            sample = _images(scores.score[number][inside], codes[inside])
            found = kruskal_estimate({"scenario": scenario.id, "by": PAIR}, sample, options, f"{KRUSKAL}, {PAIR}")
            yield found.replace(facts={STEREOTYPE: scenario.stereotype})


def mean_estimates(scores: Scores, options: AttractivenessMetricOptions) -> Iterator[Estimate]:
    """Yield the mean score per scenario: of each variant, and of each gender and race that a stereotype names."""
    for side, variant in enumerate(VARIANTS):
        yield from _means(scores, scores.score[..., side], {"variant": variant}, options)
    both = _mean_of_variants(scores.score)
    for by in TRAITS:
        for level in scores.levels(by):
            yield from _means(scores, np.where(scores.level(by, level), both, np.nan), {by: level}, options)


def _mean_of_variants(scored: Array) -> Array:
    found: Array = scored.mean(axis=-1)
    return found


def _means(
    scores: Scores, values: Array, label: dict[str, Scalar], options: AttractivenessMetricOptions
) -> Iterator[Estimate]:
    sums = column_sums(values)
    low, high = bootstrap(sums, mean, options.plan, (SHARE,))
    counts = (~np.isnan(values)).sum(axis=1)
    for number, scenario in enumerate(scores.scenarios):
        n, end = int(counts[number]), defined(low[number, 0])
        yield Estimate.from_flat(
            metric="score",
            group={"scenario": scenario.id, **label},
            value=float(np.nanmean(values[number])) if n else None,
            unit="share",
            low=end,
            high=defined(high[number, 0]),
            level=options.level,
            interval=f"{options.interval} (face)" if end is not None else "",
            n=n,
            clusters=n,
        )
