"""`DeclaredMetric`: a metric that only says what it measures, of which groups and over which clusters.

    class Stereotypes(statistics.DeclaredMetric):
        groups = ((), ("bias_type",))
        clusters = ("target",)
        measures = (statistics.Share("stereotype_score", hit="stereotype_chosen", neutral=50),)

From that come values, intervals, tests in families, effect sizes, bounds, caveats, verdicts, the units of comparisons,
the designs of plans, and the words, figures and examples of a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from ..charts.forest import Panel, Point, forest
from ..contracts import HEADLINE, Metric, Options
from ..contracts.estimates import Chart, Estimate, Example, Measure
from ..contracts.records import Scalar
from .declared_rows import CLUSTERS, ROW, UNIT, Design, Part, choose, parts, prepared, widened
from .estimates import MarginOptions, correct
from .inference import concerned, estimate
from .measures import DeclaredMeasure, Derived, Ranks, Share, SummedMeasure
from .observations import Group, missing_by_status, missing_estimates
from .pivot import KEYS, Pivot
from .templates import rendered

if TYPE_CHECKING:
    from collections.abc import Callable

FAMILY = "tests"
"""What the members of a family are called."""
MOST_POINTS = 60
"""Rows of a forest plot that can still be read."""


class DeclaredMetric(Metric):
    """A metric by declaration. Whatever it computes can still be overridden, member by member."""

    options: ClassVar[type[Options]] = MarginOptions
    needs: ClassVar[frozenset[str]] = frozenset()
    measures: ClassVar[Any] = ()
    """The measures in the order of a report; as an attribute of the class, their words by name."""
    groups: ClassVar[tuple[tuple[str, ...], ...]] = ((),)
    """Factors that estimates are given by; `()` is the whole. The tests of one grouping are one family."""
    clusters: ClassVar[tuple[str, ...]] = ()
    """Columns whose values stand or fall together: one, or two that cross; without one every row is by itself."""
    macro: ClassVar[str] = ""
    """Column whose levels count alike, however many rows each has."""
    pivot: ClassVar[Pivot | None] = None
    """Which rows become one."""
    _declared: ClassVar[Design] = Design(measures=())

    def __init_subclass__(cls) -> None:
        """Read the declaration.

        Raises:
            TypeError: it cannot be computed, and why.
        """
        super().__init_subclass__()
        given = cls.measures
        stated = cls._declared.measures if isinstance(given, Mapping) else tuple(given)
        design = Design(measures=stated, groups=cls.groups, clusters=cls.clusters, macro=cls.macro, pivot=cls.pivot)
        if problem := next(design.problems(), ""):
            raise TypeError(f"{cls.__name__}: {problem}.")
        cls._declared = design
        if not isinstance(given, Mapping):
            cls.measures = {measure.name: measure.words for measure in stated if measure.report}

    def design(self, options: Any) -> Design:
        """Return what is declared; override it where an option says which measures, groups or clusters there are.

        The class still lists every measure that there may be: its words are those of reports.
        """
        return self._declared

    def rows(self, observations: pl.DataFrame, options: Any) -> pl.DataFrame:
        """Return the rows that measures read; override it, and name `needs`, where `pivot` does not make them."""
        return widened(observations, self.design(options))

    def columns(self, options: Any) -> frozenset[str]:
        """Return the columns that are read."""
        if type(self).rows is not DeclaredMetric.rows:
            return self.needs | {"status"}
        return self.needs | self.design(options).needs

    def compute(self, observations: pl.DataFrame, options: Any) -> list[Estimate]:
        """Return the estimates of every grouping, corrected within it, and what is missing."""
        design = self.design(options)
        frame = prepared(self.rows(observations, options), design)
        reported = [measure for measure in design.measures if measure.report]
        found = [
            estimate(measure, part, design, options).replace(family=_family(measure, by))
            for by in design.groups
            for part in parts(frame, design, by)
            for measure in reported
            if not by or concerned(measure, part, design)
        ]
        return [*correct(found, options.correction, options.alpha, FAMILY), *_missing(frame, design, options.level)]

    def units(self, observations: pl.DataFrame, options: Any) -> pl.DataFrame | None:
        """Return the rows behind the means and the differences of means; None where rows have no names."""
        return self._units(observations, options, lambda measure: measure.is_mean)

    def designs(self, observations: pl.DataFrame, options: Any) -> pl.DataFrame | None:
        """Return the same with ranks, and with the other way of clustering, where two cross."""
        return self._units(observations, options, lambda measure: measure.is_mean or isinstance(measure, Ranks), True)

    def _units(
        self, observations: pl.DataFrame, options: Any, wanted: Callable[[SummedMeasure], bool], tests: bool = False
    ) -> pl.DataFrame | None:
        design = self.design(options)
        frame = prepared(self.rows(observations, options), design)
        if frame[ROW].null_count() or frame.is_empty():
            return None
        found = [
            _units_of(measure, part, design, tests)
            for by in design.groups
            for part in parts(frame, design, by)
            for measure in design.summed
            if measure.report and wanted(measure) and concerned(measure, part, design)
        ]
        return pl.concat(found, how="diagonal_relaxed") if found else None

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the estimates of the whole, and of as many groupings as a reader can take in."""
        chosen: list[Estimate] = []
        for by in self._groupings(estimates):
            if len(chosen) + len(by) > HEADLINE and chosen:
                break
            chosen += by
        return chosen if len(chosen) <= HEADLINE else []

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State the values of the whole with their uncertainty, and in how many groups a difference was shown."""
        known = [[e for e in by if e.value is not None] for by in self._groupings(estimates)]
        first, *rest = [by for by in known if by] or [[]]
        groups = [
            (", ".join(by[0].group), [e for e in by if e.shown], tested)
            for by in rest
            if (tested := [e for e in by if e.p_adjusted is not None])
        ]
        return rendered(str(__package__), "declared.conclusion.md.j2", first=first, groups=groups, words=self.measures)

    def methods(self, options: Any) -> str:
        """Describe in words how the estimates were made."""
        design = self.design(options)
        fields = {"options": options, "design": design, "margin": getattr(options, "margin", None)}
        sides = [m for m in design.summed if m.recipe().swaps]
        flips = [m for m in design.summed if m.recipe().deviations is not None and not m.recipe().swaps]
        derived = [measure for measure in design.measures if isinstance(measure, Derived)]
        tests = {"sides": sides, "flips": flips, "derived": derived}
        return rendered(str(__package__), "declared.methods.md.j2", words=self.measures, **fields, **tests)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw a forest plot of each measure."""
        return [
            chart for name, words in self.measures.items() if (chart := _forest(name, words, estimates)) is not None
        ]

    def examples(self, observations: pl.DataFrame, options: Any) -> list[Example]:
        """Pick the rows with the greatest and the least values, by group, of the first mean with a neutral value."""
        design = self.design(options)
        means = [measure for measure in design.summed if measure.is_mean and measure.report]
        first = next((measure for measure in means if measure.neutral is not None), next(iter(means), None))
        frame = self.rows(observations, options)
        if first is None or not {"key", KEYS} & set(frame.columns):
            return []
        by = next((by for by in design.groups if by), ())
        groups = parts(prepared(frame, design), design, by)
        return list(chain.from_iterable(_extremes(first, part, options.examples) for part in groups))

    def _groupings(self, estimates: Sequence[Estimate]) -> list[list[Estimate]]:
        """Return the estimates of the declared measures by grouping."""
        found: dict[tuple[str, ...], list[Estimate]] = {}
        for e in estimates:
            if e.metric in self.measures:
                found.setdefault(tuple(e.group), []).append(e)
        return list(found.values())


