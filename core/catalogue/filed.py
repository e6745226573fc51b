"""Certificates where they stand: beside their studies or in the user's configuration, each with its golden file."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..contracts.errors import DataError, UsageError
from ..contracts.inputs import file_bytes
from ..contracts.version import VERSION
from .certificate_records import Certificate
from .golden import SUFFIX, Head, read_head
from .plugins import BUILT_IN
from .study import Catalogue
from .trust import config_folder

FOLDER = "certificates"
"""Folder of certificates and golden files in the package of a study's probe, and in the user's configuration."""


class Filed(NamedTuple):
    """A certificate, and what the golden file beside it says of the present numbers."""

    certificate: Certificate
    golden: Path
    head: Head | None
    """None: it cannot be read."""

    @property
    def is_verified(self) -> bool:
        """Return whether the head was computed with this version of the package, whose own files its tests compute."""
        of_package = self.golden.is_relative_to(Path(str(files(BUILT_IN))))
        return of_package or (self.head is not None and self.head.prejudge == VERSION)


def read_certificate(path: Path) -> Certificate:
    """Return a certificate.

    Raises:
        DataError: the file cannot be read, or is none.
    """
    try:
        return msgspec.json.decode(file_bytes(path), type=Certificate)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{str(path)!r} is not a certificate: {error}.", code="calibration.certificate") from None


def find_filed(catalogue: Catalogue, study: str, probe: str) -> Iterator[Filed]:
    """Yield the certificates of a study, the user's own first; a file that is none is passed over."""
    for folder in folders_of(catalogue, probe):
        path = folder / f"{study}.json"
        if Path(study).name == study and path.is_file():
            try:
                certificate = read_certificate(path)
            except DataError:
                continue  # what is not known to hold is not stated; `calibrate` tells of a file that it cannot read
            golden = folder / f"{study}{SUFFIX}"
            yield Filed(certificate, golden, head_of(golden))


def find_certificates(catalogue: Catalogue, study: str, probe: str) -> Iterator[Certificate]:
    """Yield the certificates of a study, the user's own first."""
    return (filed.certificate for filed in find_filed(catalogue, study, probe))


def find_golden(catalogue: Catalogue, study: str, probe: str) -> Path | None:
    """Return the golden file of a study, the user's own before that of the package; None if there is none."""
    paths = (folder / f"{study}{SUFFIX}" for folder in folders_of(catalogue, probe))
    return next((path for path in paths if Path(study).name == study and path.is_file()), None)


def head_of(golden: Path) -> Head | None:
    """Return what a golden file says of its study; None if it cannot be read."""
    try:
        return read_head(golden)
    except DataError:
        return None


def folders_of(catalogue: Catalogue, probe: str) -> Iterator[Path]:
    """Yield the folders of certificates: in the user's configuration, and in the package of a probe."""
    try:
        yield config_folder() / FOLDER
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
        yield Path(spec.origin).parent / FOLDER
