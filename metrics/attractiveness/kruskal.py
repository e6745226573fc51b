"""Kruskal and Wallis's tests: of the filter over images, of bias by gender, age and race, and of its change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from scipy import special

from ...core.contracts.estimates import Caveat, Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.effects import Effect, defined, effects, p_of
from ...core.statistics.estimates import interval_caveats, undefined
from ...core.statistics.intervals import CONTRAST, Array, Codes, Flags, t_ends, t_test, within
from ...core.statistics.ranks import epsilon_squared, kruskal_h, level_counts, places
from ...core.statistics.resampling import jackknife, swap_test
from ...probes.attractiveness.terms import BETWEEN, TRAITS, VARIANTS
from .gaps import gap_estimates, rank_plan, shown
from .measures import BY_FACE, CHANGE, FILTER, KRUSKAL, MOVED, PAIR, STEREOTYPE, AttractivenessMetricOptions
from .scores import Scores

EPSILON = "epsilon squared"
DIFFERENCE = "difference of epsilon squared, filtered - original"


class Sample(msgspec.Struct, frozen=True):
    """Scores with the group and the face of each."""

    values: Array
    groups: Codes
    faces: Codes

    @classmethod
    def of(cls, values: Array, groups: Codes) -> Sample:
        """Return what is there of values (faces,) or (faces, variants), with the group of each face; -1 is none."""
        there = ~np.isnan(values) & (groups >= 0 if values.ndim == 1 else groups[:, None] >= 0)
        owners = np.nonzero(there)[0]
        return cls(values[there], groups[owners], owners)


def kruskal_estimate(
    group: dict[str, Scalar],
    sample: Sample,
    options: AttractivenessMetricOptions,
    family: str,
    test: str = "Kruskal-Wallis, images",
    metric: str = KRUSKAL,
) -> Estimate:
    """Return H as if all scores were independent; the interval of epsilon squared draws faces.

    Scores that are all alike are evidence of no difference: H is 0 and p is 1.
    """
    level, codes = places(sample.values), np.unique(sample.groups, return_inverse=True)[1]
    shape = (int(codes.max(initial=-1)) + 1, int(level.max(initial=-1)) + 1)
    table = np.bincount(codes * shape[1] + level, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    base: dict[str, Any] = {"metric": metric, "group": group, "family": family}
    base |= {"n": len(level), "clusters": len(np.unique(sample.faces))}
    if len(table) < 2:
        return Estimate.from_flat(**base, value=None, **undefined("fewer than two groups have scores"))
    base |= {"unit": f"H, {len(table) - 1} degrees of freedom", "test": test}
    if not level.any():
        alike = {"value": 0.0, "statistic": 0.0, "p": 1.0, "caveats": (Caveat.NO_VARIATION,)}
        return Estimate.from_flat(**base, **alike, **shown(Effect(EPSILON, 0.0)))
    # As `scipy.stats.kruskal`, which takes a hundred times as long to begin.
    statistic = float(kruskal_h(table))
    p = special.chdtrc(len(table) - 1, statistic)
    size = Effect(EPSILON, statistic / (len(level) - 1))
    if options.effect_resamples:
        faces = np.unique(sample.faces, return_inverse=True)[1]
        sums = level_counts(sample.values, codes, faces)[:, 0]
        (size,) = effects(sums, {EPSILON: lambda totals: epsilon_squared(totals[..., 1:])}, rank_plan(options))
    return Estimate.from_flat(**base, value=statistic, statistic=statistic, p=p_of(p), **shown(size))


def filter_estimates(
    scores: Scores, options: AttractivenessMetricOptions, faces: Flags, label: dict[str, Scalar]
) -> Iterator[Estimate]:
    """Yield the gap, its tests and Kruskal and Wallis's H per scenario, over `faces`; `label` names them."""
    family = "".join(f" ({key}: {value})" for key, value in label.items())
    sides, owners = (part.ravel() for part in np.indices((len(VARIANTS), int(faces.sum()))))
    # Three estimates per scenario, one after the other.
    gaps = gap_estimates(scores, options, faces, label)
    for scenario, counts in zip(scores.scenarios, scores.counts[:, faces], strict=True):
        yield next(gaps)
        yield next(gaps)
        values = counts.T.ravel()
        there = ~np.isnan(values)
        sample = Sample(values[there], sides[there], owners[there])
        group: dict[str, Scalar] = {"scenario": scenario.id, **label, "by": FILTER}
        whole = kruskal_estimate(group, sample, options, f"{KRUSKAL}, {FILTER}{family}")
        yield whole if label else whole.replace(facts={"category": scenario.category, "kind": scenario.kind})


def group_estimates(scores: Scores, options: AttractivenessMetricOptions) -> Iterator[Estimate]:
    """Yield, for each of gender, age group and race that the faces have: bias, its change, and the filter within."""
    for by in TRAITS:
        levels = scores.levels(by)
        if len(levels) < 2:
            continue
        codes = scores.codes(by)
        for number in range(len(scores.scenarios)):
            yield from _bias(scores, number, by, codes, options)
        for level in levels:
            yield from filter_estimates(scores, options, scores.level(by, level), {by: level})
    yield from _race_pairs(scores, options)


