"""`DeclaredMetric`: a metric that only says what it measures, of which groups and over which clusters.

    class Stereotypes(statistics.DeclaredMetric):
        groups = ((), ("bias_type",))
        clusters = ("target",)
        measures = (statistics.Share("stereotype_score", hit="stereotype_chosen", neutral=50),)

From that come values, intervals, tests in families, effect sizes, bounds, caveats, verdicts, the units of comparisons,
the designs of plans, and the words, figures and examples of a report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
import polars as pl

from ..charts.forest import Panel, Point, forest
from ..contracts import FACET, HEADLINE, PROMPT_KEY, Metric, Options, facet_columns
from ..contracts.errors import UsageError
from ..contracts.estimates import Chart, Estimate, Example, Measure
from ..contracts.records import Scalar
from .declaration import Declaration
from .declared_rows import (
    ROW,
    UNIT,
    Chosen,
    Part,
    Table,
    choose,
    cluster_columns,
    parts,
    prepared,
    repeated,
    settled,
    widened,
)
from .estimates import MarginOptions, correct
from .facets import OVER, FacetOptions, population
from .inference import Known, estimates_of
from .measures import DeclaredMeasure, SummedMeasure
from .measures_compared import Groups, Matched, Ranks
from .observations import Group, missing_by_status, missing_estimates, unreadable_by, unreadable_kinds
from .pivot import KEYS, Pivot
from .summing import concerned
from .templates import rendered

MOST_POINTS = 60
"""Rows of a forest plot that can still be read."""


class DeclaredMetric(Metric):
    """A metric by declaration. Whatever it computes can still be overridden, member by member."""

    options: ClassVar[type[Options]] = MarginOptions
    needs: ClassVar[frozenset[str]] = frozenset()
    measures: ClassVar[Any] = ()
    """The measures in the order of a report; as an attribute of the class, their words by name."""
    others: ClassVar[Mapping[str, Measure]] = {}
    """Words of the estimates that `compute` has besides, by name."""
    groups: ClassVar[tuple[tuple[str, ...], ...]] = ((),)
    """Factors that estimates are given by; `()` is the whole. The tests of one grouping are one family."""
    clusters: ClassVar[tuple[str, ...]] = ()
    """Columns whose levels are clusters: one, or several that cross; without one every row is independent, but for
    samples of one prompt."""
    macro: ClassVar[str] = ""
    """Column whose levels count alike, however many rows each has."""
    pivot: ClassVar[Pivot | None] = None
    """Which rows become one."""
    row: ClassVar[str] = ""
    """Column that names a row, and what a row is called; by default that of the pivot, or `trial`, an answer."""
    missing: ClassVar[tuple[str, ...] | None] = None
    """Factors that what is missing is given by; by default those of the first grouping."""
    kinds: ClassVar[str] = ""
    """Factor that kinds of unreadable answers are given by."""
    unknown: ClassVar[str] = "one cluster"
    """What is done with rows without a cluster, as `Declaration.unknown`."""
    shows: ClassVar[tuple[str, ...]] = ()
    """Measures whose greatest and least rows are the examples; by default the first mean with a neutral value."""
    members: ClassVar[str] = "tests"
    """What the members of a family are called."""
    fixed: ClassVar[str] = ""
    """What the inference takes as it is, though it may vary, as a sentence that ends the conclusion."""
    _declared: ClassVar[Declaration] = Declaration(measures=())
    _aside: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        """Read the declaration.

        Raises:
            TypeError: it cannot be computed, and why.
        """
        super().__init_subclass__()
        given = cls.measures
        stated = cls._declared.measures if isinstance(given, Mapping) else tuple(given)
        names = ("groups", "clusters", "macro", "pivot", "row", "missing", "kinds", "unknown")
        design = msgspec.structs.replace(Declaration(measures=stated), **{name: getattr(cls, name) for name in names})
        if problem := next(design.problems(), ""):
            raise TypeError(f"{cls.__name__}: {problem}.")
        cls._declared = design
        cls._aside = frozenset(measure.name for measure in stated if not measure.main)
        if not isinstance(given, Mapping):
            cls.measures = {measure.name: measure.words for measure in stated if measure.report} | dict(cls.others)

    def design(self, options: Any) -> Declaration | Sequence[Declaration]:
        """Return what is declared; override it where an option says which measures, groups or clusters there are.

        The option `over` of `FacetOptions` names the clusters. Measures whose rows, groups or clusters differ stand
        in designs of their own; the first with `missing`, else the first, says what is missing. The class still lists
        every measure that there may be: its words are those of reports.
        """
        return msgspec.structs.replace(self._declared, clusters=self.clusters_of(options))

    def clusters_of(self, options: Any) -> tuple[str, ...]:
        """Return the columns that options name as clusters, else those that are declared."""
        ways = options.ways if isinstance(options, FacetOptions) else ()
        return ways or self._declared.clusters

    def settled(self, options: Any, facets: Callable[[], tuple[str, ...]]) -> Any:
        """Return the options over all that the study samples, where they name nothing; else over `clusters`."""
        if isinstance(options, FacetOptions) and not options.ways:
            if not (clusters := facets() or self._declared.clusters):
                raise UsageError("over is empty. Name the columns to generalise over.", code="options.value")
            return msgspec.structs.replace(options, over=clusters)
        return options

    def rows(self, observations: pl.DataFrame, options: Any) -> pl.DataFrame:
        """Return the rows that measures read; override it, and name `needs`, where `pivot` does not make them."""
        return widened(observations, self._designs(options)[0])

    def columns(self, options: Any) -> frozenset[str]:
        """Return the columns that are read."""
        if type(self).rows is not DeclaredMetric.rows:
            # Clusters that no option names may be columns that `rows` makes.
            ways = self.clusters_of(options) if isinstance(options, FacetOptions) else ()
            return self.needs | {"status", *ways}
        return self.needs.union(*(design.needs for design in self._designs(options)))

    def _designs(self, options: Any) -> Sequence[Declaration]:
        design = self.design(options)
        return (design,) if isinstance(design, Declaration) else design

    def design_of(self, rows: pl.DataFrame, options: Any) -> Declaration | Sequence[Declaration]:
        """Return the design of rows at hand; override it where they say what is measured, such as every two levels."""
        return self.design(options)

    def _prepared(self, rows: pl.DataFrame, options: Any) -> Iterator[tuple[Declaration, Table]]:
        """Yield every design with its rows."""
        found = self.design_of(rows, options)
        for design in (found,) if isinstance(found, Declaration) else found:
            own = rows if design.rows is None else design.rows(rows)
            over = settled(design, own)
            yield over, Table(prepared(own, over))

    def compute(self, observations: pl.DataFrame, options: Any) -> list[Estimate]:
        """Return the estimates of every grouping, corrected within it, and what is missing."""
        both = list(self._prepared(self.rows(observations, options), options))
        design, table = next((own for own in both if own[0].missing is not None), both[0])
        return [*self._measured(both, options), *_missing(table, design, options.level)]

    def measured(self, rows: pl.DataFrame, options: Any) -> list[Estimate]:
        """Return the same of rows that `rows` made, without what is missing."""
        return self._measured(self._prepared(rows, options), options)

    def _measured(self, both: Iterable[tuple[Declaration, Table]], options: Any) -> list[Estimate]:
        found = [e for design, table in both for by in design.groups for e in _given_by(by, table, design, options)]
        return correct(found, options.correction, options.alpha, self.members)

    def units(self, observations: pl.DataFrame, options: Any) -> pl.DataFrame | None:
        """Return the rows behind the means and the differences of means; None where rows have no names."""
        return self._units(observations, options, _is_mean)

    def designs(self, observations: pl.DataFrame, options: Any) -> pl.DataFrame | None:
        """Return the same with ranks, of the measures that the headline names and tests."""
        return self._units(observations, options, _is_planned, True)

    def _units(
        self, observations: pl.DataFrame, options: Any, wanted: Callable[[SummedMeasure], bool], tests: bool = False
    ) -> pl.DataFrame | None:
        found = [
            _units_of(measure, part, design, tests)
            for design, table in self._prepared(self.rows(observations, options), options)
            if design.compared and table.frame.height and not table.frame[ROW].null_count()
            for by in design.groups
            for part in parts(table, design, by)
            for measure in design.summed
            if design.given(measure, by)
            and wanted(measure)
            and concerned(measure, part, design)
            and measure.average in ("", *by)
        ]
        if not found:
            return None
        # The facets come in the order of the design that has the most, whichever measure stands first.
        units = pl.concat(found, how="diagonal_relaxed")
        facets = dict.fromkeys(name for own in sorted(map(facet_columns, found), key=len, reverse=True) for name in own)
        return units.select(pl.exclude(*facets), *facets) if facets else units

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
        first = first + [e for by in rest for e in by if not e.group]
        groups = [
            (", ".join(by[0].group), [e for e in by if e.shown], tested)
            for by in rest
            if by[0].group and (tested := [e for e in by if e.p_adjusted is not None])
        ]
        told = {"population": population([e for e in first if OVER in e.facts]), "words": self.measures}
        told |= {"fixed": self.fixed}
        return rendered(str(__package__), "declared.conclusion.md.j2", first=first, groups=groups, **told)

    def methods(self, options: Any) -> str:
        """Describe in words how the estimates were made."""
        designs = [_described(design) for design in self._designs(options)]
        told = {"options": options, "margin": getattr(options, "margin", None), "words": self.measures}
        return rendered(str(__package__), "declared.methods.md.j2", designs=designs, **told)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw a forest plot of each measure that the headline names."""
        named = [(name, words) for name, words in self.measures.items() if name not in self._aside]
        return [chart for name, words in named if (chart := _forest(name, words, estimates)) is not None]

    def examples(self, observations: pl.DataFrame, options: Any) -> list[Example]:
        """Pick the rows with the greatest and the least values, by group, of `shows`."""
        for design, table in self._prepared(self.rows(observations, options), options):
            means = [measure for measure in design.summed if measure.is_mean and measure.report]
            tested = [measure for measure in means if measure.neutral is not None]
            named = [m for m in means if m.name in self.shows] if self.shows else [*tested, *means]
            if named and {"key", KEYS} & set(table.frame.columns):
                every = (
                    [e for part in _named(table, design, m) for e in _extremes(m, part, options.examples)]
                    for m in named
                )
                found = [own for own in every if own]
                if found:
                    return [e for own in found[: len(self.shows) or 1] for e in own]
        return []

    def _groupings(self, estimates: Sequence[Estimate]) -> list[list[Estimate]]:
        """Return the estimates of the declared measures by grouping."""
        found: dict[tuple[str, ...], list[Estimate]] = {}
        for e in estimates:
            if e.metric in self.measures and e.metric not in self._aside:
                found.setdefault(tuple(e.group), []).append(e)
        return list(found.values())