def _family(measure: DeclaredMeasure, by: tuple[str, ...]) -> str:
    return ", ".join(filter(None, [measure.family, f"by {', '.join(by)}" if by else "whole"]))


def _missing(frame: pl.DataFrame, design: Design, level: float) -> list[Estimate]:
    """Return the share of rows that are missing, and by the first grouping."""
    by = next((by for by in design.groups if by), ())
    groups = [
        Group(part.group, part.frame.filter(pl.col("status") == "ok").height, missing_by_status(part.frame))
        for part in parts(frame, design, by)
    ]
    found = missing_estimates(groups, level)
    return found if by else found[:1]


def _units_of(measure: SummedMeasure, part: Part, design: Design, tests: bool) -> pl.DataFrame:
    """Return the rows of a measure as `Metric.units` promises them, and with `tests` as `Metric.designs` does."""
    chosen = choose(measure, part)
    limits = measure.whole if isinstance(measure, Share) else measure.limits
    least, greatest = limits or (None, None)
    rows = part.frame.select(ROW, UNIT, *_ways(design))[chosen.rows].with_columns(
        pl.Series("sign", 1 - 2 * chosen.sample.sides, dtype=pl.Int8),
        pl.Series("value", measure.scale * chosen.sample.values[:, 0]).fill_nan(None),
        pl.Series("status", chosen.statuses, dtype=pl.String),
    )
    if design.macro:
        rows = _macro(rows, design)
    cluster, *other = _ways(design) or [UNIT if design.macro else ROW]
    ways = pl.lit(" x ".join(reversed(design.clusters))).alias("ways")
    crossed = [pl.col(name).alias("row") for name in other] + [ways] * len(other)
    ranks = [pl.lit("mann-whitney").alias("test")] if isinstance(measure, Ranks) else []
    return rows.select(
        *(pl.lit(value).alias(name) for name, value in part.group.items()),
        pl.lit(measure.name).alias("metric"),
        pl.col(UNIT if design.macro else ROW).alias("unit"),
        pl.col(cluster).alias("cluster"),
        "sign",
        "value",
        pl.lit(least, dtype=pl.Float64).alias("least"),
        pl.lit(greatest, dtype=pl.Float64).alias("greatest"),
        "status",
        *(crossed if tests else []),
        *(ranks if tests else []),
    )


