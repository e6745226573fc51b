"""`Probe`: an instrument with stages of trials. Pure functions, without a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from .options import Options
from .records import AnyRequest, AnyResponse, Request, Scalar

if TYPE_CHECKING:
    import polars as pl


class Trial(msgspec.Struct, frozen=True):
    """One question of a design."""

    id: str
    """Stable: the same parameters give the same ids, in every process and on every machine."""
    factors: dict[str, Scalar]
    """The cell of the design this trial stands in; flat."""
    request: AnyRequest


class Unreadable(msgspec.Struct, frozen=True):
    """Say that a response could not be read as an outcome, and why (a short, countable reason)."""

    reason: str


class Imported(msgspec.Struct, frozen=True):
    """Observations that somebody else collected, and what was noticed while reading them."""

    observations: Any
    """A polars frame like the one the probe's own stages would give."""
    notes: tuple[str, ...] = ()


class Stage(ABC):
    """One round of questions to one role. Pure and seeded: it can be counted, replayed and sharded."""

    name: ClassVar[str] = "main"
    role: ClassVar[str] = "subject"
    """Who is asked: `subject`, `describer`, `judge`, `sentiment`, `toxicity`, `encoder` ..."""
    operation: ClassVar[type[Request]]
    """The kind of request this stage makes."""
    factors: ClassVar[tuple[str, ...]]
    """Names every trial's `factors` has, in order."""
    outcomes: ClassVar[tuple[str, ...]]
    """Names every readable response yields."""
    optional: ClassVar[bool] = False
    """Whether a run may name no model for the role; the stage is then left out, and comes to no observations."""
    max_attempts: ClassVar[int] = 1
    """How often an unreadable answer is asked for in all."""
    count_by: ClassVar[tuple[str, ...]] = ()
    """Factors that `plan` breaks its counts down by."""
    unit: ClassVar[str] = "trial"
    """What a reader counts: `pair`, `item`, `image` ..."""
    trials_per_unit: ClassVar[int] = 1

    @abstractmethod
    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the trials lazily, given the observations of earlier stages by stage name."""

    def images(self) -> Iterator[tuple[bytes, str]]:
        """Yield the bytes and the media type of each image that trials name; the run puts them into the store."""
        return iter(())

    def count(self, earlier: Mapping[str, pl.DataFrame]) -> int:
        """Count the trials; override it where that is quicker than making them."""
        return sum(1 for _ in self.trials(earlier))

    def alike(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[tuple[Trial, int]]:
        """Yield trials that stand for all, each with the number it stands for: what `plan` counts by.

        The trials of one such group have the same factors of `count_by`, and different requests of one length. Groups
        whose examples have the same request hold the same requests. Override it where that is quicker than making all.
        """
        return ((trial, 1) for trial in self.trials(earlier))

    @abstractmethod
    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Turn one response into `outcomes`, or say that it cannot be read."""

    def concerns(self, cells: Mapping[str, Any]) -> bool:
        """Return whether a row of somebody's answers is about this study at all; others are left out and counted.

        `cells` are all columns of the row. Override it where a file holds the answers to several studies.
        """
        return True

    def contradicts(self, factors: Mapping[str, Scalar], cells: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Return what a row of somebody's answers says otherwise than the trial it is for: (row, trial) by column.

        `cells` are all columns of the row. Such rows are refused. Factors are compared without this: override it where
        answers come with columns that say the same in other words.
        """
        return {}

    def read_frame(self, frame: pl.DataFrame) -> pl.DataFrame | None:
        """Read many responses at once, or return None to have `read` called for each.

        `frame` has the factors and a column `response` (canonical JSON of readable, `ok` responses). The result has
        the same rows in the same order with the columns of `outcomes`. Override it where a study is large.
        """
        return None

    def review(self, observations: pl.DataFrame, blobs: Callable[[str], bytes] | None) -> pl.DataFrame:
        """Return all observations, with marked what no answer shows by itself, such as an image drawn twice.

        `blobs` gives the bytes of an image by its sha256, and raises `DataError` where it has none; None stands for
        no store. The rows and columns stay; `status`, `reason` and outcomes may change.
        """
        return observations


class Probe(ABC):
    """An instrument: parameters to stages of trials."""

    options: ClassVar[type[Options]] = Options

    @abstractmethod
    def stages(self, options: Any) -> Sequence[Stage]:
        """Return the stages for these options, in the order they are run."""

    def import_scores(self, path: str, options: Any) -> Imported:
        """Read scores that somebody else published, in place of asking a model."""
        raise NotImplementedError