def _given_by(by: tuple[str, ...], table: Table, design: Declaration, options: Any) -> Iterator[Estimate]:
    """Yield the estimates of a grouping group by group; those of one measure are made together."""
    groups = list(parts(table, design, by))
    found: dict[tuple[int, int], Estimate] = {}
    known: Known = {}
    for number, measure in enumerate(design.measures):
        if not design.given(measure, by):
            continue
        empty = not by and (table.frame.is_empty() or not design.limited(measure))
        places = [place for place, part in enumerate(groups) if empty or concerned(measure, part, design)]
        made = estimates_of(measure, [groups[place] for place in places], design, options, known)
        found |= {
            (place, number): e.replace(family=_family(measure, groups[place].group))
            for place, e in zip(places, made, strict=True)
        }
    yield from (found[key] for key in sorted(found))


def _named(table: Table, design: Declaration, measure: DeclaredMeasure) -> Iterator[Part]:
    """Yield the groups of the first grouping, besides the whole, that a measure is given by."""
    return parts(table, design, next((by for by in design.groups if by and design.given(measure, by)), ()))


def _is_mean(measure: SummedMeasure) -> bool:
    """Return whether runs are compared by it row by row; rows that an answer takes out differ between runs.

    A measure with a paper's own test repeats one that is tested over clusters.
    """
    return measure.is_mean and measure.out is None and measure.test is None


