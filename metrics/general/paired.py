"""Paired differences between two runs of a study, on the units that both answered.

Two runs of one study ask the same questions, so their answers are paired, and effects of the questions cancel. Whole
clusters are resampled and flipped. See `docs/compare.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ...core.charts.forest import Panel, Point, forest
from ...core.contracts import Metric, Options
from ...core.contracts.estimates import Chart, Estimate
from ...core.contracts.metric import FACET, facet_columns, factors_of
from ...core.contracts.records import Scalar
from ...core.contracts.sizes import State, state_of_difference
from ...core.contracts.words import MARGIN, exact, number
from ...core.statistics.declaration import Declaration
from ...core.statistics.declared import DeclaredMetric
from ...core.statistics.effects import contrast_statistics
from ...core.statistics.estimates import TestingOptions
from ...core.statistics.intervals import FREE, Array, Limits, difference_bounds, paired_bounds
from ...core.statistics.measures import SummedMeasure
from ...core.statistics.measures_compared import Matched
from ...core.statistics.recipes import Column, EffectSize, Recipe
from ...core.statistics.templates import rendered

ROWS = 60
"""Maximum number of rows of a forest plot on one page; of a longer plot only the first rows are drawn, with a note."""
NAMED = 3
"""Number of differences that the conclusion names."""
CAPTION = (
    "Difference from the first run with its interval; right of the dashed line the run's value is greater. Full marks"
    " are significant after correction; a hollow mark does not show equality. A diamond has no interval."
)


def _constant(estimates: Sequence[Estimate]) -> set[str]:
    """Return the factors that have one level in all: in a sentence, they tell no difference from another."""
    levels: dict[str, set[Scalar]] = {}
    for e in estimates:
        for name, level in e.group.items():
            levels.setdefault(name, set()).add(level)
    return {name for name, found in levels.items() if len(found) == 1} if len(estimates) > 1 else set()


def _part(size: State, found: Sequence[Estimate], constant: set[str]) -> dict[str, Any]:
    """Return what the conclusion says of the differences of one size: the largest are named where they are shown."""
    by_effect = sorted(found, key=lambda e: -abs(e.effect.value or 0.0))
    told = [(e, {name: level for name, level in e.group.items() if name not in constant}) for e in by_effect if e.shown]
    named = [(e, ", ".join([_titled(e), *_cell(group)])) for e, group in told][:NAMED]
    known = {(float(own), e.unit) for e in found if isinstance(own := e.facts.get(MARGIN), int | float)}
    margins = [f"the limit of {exact(own)} {unit}".rstrip() for own, unit in known]
    margin = margins[0] if len(margins) == 1 else "their limits" if margins else ""
    units = {e.unit for e in found}
    ends = [abs(end) for e in found for end in (e.low, e.high) if end is not None]
    reach = f"{number(max(ends))} {units.pop()}".rstrip() if ends and len(units) == 1 else ""
    return {"size": size, "found": found, "named": named, "margin": margin, "reach": reach}


def _titled(e: Estimate) -> str:
    return e.label or e.metric


def _chart(metric: str, estimates: Sequence[Estimate]) -> Chart:
    several = len({(e.group["run"], e.group["against"]) for e in estimates}) > 1
    points = [Point(_label(e, several), e.value, e.low, e.high, e.shown) for e in estimates[:ROWS]]
    unit, title = estimates[0].unit, _titled(estimates[0])
    panel = Panel(title, f"difference{f' ({unit})' if unit else ''}", points)
    rest = f" The first {ROWS} of {len(estimates)}." if len(estimates) > ROWS else ""
    runs = "" if several else f": {_runs(estimates[0])}"
    return Chart(f"differences-{metric}", f"Differences: {title}{runs}", CAPTION + rest, forest([panel]))


def _label(estimate: Estimate, several: bool) -> str:
    return ", ".join([*([_runs(estimate)] if several else []), *_cell(estimate.group)]) or "all"


def _runs(estimate: Estimate) -> str:
    return f"{estimate.group['run']} minus {estimate.group['against']}"


def _cell(group: Mapping[str, Scalar]) -> list[str]:
    return [str(level) for name, level in group.items() if name not in ("run", "against")]


__all__ = ["PairedDifference", "PairedDifferenceOptions"]

COLUMNS = ("metric", "unit", "sign", "least", "greatest")
PAIRED = ("first", "second", "first_status", "second_status")
LABELS = ("run", "against")
"""The second run of a pair, and the first; then come the factors of the estimate."""
CELL, SIGN = "_cell", "_sign"
"""Columns of the rows: which estimate a row is for, and its sign."""
WAYS, FLIP = " (cluster)", "sign-flip permutation"
"""What the declaration calls its clusters and its test."""
TEST = "sign-flip permutation of runs within cluster"


class PairedDifferenceOptions(TestingOptions, frozen=True, kw_only=True):
    """Options for testing the differences between runs."""


class Between(SummedMeasure, frozen=True, eq=False, kw_only=True):
    """The mean of one number less another of the same row, less that of a second group of rows.

    Under the hypothesis the two numbers are exchangeable within a cluster, in both groups at once.
    """

    first: Column
    second: Column
    of: Column
    """Whether a row is in the first group."""
    neutral: float | None = 0.0

    def recipe(self) -> Recipe:
        """Return count, sum and sum of squares of either group's differences, and the difference of their means."""
        widest = np.inf if self.limits is None else 2 * (self.limits[1] - self.limits[0])

        def columns(values: Array) -> tuple[Array, ...]:
            gap = values[:, 0] - values[:, 1]
            return np.ones(len(gap)), gap, gap**2

        return Recipe(
            inputs=(self.first, self.second),
            columns=columns,
            value=lambda totals: contrast_statistics(totals)[..., 0],
            range=(-widest, widest),
            effect=EffectSize("Cohen's d", lambda totals: contrast_statistics(totals)[..., 1], FREE),
            sides=(self.of, None),
            deviations=_parts,
            bounds=lambda sample: difference_bounds(
                *(
                    paired_bounds(own[:, 0], own[:, 1], self.limits)
                    for own in (sample.values[sample.sides == side] for side in (0, 1))
                )
            ),
            partial=True,
        )


