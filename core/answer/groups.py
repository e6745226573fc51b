"""The groups of a question: whether they differ in opposite directions, and whether they can have one value."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import polars as pl

from ..contracts import facet_columns, factors_of
from ..contracts.estimates import Estimate, Verdict
from ..scoring.score import Scores
from ..statistics.heterogeneity import EqualGroups, codes_of, difference_of_sides, equal_groups, joint_covariance
from ..statistics.intervals import Array
from ..statistics.multiway import Cells

LOG = logging.getLogger(__name__)
SIDES = (Verdict.ABOVE, Verdict.BELOW)
CLOSE = 1e-6


def opposite(answering: Sequence[Estimate], finer: Sequence[Estimate]) -> list[Estimate]:
    """Return the estimates that are significant on both sides; none where all are on one side.

    They are those that answer a question if these are groups; else the finer ones, and the whole with those of them
    that are on its other side.
    """
    for estimates in (answering, finer, [*answering, *finer]):
        shown = [e for e in estimates if e.shown]
        if {e.verdict for e in shown} >= {*SIDES}:
            return shown
    return []


def one_value(groups: Sequence[Estimate], scores: Scores | None) -> EqualGroups | None:
    """Return the test that groups have one value, over all that their tests are over; None where it is not defined.

    It is of means, and of differences of two means: other estimates have no units.
    """
    names = [n for n, every in (scores.estimates if scores is not None else {}).items() if groups[0] in every]
    if scores is None or not names or names[0] not in scores.metrics:
        return None
    metric, options = scores.metrics[names[0]]
    try:
        units = metric.units(scores.seen_by(metric), options)
        return None if units is None else _tested(units, groups)
    except Exception as error:  # a third party's `units`: no fault of theirs stands before a verdict
        LOG.debug("no test that the groups of %s are equal: %s", groups[0].metric, error)
        return None


def _tested(units: pl.DataFrame, groups: Sequence[Estimate]) -> EqualGroups | None:
    factors = factors_of(units)
    units = units.filter(pl.col("metric") == groups[0].metric, pl.col("value").is_not_null())
    frames = [units.filter(*(pl.col(name).eq_missing(pl.lit(e.group.get(name))) for name in factors)) for e in groups]
    rows = pl.concat([frame.with_columns(group=pl.lit(number)) for number, frame in enumerate(frames)])
    cells = _cells(rows, len(groups))
    values: Array = difference_of_sides(cells.totals)[:, 0]
    if not np.allclose(values, [np.nan if e.value is None else e.value for e in groups], rtol=CLOSE, atol=CLOSE):
        return None
    covariance = joint_covariance(cells, difference_of_sides)
    return None if covariance is None else equal_groups(values, covariance)


def _cells(rows: pl.DataFrame, groups: int) -> Cells:
    """Return the sums of units by the levels of the facets; without any, every unit is independent."""
    facets = facet_columns(rows) or ["unit"]
    levels = codes_of([rows[name].cast(pl.String).fill_null("").to_list() for name in facets])
    codes, place = np.unique(levels, axis=0, return_inverse=True)
    side = (rows["sign"] < 0).to_numpy().astype(np.int64)
    sums = np.zeros((len(codes), groups, int(side.max(initial=0)) + 1, 2))
    values = rows["value"].to_numpy()
    np.add.at(sums, (place.ravel(), rows["group"].to_numpy(), side), np.stack([np.ones(len(rows)), values], axis=-1))
    return Cells(codes, sums)