def _own_name(measure: SummedMeasure) -> str:
    """Return what its test is called in a plan, where it is not one of means."""
    ranks = {Ranks: "mann-whitney", Groups: "kruskal-wallis"}.get(type(measure), "")
    return ranks if measure.test is None else measure.test.planned


def _is_planned(measure: SummedMeasure) -> bool:
    """Return whether the effects that its test can detect are planned for."""
    headed = measure.main and measure.tested and measure.neutral is not None
    return (headed and _is_mean(measure)) or (measure.main and _own_name(measure) != "")


def _described(design: Declaration) -> dict[str, Any]:
    """Return what the words on methods say of a design."""
    alone = [measure for measure in design.summed if measure.report and design.independent(measure)]
    rest = [measure for measure in design.summed if measure.report and measure not in alone]
    return {
        "design": design,
        "alone": alone,
        "ways": list(design.clusters) or [design.macro] if rest else [],
        "sides": [m.words.label for m in rest if m.recipe().swaps],
        "flips": [m.words.label for m in rest if m.recipe().deviations is not None and not m.recipe().swaps],
        "own": [(m.words.label, m.test.name) for m in design.summed if m.report and m.test is not None],
    }


def _family(measure: DeclaredMeasure, group: Mapping[str, Scalar]) -> str:
    own = isinstance(measure, SummedMeasure) and measure.test is not None
    if not (own or (measure.tested and measure.neutral is not None)):
        return ""
    by = tuple(name for name in group if name not in measure.apart)
    levels = "".join(f" ({name}: {group[name]})" for name in measure.apart if name in group)
    if not isinstance(measure.family, str):
        return measure.family(by) + levels
    return ", ".join(filter(None, [measure.family, f"by {', '.join(by)}" if by else "whole"])) + levels


