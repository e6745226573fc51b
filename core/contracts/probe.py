"""`Probe`: an instrument with stages of trials. Pure functions, without a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import msgspec

from .abilities import OPERATIONS, Need
from .adapter import Identity
from .options import Options
from .records import AnyRequest, AnyResponse, Request, Scalar

if TYPE_CHECKING:
    import polars as pl


class Trial(msgspec.Struct, frozen=True, gc=False):
    """One request of a design, with its factors.

    Example:
        >>> import prejudge
        >>> request = prejudge.records.PseudoLikelihood(text="She is a nurse.")
        >>> prejudge.Trial("0/she", {"pair": "0", "side": "she"}, request).factors["side"]
        'she'
    """

    id: str
    """Stable: the same parameters give the same ids, in every process and on every machine."""
    factors: dict[str, Scalar]
    """Levels by factor: the trial's cell of the design; flat."""
    request: AnyRequest


class Unreadable(msgspec.Struct, frozen=True):
    """A response that could not be read, with a short, countable reason.

    Example:
        >>> import prejudge
        >>> prejudge.Unreadable("no label").reason
        'no label'
    """

    reason: str


class Imported(msgspec.Struct, frozen=True):
    """Published observations, and notes from reading them.

    Example:
        >>> import polars
        >>> from prejudge.core.contracts import Imported
        >>> rows = polars.DataFrame({"pair": ["0"], "log_probability": [-3.5], "status": ["ok"]})
        >>> Imported(rows, notes=("One row was empty.",)).observations.height
        1
    """

    observations: Any
    """A polars frame with the columns of the probe's own stages."""
    notes: tuple[str, ...] = ()


class Follows(msgspec.Struct, frozen=True):
    """An option whose value, where nobody sets it, follows from what a model can do.

    Example:
        >>> from prejudge import records
        >>> from prejudge.core.contracts import Follows
        >>> Follows("asking", (("likelihood", records.Likelihood), ("generate", records.Generate))).role
        'subject'
    """

    option: str
    values: tuple[tuple[str, type[Request]], ...]
    """Values with the operation that each needs, the preferred one first: the first that the model can do is taken."""
    role: str = "subject"
    """Role of the model."""


class StageRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a stage asks and what it takes as an answer.

    Example:
        >>> import prejudge
        >>> prejudge.StageRules(attempts=3, again=("unreadable", "refused")).prose
        False
    """

    images: bool = False
    """Whether its messages have images."""
    optional: bool = False
    """Whether a run may have no model for the role; the stage is then skipped and has no observations."""
    attempts: int = 1
    """Maximum number of requests for a readable answer."""
    again: tuple[str, ...] = ("unreadable",)
    """Statuses after which it is requested again: `unreadable`, `refused`, `filtered`."""
    prose: bool = False
    """Whether `read` finds an answer within other words, such as a label anywhere in a text. A refusal that names one
    is then not read as that answer."""
    text: str = ""
    """Outcome that is a free text about somebody, in which sentences about the question are counted; empty: none."""
    auxiliary: bool = False
    """Whether its answers only prepare the next stage, whose requests do not depend on them: plans and limits begin
    with the next."""


class Counting(msgspec.Struct, frozen=True, kw_only=True):
    """What `plan` counts of a stage.

    Example:
        >>> import prejudge
        >>> prejudge.Counting(by=("theme",), unit="pair", trials=2).unit
        'pair'
    """

    by: tuple[str, ...] = ()
    """Factors of the cells."""
    unit: str = "trial"
    """Name of the counted unit: `pair`, `item`, `image` ..."""
    trials: int = 1
    """Number of trials of a unit."""
    about: tuple[str, ...] = ()
    """Factors that name whom a question is about: what is missing is counted by them, too."""


class Stage(ABC):
    """One round of requests to one role. Pure and seeded: it can be counted, replayed and split.

    Example:
        >>> import prejudge
        >>> class Sentences(prejudge.Stage):
        ...     operation = prejudge.records.PseudoLikelihood
        ...     factors = ("side",)
        ...     outcomes = ("log_probability",)
        ...     def trials(self, earlier):
        ...         for side in ("she", "he"):
        ...             request = prejudge.records.PseudoLikelihood(text=f"{side.title()} is a nurse.")
        ...             yield prejudge.Trial(side, {"side": side}, request)
        ...     def read(self, factors, response):
        ...         return {"log_probability": response.log_probability}
        >>> [trial.id for trial in Sentences().trials({})]
        ['she', 'he']
    """

    name: ClassVar[str] = "main"
    """Its name: stages of a probe have different ones."""
    role: ClassVar[str] = "subject"
    """Role of the model that is asked: `subject`, `describer`, `judge`, `sentiment`, `toxicity`, `encoder` ..."""
    operation: ClassVar[type[Request]]
    """Kind of request of this stage."""
    factors: ClassVar[tuple[str, ...]]
    """Names of the factors of every trial, in order."""
    outcomes: ClassVar[tuple[str, ...]]
    """Names of the outcomes of every readable response."""
    rules: ClassVar[StageRules] = StageRules()
    """Whether it shows images, may be left out, and asks again."""
    counting: ClassVar[Counting] = Counting()
    """What `plan` counts."""

    @abstractmethod
    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the trials lazily, given the observations of earlier stages by stage name."""

    def check_model(self, identity: Identity) -> None:  # noqa: B027 - most stages take any model
        """Check that the model of the role goes with the options; called before anything is asked.

        Raises:
            UsageError: it does not.
        """

    def images(self) -> Iterator[tuple[bytes, str]]:
        """Yield the bytes and media type of each image that the trials name; the run stores them."""
        return iter(())

    def shortage(self) -> str:
        """Return, in sentences, what its material lacks where it has no trial: an empty design is an error."""
        return ""

    def notes(self) -> Sequence[str]:
        """Return what a reader needs to know of the material, in sentences: `plan` and reports show them."""
        return ()

    @abstractmethod
    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar] | Unreadable:
        """Return the `outcomes` of one response, or `Unreadable`.

        It is called for refused answers too: what it can read behind an apology is an answer.
        """

    def review(self, observations: pl.DataFrame, blobs: Callable[[str], bytes] | None) -> pl.DataFrame:
        """Return all observations, marked for problems that no single answer shows, such as an image drawn twice.

        `blobs` returns the bytes of an image by its sha256, and raises `DataError` if it has none; None: there is no
        store. Rows and columns must stay; `status`, `reason` and outcomes may change.
        """
        return observations


