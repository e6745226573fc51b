"""Contrast: the difference of an outcome between two levels of a factor, for probes without their own metric.

The value is the mean of `outcome` where the factor `between` is `first`, minus its mean where it is `second`: of all
answers, and within each combination of the factors in `by`. Answers of one cluster are treated as dependent. A yes-no
outcome gives a risk difference. Source: the design of a matched comparison, as in any of the studies here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from ...core.charts.forest import Panel, Point, forest
from ...core.contracts import Metric, Options
from ...core.contracts.errors import DataError, UsageError
from ...core.contracts.estimates import COLUMNS, Chart, Estimate, Measure
from ...core.contracts.records import Scalar
from ...core.statistics.effects import contrast_ranges, contrast_statistics
from ...core.statistics.estimates import Block, TestingOptions, correct, merge, tested
from ...core.statistics.intervals import Array, Limits, difference_bounds, mean_bounds
from ...core.statistics.observations import Group, missing_by_status, missing_estimates
from ...core.statistics.resampling import bootstrap, swap_test
from ...core.statistics.templates import rendered

if TYPE_CHECKING:
    from ...core.statistics.intervals import Codes

CONTRAST = "contrast"
TAKEN = frozenset(COLUMNS)


class ContrastOptions(TestingOptions, frozen=True, kw_only=True):
    """Definition of the comparison."""

    outcome: str
    """Observation column with numbers, or with true and false."""
    between: str
    """Factor whose two levels are compared."""
    first: str
    """The level whose mean comes first."""
    second: str
    """The level whose mean is subtracted."""
    cluster: str
    """Factor whose levels are the clusters of dependent answers, such as `template` or `pair`."""
    by: tuple[str, ...] = ()
    """Factors for whose levels the contrast is also computed, besides the whole."""
    least: float | None = None
    """The smallest possible value of the outcome; with `greatest` it bounds missing answers."""
    greatest: float | None = None
    unit: str = ""
    """Unit of the outcome, such as `nats`."""

    def __post_init__(self) -> None:
        """Refuse two equal levels."""
        super().__post_init__()
        if taken := [name for name in self.by if name in TAKEN]:
            raise UsageError(
                f"by names {taken[0]!r}, which is a field of every estimate. Rename the factor.",
                code="options.reserved",
            )
        if self.first == self.second:
            raise UsageError(
                f"first and second are both {self.first!r}. Name two levels of {self.between!r}.",
                code="options.conflict",
            )

    @property
    def limits(self) -> Limits:
        """Return the limits of the outcome, if both are given."""
        return None if self.least is None or self.greatest is None else (self.least, self.greatest)


class Contrast(Metric):
    """The difference of an outcome's mean between two levels of a factor."""

    options: ClassVar[type[Options]] = ContrastOptions
    needs: ClassVar[frozenset[str]] = frozenset({"status"})
    measures: ClassVar[Mapping[str, Measure]] = {
        CONTRAST: Measure(
            "Contrast",
            "Mean of the outcome at the first level of a factor minus that at the second.",
            direction="greater outcomes at the first level",
        )
    }

    def columns(self, options: ContrastOptions) -> frozenset[str]:
        """Return the columns that the options name."""
        return self.needs | {options.outcome, options.between, options.cluster, *options.by}

    def compute(self, observations: pl.DataFrame, options: ContrastOptions) -> list[Estimate]:
        """Return the contrast of all answers and of each group of `by`, and what is missing per level.

        Raises:
            DataError: a level does not occur, or the outcome is not a number.
        """
        if observations.is_empty():
            return []
        rows = _rows(observations, options)
        found = [_estimate(group, part, options) for group, part in _groups(rows, options)]
        levels = [
            Group({options.between: name}, part.filter(pl.col("status") == "ok").height, missing_by_status(part))
            for name in (options.first, options.second)
            for part in [rows.filter(pl.col(options.between) == name)]
        ]
        return [*correct(found, options.correction, options.alpha, "groups"), *missing_estimates(levels, options.level)]

    def units(self, observations: pl.DataFrame, options: ContrastOptions) -> pl.DataFrame | None:
        """Return the answers behind each contrast."""
        if observations.is_empty() or "trial" not in observations.columns:
            return None
        rows = _rows(observations, options)
        frames = [_units(group, part, options) for group, part in _groups(rows, options)]
        return pl.concat(frames, how="diagonal_relaxed")

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State the size and uncertainty of the whole contrast, and in how many groups it is significant."""
        found = [e for e in estimates if e.metric == CONTRAST and e.value is not None]
        whole = found[0] if found and not found[0].group else None
        return rendered(str(__package__), "contrast.conclusion.md.j2", whole=whole, groups=found[1:])

    def methods(self, options: ContrastOptions) -> str:
        """Describe how the contrast was tested."""
        return rendered(str(__package__), "contrast.methods.md.j2", options=options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw one forest plot of all contrasts."""
        found = [e for e in estimates if e.metric == CONTRAST and e.value is not None]
        if not found:
            return []
        points = [
            Point(
                ", ".join(map(str, e.group.values())) or "all",
                e.value,
                e.low,
                e.high,
                e.shown,
            )
            for e in found
        ]
        caption = "The contrast with its interval; full marks are significant after correction."
        return [Chart(CONTRAST, "Contrast by group", caption, forest([Panel("contrast", found[0].unit, points)]))]