def _missing(table: Table, design: Declaration, level: float) -> list[Estimate]:
    """Return the share of missing rows, in all and by `Declaration.missing`, and by kind of unreadable answer."""
    by = next((by for by in design.groups if by), ()) if design.missing is None else design.missing
    groups = [
        Group(part.group, part.frame.filter(pl.col("status") == "ok").height, missing_by_status(part.frame))
        for part in parts(table, design, by)
    ]
    frame = table.frame
    found = missing_estimates(groups, level, f"{design.called}s")
    kinds = unreadable_by(frame, design.kinds, level) if design.kinds else unreadable_kinds(frame, level)
    return [*(found if by else found[:1]), *kinds]


def _units_of(measure: SummedMeasure, part: Part, design: Declaration, tests: bool) -> pl.DataFrame:
    """Return the rows of a measure as `Metric.units` promises them, and with `tests` as `Metric.designs` does."""
    chosen, recipe = choose(measure, part), measure.recipe()
    least, greatest = measure.reach or (None, None)
    facets = dict(zip(design.clusters, cluster_columns(design), strict=True))
    if measure.independent:
        facets = {PROMPT_KEY: PROMPT_KEY} if repeated(part.frame) else {}
    over = {f"{FACET}{facet}": pl.col(column).fill_null("") for facet, column in facets.items()}
    sides = chosen.sample.sides
    rows = part.frame.select(ROW, UNIT, **over)[chosen.rows].with_columns(
        pl.Series("sign", 1 - 2 * sides if recipe.sides else np.ones_like(sides), dtype=pl.Int8),
        _values(measure, chosen),
        pl.Series("status", chosen.statuses(np.arange(len(chosen.rows))), dtype=pl.String),
        *([pl.Series("level", np.array(recipe.levels[1])[sides])] if recipe.levels else []),
    )
    if design.macro and not measure.independent:
        rows = _macro(rows, list(over))
    unit = UNIT if design.macro and not measure.independent else ROW
    ranks = _own_name(measure)
    ranked = [pl.lit(ranks).alias("test"), *([pl.col("level")] if recipe.levels else [])] if ranks else []
    return rows.select(
        *(pl.lit(value).alias(name) for name, value in {**part.group, **measure.group}.items()),
        pl.lit(measure.name).alias("metric"),
        pl.col(unit).alias("unit"),
        "sign",
        "value",
        pl.lit(least, dtype=pl.Float64).alias("least"),
        pl.lit(greatest, dtype=pl.Float64).alias("greatest"),
        "status",
        *over,
        *(ranked if tests else []),
    )


