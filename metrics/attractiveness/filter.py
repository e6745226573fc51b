"""Effects of the filter in each scenario: the paper's test over images, and paired tests over faces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from ...core.contracts.estimates import Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.effects import Effect, defined, effects, p_of
from ...core.statistics.estimates import undefined
from ...core.statistics.intervals import CONTRAST, Array, Flags, stats
from ...core.statistics.matched import signed_ranks
from ...core.statistics.ranks import epsilon_squared, level_counts, rank_biserial
from ...core.statistics.resampling import bootstrap, flip_test
from ...probes.attractiveness.terms import VARIANTS
from .options import AttractivenessMetricOptions
from .scores import Scenario, Scores, column_sums, mean

KRUSKAL = "kruskal_wallis"
GAP, WILCOXON = "gap", "gap_signed_ranks"
FILTER = "filter"
POSITIVE, STEREOTYPE = "positive_option", "stereotype"
"""Facts: which option the score counts, and whom a stereotype sets apart."""
EPSILON, BISERIAL = "epsilon squared", "matched-pairs rank-biserial"


def filter_estimates(
    scores: Scores, options: AttractivenessMetricOptions, faces: Flags, label: dict[str, Scalar]
) -> Iterator[Estimate]:
    """Yield the gap, its tests and Kruskal and Wallis's H per scenario, over `faces`; `label` names them."""
    scored = scores.score[:, faces]
    change = scores.change[:, faces]
    sums = column_sums(change)
    low, high = bootstrap(sums, mean, options.plan, (CONTRAST,))
    flipped = flip_test(sums, options.plan)
    for number, scenario in enumerate(scores.scenarios):
        group: dict[str, Scalar] = {"scenario": scenario.id, **label}
        row = _gap_row(scores, faces, number, change[number])
        row |= {"low": defined(low[number, 0]), "high": defined(high[number, 0]), "level": options.level}
        row["interval"] = f"{options.interval} (face)" if row["low"] is not None else ""
        row["facts"] = _direction(scenario)
        size = _biserial(change[number], options)
        family = ", ".join(f"{key}: {value}" for key, value in label.items())
        yield _gap(group, row, p_of(flipped[number, 0]), size, family)
        yield _signed_ranks(group, row, change[number], size, family)
        whole = _kruskal(group, scored[number], options, family)
        yield whole if label else whole.replace(facts={"category": scenario.category, "kind": scenario.kind})


def _direction(scenario: Scenario) -> dict[str, Scalar]:
    """Return which option the score counts, where it is the positive one."""
    first, _, second = scenario.id.partition(" vs ")
    return {POSITIVE: second if scenario.positive == "second" else first} if scenario.positive else {}


def _gap_row(scores: Scores, faces: Flags, number: int, change: Array) -> dict[str, Any]:
    there = ~np.isnan(change)
    codes = scores.lost[number][faces][~there]
    why = [scores.statuses[max(pair)] for pair in codes]
    least, greatest = scores.least[number][faces], scores.greatest[number][faces]
    return {
        "value": float(change[there].mean()) if there.any() else None,
        "neutral": 0.0,
        "n": int(there.sum()),
        "clusters": int(there.sum()),
        "missing": dict(sorted(Counter(why).items())),
        "bound_low": float((least[:, 1] - greatest[:, 0]).mean()) if len(least) else None,
        "bound_high": float((greatest[:, 1] - least[:, 0]).mean()) if len(least) else None,
        **({} if there.any() else undefined("no face has both scores")),
    }


def _gap(group: dict[str, Scalar], row: dict[str, Any], p: float | None, size: Effect, family: str) -> Estimate:
    tested = {"test": "sign flip of faces, permutation", "statistic": row["value"], "p": p} if p is not None else {}
    return Estimate.from_flat(
        metric=GAP, group=group, unit="share", family=_named("gap, sign flip", family), **row, **tested, **shown(size)
    )


def _signed_ranks(group: dict[str, Scalar], row: dict[str, Any], change: Array, size: Effect, family: str) -> Estimate:
    moved = change[~np.isnan(change) & (change != 0)]
    tested: dict[str, Any] = {}
    if len(moved):
        statistic, p = signed_ranks(moved)
        tested = {"test": "Wilcoxon signed-rank, faces", "statistic": statistic, "p": p_of(p)}
    return Estimate.from_flat(
        metric=WILCOXON,
        group=group,
        unit="share",
        family=_named("gap, Wilcoxon", family),
        **row,
        **tested,
        **shown(size),
    )