def _rows(observations: pl.DataFrame, options: ContrastOptions) -> pl.DataFrame:
    """Return the answers at the two levels, the outcome as a number and null where it is missing."""
    between = pl.col(options.between).cast(pl.String)
    seen = observations[options.between].cast(pl.String).unique().to_list()
    for level in (options.first, options.second):
        if level not in seen:
            known = ", ".join(sorted(repr(name) for name in seen if name is not None))
            raise DataError(f"{options.between} has no level {level!r}. It has: {known}.", code="data.unknown-value")
    try:
        value = observations[options.outcome].cast(pl.Float64)
    except pl.exceptions.PolarsError:
        raise DataError(
            f"outcome {options.outcome!r} has type {observations[options.outcome].dtype}, not numbers.",
            code="data.type",
        ) from None
    rows = observations.with_columns(
        between.alias(options.between),
        pl.when(pl.col("status") == "ok").then(value).alias("_value"),
        pl.col(options.cluster).cast(pl.String).fill_null("").alias("_cluster"),
    )
    ok = pl.when((pl.col("status") == "ok") & pl.col("_value").is_null()).then(pl.lit("undefined"))
    return rows.filter(pl.col(options.between).is_in([options.first, options.second])).with_columns(
        ok.otherwise(pl.col("status")).alias("status")
    )


def _groups(rows: pl.DataFrame, options: ContrastOptions) -> Iterator[tuple[dict[str, Scalar], pl.DataFrame]]:
    """Yield the whole, then the groups in the order of their names."""
    yield {}, rows
    if not options.by:
        return
    for values in sorted(rows.select(options.by).unique().rows(), key=str):
        same = [pl.col(name).eq_missing(pl.lit(value)) for name, value in zip(options.by, values, strict=True)]
        yield dict(zip(options.by, values, strict=True)), rows.filter(*same)


def _sums(part: pl.DataFrame, options: ContrastOptions) -> Array:
    """Return (clusters, 1, 2 sides, 3): count, sum and sum of squares of the answers at each level."""
    ok = part.filter(pl.col("_value").is_not_null())
    codes: Codes = np.unique(ok["_cluster"].to_numpy(), return_inverse=True)[1]
    clusters = int(codes.max()) + 1 if len(codes) else 0
    place = codes * 2 + (ok[options.between] == options.second).to_numpy()
    value = ok["_value"].to_numpy()
    columns = [np.bincount(place, weights=w, minlength=2 * clusters) for w in (np.ones(len(value)), value, value**2)]
    sums: Array = np.stack(columns, axis=-1).astype(np.float64).reshape(clusters, 1, 2, 3)
    return sums


def _estimate(group: dict[str, Scalar], part: pl.DataFrame, options: ContrastOptions) -> Estimate:
    sums = _sums(part, options)
    value = contrast_statistics(sums.sum(axis=0))
    low, high = bootstrap(sums, contrast_statistics, options.plan, contrast_ranges(sums.shape[-1]))
    clusters = int((sums[..., 0].sum(axis=2) > 0).sum())
    n = int(sums[..., 0].sum())
    missing = [missing_by_status(part)]
    block = Block([group], value, low, high, [n], [clusters], missing, options.interval, options.level)
    p = float(swap_test(sums, contrast_statistics, options.plan)[0, 0])
    name = f"permutation of levels within cluster ({options.cluster})"
    bound_low, bound_high = _bounds(part, options)
    return Estimate.from_flat(
        metric=CONTRAST,
        group=group,
        neutral=0.0,
        unit=options.unit,
        family=CONTRAST,
        bound_low=bound_low,
        bound_high=bound_high,
        **merge(block.row(0, 0), block.effect(0, 1, "Cohen's d"), tested(name, p, clusters, options)),
    )


def _bounds(part: pl.DataFrame, options: ContrastOptions) -> tuple[float | None, float | None]:
    sides = [part.filter(pl.col(options.between) == level)["_value"] for level in (options.first, options.second)]
    first, second = (mean_bounds(float(side.sum()), side.count(), side.null_count(), options.limits) for side in sides)
    return difference_bounds(first, second)


def _units(group: Mapping[str, Any], part: pl.DataFrame, options: ContrastOptions) -> pl.DataFrame:
    first = pl.col(options.between) == options.first
    return part.select(
        *(pl.lit(value).alias(name) for name, value in group.items()),
        pl.lit(CONTRAST).alias("metric"),
        pl.col("trial").alias("unit"),
        pl.col("_cluster").alias("cluster"),
        pl.when(first).then(1).otherwise(-1).cast(pl.Int8).alias("sign"),
        pl.col("_value").alias("value"),
        pl.lit(options.least, dtype=pl.Float64).alias("least"),
        pl.lit(options.greatest, dtype=pl.Float64).alias("greatest"),
        pl.col("status"),
    )