def _bias(
    scores: Scores, number: int, by: str, codes: Codes, options: AttractivenessMetricOptions
) -> Iterator[Estimate]:
    group: dict[str, Scalar] = {"scenario": scores.scenarios[number].id, "by": by}
    counts, stereotype = scores.counts[number], scores.scenarios[number].stereotype
    named = by == "gender" and set((stereotype or "").split(BETWEEN)) <= set(scores.levels(by))
    found = kruskal_estimate(group, Sample.of(counts, codes), options, f"{KRUSKAL}, {by}")
    yield found.replace(facts={STEREOTYPE: stereotype}) if named else found
    # One number per face: then the answers that are compared are independent.
    means, moved = Sample.of(counts.sum(axis=1), codes), Sample.of(scores.moved[number], codes)
    yield kruskal_estimate(
        {**group}, means, options, f"{BY_FACE}, {by}", "Kruskal-Wallis, means of faces", metric=BY_FACE
    )
    for variant, own in zip(VARIANTS, counts.T, strict=True):
        family = f"{KRUSKAL}, {by} ({variant})"
        yield kruskal_estimate(
            {**group, "variant": variant}, Sample.of(own, codes), options, family, "Kruskal-Wallis, faces"
        )
    yield change_estimate({**group}, counts, codes, options)
    test = "Kruskal-Wallis of the change of each face, by group"
    yield kruskal_estimate({**group}, moved, options, f"{MOVED}, {by}", test, metric=MOVED)


def change_estimate(
    group: dict[str, Scalar], counts: Array, codes: Codes, options: AttractivenessMetricOptions
) -> Estimate:
    """Compare the strength of a bias between variants, over faces that have both scores, by leaving out each in turn.

    Value, interval and test are of one number, the difference of epsilon squared. That the filter moves the groups
    differently is another question: it may turn a bias around and leave it as strong.
    """
    there = (codes >= 0) & ~np.isnan(counts).any(axis=1)
    own, inside = counts[there], np.unique(codes[there], return_inverse=True)[1]
    base: dict[str, Any] = {"metric": CHANGE, "group": group, "neutral": 0.0, "unit": EPSILON}
    base |= {"n": len(own), "clusters": len(own), "family": f"{CHANGE}, {group['by']}", "level": options.level}
    if len(np.unique(inside)) < 2:
        return Estimate.from_flat(**base, value=None, **undefined("fewer than two groups have scores"))
    clusters = np.arange(len(own))
    # Levels of both variants side by side: leaving out a face takes both of its images.
    original, filtered = (level_counts(side, inside, clusters)[:, 0] for side in own.T)
    width = original.shape[-1]

    def difference(totals: Array) -> Array:
        return (_epsilon(totals[..., width:]) - _epsilon(totals[..., 1:width]))[..., None]

    sums = np.concatenate([original, filtered[..., 1:]], axis=-1)[:, None]
    value = difference(sums.sum(axis=0))
    variance, freedom = jackknife(sums, difference)
    low, high = (defined(end[0, 0]) for end in within(*t_ends(value, variance, options.level, freedom), (CONTRAST,)))
    size = Effect(DIFFERENCE, defined(value[0, 0]), low, high)
    test = "t test, jackknife (face)"
    t, p = (defined(found[0, 0]) for found in t_test(value, variance, freedom))
    if low is None:
        # No face has any influence, so there is no standard error: the images of whole faces are exchanged instead.
        levels = places(own.ravel())
        cells = np.zeros((len(own), 1, 2, int(inside.max()) + 1, int(levels.max()) + 1))
        cells[np.repeat(clusters, 2), 0, np.tile([0, 1], len(own)), np.repeat(inside, 2), levels] = 1
        flat = np.concatenate([np.ones((*cells.shape[:3], 1)), cells.reshape(*cells.shape[:3], -1)], axis=-1)

        def apart(totals: Array) -> Array:
            both = _epsilon(totals[..., 1:].reshape(*totals.shape[:-1], *cells.shape[3:]))
            return (both[..., 1] - both[..., 0])[..., None]

        test, t = "permutation of the two images (face)", None
        p = p_of(swap_test(flat, apart, options.plan)[0, 0])
    return Estimate.from_flat(
        **base,
        value=size.value,
        low=low,
        high=high,
        interval="cluster jackknife (face)" if low is not None else "",
        test=test if p is not None else "",
        statistic=t,
        p=p,
        caveats=interval_caveats(len(own), low),
        **shown(size),
    )


def _epsilon(table: Array) -> Array:
    """Return epsilon squared; 0 where all scores are alike."""
    found = epsilon_squared(table)
    alike = np.isnan(found) & (table.sum(axis=(-1, -2)) > 0)
    return np.where(alike, 0.0, found)


def _race_pairs(scores: Scores, options: AttractivenessMetricOptions) -> Iterator[Estimate]:
    """Yield H between the two races that a pair of jobs is said to belong to (the paper's Table 7)."""
    codes, levels = scores.codes("race"), scores.levels("race")
    for scenario, counts in zip(scores.scenarios, scores.counts, strict=True):
        named = (scenario.stereotype or "").split(BETWEEN)
        if len(named) == 2 and set(named) <= set(levels):
            inside = np.where(np.isin(codes, [levels.index(name) for name in named]), codes, -1)
            group: dict[str, Scalar] = {"scenario": scenario.id, "by": PAIR}
            found = kruskal_estimate(group, Sample.of(counts, inside), options, f"{KRUSKAL}, {PAIR}")
            yield found.replace(facts={STEREOTYPE: scenario.stereotype})
