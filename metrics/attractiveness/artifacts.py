"""Artefacts that are not bias: positions of labels, order of the instruction, unreadable answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ...core.contracts.estimates import POSITION, Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.effects import defined, p_of
from ...core.statistics.estimates import correct
from ...core.statistics.intervals import CONTRAST, Array
from ...core.statistics.observations import Group, missing_estimates, unreadable_kinds
from ...core.statistics.resampling import bootstrap, flip_test
from .filter import column_sums, mean
from .options import AttractivenessMetricOptions

LABEL, INSTRUCTION = "label (a)", "(a) named first in the instruction"


def position_estimates(observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Estimate]:
    """Return the share of (a), and by how much it rises where the instruction names (a) first."""
    ok = (pl.col("status") == "ok") & pl.col("p_a").is_not_null()
    share = pl.col("p_a").cast(pl.Float64)
    by_face = (
        observations.lazy()
        .filter(ok)
        .group_by("face")
        .agg(
            share.mean().alias("all"),
            (share.filter(pl.col("asked") == "ab").mean() - share.filter(pl.col("asked") == "ba").mean()).alias("rise"),
        )
        .sort("face")
        .collect()
    )
    if by_face.is_empty():
        return []
    columns = [by_face[name].fill_null(np.nan).to_numpy() for name in ("all", "rise")]
    values = np.stack([columns[0] - 0.5, columns[1]])
    found = list(_positions(values, options))
    return correct(found, options.correction, options.alpha, "places")


def _positions(values: Array, options: AttractivenessMetricOptions) -> Iterator[Estimate]:
    sums = column_sums(values)
    low, high = bootstrap(sums, mean, options.plan, (CONTRAST,))
    flipped = flip_test(sums, options.plan)
    for row, (place, neutral, unit) in enumerate(((LABEL, 50.0, "%"), (INSTRUCTION, 0.0, "percentage points"))):
        there = ~np.isnan(values[row])
        n, p = int(there.sum()), p_of(flipped[row, 0])
        ends = [defined(end[row, 0]) for end in (low, high)]
        value = float(values[row][there].mean()) if n else None
        group: dict[str, Scalar] = {"position": place}
        yield Estimate.from_flat(
            metric="position_bias",
            group=group,
            value=None if value is None else neutral + 100 * value,
            neutral=neutral,
            unit=unit,
            low=None if ends[0] is None else neutral + 100 * ends[0],
            high=None if ends[1] is None else neutral + 100 * ends[1],
            level=options.level,
            interval=f"{options.interval} (face)" if ends[0] is not None else "",
            n=n,
            clusters=n,
            test="sign flip of faces, permutation" if p is not None else "",
            statistic=value if p is not None else None,
            p=p,
            family="places of the labels",
            effect=value,
            effect_name="risk difference" if value is not None else "",
            effect_low=ends[0],
            effect_high=ends[1],
            topic=POSITION,
        )


def missing_answers(observations: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Estimate]:
    """Return the share of missing answers by category and variant, and of each kind of unreadable answer."""
    cells = (
        observations.lazy()
        .group_by("category", "variant", "status")
        .len()
        .sort("category", "variant", "status")
        .collect()
    )
    groups = []
    for (category, variant), part in cells.partition_by("category", "variant", as_dict=True).items():
        counts = dict(part.select("status", "len").iter_rows())
        answered = counts.pop("ok", 0)
        groups.append(Group({"category": category, "variant": variant}, answered, counts))
    return [*missing_estimates(groups, options.level), *unreadable_kinds(observations, options.level)]
