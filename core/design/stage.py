"""`DesignedStage`: a first stage whose trials come from a declared design; `FollowingStage`: one that prepares it."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from ..contracts.cells import Cells
from ..contracts.probe import LargeStage, Stage, StageRules, Trial
from ..contracts.records import AnyRequest, Scalar
from .cells import Cell
from .design import Design, Rows
from .locating import cells_of

if TYPE_CHECKING:
    import polars as pl


class DesignedStage(LargeStage):
    """A stage that asks the cells of a design. A study gives the design, the request of a cell, and `read`.

    Example:
        >>> import prejudge
        >>> from prejudge import design
        >>> class Nurses(design.DesignedStage):
        ...     operation = prejudge.records.PseudoLikelihood
        ...     factors = ("word", "side")
        ...     outcomes = ("log_probability",)
        ...     design = design.Design((design.Sampled("word", ("kind", "rude")), design.Group("side", ("she", "he"))))
        ...     def request(self, cell):
        ...         return prejudge.records.PseudoLikelihood(text=f"{cell['side']} is a {cell['word']} nurse.")
        ...     def read(self, factors, response):
        ...         return {"log_probability": response.log_probability}
        >>> [trial.id for trial in Nurses().trials({})]
        ['kind/she', 'kind/he', 'rude/she', 'rude/he']
    """

    @property
    @abstractmethod
    def design(self) -> Design:
        """Return the design, the same at each call."""

    @abstractmethod
    def request(self, cell: Cell) -> AnyRequest:
        """Return the request of a cell."""

    def further(self, cell: Cell) -> Mapping[str, Scalar]:
        """Return factors that the design does not declare, such as texts, or other values of those that it does."""
        return {}

    @property
    def rows(self) -> Rows | None:
        """Return the trials of the design that are asked, by place; None: all."""
        return None

    def first(self, most: int) -> Iterator[Trial]:
        """Yield the first of its trials, in the balanced order of samples, at most so many or one whole unit."""
        return self._trials_at(self.design.first(most, self.rows))

    def _trials_at(self, rows: Rows | None) -> Iterator[Trial]:
        return self.design.trials(self.request, rows, self._further)

    @property
    def _further(self) -> Callable[[Cell], Mapping[str, Scalar]] | None:
        return self.further if type(self).further is not DesignedStage.further else None

    def factor_rows(self) -> Iterator[dict[str, Scalar]]:
        """Yield the factors of each trial, with its id as `trial`; no request is made."""
        return ({**factors, "trial": key} for key, factors, _ in self.design.named_cells(self.rows, self._further))

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the trials of the design, lazily."""
        return self._trials_at(self.rows)

    @cached_property
    def located(self) -> Cells | None:
        """Return the table of its questions, made of all cells when first asked for; None: nothing can be planted.

        Raises:
            UsageError: The answer form does not say which answer raises the measure.
        """
        return cells_of(self)

    def locate(self, question: AnyRequest) -> tuple[Cell, ...]:
        """Return the cells of the design that a question belongs to: none, one, or several that share it."""
        rows = () if self.located is None else self.located.locate(question)
        return tuple(self.design.cells(np.array(rows, np.int64)))

    def count(self, earlier: Mapping[str, pl.DataFrame]) -> int:
        """Count the trials, without making any."""
        rows = self.rows
        return self.design.size if rows is None else len(rows)


class FollowingStage(Stage):
    """An auxiliary stage whose trials follow from those that a stage with a design asks, such as their alternatives."""

    rules: ClassVar[StageRules] = StageRules(auxiliary=True)
    followed: DesignedStage | None = None
    """The stage that follows, where a part of it is asked; None: all that the options select."""

    def following(self, stage: DesignedStage) -> Self:
        """Return this stage for a part of the other."""
        prepared = copy.copy(self)
        prepared.followed = stage
        return prepared
