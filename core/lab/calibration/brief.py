"""The headline of a metric without the estimates that it does not name, which most of the time goes into.

A declared metric makes only the measures and groupings that the headline names; where that is not enough, since the
headline rests on others, all but those without which it is the same. Whether the short way finds the same is tried with
the first study of every kind of model: where it does not, everything is made. A family of tests is made whole or not
at all, for its size decides what is significant.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import polars as pl

from ...catalogue.questions import Question
from ...contracts import Metric, Options
from ...contracts.errors import PrejudgeError
from ...contracts.estimates import Estimate
from ...scoring.worded import described
from ...statistics.declaration import Declaration
from ...statistics.declared import DeclaredMetric
from ...statistics.measures import Derived, SummedMeasure


class Brief:
    """A metric, of which the headline is wanted."""

    def __init__(
        self,
        metric: Metric,
        options: Options,
        questions: Sequence[Question] = (),
        counted: Collection[str] | None = None,
    ) -> None:
        """Begin with all that the metric makes.

        Args:
            metric: the metric.
            options: its options.
            questions: of the study, which have limits.
            counted: the headline is what has a verdict, and these measures; None: all of it.
        """
        self._metric, self._options, self._questions, self._counted = metric, options, questions, counted
        self._short: Metric | None = None
        self._tried = False

    def headline(self, observations: pl.DataFrame, *, check: bool | None) -> list[Estimate]:
        """Return the headline; `check` compares it with that of the whole, and gives up the short way if it differs.

        None: the whole is made, and no short way is sought.
        """
        if check is False and self._short is not None:
            return self._of(self._short, observations).headline
        whole = self._of(self._metric, observations)
        if check is None:
            return whole.headline
        if not self._tried:
            self._tried, self._short = True, self._shortest(observations, whole)
        elif self._short is not None and not self._same(self._short, observations, whole):
            self._short = None
        return whole.headline

    def _of(self, metric: Metric, observations: pl.DataFrame) -> Made:
        made = metric.compute(observations, self._options)
        headline = metric.headline([described(e, metric, self._options, self._questions) for e in made])
        if self._counted is not None:
            headline = [e for e in headline if e.verdict is not None or e.metric in self._counted]
        return Made([*headline], Counter(e.test.family for e in made if e.test.family))

    def _same(self, short: Metric, observations: pl.DataFrame, whole: Made) -> bool:
        try:
            return self._of(short, observations).like(whole)
        except Exception:  # a metric may rely on estimates that are not made: then all are
            return False

    def _shortest(self, observations: pl.DataFrame, whole: Made) -> Metric | None:
        """Return a metric that makes less and has the same headline; None where there is no such metric."""
        metric = self._metric
        if not isinstance(metric, DeclaredMetric):
            return None
        if self._same(short := _naming(metric, whole.headline), observations, whole):
            return short
        try:
            designs = _designs(metric.design_of(metric.rows(observations, self._options), self._options))
        except PrejudgeError:
            return None
        out: frozenset[Piece] = frozenset()
        for piece in _pieces(designs):
            if self._same(_without(metric, out | {piece}), observations, whole):
                out |= {piece}
        return _without(metric, out) if out else None


class Made(NamedTuple):
    """What a metric made of observations."""

    headline: list[Estimate]
    families: Counter[str]
    """Number of tests of each family."""

    def like(self, whole: Made) -> bool:
        """Return whether the headline is that of the whole but for rounding, with no family of tests made in part."""
        in_part = any(count != whole.families[name] for name, count in self.families.items())
        return (
            not in_part
            and len(self.headline) == len(whole.headline)
            and all(map(_alike, self.headline, whole.headline))
        )


def _alike(one: Estimate, other: Estimate) -> bool:
    """Return whether two estimates say the same; sums of equal numbers may differ in their last digits."""
    return all(a == b or _close(a, b) for a, b in zip(one.flat().values(), other.flat().values(), strict=True))


def _close(a: object, b: object) -> bool:
    return isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


Piece = tuple[int, str | Sequence[str]]
"""A measure or a grouping of a design, by the design's place."""


def _designs(found: Declaration | Sequence[Declaration]) -> list[Declaration]:
    return [*found] if isinstance(found, Sequence) else [found]


def _pieces(designs: Sequence[Declaration]) -> Iterator[Piece]:
    for place, design in enumerate(designs):
        yield from ((place, piece) for piece in (*(measure.key for measure in design.measures), *design.groups))


def _shortened(metric: DeclaredMetric, shorten: Callable[[int, Declaration], Declaration]) -> Metric:
    class Short(type(metric)):  # type: ignore[misc]  # the class is known when it runs
        def design_of(self, rows: pl.DataFrame, options: Any) -> Any:
            return [shorten(place, one) for place, one in enumerate(_designs(super().design_of(rows, options)))]

    return Short()


def _without(metric: DeclaredMetric, out: Collection[Piece]) -> Metric:
    """Return a metric that does not make some measures and groupings."""

    def shorten(place: int, design: Declaration) -> Declaration:
        return msgspec.structs.replace(
            design,
            measures=tuple(measure for measure in design.measures if (place, measure.key) not in out),
            groups=tuple(by for by in design.groups if (place, by) not in out),
        )

    return _shortened(metric, shorten)


def _naming(metric: DeclaredMetric, headline: Sequence[Estimate]) -> Metric:
    """Return a metric that makes only what a headline names, and its groupings."""
    named = {tuple(estimate.group) for estimate in headline}
    measures = {estimate.metric for estimate in headline}
    return _shortened(metric, lambda _, design: _of_these(design, named, measures))


def _of_these(design: Declaration, named: Collection[tuple[str, ...]], measures: Collection[str]) -> Declaration:
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