def _kruskal(group: dict[str, Scalar], scored: Array, options: AttractivenessMetricOptions, family: str) -> Estimate:
    values = [scored[:, side][~np.isnan(scored[:, side])] for side in range(len(VARIANTS))]
    codes = np.repeat(np.arange(2), [len(part) for part in values])
    owners = [np.flatnonzero(~np.isnan(scored[:, side])) for side in range(2)]
    return kruskal_estimate(
        {**group, "by": FILTER},
        Sample(np.concatenate(values), codes, np.concatenate(owners)),
        options,
        _named(f"{KRUSKAL}, {FILTER}", family),
    )


class Sample(msgspec.Struct, frozen=True):
    """Scores with the group and the face of each."""

    values: Array
    groups: Any
    faces: Any


def kruskal_estimate(
    group: dict[str, Scalar],
    sample: Sample,
    options: AttractivenessMetricOptions,
    family: str,
    test: str = "Kruskal-Wallis, images",
) -> Estimate:
    """Return H as if all scores were independent; the interval of epsilon squared draws faces."""
    parts = [sample.values[sample.groups == code] for code in np.unique(sample.groups)]
    clusters = len(np.unique(sample.faces))
    if len(parts) < 2 or len(np.unique(sample.values)) < 2:
        base = {"n": len(sample.values), "clusters": clusters, "family": family}
        why = undefined("fewer than two groups, or all scores equal")
        return Estimate.from_flat(metric=KRUSKAL, group=group, value=None, **base, **why)
    found = stats.kruskal(*parts)
    statistic = float(found.statistic)
    size = Effect(EPSILON, statistic / (len(sample.values) - 1))
    if options.effect_resamples:
        size = _interval_of_epsilon(sample, options)
    return Estimate.from_flat(
        metric=KRUSKAL,
        group=group,
        value=statistic,
        unit=f"H, {len(parts) - 1} degrees of freedom",
        n=len(sample.values),
        clusters=clusters,
        test=test,
        statistic=statistic,
        p=p_of(found.pvalue),
        family=family,
        **shown(size),
    )


def _interval_of_epsilon(sample: Sample, options: AttractivenessMetricOptions) -> Effect:
    faces = np.unique(sample.faces, return_inverse=True)[1]
    sums = level_counts(sample.values, sample.groups, faces)[:, 0]
    (size,) = effects(sums, {EPSILON: lambda totals: epsilon_squared(totals[..., 1:])}, rank_plan(options))
    return size


def _biserial(change: Array, options: AttractivenessMetricOptions) -> Effect:
    there = change[~np.isnan(change)]
    if not there.any():
        return Effect(BISERIAL, None)
    sides, sizes = (there < 0).astype(np.int64), np.where(there != 0, np.abs(there), np.nan)
    counts = level_counts(sizes, sides, np.arange(len(there)))[:, 0]
    above, below = counts[:, 0, 1:], counts[:, 1, 1:] if counts.shape[1] > 1 else 0 * counts[:, 0, 1:]
    if not options.effect_resamples:
        total = np.stack([above.sum(axis=0), below.sum(axis=0)])
        return Effect(BISERIAL, defined(float(rank_biserial(total))))
    levels = above.shape[1]
    # Both signs stand on one side: a face is drawn with whatever sign it has, or none.
    one = np.concatenate([np.ones((len(there), 1)), above, below], axis=1)[:, None]

    def size(totals: Array) -> Array:
        parts = totals[..., 0, 1:]
        return rank_biserial(np.stack([parts[..., :levels], parts[..., levels:]], axis=-2))

    (found,) = effects(one, {BISERIAL: size}, rank_plan(options))
    return found


def rank_plan(options: AttractivenessMetricOptions) -> Any:
    """Return how rank statistics are resampled."""
    return msgspec.structs.replace(options.plan, resamples=options.effect_resamples, method="percentile")


def shown(size: Effect) -> dict[str, Any]:
    """Return an effect size as the fields of an estimate."""
    name = size.name if size.value is not None else ""
    return {"effect": size.value, "effect_name": name, "effect_low": size.low, "effect_high": size.high}


def _named(name: str, label: str) -> str:
    return f"{name} ({label})" if label else name
