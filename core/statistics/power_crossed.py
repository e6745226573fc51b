"""Two ways of clustering at once: the design whose rows cross columns.

An answer is the sum of what its row (scenario, template) adds, what its column (image, term) adds, and the rest. What
each adds to the variance of a mean decides which of rows and columns a larger study should have more of.
"""

from __future__ import annotations

import math

import msgspec

from ..contracts.errors import UsageError
from .power_designs import Design


class CrossedDesign(msgspec.Struct, frozen=True, kw_only=True):
    """Rows (scenarios) with columns (images), tested against a neutral mean by the crossed jackknife."""

    rows: int
    columns: int
    """In each group, where there are two."""
    spread: float = 1.0
    """Standard deviation of one answer."""
    row_icc: float = 0.0
    """Share of its variance that answers of one row have in common; of one row and group, where there are two, beyond
    what the row adds to both groups."""
    column_icc: float = 0.0
    fill: float = 1.0
    """Share of the rows' meetings with columns that is asked."""
    groups: int = 1
    """1: a mean. 2: the means of two groups of columns, each in the same rows."""

    def __post_init__(self) -> None:
        """Refuse what is no design."""
        if self.rows < 2 or self.columns < 2:
            raise UsageError(
                f"rows is {self.rows} and columns is {self.columns}. Give at least 2 of each.", code="options.value"
            )
        if not self.spread > 0:
            raise UsageError(f"spread is {self.spread}. Give a number above 0.", code="options.value")
        if min(self.row_icc, self.column_icc) < 0 or self.row_icc + self.column_icc > 1 + 1e-9:
            raise UsageError(
                f"row_icc is {self.row_icc}, column_icc {self.column_icc}. Give shares that sum up to 1.",
                code="options.value",
            )
        if not 0 < self.fill <= 1:
            raise UsageError(f"fill is {self.fill}. Give a share above 0, up to 1.", code="options.value")
        if self.groups not in (1, 2):
            raise UsageError(f"groups is {self.groups}. Give 1 or 2.", code="options.value")

    @property
    def standard_error(self) -> float:
        """Return the standard error of the mean: what rows, columns and single answers add to it."""
        total = self.row_icc / self.rows + self.column_icc / self.columns + self._single
        return self.spread * math.sqrt(self.groups * total)

    @property
    def freedom(self) -> float:
        """Return the degrees of freedom, after Satterthwaite (1946)."""
        row, column = self.row_icc / self.rows + self._single, self.column_icc / self.columns + self._single
        spread = row**2 / (self.rows - 1) + column**2 / (self.groups * (self.columns - 1))
        return (row + column - self._single) ** 2 / spread

    @property
    def rows_fixed(self) -> Design | None:
        """Return the same design as a test sees it that takes these rows for all there are; None without spread."""
        rest = 1 - self.row_icc
        if rest <= 1e-9:
            return None
        return Design(
            clusters=self.columns,
            size=max(self.rows * self.fill, 1.0),
            spread=self.spread * math.sqrt(rest),
            icc=min(self.column_icc / rest, 1.0),
            groups=self.groups,
        )

    @property
    def _single(self) -> float:
        return max(1 - self.row_icc - self.column_icc, 0.0) / (self.rows * self.columns * self.fill)
