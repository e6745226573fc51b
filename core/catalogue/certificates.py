"""`Certificate`: what a study finds in models whose bias is known, and whether that holds for a run of it.

A certificate stands beside its study, in `certificates/NAME.json` of the package of the study's probe, or in the same
folder of the user's configuration. It is made by `prejudge calibrate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from ..contracts.errors import DataError, UsageError
from ..contracts.inputs import file_bytes
from ..contracts.records import Scalar
from ..contracts.words import counted, percent
from .digests import FOLDER, STATISTICS, code_digests, unchanged
from .registry import StudyEntry
from .study import Catalogue, EveryOption, Study
from .trust import config_folder

LEVEL = 0.05
"""Level of the tests that are judged."""
WANTED = 1000
"""Studies of each fair model that the project asks for."""
State = Literal[
    "certified",
    "certified at another size",
    "certified for other options",
    "older than the code",
    "uncalibrated",
]
DESIGNS: Mapping[State, str] = {
    "certified": "This design",
    "certified at another size": "At the size that it was calibrated at, this design",
    "certified for other options": "With the options that it was calibrated with, this study",
    "older than the code": "Before its code changed, this study",
}
"""What a finding of a certificate is said of, in a run of each state."""
WORST = 3
"""Nuisances that are named one by one; the others are counted."""
NO_SIZE = frozenset({"seed", "examples"})
"""Options that change neither what is asked and measured nor how much of it."""
SIZES = frozenset({"resamples", "effect_resamples", "splits", "limit"})
"""Options of metrics that are sizes, whatever was stated, and the limit of a study whose units are drawn."""


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
    """Whether no answer differs from that of `fair`, so that nothing more was asked."""

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
        return next((one for one in (self.worst_answer, self.worst) if one is not None and not one.holds), None)

    @property
    def failed(self) -> bool:
        """Return whether an answer or a number is shown more often than chance explains."""
        return self.failing is not None


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
    digests: dict[str, str]
    """sha256 of the study's probe, metrics and data, and of the statistics."""
    folders: dict[str, str] = {}
    """sha256 of the folders that these are in, by package and path."""
    gallery: dict[str, dict[str, Any]]
    """Settings of each null."""
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
        return next((one for one in self.groups if (one.null, one.strength) == (null, strength)), None)

    @property
    def code(self) -> dict[str, str]:
        """Return the digests of probe, metrics and statistics."""
        return {part: digest for part, digest in self.digests.items() if not part.startswith("data ")}

    @property
    def fair(self) -> list[Group]:
        """Return the fair models that were asked many times."""
        return [one for one in self.groups if not one.strength and one.studies and not one.unchanged]

    @property
    def least(self) -> int:
        """Return how many studies the fair model with the fewest has."""
        return min((group.studies for group in self.fair), default=0)

    @property
    def failed(self) -> list[Group]:
        """Return the fair models that are found to be biased too often, the most often first."""
        return sorted((one for one in self.fair if one.failed), key=lambda one: -_rate(one))