def _parts(sums: Array) -> Array:
    """Return what a cluster adds to the value, times the count: exchanging the numbers within it turns its sign."""
    totals = sums[..., 0].sum(axis=0)
    share = np.divide(sums[..., 1], totals, out=np.full(sums.shape[:-1], np.nan), where=totals > 0)
    found: Array = ((share[..., 0] - share[..., 1]) * totals.sum(axis=-1))[..., None]
    return found


class PairedDifference(DeclaredMetric):
    """The difference of each measure between two runs, with interval, test, effect size and worst case.

    `observations` has a row per pair of runs and unit: the columns of `Metric.units`, but `first` and `second` with
    their statuses in place of `value` and `status`; `against` and `run` name the first and the second run, and `family`
    the hypotheses that are corrected together.
    """

    options: ClassVar[type[Options]] = PairedDifferenceOptions
    needs: ClassVar[frozenset[str]] = frozenset({*COLUMNS, *PAIRED, *LABELS, "family"})
    members = "comparisons"
    columns = Metric.columns
    headline = Metric.headline

    def rows(self, observations: pl.DataFrame, options: PairedDifferenceOptions) -> pl.DataFrame:
        """Return the pairs with the number of their estimate, and the status of the pair."""
        lost = pl.when(pl.col("first_status") != "ok").then("first_status").otherwise("second_status")
        return observations.with_columns(lost.alias("status"), _cells(observations).alias(CELL))

    def design_of(self, rows: pl.DataFrame, options: PairedDifferenceOptions) -> list[Declaration]:
        """Return a design per measure and family."""
        parts = rows.partition_by("metric", "family", maintain_order=True)
        return [_design(rows[0, "metric"], rows[0, "family"], rows) for rows in parts]

    def compute(self, observations: pl.DataFrame, options: PairedDifferenceOptions) -> list[Estimate]:
        """Return one estimate per pair of runs, measure and group."""
        rows = self.rows(observations, options)
        factors = [*LABELS, *_factors(observations)]
        groups = rows.select(CELL, *factors).unique(CELL).rows_by_key(CELL, named=True, unique=True)
        return [_named(e, groups[e.group[CELL]]) for e in self.measured(rows, options)]

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State which differences matter: significant, within their limit, or neither."""
        tested = [e for e in estimates if state_of_difference(e) is not State.UNJUDGED]
        by_size = {size: [e for e in tested if state_of_difference(e) is size] for size in State}
        parts = [_part(size, found, _constant(tested)) for size, found in by_size.items() if found]
        return rendered(str(__package__), "paired.conclusion.md.j2", tested=tested, parts=parts)

    def methods(self, options: PairedDifferenceOptions) -> str:
        """Describe how the differences were tested."""
        return rendered(str(__package__), "paired.methods.md.j2", options=options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw one forest plot per measure."""
        measures = dict.fromkeys(e.metric for e in estimates if e.value is not None)
        return [_chart(name, [e for e in estimates if e.metric == name]) for name in measures]


