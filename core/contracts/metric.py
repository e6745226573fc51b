"""`Metric`: a pure function from observations to estimates. It uses no model, and only files that its options name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .estimates import Estimate, Measure
from .options import Options
from .presentation import Presentation

if TYPE_CHECKING:
    import polars as pl

UNIT_COLUMNS = ("metric", "unit", "sign", "value", "least", "greatest", "status")
"""Columns of `Metric.units`; every other column but those of facets is a factor of the estimate's group."""
FACET = "over."
"""Prefix of the columns of `Metric.units` that name the level of a unit of each facet that the inference is over, such
as `over.template`; null where a measure is not over this facet."""
DESIGN_COLUMNS = ("test", "level")
"""Columns that `Metric.designs` adds, each where it applies."""

PROMPT_KEY = "prompt_key"
"""Column of observations where a prompt was asked several times: all samples of one prompt share it."""
REASONING = "reasoning"
"""Column that observations have only where a metric needs it, of stages that ask for words: what the model wrote before
its answer; null where it wrote nothing, or keeps it to itself."""


def facet_columns(units: pl.DataFrame) -> list[str]:
    """Return the columns of units that name levels of facets, of those that any of these units has."""
    return [name for name in units.columns if name.startswith(FACET) and units[name].null_count() < units.height]


def last_facet(units: pl.DataFrame) -> str:
    """Return the column of the last facet of units; without any, each unit is its own."""
    return (facet_columns(units) or ["unit"])[-1]


def factors_of(units: pl.DataFrame) -> list[str]:
    """Return the columns of units that are factors of estimates."""
    aside = {*UNIT_COLUMNS, *DESIGN_COLUMNS}
    return [name for name in units.columns if name not in aside and not name.startswith(FACET)]


class Metric(Presentation, ABC):
    """A family of measures: observations to estimates. It uses no model, and only the files that `files` names.

    Example:
        >>> import polars, prejudge
        >>> class Length(prejudge.Metric):
        ...     needs = frozenset({"length", "status"})
        ...     def compute(self, observations, options):
        ...         answers = observations.filter(status="ok")
        ...         mean = answers["length"].mean()
        ...         return [prejudge.Estimate(metric="length", group={}, value=mean, n=answers.height)]
        >>> rows = polars.DataFrame({"length": [2, 4, None], "status": ["ok", "ok", "refused"]})
        >>> Length().compute(rows, Length.options())[0].value
        3.0
    """

    options: ClassVar[type[Options]] = Options
    needs: ClassVar[frozenset[str]]
    """Required columns of the observations; checked before a run."""
    every_stage: ClassVar[bool] = False
    """True: measure the observations of all stages in one frame with a column `stage`. False: the last stage only."""
    lean: ClassVar[bool] = False
    """True: `compute` reads the columns of `columns` and `status` only, and takes texts that are categories. It then
    receives no more of a run of over a million answers, whose observations are not held in memory."""
    files: ClassVar[frozenset[str]] = frozenset()
    """Options whose value is the path of a file, or None. The metric may read it; its sha256 is recorded."""

    measures: ClassVar[Mapping[str, Measure]] = {}
    """Label and meaning of each measure, by name; added to its estimates."""

    def columns(self, options: Any) -> frozenset[str]:
        """Return the columns that these options need; override it if an option names a column."""
        return self.needs

    def settled(self, options: Any, facets: Callable[[], tuple[str, ...]]) -> Any:
        """Return the options with what they leave to the study filled in.

        Args:
            options: of this metric.
            facets: returns the columns of what the study declares to be a sample, such as templates and words.
        """
        return options

    @abstractmethod
    def compute(self, observations: pl.DataFrame, options: Any) -> list[Estimate]:
        """Return the estimates. `observations` has factors, outcomes, `status`, `reason` and `key`.

        Where a prompt was asked several times there is `prompt_key` too: samples of one prompt are no evidence twice.
        """

    def units(self, observations: pl.DataFrame, options: Any) -> pl.DataFrame | None:
        """Return the units whose means the estimates are, so that runs can be compared unit by unit.

        One row per estimate and unit: the factors of the estimate's group (null where it has no such factor) and the
        columns of `UNIT_COLUMNS`. `unit` is a text, equal in every run of the study; `value` is null if it is
        missing, and `status` is `ok` or the reason; `sign` is 1, or -1 for units that the estimate subtracts; `least`
        and `greatest` are the minimum and maximum of any value, null if there are none. For each facet that the
        estimate's interval is over, `over.FACET` names the level of the unit, such as its template; without any, units
        are independent. The estimate is the mean of `value` where `sign` is 1, minus the mean where it is -1.
        Leave out estimates that are no such mean, such as ratios; return None if no estimate is.
        """
        return None

    def designs(self, observations: pl.DataFrame, options: Any) -> pl.DataFrame | None:
        """Return the units that the headline's tests compare; `plan` computes the detectable effects from them.

        Override it if the tests are not of means of units in clusters; None: the headline's `units`. The columns
        are those of `units` and any of `DESIGN_COLUMNS`. `test` is `wilcoxon` (signed ranks), `mann-whitney` (ranks of
        the two signs), `kruskal-wallis` or `anova` (groups by `level`), or null for a test of means.
        """
        return None
