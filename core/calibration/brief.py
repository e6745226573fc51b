"""The headline of a metric without the estimates that it does not name, which most of the time goes into.

A declared metric makes only the measures and groupings that the headline names. Whether that finds the same is tried
with the first study of every kind of model: where it does not, everything is made.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import polars as pl

from ..contracts import Metric, Options
from ..contracts.estimates import Estimate
from ..scoring.score import described
from ..statistics.declared import DeclaredMetric
from ..statistics.declared_rows import Design
from ..statistics.measures import Derived, SummedMeasure


class Brief:
    """A metric, of which the headline is wanted."""

    def __init__(self, metric: Metric, options: Options) -> None:
        """Begin with all that the metric makes."""
        self._metric, self._options = metric, options
        self._short: Metric | None = None
        self._tried = False

    def headline(self, observations: pl.DataFrame, *, check: bool) -> list[Estimate]:
        """Return the headline; `check` compares it with that of the whole, and gives up the short way if it differs."""
        if not check and self._short is not None:
            return self._of(self._short, observations)
        whole = self._of(self._metric, observations)
        if not self._tried:
            self._tried, self._short = True, _shortened(self._metric, whole)
        if self._short is not None and not self._same(self._short, observations, whole):
            self._short = None
        return whole

    def _of(self, metric: Metric, observations: pl.DataFrame) -> list[Estimate]:
        made = metric.compute(observations, self._options)
        return list(metric.headline([described(e, metric, self._options) for e in made]))

    def _same(self, short: Metric, observations: pl.DataFrame, whole: list[Estimate]) -> bool:
        try:
            return self._of(short, observations) == whole
        except Exception:  # a metric may rely on estimates that are not made: then all are
            return False


def _shortened(metric: Metric, headline: Sequence[Estimate]) -> Metric | None:
    """Return a metric that makes only what a headline names, and its groupings; None where there is no such metric."""
    if not isinstance(metric, DeclaredMetric):
        return None
    named = {tuple(estimate.group) for estimate in headline}
    measures = {estimate.metric for estimate in headline}

    class Short(type(metric)):  # type: ignore[misc]  # the class is known when it runs
        def design_of(self, rows: pl.DataFrame, options: Any) -> Any:
            found = super().design_of(rows, options)
            return [_of_these(one, named, measures) for one in (found if isinstance(found, Sequence) else [found])]

    return Short()


def _of_these(design: Design, named: Collection[tuple[str, ...]], measures: Collection[str]) -> Design:
    wanted = set(measures)
    # What a measure is derived from, or repeats, stands before it.
    for measure in reversed(design.measures):
        if measure.name in wanted:
            wanted.update(measure.of if isinstance(measure, Derived) else ())
            wanted.add(measure.repeats if isinstance(measure, SummedMeasure) else "")
    return msgspec.structs.replace(
        design,
        measures=tuple(measure for measure in design.measures if measure.name in wanted),
        groups=tuple(by for by in design.groups if any(own[: len(by)] == by for own in named)),
    )
