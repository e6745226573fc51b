"""`Certificate`: what a study finds in models whose bias is known, for which code, data and design."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..catalogue.origins import digest_of
from ..catalogue.study import Catalogue, Study
from ..contracts.errors import DataError
from ..contracts.inputs import file_bytes
from ..contracts.records import Scalar
from ..engine.manifest import digest_data, digest_files

LEVEL = 0.05
"""Level of the tests that are judged."""
State = Literal["certified", "certified at another size", "uncalibrated"]


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """What one number of the headline is over many studies of one kind of model."""

    measure: str
    group: dict[str, Scalar] = {}
    label: str = ""
    unit: str = ""
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

    @property
    def rate(self) -> float | None:
        """Return the share of studies in which it is shown."""
        return self.shown / self.studies if self.studies else None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Studies of models of one kind: a null of the gallery, with or without a planted bias."""

    null: str
    strength: float = 0.0
    studies: int = 0
    any_shown: int = 0
    """Studies in which any number of the headline is shown."""
    rates: tuple[Rate, ...] = ()
    missing: float = 0.0
    """Mean share of trials without a readable answer."""
    unchanged: bool = False
    """Whether no answer differs from that of `fair`, so that nothing more was asked."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a calibration, and what they hold for."""

    study: str
    prejudge: str
    made: str
    """Date, UTC."""
    design: dict[str, Any]
    """Options of the probe, `METRIC.option`, and models by role."""
    requests: int
    """Requests of one study."""
    digests: dict[str, str]
    """sha256 of the study's probe, metrics and data, and of the statistics."""
    gallery: dict[str, dict[str, Any]]
    """Settings of each null."""
    meanings: dict[str, str]
    planted: str
    groups: tuple[Group, ...]
    seconds: float = 0.0
    """Processor time of the calibration."""
    by_command: int = 0
    """Studies that were also made by the command line, as a user makes them."""
    differing: dict[str, str] = {}
    """Those of them that found something else, by the seed of the model, with what."""

    def group(self, null: str, strength: float = 0.0) -> Group | None:
        """Return the studies of one kind of model."""
        return next((one for one in self.groups if (one.null, one.strength) == (null, strength)), None)


def read_certificate(path: Path) -> Certificate:
    """Return a certificate.

    Raises:
        DataError: the file cannot be read, or is none.
    """
    try:
        return msgspec.json.decode(file_bytes(path), type=Certificate)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{str(path)!r} is not a certificate: {error}.", code="calibration.certificate") from None


def digests_of(catalogue: Catalogue, study: Study) -> dict[str, str]:
    """Return the digests of all that the numbers of a study depend on besides its options and models.

    The package that a probe or metric stands in counts as a whole, with its data; so do files that the options name.
    """
    parts = {f"probe {study.probe}": catalogue.plugins.load("probe", study.probe).__module__}
    parts |= {f"metric {name}": catalogue.plugins.load("metric", name).__module__ for name in study.metrics}
    parts["statistics"] = f"{__package__.rpartition('.')[0]}.statistics.inference"
    found = {part: _digest_of(module) for part, module in parts.items()}
    instrument = catalogue.instrument(study)
    data = digest_data(msgspec.structs.asdict(instrument.options)) | digest_files(instrument.files())
    return found | {f"data {Path(path).name}": digest for path, digest in data.items()}


@cache
def _digest_of(module: str) -> str:
    """Return the digest of the package that a module stands in, or of its own file."""
    package = sys.modules.get(module.rpartition(".")[0])
    if folders := [Path(folder) for folder in getattr(package, "__path__", ())]:
        return digest_of(folders)
    own = getattr(sys.modules.get(module), "__file__", None)
    return digest_of((), [] if own is None else [Path(own)])


def state_of(
    certificate: Certificate | None, design: Mapping[str, Any], digests: Mapping[str, str], requests: int | None = None
) -> tuple[State, str]:
    """Return whether a certificate holds for a study, with the reason where it does not.

    Args:
        certificate: that of the study, if there is one.
        design: options of the probe and `METRIC.option`, defaults included.
        digests: present digests of its parts.
        requests: its size; None if it is not known.
    """
    if certificate is None:
        return "uncalibrated", "it was never calibrated"
    if changed := [part for part in {**certificate.digests, **digests} if _differ(certificate.digests, digests, part)]:
        return "uncalibrated", f"changed since it was calibrated: {', '.join(changed)}"
    if other := sorted(name for name in {**certificate.design, **design} if _differ(certificate.design, design, name)):
        size = f", with {certificate.requests:,} requests" if requests != certificate.requests else ""
        return "certified at another size", f"it was calibrated with other values of {', '.join(other)}{size}"
    return "certified", ""


def _differ(one: Mapping[str, Any], other: Mapping[str, Any], name: str) -> bool:
    return msgspec.json.encode(one.get(name)) != msgspec.json.encode(other.get(name))
