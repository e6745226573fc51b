"""`Metric`: a pure function from observations to estimates. It uses no model, and only files that its options name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from .estimates import Chart, Estimate, Example, Measure
from .options import Options

if TYPE_CHECKING:
    import polars as pl

HEADLINE = 40
"""The most estimates of a headline that no metric chooses."""
UNIT_COLUMNS = ("metric", "unit", "cluster", "sign", "value", "least", "greatest", "status")
"""What `Metric.units` gives for each unit; every other column is a factor of the estimate's group."""
DESIGN_COLUMNS = ("test", "level", "row", "ways")
"""What `Metric.designs` adds to them, each where it applies."""


class Metric(ABC):
    """A family of measures: observations to estimates. No model; of files only those that `files` names are read."""

    options: ClassVar[type[Options]] = Options
    needs: ClassVar[frozenset[str]]
    """Observation columns without which nothing can be computed; checked before anything runs."""
    every_stage: ClassVar[bool] = False
    """Whether the observations of all stages are measured, stacked, with a column `stage`; else the last stage's."""
    files: ClassVar[frozenset[str]] = frozenset()
    """Options whose value is the path of a file, or None. Such a file may be read, and its sha256 goes on record."""

    measures: ClassVar[Mapping[str, Measure]] = {}
    """By name, what each measure is called and means; its estimates carry these words."""

    def columns(self, options: Any) -> frozenset[str]:
        """Return the columns these options need; override it where an option names a column."""
        return self.needs

    @abstractmethod
    def compute(self, observations: pl.DataFrame, options: Any) -> list[Estimate]:
        """Return the estimates. `observations` has factors, outcomes, `status`, `reason` and `key`."""

    def units(self, observations: pl.DataFrame, options: Any) -> pl.DataFrame | None:
        """Return the units whose means the estimates are, so that runs can be compared unit by unit.

        One row per estimate and unit: the factors of the estimate's group (null where it has no such factor) and the
        columns of `UNIT_COLUMNS`. `unit` is a text, equal in every run of the study; `value` is null where it is
        missing, and `status` is `ok` or says why; `sign` is 1, or -1 for units that the estimate subtracts; `least`
        and `greatest` are the limits of any value, null where there are none. The estimate is the mean of `value`
        where `sign` is 1, less the mean where it is -1. Leave out the estimates that are no such mean, such as a
        ratio; None says that no estimate is.
        """
        return None

    def designs(self, observations: pl.DataFrame, options: Any) -> pl.DataFrame | None:
        """Return what the tests behind the headline compare, so that `plan` says what they can find.

        Override it where that is more than means of units in clusters; None takes the headline's `units`. The columns
        are those of `units` and any of `DESIGN_COLUMNS`. `test` is `wilcoxon` (signed ranks), `mann-whitney` (ranks of
        the two signs), `kruskal-wallis` or `anova` (groups by `level`), or null for a test of means. `row` names what
        a unit shares with others besides its cluster, where two ways of clustering cross, and `ways` both in words,
        such as `scenario x face`; null elsewhere.
        """
        return None

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """Answer the question of the study in a few sentences, with the uncertainty."""
        return ""

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Return the most important estimates; by default all, if there are at most 40."""
        return list(estimates) if len(estimates) <= HEADLINE else []

    def methods(self, options: Any) -> str:
        """Describe in words how the estimates were made, for the report."""
        return ""

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw the estimates, as the paper does."""
        return []

    def side_by_side(self, runs: Mapping[str, Sequence[Estimate]]) -> list[Chart]:
        """Draw the estimates of several runs, by label, next to each other; by default `compare` draws simple marks."""
        return []

    def examples(self, observations: pl.DataFrame, options: Any) -> list[Example]:
        """Choose exchanges that illustrate the numbers."""
        return []
