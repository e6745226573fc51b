"""The contracts between the framework and its plugins: `ModelAdapter`, `Stage`, `Probe`, `Metric`.

An adapter is one model behind one async door and knows no study. A probe turns parameters into trials and reads
responses; it is pure and knows no adapter. A metric turns observations into estimates; it is pure and knows neither.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from .adapter import Identity, Limits, ModelAdapter
from .estimates import Chart, Estimate, Example
from .records import AnyRequest, AnyResponse, Request, Scalar

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Chart",
    "DESIGN_COLUMNS",
    "Estimate",
    "Example",
    "Identity",
    "Imported",
    "Limits",
    "Metric",
    "ModelAdapter",
    "Options",
    "Probe",
    "Stage",
    "Trial",
    "UNIT_COLUMNS",
    "Unreadable",
]


HEADLINE = 40
"""Estimates a reader can still take in at a glance."""
UNIT_COLUMNS = ("metric", "unit", "cluster", "sign", "value", "least", "greatest", "status")
DESIGN_COLUMNS = ("test", "level", "row", "ways")
"""What `Metric.designs` adds to them, each where it applies."""
"""What `Metric.units` gives for each unit; every other column is a factor of the estimate's group."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every plugin's parameters: typed, frozen, and strict about unknown names."""


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


class Metric(ABC):
    """A family of measures: observations to estimates. No model; of files only those that `files` names are read."""

    options: ClassVar[type[Options]] = Options
    needs: ClassVar[frozenset[str]]
    """Observation columns without which nothing can be computed; checked before anything runs."""
    every_stage: ClassVar[bool] = False
    """Whether the observations of all stages are measured, stacked, with a column `stage`; else the last stage's."""
    files: ClassVar[frozenset[str]] = frozenset()
    """Options whose value is the path of a file, or None. Such a file may be read, and its sha256 goes on record."""

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
        """Answer the study's question in one sentence with its uncertainty."""
        return ""

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick the few estimates a reader should see first; by default all, if there are few."""
        return list(estimates) if len(estimates) <= HEADLINE else []

    def methods(self, options: Any) -> str:
        """Describe in words how the estimates were made, for the report."""
        return ""

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw the estimates, as the paper does."""
        return []

    def side_by_side(self, runs: Mapping[str, Sequence[Estimate]]) -> list[Chart]:
        """Draw the estimates of several runs, by label, beside each other; if nothing, `compare` draws plain marks."""
        return []

    def examples(self, observations: pl.DataFrame, options: Any) -> list[Example]:
        """Pick the exchanges that show best what lies behind the numbers."""
        return []