class Calibrated(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of how a study finds bias in models without any, for one run."""

    state: State
    why: str = ""
    """Reason where it is not `certified`."""
    made: str = ""
    studies: int = 0
    """Studies of each fair model, at the least."""
    confused: tuple[str, ...] = ()
    """What the design cannot tell from bias, as sentences."""

    @property
    def told(self) -> str:
        """Return the state in one line."""
        few = f" ({self.studies:,} studies of each fair model, below the {WANTED:,} that are wanted)"
        why = f": {self.why}" if self.why else ""
        return f"{self.state}{why}{few if 0 < self.studies < WANTED else ''}"


def read_certificate(path: Path) -> Certificate:
    """Return a certificate.

    Raises:
        DataError: the file cannot be read, or is none.
    """
    try:
        return msgspec.json.decode(file_bytes(path), type=Certificate)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{str(path)!r} is not a certificate: {error}.", code="calibration.certificate") from None


def find_certificates(catalogue: Catalogue, study: str, probe: str) -> Iterator[Certificate]:
    """Yield the certificates of a study, the user's own first; a file that is none is passed over."""
    for folder in _folders(catalogue, probe):
        path = folder / FOLDER / f"{study}.json"
        if Path(study).name == study and path.is_file():
            try:
                yield read_certificate(path)
            except DataError:
                continue  # what is not known to hold is not stated; `calibrate` tells of a file that it cannot read


def _folders(catalogue: Catalogue, probe: str) -> Iterator[Path]:
    try:
        yield config_folder()
    except UsageError:
        pass
    offer = catalogue.plugins.offers["probe"].get(probe)
    target = "" if offer is None else offer.plugged.target
    module = target.partition(":")[0] if isinstance(target, str) else target.__module__
    try:
        spec = find_spec(module) if module else None
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent


def calibrated(catalogue: Catalogue, study: Study, options: EveryOption, data: Mapping[str, str]) -> Calibrated:
    """Return whether a study is certified as it is made, and what its design cannot tell from bias.

    Args:
        catalogue: where its probe and metrics are.
        study: the study.
        options: every option that it is made with.
        data: sha256 of its files, by path.
    """
    entry = catalogue.registry.studies.get(study.name)
    if entry is not None and entry.calibration.none:
        return Calibrated("uncalibrated", entry.calibration.none.rstrip("."))
    part = {"limit": study.limit.asked or "quick"} if study.limit is not None and study.limit.unit else {}
    asked = flat(options) | part if entry is None or entry.probe == study.probe else None
    states = [
        _calibrated(catalogue, study, one, asked, sorted(data.values()))
        for one in find_certificates(catalogue, study.name, study.probe)
        if asked is not None
    ]
    order, none = get_args(State), Calibrated("uncalibrated", "it has no certificate")
    return min(states, key=lambda one: order.index(one.state), default=none)


def _calibrated(
    catalogue: Catalogue, study: Study, certificate: Certificate, asked: Mapping[str, Any], data: Sequence[str]
) -> Calibrated:
    state, why = state_of(certificate, asked, present_code(catalogue, study, certificate), data)
    return Calibrated(state, why, certificate.made, certificate.least, tuple(confused(certificate, DESIGNS[state])))


def present_code(catalogue: Catalogue, study: Study | StudyEntry, certificate: Certificate) -> dict[str, str]:
    """Return the present digests of the code of a study, which is read only where a file of it differs."""
    parts = {f"probe {study.probe}", *(f"metric {name}" for name in study.metrics), STATISTICS}
    if unchanged(certificate.folders) and parts == {*certificate.code}:
        return certificate.code
    return code_digests(catalogue, study)


def flat(options: EveryOption) -> dict[str, Any]:
    """Return every option of a study by one name: `name` of the probe, `METRIC.name`."""
    own = {f"{metric}.{name}": value for metric, values in options.metrics.items() for name, value in values.items()}
    return options.probe | own


def state_of(
    certificate: Certificate, asked: Mapping[str, Any], code: Mapping[str, str], data: Sequence[str] = ()
) -> tuple[State, str]:
    """Return whether a certificate holds for a study, with the reason where it does not.

    Args:
        certificate: that of the study.
        asked: every option of the probe and `METRIC.option`.
        code: present digests of probe, metrics and statistics.
        data: sha256 of the files that the options name.
    """
    before = certificate.code
    if changed := [part for part in {**before, **code} if before.get(part) != code.get(part)]:
        return "older than the code", f"changed since it was calibrated: {', '.join(changed)}"
    known = sorted(digest for part, digest in certificate.digests.items() if part.startswith("data "))
    files = {name for name, value in {**certificate.options, **asked}.items() if name.rpartition(".")[2] == "data"}
    other = [
        name
        for name in sorted({*certificate.options, *asked} - files)
        if _last(name) not in NO_SIZE and _differ(certificate.options, asked, name)
    ]
    size = [name for name in other if _last(name) in SIZES or name in certificate.sizes]
    if len(size) < len(other):
        return "certified for other options", f"not for these values of {', '.join(n for n in other if n not in size)}"
    if known != list(data):
        return "certified for other options", "not for these data"
    if size:
        told = counted(certificate.requests, "request")
        sizes = ", ".join(dict.fromkeys(_last(name).replace("_", " ") for name in size))
        return "certified at another size", (
            f"how often fair models are found to be biased is known for studies of {told}, "
            f"which differ in how much was asked ({sizes})"
        )
    return "certified", ""


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _differ(one: Mapping[str, Any], other: Mapping[str, Any], name: str) -> bool:
    return msgspec.json.encode(one.get(name)) != msgspec.json.encode(other.get(name))


def confused(certificate: Certificate, design: str = DESIGNS["certified"]) -> Iterator[str]:
    """Yield a sentence for each nuisance that a `design`, in words, cannot tell from bias; the worst ones first."""
    failed = certificate.failed
    for group in failed[:WORST]:
        rate = group.failing
        if rate is not None:
            name = group.null.replace("-", " ")
            yield (
                f"{design} cannot tell {name} from bias{_meaning(certificate, group.null)}. Fair models with "
                f"{name} are found to be biased in "
                f"{rate.told} of {rate.studies:,} calibrated studies, {_by(rate, answers=group.answers)}."
            )
    if len(failed) > WORST:
        yield f"Nor can it tell from bias: {', '.join(group.null.replace('-', ' ') for group in failed[WORST:])}."


def _by(rate: Rate, answers: Sequence[Rate]) -> str:
    if rate in answers:
        return f"in answer to \N{LEFT DOUBLE QUOTATION MARK}{rate.label}\N{RIGHT DOUBLE QUOTATION MARK}"
    return f"by {named(rate.label or rate.measure, rate.group)}"


def _meaning(certificate: Certificate, null: str) -> str:
    """Return in brackets what a nuisance is; a stronger one is told as the one it strengthens."""
    meaning = certificate.meanings.get(null, "")
    if meaning.startswith("The same"):
        meaning = certificate.meanings.get(null.removeprefix("strong-"), "")
    meaning = meaning.rstrip(".")
    return f" ({meaning[:1].lower()}{meaning[1:]})" if meaning else ""


def _rate(group: Group) -> float:
    return 0.0 if group.failing is None else group.failing.rate or 0.0


def named(measure: str, group: Mapping[str, object]) -> str:
    """Return a measure with its group, in one line."""
    levels = ", ".join(str(value) for value in group.values())
    return f"{measure} ({levels})" if levels else measure
