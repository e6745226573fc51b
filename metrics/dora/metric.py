"""Associations without a predefined list: which are salient, negative, toxic, biased, new, and shared.

The measures of BiasDora (Raj et al. 2024), sections 3 and 4, with tests that hold their level beside the paper's
filters (`docs/statistics.md`, Salience of associations).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import polars as pl

from ...core.contracts import Options
from ...core.contracts.estimates import Caveat, Estimate
from ...core.statistics.declaration import Declaration
from ...core.statistics.declared import DeclaredMetric
from ...core.statistics.estimates import FEW, correct
from ...core.statistics.measures import SummedMeasure
from ...probes.dora.terms import PLACE
from .counts import (
    count_estimates,
    gather,
    judged_estimates,
    missing_by_stage,
    overlap_estimates,
)
from .means import designs_of, nothing_counts, rows_of
from .measures import BY, COUNTED, DECLARED, EACH
from .options import DoraAssociationsOptions
from .people import agreements
from .published import reappeared
from .words import Words

__all__ = ["DoraAssociations", "DoraAssociationsOptions"]


class DoraAssociations(Words, DeclaredMetric):
    """Words said of descriptors more often than by chance, with their valence and bias level.

    `observations` has all stages: `completions` (`word`), `descriptions` and `impressions` (`text`, `image`),
    `sentiment` and `toxicity` (`word`, `label`), `levels` (`word`, `judgement`, `level` from 1 to 5).
    """

    options: ClassVar[type[Options]] = DoraAssociationsOptions
    needs: ClassVar[frozenset[str]] = frozenset({"stage", *PLACE, "status", "reason", "key"})
    """And the columns of the stages: `word`, `text`, `image`, `label`, `judgement`, `level`."""
    every_stage: ClassVar[bool] = True
    files: ClassVar[frozenset[str]] = frozenset({"documented", "human"})
    groups = ((), *BY)
    clusters = ("descriptor",)
    measures = DECLARED
    others = COUNTED
    members = "comparisons"

    def rows(self, observations: pl.DataFrame, options: DoraAssociationsOptions) -> pl.DataFrame:
        """Return the rows of all means and differences.

        Raises:
            DataError: a column is absent, or a file that an option names cannot be used.
        """
        return rows_of(gather(observations, options), options)

    def design_of(self, rows: pl.DataFrame, options: DoraAssociationsOptions) -> Sequence[Declaration]:
        """Return a design per kind of rows."""
        return list(designs_of(rows))

    def compute(self, observations: pl.DataFrame, options: DoraAssociationsOptions) -> list[Estimate]:
        """Return the estimates: counts, valence and levels by setting and dimension, differences, overlap, missing."""
        found = gather(observations, options)
        return [
            *count_estimates(found),
            *nothing_counts(found, options),
            *(_few_judged(e) for e in self.measured(rows_of(found, options), options)),
            *correct(list(overlap_estimates(found, options)), options.correction, options.alpha, self.members),
            *reappeared(found),
            *judged_estimates(found),
            *agreements(found, options),
            *missing_by_stage(observations, options),
        ]

    def units(self, observations: pl.DataFrame, options: DoraAssociationsOptions) -> pl.DataFrame | None:
        """Return the descriptors of the means that count each once: the associations differ between runs."""
        return self._units(observations, options, _each)

    def designs(self, observations: pl.DataFrame, options: DoraAssociationsOptions) -> pl.DataFrame | None:
        """Return the same without dimensions, and the answers that tests between settings compare."""
        found = self._units(observations, options, lambda own: _each(own) or "against" in own.group, True)
        return None if found is None else found.filter(pl.col("dimension").is_null()).drop("dimension")


def _each(measure: SummedMeasure) -> bool:
    return measure.name.endswith(EACH)


def _few_judged(estimate: Estimate) -> Estimate:
    """Return the estimate with what to know of its interval where few descriptors have judgements of people."""
    few = estimate.low is not None and float(estimate.facts.get("descriptors") or FEW) < FEW
    return estimate.replace(caveats=tuple({*estimate.caveats, Caveat.FEW_CLUSTERS})) if few else estimate
