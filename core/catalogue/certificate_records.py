"""What a calibration recorded: the rates of one kind of model, and the certificate that is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..contracts.records import Scalar
from ..contracts.words import percent

LEVEL = 0.05
"""Level of the tests that are judged."""


class Rate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one number of the headline is over many studies of one kind of model, or the answer to a question."""

    measure: str
    label: str = ""
    """What the measure is called in a report; of an answer, the question."""
    group: dict[str, Scalar] = {}
    neutral: float | None = None
    studies: int
    """Studies in which it has a verdict."""
    shown: int
    """Studies in which it differs significantly from neutral."""
    low: float | None = None
    """95 % interval of the rate (Clopper and Pearson 1934)."""
    high: float | None = None
    mean: float | None = None
    """Of the values."""
    spread: float | None = None
    """Standard deviation of the values."""
    covered: float | None = None
    """Share of intervals that contain neutral, or with a planted bias the mean of the values."""
    intervals: int = 0
    """Number of intervals."""
    holds: bool = True
    """Whether chance explains how often it is shown, at `LEVEL` and among as many numbers; of fair models."""

    @property
    def rate(self) -> float | None:
        """Return the share of studies in which it is shown."""
        return self.shown / self.studies if self.studies else None

    @property
    def told(self) -> str:
        """Return the same with its interval, in words."""
        return f"{percent(self.rate or 0.0, 1)} ({percent(self.low or 0.0, 1)} to {percent(self.high or 0.0, 1)})"


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Studies of models of one kind: a null of the gallery, with or without a planted bias."""

    null: str
    strength: float = 0.0
    studies: int = 0
    any_shown: int = 0
    """Studies in which any number of the headline is shown."""
    rates: tuple[Rate, ...] = ()
    answers: tuple[Rate, ...] = ()
    """Of each question: studies in which its answer is a finding, by any of the numbers that answer it."""
    missing: float = 0.0
    """Mean share of trials without a readable answer."""
    unchanged: bool = False
    """Whether no number of the headline differs from that of `fair`, so that nothing more was asked."""
    changed: float | None = None
    """Share of answers that differ from those of `fair`, over the first models; None: not recorded."""

    @property
    def judged(self) -> int:
        """Return in how many studies a number or an answer has a verdict, at the most."""
        return max((rate.studies for rate in (*self.rates, *self.answers)), default=0)

    def same_as(self, other: Group) -> bool:
        """Return whether both have the same studies, to the last digit that is recorded."""
        return _results(self) == _results(other)

    @property
    def worst(self) -> Rate | None:
        """Return the number that is shown most often."""
        return _worst(self.rates)

    @property
    def worst_answer(self) -> Rate | None:
        """Return the question whose answer is most often a finding."""
        return _worst(self.answers)

    @property
    def failing(self) -> Rate | None:
        """Return the answer that is a finding more often than chance explains, or else such a number."""
        return next((rate for rate in (self.worst_answer, self.worst) if rate is not None and not rate.holds), None)

    @property
    def failed(self) -> bool:
        """Return whether an answer or a number is shown more often than chance explains."""
        return self.failing is not None


def _results(group: Group) -> tuple[object, ...]:
    return group.studies, group.any_shown, group.rates, group.answers, group.missing


def _worst(rates: Sequence[Rate]) -> Rate | None:
    judged = [rate for rate in rates if rate.studies]
    return max(judged, key=lambda rate: (not rate.holds, rate.rate or 0.0), default=None)


class Sensitivity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far models that differ in one respect move the numbers of the headline."""

    to: str
    """What differs: words, wording, order, refusals, time, requests or errors."""
    nulls: tuple[str, ...] = ()
    """Models of the gallery that differ in it."""
    largest: str = ""
    """The one that moves a number farthest."""
    measure: str = ""
    group: dict[str, Scalar] = {}
    shift: float | None = None
    """How far: its mean less that under `fair`, in standard deviations between studies of `fair`."""
    wider: float | None = None
    """Largest standard deviation of a number between studies, in those of `fair`."""


class SpotNumber(msgspec.Struct, frozen=True, array_like=True):
    """One number of the headline of one study."""

    measure: str
    group: dict[str, Scalar]
    value: float | None
    low: float | None
    high: float | None


