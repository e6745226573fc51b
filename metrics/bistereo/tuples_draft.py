"""Drafts of a model for `bistereo-tuples`: the number of tuples of each kind, and of lines without a tuple."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import polars as pl

from ...core.contracts import Metric, Options
from ...core.contracts.estimates import MISSING, Estimate, Measure
from ...core.statistics.estimates import TestingOptions
from ...core.statistics.observations import exact_share, missing_by_status, require_columns
from ...core.statistics.observations import missing_by_cell as missing
from ...core.statistics.templates import rendered

__all__ = ["BIStereoTuplesDraft", "TuplesDraftMetricOptions"]

DRAFT: Mapping[str, Measure] = {
    "drafted_tuples": Measure(
        "Drafted tuples", "Distinct tuples that the model drafted.", "distinct tuples", "more tuples"
    ),
    "dropped_lines": Measure("Dropped lines", "Share of lines without a tuple.", "%", "more lines without a tuple"),
}
GROUPS = (("dimension", "gender", "sentiment"), ("sentiment",), ())


class TuplesDraftMetricOptions(TestingOptions, frozen=True, kw_only=True):
    """The confidence level of the share."""


class BIStereoTuplesDraft(Metric):
    """Distinct tuples by dimension, gender and sentiment; the share of lines that were no tuple."""

    options: ClassVar[type[Options]] = TuplesDraftMetricOptions
    needs: ClassVar[frozenset[str]] = frozenset(
        {"dimension", "term", "gender", "sentiment", "tuples", "drafted", "dropped", "status"}
    )
    measures = DRAFT

    def compute(self, observations: pl.DataFrame, options: TuplesDraftMetricOptions) -> list[Estimate]:
        """Return counts; they measure no bias before people have validated the tuples.

        Raises:
            DataError: a column is absent.
        """
        require_columns(observations, set(self.needs))
        found = [estimate for factors in GROUPS for estimate in _counts(observations, factors)]
        return [*found, _dropped(observations, options), *missing(observations, ("dimension",), "term", options.level)]

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State the number of tuples to validate."""
        (total,) = (e for e in estimates if e.metric == "drafted_tuples" and not e.group)
        return rendered(str(__package__), "tuples_draft.conclusion.md.j2", total=total)

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the counts by sentiment and in all, and the lines dropped."""
        own = [e for e in estimates if e.metric == "drafted_tuples" and len(e.group) < 2]
        return [*own, *(e for e in estimates if e.metric == "dropped_lines")]

    def methods(self, options: TuplesDraftMetricOptions) -> str:
        """Describe the counts."""
        return rendered(str(__package__), "tuples_draft.methods.md.j2")


def _counts(observations: pl.DataFrame, factors: Sequence[str]) -> Iterator[Estimate]:
    parts = observations.partition_by(*factors, as_dict=True, maintain_order=True) if factors else {(): observations}
    for values, part in parts.items():
        readable = part.filter(pl.col("status") == "ok")
        yield Estimate.from_flat(
            metric="drafted_tuples",
            group=dict(zip(factors, values, strict=True)),
            value=float(len(set(_tuples(readable)))) if readable.height else None,
            unit="distinct tuples",
            n=readable.height,
            missing=missing_by_status(part),
        )


def _tuples(readable: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    for row in readable.iter_rows(named=True):
        for descriptor, attribute in json.loads(row["tuples"]):
            yield row["dimension"], descriptor, row["term"], attribute, row["sentiment"]


def _dropped(observations: pl.DataFrame, options: TuplesDraftMetricOptions) -> Estimate:
    readable = observations.filter(pl.col("status") == "ok")
    kept, dropped = (int(readable[name].sum() or 0) for name in ("drafted", "dropped"))
    counts, missing = (dropped, kept + dropped), missing_by_status(observations)
    return exact_share("dropped_lines", {}, counts, options.level, "lines", missing=missing, topic=MISSING)