def _values(measure: SummedMeasure, chosen: Chosen) -> pl.Series:
    """Return what the rows add to a mean, in the unit; null is missing."""
    values = measure.scale * chosen.sample.values
    matched = isinstance(measure, Matched)
    return pl.Series("value", values[:, 0] - values[:, 1] if matched else values[:, 0]).fill_nan(None)


def _macro(rows: pl.DataFrame, facets: Sequence[str]) -> pl.DataFrame:
    """Return the units that count alike: the mean of what is readable, `ok` where anything is."""
    firsts = [pl.col(name).first() for name in (ROW, *facets)]
    why = pl.col("status").filter(pl.col("status") != "ok").sort().first()
    status = pl.when(pl.col("value").count() > 0).then(pl.lit("ok")).otherwise(why)
    found = rows.group_by(UNIT, "sign").agg(*firsts, pl.col("value").mean(), status.alias("status"))
    return found.sort(UNIT, "sign")


def _forest(name: str, words: Measure, estimates: Sequence[Estimate]) -> Chart | None:
    found = [e for e in estimates if e.metric == name and e.value is not None][:MOST_POINTS]
    if not found:
        return None
    points = [Point.of(e) for e in found]
    axis = " ".join(filter(None, [words.label, f"({words.unit})" if words.unit else ""]))
    line = "" if found[0].neutral is None else " The dashed line is neutral."
    caption = f"{words.label} with its interval; full marks are significant after correction.{line}"
    return Chart(name, words.label, caption, forest([Panel(words.label, axis, points, found[0].neutral)]))


def _extremes(measure: SummedMeasure, part: Part, count: int) -> Iterator[Example]:
    """Yield the rows above neutral with the greatest values, and those below it with the least; one per cluster."""
    chosen = choose(measure, part)
    keys = pl.col(KEYS) if KEYS in part.frame.columns else pl.concat_list(pl.col("key").cast(pl.Binary))
    own = part.clusters[0][chosen.rows]
    rows = part.frame.select(ROW, keys.alias("keys"))[chosen.rows].with_columns(
        pl.Series("cluster", own), _values(measure, chosen)
    )
    rows = rows.drop_nulls("value").filter(pl.col("keys").list.drop_nulls().list.len() > 0)
    if rows.is_empty():
        return
    middle: Any = rows["value"].mean() if measure.recipe().sides or measure.neutral is None else measure.neutral
    for side, ahead in ((pl.col("value") > middle, "greatest"), (pl.col("value") < middle, "least")):
        picked = rows.filter(side).sort("value", ROW, "keys", descending=[ahead == "greatest", False, False])
        apart = picked.unique("cluster", keep="first", maintain_order=True)
        for row in apart.head(count).iter_rows(named=True):
            yield _example(measure, part.group, row, ahead)


def _example(measure: SummedMeasure, group: dict[str, Scalar], row: dict[str, Any], ahead: str) -> Example:
    caption = f"{measure.words.label}: {row['value']:.3g} {measure.unit}".rstrip()
    keys = tuple(key for key in row["keys"] if key is not None)
    return Example(f"{measure.words.label}, among the {ahead}", dict(group), keys, row["value"], caption)