def _factors(observations: pl.DataFrame) -> list[str]:
    """Return the columns that are factors of the estimates."""
    return [name for name in factors_of(observations) if name not in (*PAIRED, *LABELS, "family")]


def _cells(observations: pl.DataFrame) -> pl.Series:
    by = [*LABELS, *_factors(observations)]
    cells = observations.select(by).unique(maintain_order=True).with_row_index(CELL)
    return observations.select(by).join(cells, on=by, how="left", nulls_equal=True, maintain_order="left")[CELL]


def _design(metric: str, family: str, rows: pl.DataFrame) -> Declaration:
    ends = rows.select("least", "greatest").to_numpy().astype(np.float64)
    limits: Limits = None if np.isnan(ends).any() else (float(ends[:, 0].min()), float(ends[:, 1].max()))
    facets = facet_columns(rows) or ["unit"]
    # Results name several facets; a single one stays "cluster", whatever the runs call it.
    ways = tuple(facet.removeprefix(FACET) for facet in facets) if len(facets) > 1 else ("cluster",)
    stated: dict[str, Any] = {"first": "_second", "second": "_first", "limits": limits, "family": lambda by: family}
    contrast = (rows["sign"] < 0).any()
    measure = Between(metric, of=pl.col(SIGN) > 0, **stated) if contrast else Matched(metric, **stated)

    def mine(every: pl.DataFrame) -> pl.DataFrame:
        own = every.filter(pl.col("metric") == metric, pl.col("family") == family)
        named = [pl.col(name).alias(way) for name, way in zip(facets, ways, strict=True)]
        numbers = {"_first": "first", "_second": "second", SIGN: "sign"}
        return own.select(*named, CELL, "status", **numbers)

    return Declaration(measures=(measure,), groups=((CELL,),), clusters=ways, rows=mine)


def _named(estimate: Estimate, group: dict[str, Any]) -> Estimate:
    """Return the estimate of the runs; what the clusters of one way are is not told."""
    test = estimate.test.name.replace(FLIP, TEST).removesuffix(WAYS)
    interval = f"{estimate.interval.method.removesuffix(WAYS)}, paired" if estimate.interval.method else ""
    return estimate.replace(
        group={name: level for name, level in group.items() if name != CELL and level is not None},
        interval=interval,
        test=test,
        statistic=estimate.value if estimate.p is not None else None,
        note="" if estimate.value is not None else "no unit that both runs answered",
    )