class Spot(msgspec.Struct, frozen=True):
    """One study of a fair model of the gallery, which can be made again."""

    null: str
    seed: int
    numbers: tuple[SpotNumber, ...]


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a calibration, and what they hold for."""

    study: str
    prejudge: str
    made: str
    """Date, UTC."""
    design: dict[str, Any]
    """Options of the probe, `METRIC.option`, and models by role, as they were set."""
    options: dict[str, Any] = {}
    """Every option of the probe and `METRIC.option`, defaults included."""
    sizes: tuple[str, ...] = ()
    """Options that say how much is asked of one design: with other values it is certified at another size."""
    requests: int
    """Requests of one study."""
    entire: int = 0
    """Requests of one study of a model that prefers levels, where these have the default size; 0: they have `sizes`."""
    data: dict[str, str] = {}
    """sha256 of the files that the options name, by name."""
    questions: str = ""
    """Digest of what the design asks, as its golden file has it; empty: made before certificates named numbers."""
    numbers: dict[str, str] = {}
    """Digests of the numbers of each case of the golden file."""
    battery: dict[str, str] = {}
    """Digests of the intervals, tests and effect sizes that the study uses, of the battery of statistics."""
    gallery: dict[str, dict[str, Any]]
    """Settings of each null."""
    gallery_digest: str = ""
    """Digest of all that the gallery says of its models but their meanings."""
    spots: tuple[Spot, ...] = ()
    """Two studies of each null, with what they found: `lab calibrate --verify` makes them again."""
    meanings: dict[str, str]
    planted: str
    groups: tuple[Group, ...]
    sensitivity: tuple[Sensitivity, ...] = ()
    real: tuple[Group, ...] = ()
    """Studies of reference models that are trained, by name."""
    seconds: float = 0.0
    """Processor time of the calibration."""
    by_command: int = 0
    """Studies that were also made by the command line, as a user makes them."""
    differing: dict[str, str] = {}
    """Those of them that found something else, by the seed of the model, with what."""

    def group(self, null: str, strength: float = 0.0) -> Group | None:
        """Return the studies of one kind of model."""
        return next((group for group in self.groups if (group.null, group.strength) == (null, strength)), None)

    @property
    def trained(self) -> list[Group]:
        """Return the trained models that are fair."""
        return [group for group in self.real if not group.strength and group.studies]

    @property
    def untested(self) -> dict[str, str]:
        """Return the fair models that cannot show a false finding of this design, each with the reason."""
        models = [group for group in self.groups if not group.strength] + self.trained
        reasons = {group.null: _untested(group, models[:place]) for place, group in enumerate(models)}
        return {null: reason for null, reason in reasons.items() if reason}

    @property
    def fair(self) -> list[Group]:
        """Return the fair models that this design was tested on: those of the gallery, then trained ones."""
        untested, simulated = self.untested, [group for group in self.groups if not group.strength]
        return [group for group in (*simulated, *self.trained) if group.null not in untested]

    @property
    def least(self) -> int:
        """Return how many studies with a verdict the fair model of the gallery with the fewest has."""
        simulated = [group for group in self.fair if group not in self.real]
        return min((group.judged for group in simulated), default=0)

    @property
    def failed(self) -> list[Group]:
        """Return the fair models that are found to be biased too often, the most often first."""
        return sorted((group for group in self.fair if group.failed), key=lambda group: -_failing_rate(group))

    def is_unplanted(self, null: str) -> bool:
        """Return whether planting a bias in this model changed no answer, at any strength."""
        planted = [group for group in self.groups if group.null == null and group.strength and group.studies]
        if recorded := [group.changed for group in planted if group.changed is not None]:
            return not any(recorded)
        return len(planted) > 1 and all(group.same_as(planted[0]) for group in planted[1:])

    @property
    def flaw(self) -> str:
        """Return why this certifies nothing, as a clause; empty if it does."""
        planted = dict.fromkeys(group.null for group in self.groups if group.strength and group.studies)
        if planted and all(map(self.is_unplanted, planted)):
            return f"nothing was planted: the answers are the same at every value of {self.planted!r}"
        if self.groups and not self.fair:
            return "no fair model has two studies with a verdict"
        return ""


def _untested(group: Group, before: Sequence[Group]) -> str:
    """Return why a fair model cannot show a false finding, by its studies and those of the models before it."""
    if group.unchanged:
        return "no answer changes" if group.changed == 0 else "no number changes"
    if not group.judged:
        return f"no verdict in {group.studies:,} studies"
    if group.judged == 1:
        return "a single study"  # chance explains one finding
    twin = next((other.null for other in before if other.same_as(group)), None)
    return f"the same as `{twin}`" if twin is not None else ""


def _failing_rate(group: Group) -> float:
    return 0.0 if group.failing is None else group.failing.rate or 0.0