class LargeStage(Stage):
    """A stage whose trials are counted, weighed and read faster than one by one. Override what is worth it."""

    def count(self, earlier: Mapping[str, pl.DataFrame]) -> int:
        """Count the trials; override it if counting is faster than generating them."""
        return sum(1 for _ in self.trials(earlier))

    def alike(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[tuple[Trial, int]]:
        """Yield example trials, each with the number of trials in its group; `plan` counts with them.

        The trials of a group have the same factors of `Counting.by`, and different requests of equal length. Groups
        whose examples have the same request have the same requests. Override it if it is faster than generating all.
        """
        return ((trial, 1) for trial in self.trials(earlier))

    def read_frame(self, frame: pl.DataFrame) -> pl.DataFrame | None:
        """Read many responses at once, or return None, so that `read` is called for each.

        `frame` has the factors and a column `response` (canonical JSON of readable, `ok` responses). The result has
        the same rows in the same order with the columns of `outcomes`. Override it for large studies.
        """
        return None


class MatchedStage(Stage):
    """A stage whose imported answers do not state all factors by their own names. Override what differs."""

    presentation: ClassVar[Mapping[str, str]] = {}
    """Factors of how a unit is shown, such as the order of its options, and the option that sets each. Their levels are
    no properties of the unit: of imported answers they are None unless the file states them."""
    unrecorded: frozenset[str] = frozenset()
    """The factors of `presentation` that nobody recorded, set by the import. Leave them out of ids and requests."""

    def concerns(self, cells: Mapping[str, Any]) -> bool:
        """Return whether a row of imported answers belongs to this study; others are left out and counted.

        `cells` are all columns of the row. Override it if files contain the answers to several studies.
        """
        return True

    def columns(self, factors: Mapping[str, Scalar]) -> Mapping[str, str]:
        """Return columns of imported answers that hold a factor under another name: {column: factor}.

        `factors` are those of the trial that a row is for. Factors are compared with the columns of their own name
        anyway; override it if files of answers name what was shown in another way. Rows that contradict their trial
        are refused, left out, or recorded as they state it.
        """
        return {}


def count_trials(stage: Stage, earlier: Mapping[str, pl.DataFrame]) -> int:
    """Return the number of trials of a stage, given the observations of earlier stages by stage name."""
    return stage.count(earlier) if isinstance(stage, LargeStage) else sum(1 for _ in stage.trials(earlier))


def example_trials(stage: Stage, earlier: Mapping[str, pl.DataFrame]) -> Iterator[tuple[Trial, int]]:
    """Return example trials, each with the number of trials that it stands for; see `LargeStage.alike`."""
    return stage.alike(earlier) if isinstance(stage, LargeStage) else ((trial, 1) for trial in stage.trials(earlier))


def stage_need(stage: Stage) -> Need:
    """Return what a stage needs of the model of its role."""
    return Need(operation=OPERATIONS[stage.operation], images=stage.rules.images)


@runtime_checkable
class StatesMethod(Protocol):
    """A stage that has a choice in how responses become outcomes, and says how it is made."""

    def method(self) -> str:
        """Return, in sentences, what a report's methods say of it; empty: nothing."""


@runtime_checkable
class ReadsFolders(Protocol):
    """A probe whose study a user writes as a folder."""

    folder_form: type[msgspec.Struct]
    """The fields of the folder's file."""

    def read_folder(self, path: str) -> Mapping[str, Any]:
        """Return the fields of the study file, with all that the folder's tables hold; raises `DataError`."""


class Probe(ABC):
    """An instrument: parameters to stages of trials.

    Example:
        >>> import prejudge
        >>> class Nurses(prejudge.Probe):
        ...     def stages(self, options):
        ...         return []  # instances of `prejudge.Stage`
        >>> Nurses().stages(Nurses.options())
        []
    """

    options: ClassVar[type[Options]] = Options
    follows: ClassVar[tuple[Follows, ...]] = ()
    """Options that follow from what the models can do."""

    @abstractmethod
    def stages(self, options: Any) -> Sequence[Stage]:
        """Return the stages for these options, in the order in which they run."""

    def design(self, options: Any) -> Any:
        """Return the `prejudge.design.Design` that the first stage asks; None: the study declares none."""
        return None

    def import_scores(self, path: str, options: Any) -> Imported:
        """Read published scores, which replace a model's answers."""
        raise NotImplementedError
