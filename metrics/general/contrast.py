"""Contrast: the difference of an outcome between two levels of a factor, for probes without their own metric.

The value is the mean of `outcome` where the factor `between` is `first`, minus its mean where it is `second`: of all
answers, and within each combination of the factors in `by`. Interval and test cover all that the study samples, or the
columns of `over`: answers with one of their levels are dependent. A yes-no outcome gives a risk difference. Source: the
design of a matched comparison, as in any of the studies here.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import polars as pl

from ...core.contracts import Options, harmless
from ...core.contracts.errors import DataError, UsageError
from ...core.contracts.estimates import COLUMNS
from ...core.statistics.declaration import Declaration
from ...core.statistics.declared import DeclaredMetric
from ...core.statistics.facets import FacetOptions
from ...core.statistics.intervals import Limits
from ...core.statistics.measures_compared import Difference

CONTRAST = "contrast"
TAKEN = frozenset(COLUMNS)


class ContrastOptions(FacetOptions, frozen=True, kw_only=True):
    """Definition of the comparison."""

    option_effects = harmless("outcome between first second by unit")

    outcome: str
    """Observation column with numbers, or with true and false."""
    between: str
    """Factor whose two levels are compared."""
    first: str
    """The level whose mean comes first."""
    second: str
    """The level whose mean is subtracted."""
    by: tuple[str, ...] = ()
    """Factors for whose levels the contrast is also computed, besides the whole."""
    least: float | None = None
    """The smallest possible value of the outcome; with `greatest` it bounds missing answers."""
    greatest: float | None = None
    unit: str = ""
    """Unit of the outcome, such as `nats`."""

    def __post_init__(self) -> None:
        """Refuse two equal levels."""
        super().__post_init__()
        if taken := [name for name in self.by if name in TAKEN]:
            raise UsageError(
                f"by names {taken[0]!r}, which is a field of every estimate. Rename the factor.",
                code="options.reserved",
            )
        if self.first == self.second:
            raise UsageError(
                f"first and second are both {self.first!r}. Name two levels of {self.between!r}.",
                code="options.conflict",
            )

    @property
    def limits(self) -> Limits:
        """Return the limits of the outcome, if both are given."""
        return None if self.least is None or self.greatest is None else (self.least, self.greatest)


class Contrast(DeclaredMetric):
    """The difference of an outcome's mean between two levels of a factor."""

    options: ClassVar[type[Options]] = ContrastOptions
    measures = (
        Difference(
            CONTRAST,
            value="outcome",
            first="first",
            family=lambda by: CONTRAST,
            meaning="Mean of the outcome at the first level of a factor minus that at the second.",
            direction="greater outcomes at the first level",
        ),
    )

    def design(self, options: ContrastOptions) -> Declaration:
        """Return the contrast that the options define."""
        first, second = (pl.col(options.between).cast(pl.String) == level for level in (options.first, options.second))
        (measure,) = self._declared.measures
        contrast = msgspec.structs.replace(
            measure, value=options.outcome, first=first, second=second, unit=options.unit, limits=options.limits
        )
        return Declaration(
            measures=(contrast,),
            groups=((), options.by) if options.by else ((),),
            clusters=self.clusters_of(options),
            missing=(options.between,),
        )

    def columns(self, options: ContrastOptions) -> frozenset[str]:
        """Return the columns that the options name."""
        return self.design(options).needs

    def rows(self, observations: pl.DataFrame, options: ContrastOptions) -> pl.DataFrame:
        """Return the answers at the two levels.

        Raises:
            DataError: a level does not occur.
        """
        between = observations[options.between].cast(pl.String)
        for level in (options.first, options.second) if observations.height else ():
            if not (between == level).any():
                known = ", ".join(map(repr, between.drop_nulls().unique().sort()))
                raise DataError(
                    f"{options.between} has no level {level!r}. It has: {known}.", code="data.unknown-value"
                )
        return observations.filter(between.is_in([options.first, options.second]))
