"""`measures`: what a study declares in its file, over a frame of outcomes.

Observations have a row per trial: columns of factors and attributes, `outcome` (a number or null), `label` (a text or
null) and `status`. Intervals and tests are those of the jackknife over all that the study samples; with nothing sampled
there are none, unless `independent` says that every row is a sample of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

import msgspec
import numpy as np
import polars as pl

from ...core.contracts import Chart, Estimate, Options, harmless
from ...core.contracts.estimates import Caveat, Effect, Interval, Measure, SignificanceTest
from ...core.statistics.declaration import Declaration
from ...core.statistics.declared import DeclaredMetric
from ...core.statistics.declared_rows import Table
from ...core.statistics.facets import FacetOptions
from ...core.statistics.measures import Statistic
from ...core.statistics.observations import require_columns
from ...core.statistics.resampling import Method
from .building import COMPARED, built
from .declaring import MeasureTable, named_measures

NOT_SAMPLED = "there is no interval: nothing is sampled that the number could hold for beyond these rows"


class MeasuresOptions(FacetOptions, frozen=True, kw_only=True):
    """What is measured, and what the claim is to hold for."""

    option_effects = harmless("measures within labels independent")

    measures: tuple[MeasureTable, ...]
    """The measures: see `MeasureTable`."""
    within: tuple[str, ...] = ()
    """Columns that are equal where two groups are compared, such as job and wording; those whose levels have rows of
    one group only, such as names of one gender, are left out. By default those of `over`."""
    labels: tuple[str, ...] = ()
    """The labels that an answer can have; a measure that names another is refused. Empty: any."""
    intervals: Method = "jackknife"
    """How intervals over one facet are made; those over several are always the jackknife's."""
    independent: bool = False
    """Whether each row is a sample of its own, where nothing is sampled."""

    def __post_init__(self) -> None:
        """Refuse measures that cannot be computed."""
        super().__post_init__()
        named_measures(self.measures)

    @property
    def named(self) -> tuple[MeasureTable, ...]:
        """Return the measures with their names."""
        return named_measures(self.measures)

    @property
    def inferred(self) -> bool:
        """Return whether there are intervals."""
        return bool(self.ways) or self.independent


class Measures(DeclaredMetric):
    """Shares, means, differences, ratios, ranks and correlations that a study declares."""

    options: ClassVar[type[Options]] = MeasuresOptions

    def settled(self, options: MeasuresOptions, facets: Callable[[], tuple[str, ...]]) -> MeasuresOptions:
        """Return the options over all that the study samples, where they name nothing."""
        if options.ways or options.independent:
            return options
        return msgspec.structs.replace(options, over=facets())

    def columns(self, options: MeasuresOptions) -> frozenset[str]:
        """Return the columns that the options name; what a measure is of may be a label."""
        return frozenset({"status", *options.ways}).union(*(table.columns for table in options.measures))

    def design(self, options: MeasuresOptions) -> Declaration:
        """Return the groupings and clusters; the rows say what the measures are (`design_of`)."""
        factors = [table.factor for table in options.named if table.kind in ("difference", "ratio", "ranks")]
        rates = [(table.factor,) for table in options.named if table.kind == "ratio"]
        unmade = (Statistic(table.name, sums=(), by=np.asarray, label=table.words.label) for table in options.named)
        return Declaration(
            measures=tuple(unmade),
            groups=tuple(dict.fromkeys([(), *(table.by for table in options.named), *rates])),
            clusters=self.clusters_of(options),
            missing=tuple(dict.fromkeys(factors)) or None,
        )

    def rows(self, observations: pl.DataFrame, options: MeasuresOptions) -> pl.DataFrame:
        """Return the observations.

        Raises:
            DataError: a column is absent.
        """
        require_columns(observations, {*self.columns(options)})
        return observations

    def design_of(self, rows: pl.DataFrame, options: MeasuresOptions) -> Declaration:
        """Return the measures of these rows: of every two levels, with the weights of equal cells.

        Raises:
            DataError: a level or a label does not occur, or a column is absent.
        """
        measures = tuple(measure for table in options.named for measure in built(table, rows, options))
        return msgspec.structs.replace(self.design(options), measures=measures)

    def _measured(self, both: Iterable[tuple[Declaration, Table]], options: Any) -> list[Estimate]:
        designs = list(both)
        words = {(m.name, *m.group.items()): m.words for design, _ in designs for m in design.measures}
        ratios = {table.name for table in options.named if table.kind == "ratio"}
        estimates = super()._measured(designs, options)
        estimates = [_exponential(e) if e.metric in ratios else e for e in estimates]
        estimates = [_described(e, words) for e in estimates]
        return estimates if options.inferred else [_without_interval(e) for e in estimates]

    def _units(self, observations: pl.DataFrame, options: Any, *wanted: Any) -> pl.DataFrame | None:
        return super()._units(observations, options, *wanted) if options.inferred else None

    def _worded(self, estimates: Sequence[Estimate]) -> Measures:
        """Return the metric with the words of its estimates: what they are is in the options of a study."""
        worded = copy(self)
        words = {e.metric: Measure(e.label, e.meaning, e.unit, e.direction) for e in estimates if not e.subject}
        worded.__dict__["measures"] = words
        return worded

    def _groupings(self, estimates: Sequence[Estimate]) -> list[list[Estimate]]:
        return super(Measures, self._worded(estimates))._groupings(estimates)

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State the values of the whole with their uncertainty."""
        return super(Measures, self._worded(estimates)).conclude(estimates)

    def methods(self, options: MeasuresOptions) -> str:
        """Describe the measures that the options declare, and their intervals."""
        worded = copy(self)
        worded.__dict__["measures"] = {table.name: table.words for table in options.named}
        return super(Measures, worded).methods(options) + ("" if options.inferred else f" {NOT_SAMPLED.capitalize()}.")

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw a forest plot of each measure."""
        return super(Measures, self._worded(estimates)).figures(estimates)


def _exponential(e: Estimate) -> Estimate:
    """Return the estimate of a ratio from that of its logarithm."""
    names = ("value", "neutral", "low", "high")
    logarithms = {name: getattr(e, name) for name in names}
    method = f"{e.interval.method}, of the logarithm" if e.interval.method else ""
    ends: dict[str, Any] = {name: None if x is None else float(np.exp(x)) for name, x in logarithms.items()}
    return e.replace(
        **ends, interval=msgspec.structs.replace(e.interval, low=ends["low"], high=ends["high"], method=method)
    )


def _described(e: Estimate, words: Mapping[Any, Measure]) -> Estimate:
    pair = [(COMPARED, e.group[COMPARED])] if COMPARED in e.group else []
    named = words[e.metric, *pair]
    return e.replace(label=named.label, meaning=named.meaning, direction=named.direction)


def _without_interval(e: Estimate) -> Estimate:
    """Return the estimate without interval, test and verdict: nothing says what it is a sample of."""
    caveats = tuple(dict.fromkeys([*(c for c in e.caveats if c is Caveat.UNDEFINED), Caveat.UNTESTED]))
    effect = Effect(e.effect.name, e.effect.value)
    note = e.note or NOT_SAMPLED
    level = Interval(level=e.interval.level)
    return e.replace(
        interval=level, test=SignificanceTest(), effect=effect, verdict=None, caveats=caveats, clusters=None, note=note
    )
