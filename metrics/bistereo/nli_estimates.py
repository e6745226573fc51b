"""The estimates of BIStereo-NLI: shares of labels by cell, halo and horn effects, what could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.statistics.effects import cell_statistics
from ...core.statistics.estimates import POINTS, Block, Margin, correct, equivalence_facts, merge, undefined
from ...core.statistics.facets import Inference, Permutation, ends_at, facet_codes, infer_over
from ...core.statistics.intervals import FREE, Array, mean_bounds, paired_bounds, ratio
from ...core.statistics.observations import missing_by_cell as missing
from ...core.statistics.observations import missing_by_status
from ...core.statistics.resampling import flip_test
from ...probes.bistereo.terms import LABELS
from .nli_pairs import CELL, GROUPINGS, NEUTRAL, BIStereoNLIMetricOptions, Contrast, contrasts, side_by_side

PERCENT, POINT_GAP = (0.0, 100.0), (-100.0, 100.0)


def estimate_all(frame: pl.DataFrame, options: BIStereoNLIMetricOptions) -> list[Estimate]:
    """Return every estimate, tests corrected within their families."""
    found: list[Estimate] = []
    for contrast, pairs in contrasts(side_by_side(frame, options.ways)):
        for factors in GROUPINGS:
            found += _contrasts(contrast, pairs, factors, options)
    corrected = correct(found, options.correction, options.alpha, "groups")
    return [*corrected, *_shares(frame, options), *missing(frame, CELL, "skin", options.level)]


def _parts(frame: pl.DataFrame, factors: Sequence[str]) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    if not factors:
        yield {}, frame
        return
    for values, part in frame.partition_by(*factors, as_dict=True, maintain_order=True).items():
        yield dict(zip(factors, values, strict=True)), part


def _sums(parts: Sequence[pl.DataFrame], names: Sequence[str], ways: Sequence[str]) -> Array:
    """Return counts and sums (rows, columns, parts, 1, 1 + names) of what is there, over the levels of all parts."""
    rows, sides = facet_codes(pl.concat([part.select(pl.col(*ways).cast(pl.String)) for part in parts]), ways)
    sums = np.zeros((int(rows.max(initial=0)) + 1, int(sides.max(initial=0)) + 1, len(parts), 1, 1 + len(names)))
    start = 0
    for unit, part in enumerate(parts):
        ok = part["value" if "value" in part.columns else names[0]].is_not_null().to_numpy()
        own, other = (codes[start : start + part.height][ok] for codes in (rows, sides))
        start += part.height
        np.add.at(sums[:, :, unit, 0, 0], (own, other), 1)
        for column, name in enumerate(names, 1):
            np.add.at(sums[:, :, unit, 0, column], (own, other), part[name].to_numpy()[ok])
    return sums


def _block(inferred: Inference, value: Array, sums: Array, told: tuple[Sequence[Any], Sequence[pl.DataFrame]]) -> Block:
    groups, parts = told
    return inferred.block(groups, value, sums[..., 0].sum(axis=(0, 1, 3)), [missing_by_status(part) for part in parts])


def _contrasts(
    contrast: Contrast, pairs: pl.DataFrame, factors: Sequence[str], options: BIStereoNLIMetricOptions
) -> Iterator[Estimate]:
    groups, parts = zip(*_parts(pairs.with_columns(square=pl.col("value") ** 2), factors), strict=True)
    sums = _sums(parts, ("value", "square"), options.ways)
    flips = Permutation("sign-flip permutation of skin tones", lambda own: flip_test(own[..., :2], options.plan), [0])
    inferred = infer_over(options.ways, sums, cell_statistics, (POINT_GAP, FREE), options.plan, permutation=flips)
    block = _block(inferred, cell_statistics(sums.sum(axis=(0, 1))), sums, (groups, parts))
    near = _near(sums, options)
    for unit, part in enumerate(parts):
        row = merge(block.row(unit, 0), inferred.tested(unit, 0, options), near[unit])
        first, second = (part[name].fill_null(np.nan).to_numpy() for name in ("first", "second"))
        least, greatest = paired_bounds(first, second, PERCENT)
        yield Estimate.from_flat(
            metric=contrast.name,
            group=dict(groups[unit]),
            neutral=0.0,
            unit=POINTS,
            bound_low=least,
            bound_high=greatest,
            statistic=row["value"] if "p" in row else None,
            family=f"{contrast.name}, {_grouping(factors)}",
            **block.effect(unit, 1, "standardised mean difference"),
            **row,
        )


def _grouping(factors: Sequence[str]) -> str:
    return f"by {' and '.join(factors)}" if factors else "whole study"


def _near(sums: Array, options: BIStereoNLIMetricOptions) -> list[dict[str, Any]]:
    """Return per unit whether it is shown to be near 0, as facts; empty if no margin is set."""
    if options.margin is None:
        return [{}] * sums.shape[2]
    ends = ends_at(options.ways, sums, cell_statistics, (POINT_GAP, FREE), options.plan, options.alpha)
    margin = Margin(options.margin, options.alpha)
    return [equivalence_facts(ends[:, :, unit, 0], margin) for unit in range(sums.shape[2])]


def _shares(frame: pl.DataFrame, options: BIStereoNLIMetricOptions) -> Iterator[Estimate]:
    """Yield %E, %C, %N of each cell, and the mean probabilities where there are any."""
    names = {name: name for name in LABELS}
    if frame["p_entailment"].count():
        names |= {f"{name}_probability": f"p_{name}" for name in LABELS}
    groups, parts = zip(*_parts(frame, CELL), strict=True)
    for metrics in (LABELS, tuple(name for name in names if name not in LABELS)):
        if not metrics:
            continue
        sums = _sums(parts, [names[name] for name in metrics], options.ways)
        inferred = infer_over(options.ways, sums, _means, (PERCENT,) * len(metrics), options.plan)
        block = _block(inferred, _means(sums.sum(axis=(0, 1))), sums, (groups, parts))
        for unit, part in enumerate(parts):
            yield from (_share(block, unit, (column, name), part[names[name]]) for column, name in enumerate(metrics))


def _means(totals: Array) -> Array:
    return ratio(totals[..., 0, 1:], totals[..., 0, :1])


def _share(block: Block, unit: int, what: tuple[int, str], values: pl.Series) -> Estimate:
    column, name = what
    there = values.drop_nulls()
    low, high = mean_bounds(float(there.sum()), len(there), values.null_count(), PERCENT)
    row = block.row(unit, column)
    if row["value"] is None:
        row |= undefined("no readable answer")
    return Estimate.from_flat(
        metric=name,
        group=dict(block.groups[unit]),
        neutral=NEUTRAL[name.removesuffix("_probability")],
        unit="%",
        bound_low=low,
        bound_high=high,
        **row,
    )