def _ways(design: Design) -> list[str]:
    return list(CLUSTERS[: len(design.clusters)])


def _macro(rows: pl.DataFrame, design: Design) -> pl.DataFrame:
    """Return the units that count alike: the mean of what is readable, `ok` where anything is."""
    firsts = [pl.col(name).first() for name in (ROW, *_ways(design))]
    why = pl.col("status").filter(pl.col("status") != "ok").sort().first()
    status = pl.when(pl.col("value").count() > 0).then(pl.lit("ok")).otherwise(why)
    found = rows.group_by(UNIT, "sign").agg(*firsts, pl.col("value").mean(), status.alias("status"))
    return found.sort(UNIT, "sign")


def _forest(name: str, words: Measure, estimates: Sequence[Estimate]) -> Chart | None:
    found = [e for e in estimates if e.metric == name and e.value is not None][:MOST_POINTS]
    if not found:
        return None
    points = [Point(", ".join(map(str, e.group.values())) or "all", e.value, e.low, e.high, e.shown) for e in found]
    axis = " ".join(filter(None, [words.label, f"({words.unit})" if words.unit else ""]))
    line = "" if found[0].neutral is None else " The dashed line is neutral."
    caption = f"{words.label} with its interval; full marks are significant after correction.{line}"
    return Chart(name, words.label, caption, forest([Panel(words.label, axis, points, found[0].neutral)]))


def _extremes(measure: SummedMeasure, part: Part, count: int) -> Iterator[Example]:
    """Yield the rows above neutral with the greatest values, and those below it with the least."""
    chosen = choose(measure, part)
    keys = pl.col(KEYS) if KEYS in part.frame.columns else pl.concat_list(pl.col("key").cast(pl.Binary))
    rows = part.frame.select(ROW, keys.alias("keys"))[chosen.rows].with_columns(
        value=pl.Series(measure.scale * chosen.sample.values[:, 0]).fill_nan(None)
    )
    rows = rows.drop_nulls("value").filter(pl.col("keys").list.drop_nulls().list.len() > 0)
    if rows.is_empty():
        return
    middle: Any = rows["value"].mean() if measure.recipe().sides or measure.neutral is None else measure.neutral
    for side, ahead in ((pl.col("value") > middle, "greatest"), (pl.col("value") < middle, "least")):
        picked = rows.filter(side).sort("value", ROW, "keys", descending=[ahead == "greatest", False, False])
        for row in picked.head(count).iter_rows(named=True):
            yield _example(measure, part.group, row, ahead)


def _example(measure: SummedMeasure, group: dict[str, Scalar], row: dict[str, Any], ahead: str) -> Example:
    caption = f"{measure.words.label}: {row['value']:.3g} {measure.unit}".rstrip()
    keys = tuple(key for key in row["keys"] if key is not None)
    return Example(f"{measure.words.label}, among the {ahead}", dict(group), keys, row["value"], caption)
