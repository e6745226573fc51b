"""Paired differences between two runs of a study, on the units that both answered.

Two runs of one study ask the same questions, so their answers are paired, and effects of the questions cancel. Whole
clusters are resampled and flipped. See `docs/compare.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from ...core.charts.forest import Panel, Point, forest
from ...core.charts.levels import draw_levels
from ...core.contracts import Metric, Options
from ...core.contracts.estimates import Chart, Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.effects import MEANS, cell_statistics, contrast_statistics
from ...core.statistics.estimates import TestingOptions, correct, merge
from ...core.statistics.facets import Permutation, infer_over
from ...core.statistics.intervals import within
from ...core.statistics.paired import COLUMNS, LABELS, PAIRED, Cells, cells_of, factors_of, flips
from ...core.statistics.resampling import flip_test
from ...core.statistics.templates import rendered

if TYPE_CHECKING:
    import polars as pl

ROWS = 60
"""Maximum number of rows of a forest plot on one page; of a longer plot only the first rows are drawn, with a note."""
NAMED = 3
"""Number of differences that the conclusion names."""
CAPTION = (
    "Difference from the baseline run with its interval. Full marks: significant after correction. Hollow circles: not"
    " significant. Hollow diamonds: no interval, because the runs agree in every cluster or the measure is not a mean"
    " of units."
)


def _chart(metric: str, estimates: Sequence[Estimate]) -> Chart:
    several = len({(e.group["run"], e.group["against"]) for e in estimates}) > 1
    points = [Point(_label(e, several), e.value, e.low, e.high, e.shown) for e in estimates[:ROWS]]
    unit = estimates[0].unit
    panel = Panel(metric, f"difference{f' ({unit})' if unit else ''}", points)
    rest = f" The first {ROWS} of {len(estimates)}." if len(estimates) > ROWS else ""
    runs = "" if several else f": {_runs(estimates[0])}"
    return Chart(f"differences-{metric}", f"Differences in {metric}{runs}", CAPTION + rest, forest([panel]))


def _label(estimate: Estimate, several: bool) -> str:
    return ", ".join([*([_runs(estimate)] if several else []), *_cell(estimate.group)]) or estimate.metric


def _runs(estimate: Estimate) -> str:
    return f"{estimate.group['run']} minus {estimate.group['against']}"


def _cell(group: Mapping[str, Scalar]) -> list[str]:
    return [str(level) for name, level in group.items() if name not in ("run", "against")]


__all__ = ["PairedDifference", "PairedDifferenceOptions"]

TEST = "sign-flip permutation of runs within cluster"


class PairedDifferenceOptions(TestingOptions, frozen=True, kw_only=True):
    """Options for testing the differences between runs."""


class PairedDifference(Metric):
    """The difference of each measure between two runs, with interval, test, effect size and worst case."""

    options: ClassVar[type[Options]] = PairedDifferenceOptions
    needs: ClassVar[frozenset[str]] = frozenset({*COLUMNS, *PAIRED, *LABELS, "family"})

    def compute(self, observations: pl.DataFrame, options: PairedDifferenceOptions) -> list[Estimate]:
        """Return one estimate per pair of runs, measure and group.

        `observations` has a row per pair of runs and unit: the columns of `Metric.units`, but `first` and `second`
        with their statuses in place of `value` and `status`; `against` and `run` name the first and the second run,
        and `family` the hypotheses that are corrected together.
        """
        factors = factors_of(observations)
        found = [
            estimate
            for (metric, family), part in _by_family(observations)
            for estimate in _estimates(str(metric), str(family), cells_of(part, factors), options)
        ]
        return correct(found, options.correction, options.alpha, "comparisons")

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State how many differences were tested, how many are significant, and the largest by effect size."""
        tested = [e for e in estimates if e.p_adjusted is not None]
        shown = sorted((e for e in tested if e.shown), key=lambda e: -abs(e.effect.value or 0.0))
        least = min((e.p_adjusted for e in tested if e.p_adjusted is not None), default=None)
        named = [(e, ", ".join(_cell(e.group))) for e in shown[:NAMED]]
        told = {"tested": tested, "shown": shown, "least": least, "named": named}
        return rendered(str(__package__), "paired.conclusion.md.j2", **told)

    def methods(self, options: PairedDifferenceOptions) -> str:
        """Describe how the differences were tested."""
        return rendered(str(__package__), "paired.methods.md.j2", options=options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw one forest plot per measure."""
        measures = dict.fromkeys(e.metric for e in estimates if e.value is not None)
        return [_chart(name, [e for e in estimates if e.metric == name]) for name in measures]

    def side_by_side(self, runs: Mapping[str, Sequence[Estimate]]) -> list[Chart]:
        """Draw one figure per measure: a row per group, and in it a mark per run."""
        return draw_levels(runs)


def _by_family(observations: pl.DataFrame) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
    yield from observations.partition_by("metric", "family", as_dict=True, maintain_order=True).items()


def _estimates(metric: str, family: str, cells: Cells, options: PairedDifferenceOptions) -> Iterator[Estimate]:
    statistics = cell_statistics if cells.sums.shape[3] == 1 else contrast_statistics
    test = Permutation(TEST, lambda own: flip_test(flips(own), options.plan)[:, :1], [0])
    found = infer_over(cells.ways, cells.sums, statistics, MEANS, options.plan, permutation=test)
    low, high = within(found.low, found.high, [cells.limits])
    totals = cells.sums.sum(axis=(0, 1))
    inferred = msgspec.structs.replace(found, low=low, high=high)
    block = inferred.block(cells.groups, statistics(totals), totals[..., 0].sum(axis=1), cells.missing)
    block = msgspec.structs.replace(block, nothing="no unit that both runs answered")
    name = "standardised mean difference" if statistics is cell_statistics else "Cohen's d"
    for unit, group in enumerate(cells.groups):
        row = merge(block.row(unit, 0), inferred.tested(unit, 0, options))
        # What the clusters of one way are is not told.
        named = {name: str(row.get(name, "")).removesuffix(" (cluster)") for name in ("interval", "test")}
        row |= {"interval": f"{named['interval']}, paired" if named["interval"] else "", "test": named["test"]}
        yield Estimate.from_flat(
            metric=metric,
            group=dict(group),
            neutral=0.0,
            bound_low=cells.bounds[unit][0],
            bound_high=cells.bounds[unit][1],
            statistic=row["value"] if "p" in row else None,
            family=family,
            **block.effect(unit, 1, name),
            **row,
        )
