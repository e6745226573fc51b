"""`Manifest`: the record of a run, complete enough to score it again and to document its origin.

A run that is resumed adds to what it recorded before, and replaces nothing.
"""

from __future__ import annotations

import hashlib
import logging
import platform
import secrets
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from ..catalogue.study import Study
from ..contracts.adapter import Identity, ModelAdapter
from ..contracts.errors import DataError
from ..contracts.records import Scalar
from ..contracts.version import VERSION
from ..store import RunRow, Store, list_runs

LOG = logging.getLogger(__name__)
PACKAGES = ("msgspec", "numpy", "polars", "scipy", "sqlalchemy", "tokenizers", "torch", "transformers")


MANIFEST = "manifest.json"
"""What it is called in the folder of a run."""
IMPORTED = "imported"
"""The mode of a run whose answers somebody else collected."""
ADDED = ("asked", "retried")
"""Counts of what was done, each time the run was taken up; the others say how the trials stand."""
KNOWN = ("input_tokens", "output_tokens", "cost")
"""Counts that are added up too, and are unknown if those of any answer are."""


class StageRecord(msgspec.Struct, frozen=True):
    """What happened in a stage."""

    planned: int
    counts: dict[str, int | float | None] = {}
    """Fields of `scheduler.Counts`."""
    pace: dict[str, int | float | None] = {}
    """Fields of `limiter.Paced`: what the limiter of the endpoint did in this stage."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the store's `run` table and in `manifest.json`."""

    run: str
    study: Study
    identities: dict[str, Identity]
    """By role."""
    settings: dict[str, dict[str, Scalar]] = {}
    """By role, what of an identity's settings differs from the defaults of the adapter."""
    stages: dict[str, StageRecord] = {}
    data: dict[str, str] = {}
    """sha256 of each file the options name."""
    notes: tuple[str, ...] = ()
    """What was noticed while reading the data."""
    remeasured: dict[str, Any] = {}
    """`METRIC.option`: what was set when it was scored again, otherwise than the run had it. Never in the store."""
    mode: str = "use"
    command: str = ""
    prejudge: str = VERSION
    python: str = ""
    platform: str = ""
    packages: dict[str, str] = {}


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest in the folder of a run: what it was, and how it was scored last.

    Raises:
        DataError: there is none, or it cannot be read.
    """
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"{str(folder)!r} is not the folder of a run: {error}.", code="run.folder") from None


def remeasured_in(folder: Path) -> dict[str, Any]:
    """Return what was set when the folder of a run was written last; nothing where there is none.

    Raises:
        DataError: there is a manifest, and it cannot be read.
    """
    return read_manifest(folder).remeasured if (folder / MANIFEST).exists() else {}


def in_words(options: Mapping[str, Any]) -> str:
    """Write options as `name = value`."""
    return ", ".join(f"{name} = {value}" for name, value in options.items())


def set_settings(adapter: ModelAdapter) -> dict[str, Scalar]:
    """Return what of an adapter's identity was set otherwise than by default; what is no option is left out."""
    settings = adapter.identity.settings
    return {
        field.name: settings[field.name]
        for field in msgspec.structs.fields(adapter.options)
        if field.name in settings and settings[field.name] != _default(field)
    }


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def new_name(study: str, model: str) -> str:
    """Return a name for a new run: time (UTC), study, model, and four random characters."""
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in model).strip("-.")[-40:]
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{study}-{plain}-{secrets.token_hex(2)}"


def describe_machine() -> dict[str, Any]:
    """Return the fields that say what a run was made with."""
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        "packages": dict(_versions(PACKAGES)),
    }


def digest_data(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the sha256 of the file that an option named `data` points to, if it does."""
    path = options.get("data")
    return digest_files([path] if isinstance(path, str) else [])


def digest_files(paths: Iterable[str]) -> dict[str, str]:
    """Return the sha256 of each of these files that is there."""
    digests = {path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths if Path(path).is_file()}
    for path, digest in digests.items():
        LOG.info("data file %s, sha256 %s", path, digest)
    return digests


def _versions(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    for name in names:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


class Earlier(msgspec.Struct, frozen=True):
    """What a run recorded when it was last left."""

    row: RunRow
    manifest: Manifest

    @property
    def done(self) -> bool:
        """Say whether it was at its end."""
        return self.row.state == "finished"


def find_earlier(store: Store, name: str | None, study: Study) -> Earlier | None:
    """Return what stands in the store of a run of this name and study; None if it is new."""
    for row in list_runs(store) if name is not None else ():
        if row.name == name:
            manifest = msgspec.json.decode(row.manifest, type=Manifest)
            return Earlier(row, manifest) if manifest.study == study else None
    return None


def add_up(earlier: Mapping[str, StageRecord], name: str, now: StageRecord) -> StageRecord:
    """Return the record of a stage with what was done in it before."""
    before = earlier.get(name)
    if before is None or not before.counts:
        return now
    if not now.counts:
        return StageRecord(now.planned, before.counts, before.pace)
    counts = dict(now.counts)
    counts |= {key: (counts.get(key) or 0) + (before.counts.get(key) or 0) for key in ADDED}
    # What the run itself asked before is now in the store; it is no answer of another run.
    counts["cached"] = max(0, (now.counts.get("cached") or 0) - (before.counts.get("asked") or 0))
    counts |= {key: _known(key, before, now) for key in KNOWN}
    return StageRecord(now.planned, counts, now.pace if now.counts.get("asked") else before.pace or now.pace)


def _known(key: str, before: StageRecord, now: StageRecord) -> float | None:
    """Return a count of both, such as the cost; unknown if that of any answer is."""
    parts = [part.counts.get(key) for part in (before, now) if part.counts.get("asked")]
    if not parts:
        return now.counts.get(key)
    known = [count for count in parts if count is not None]
    return sum(known) if len(known) == len(parts) else None
