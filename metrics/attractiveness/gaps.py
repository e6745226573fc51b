"""Means over faces, and over scenarios and faces: the gap of each scenario, the halo, mean scores, places of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...core.contracts.estimates import POSITION, Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.effects import Effect, defined, effects, p_of
from ...core.statistics.estimates import (
    Margin,
    correct,
    equivalence_facts,
    merge,
    undefined,
)
from ...core.statistics.facets import Permutation, ends_at, infer_over
from ...core.statistics.intervals import CONTRAST, SHARE, Array, Flags, Ranges, ratio
from ...core.statistics.matched import signed_ranks
from ...core.statistics.ranks import level_counts, rank_biserial
from ...core.statistics.resampling import Resampling, flip_test
from ...probes.attractiveness.terms import BETWEEN, TRAITS, VARIANTS
from .measures import FACETS, GAP, HALO, POSITIONS, POSITIVE, SCORE, WILCOXON, AttractivenessMetricOptions
from .scores import Scenario, Scores

FACE = ("face",)
LABEL, INSTRUCTION = "label (a)", "(a) named first in the instruction"
BISERIAL = "matched-pairs rank-biserial"


def mean(totals: Array) -> Array:
    """Return the mean of sums with the columns count and total, as `bootstrap` wants it."""
    return ratio(totals[..., 0, 1], totals[..., 0, 0])[..., None]


def column_sums(values: Array) -> Array:
    """Return count and total per face of one or several measures (measures, faces)."""
    there = ~np.isnan(values)
    return np.stack([there.astype(np.float64), np.nan_to_num(values)], axis=-1).swapaxes(0, 1)[:, :, None]


def _means(
    ways: Sequence[str],
    cells: Array,
    options: AttractivenessMetricOptions,
    ranges: Ranges,
    missing: Sequence[dict[str, int]] | None = None,
    tests: bool = True,
) -> Iterator[dict[str, Any]]:
    """Yield the fields of the mean of each unit; cells (rows, columns of the design, units, 1, 2) as `infer_over`."""
    units, totals = cells.shape[2], cells.sum(axis=(0, 1))
    flips = Permutation("sign-flip permutation", lambda sums: flip_test(sums, options.plan), [0]) if tests else None
    found = infer_over(ways, cells, mean, ranges, options.plan, permutation=flips)
    block = found.block([{}] * units, mean(totals), totals[:, 0, 0], missing or [{}] * units)
    block = msgspec.structs.replace(block, nothing="no answers from which it could be computed")
    for unit in range(units):
        row = block.row(unit, 0)
        statistic = {"statistic": row["value"]} if tests and found.permuted[unit, 0] else {}
        yield merge(row, found.tested(unit, 0, options) if tests else {}, statistic)


def gap_estimates(
    scores: Scores, options: AttractivenessMetricOptions, faces: Flags, label: dict[str, Scalar]
) -> Iterator[Estimate]:
    """Yield the gap and its two tests per scenario, over `faces`; `label` names them."""
    lost, moved = scores.lost[:, faces], scores.moved[:, faces]
    missing = [
        dict(sorted(Counter(scores.statuses[max(pair)] for pair in codes[gone]).items()))
        for codes, gone in zip(lost, np.isnan(moved), strict=True)
    ]
    family = "".join(f" ({key}: {value})" for key, value in label.items())
    rows = _means(FACE, column_sums(scores.change[:, faces])[:, None], options, (CONTRAST,), missing)
    for number, (scenario, row) in enumerate(zip(scores.scenarios, rows, strict=True)):
        own = moved[number][~np.isnan(moved[number])]
        row |= {"group": {"scenario": scenario.id, **label}, "neutral": 0.0, "unit": "share"}
        row |= _bounds(scores.least[number, faces], scores.greatest[number, faces])
        row |= {"facts": row["facts"] | _direction(scenario)} | shown(_biserial(own, options))
        yield Estimate.from_flat(metric=GAP, family=f"gap, sign flip{family}", **row)
        statistic, p = signed_ranks(own) if len(own) else (None, None)
        ranked = {"test": "Wilcoxon signed-rank, faces" if len(own) else "", "statistic": statistic, "p": p and p_of(p)}
        yield Estimate.from_flat(metric=WILCOXON, family=f"gap, Wilcoxon{family}", **row | ranked)


def _direction(scenario: Scenario) -> dict[str, Scalar]:
    """Return which option the score counts, where it is the positive one."""
    first, _, second = scenario.id.partition(BETWEEN)
    return {POSITIVE: second if scenario.positive == "second" else first} if scenario.positive else {}


def _bounds(least: Array, greatest: Array) -> dict[str, float]:
    """Return the worst-case range of a mean gap, from the ends of scores (..., variants)."""
    low, high = least[..., 1] - greatest[..., 0], greatest[..., 1] - least[..., 0]
    return {"bound_low": float(low.mean()), "bound_high": float(high.mean())} if low.size else {}


def _biserial(moved: Array, options: AttractivenessMetricOptions) -> Effect:
    if not (moved != 0).any():
        return Effect(BISERIAL, None)
    sizes = np.where(moved != 0, np.abs(moved), np.nan)
    counts = level_counts(sizes, (moved < 0).astype(np.int64), np.arange(len(moved)))[:, 0]
    above, below = counts[:, 0, 1:], counts[:, 1, 1:] if counts.shape[1] > 1 else 0 * counts[:, 0, 1:]
    if not options.effect_resamples:
        return Effect(BISERIAL, defined(float(rank_biserial(np.stack([above.sum(axis=0), below.sum(axis=0)])))))
    levels = above.shape[1]
    # Both signs stand on one side: a face is drawn with whatever sign it has, or none.
    one = np.concatenate([np.ones((len(moved), 1)), above, below], axis=1)[:, None]

    def size(totals: Array) -> Array:
        parts = totals[..., 0, 1:]
        return rank_biserial(np.stack([parts[..., :levels], parts[..., levels:]], axis=-2))

    (found,) = effects(one, {BISERIAL: size}, rank_plan(options))
    return found


def rank_plan(options: AttractivenessMetricOptions) -> Resampling:
    """Return how rank statistics are resampled."""
    return msgspec.structs.replace(options.plan, resamples=options.effect_resamples, method="percentile")


def shown(size: Effect) -> dict[str, Any]:
    """Return an effect size as the fields of an estimate."""
    name = size.name if size.value is not None else ""
    return {"effect": size.value, "effect_name": name, "effect_low": size.low, "effect_high": size.high}


def halo_estimate(scores: Scores, options: AttractivenessMetricOptions) -> Estimate:
    """Return the mean gap over the scenarios with a positive option."""
    change = scores.change[scores.directed]
    base: dict[str, Any] = {"metric": HALO, "group": {}, "neutral": 0.0, "unit": "share", "family": HALO}
    bounds = _bounds(scores.least[scores.directed], scores.greatest[scores.directed])
    if not len(change):
        return Estimate.from_flat(**base, value=None, n=0, **undefined("no scenario has a positive option"))
    if options.ways == FACE:
        gone = int(np.isnan(change.mean(axis=0)).sum())
        missing = {"incomplete": gone} if gone else {}
    else:
        codes = scores.lost[scores.directed][np.isnan(change)]
        missing = dict(sorted(Counter(scores.statuses[max(pair)] for pair in codes).items()))
    cells = _cells(change, options.ways)
    (row,) = _means(options.ways, cells, options, (CONTRAST,), [missing])
    if options.margin is not None:
        margin = options.margin / 100
        ends = ends_at(options.ways, cells, mean, (CONTRAST,), options.plan, options.alpha)[:, :, 0, 0]
        row = merge(row, equivalence_facts(ends, Margin(margin, options.alpha)))
    return Estimate.from_flat(**base, **row, **bounds)


def _cells(change: Array, ways: Sequence[str]) -> Array:
    """Return the sums of changes (scenarios, faces) over the facets, as `infer_over` wants them."""
    if ways == FACE:
        # A face that lacks a scenario would be compared on other scenarios than the rest.
        return column_sums(change.mean(axis=0)[None])[:, None]
    cells = column_sums(change).swapaxes(0, 1)[:, :, None]
    return (
        cells.sum(axis=1, keepdims=True)
        if len(ways) == 1
        else np.moveaxis(cells, [FACETS.index(w) for w in ways], (0, 1))
    )


def mean_estimates(scores: Scores, options: AttractivenessMetricOptions) -> Iterator[Estimate]:
    """Yield the mean score per scenario: of each variant, and of each gender, age group and race."""
    both = scores.score.mean(axis=-1)
    labelled: list[tuple[dict[str, Scalar], Array]] = [
        ({"variant": variant}, scores.score[..., side]) for side, variant in enumerate(VARIANTS)
    ]
    labelled += [
        ({by: level}, np.where(scores.level(by, level), both, np.nan)) for by in TRAITS for level in scores.levels(by)
    ]
    for label, values in labelled:
        rows = _means(FACE, column_sums(values)[:, None], options, (SHARE,), tests=False)
        for scenario, row in zip(scores.scenarios, rows, strict=True):
            yield Estimate.from_flat(metric=SCORE, group={"scenario": scenario.id, **label}, unit="share", **row)


def position_estimates(observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Estimate]:
    """Return the share of (a), and by how much it rises where the instruction names (a) first."""
    ok = (pl.col("status") == "ok") & pl.col("p_a").is_not_null()
    share = pl.col("p_a").cast(pl.Float64)
    first, second = (share.filter(pl.col("asked") == order).mean() for order in ("ab", "ba"))
    by_face = observations.lazy().filter(ok).group_by("face").agg(share.mean() - 0.5, rise=first - second)
    faces = by_face.sort("face").collect()
    if faces.is_empty():
        return []
    values = np.stack([faces[name].fill_null(np.nan).to_numpy() for name in ("p_a", "rise")])
    rows = _means(FACE, column_sums(values)[:, None], options, (CONTRAST,))
    named = zip(((LABEL, 50.0, "%"), (INSTRUCTION, 0.0, "percentage points")), rows, strict=True)
    return correct([_position(*kind, row) for kind, row in named], options.correction, options.alpha, "places")


def _position(place: str, neutral: float, unit: str, row: dict[str, Any]) -> Estimate:
    ends = {name: row[name] for name in ("value", "low", "high")}
    name = "risk difference" if row["value"] is not None else ""
    size = {"effect": row["value"], "effect_name": name, "effect_low": row["low"], "effect_high": row["high"]}
    row |= {name: None if end is None else neutral + 100 * end for name, end in ends.items()}
    group: dict[str, Scalar] = {"position": place}
    fields: dict[str, Any] = {"neutral": neutral, "unit": unit, "family": "places of the labels", "topic": POSITION}
    return Estimate.from_flat(metric=POSITIONS, group=group, **fields, **row, **size)
