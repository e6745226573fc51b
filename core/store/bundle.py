"""A run as one portable file: a zip of JSON, Parquet and images, with the sha256 of every member.

Equal content gives equal bytes: members have a fixed order and time, rows are sorted, and the zip does not compress
(Parquet files and images are compressed already).
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl
import sqlalchemy as sa

from ..contracts.files import replaced_whole
from .bulk import batched, table_of
from .content import (
    ContentDigest,
    Facts,
    Failed,
    Picture,
    RunContent,
    Sent,
    Tried,
    ensure_sound,
    packed,
    rename,
    sent_of,
)
from .crew import crew
from .reading import RunRow
from .store import Store
from .tables import RunTrial

FORMAT = 2
"""Format 1 has no head."""
MEMBER_ROWS = 50_000
"""Rows per Parquet member."""
WAITING = 2
"""Members of each process that may wait for those before, some 40 MB each."""
FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can represent."""
BYTES, TEXT, WHOLE, REAL = pl.Binary, pl.String, pl.Int64, pl.Float64
SCHEMAS: dict[str, dict[str, Any]] = {
    "exchanges": dict(zip(Sent._fields, (BYTES, BYTES, TEXT, TEXT, TEXT, TEXT, WHOLE, WHOLE, REAL, REAL), strict=True)),
    "trials": dict(zip(Tried._fields, (TEXT, WHOLE, TEXT, TEXT, BYTES, WHOLE), strict=True)),
    "attempts": dict(zip(Failed._fields, (BYTES, TEXT, TEXT, REAL), strict=True)),
}


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Content of `bundle.json`."""

    format: int
    run: str
    study: str
    state: str
    started: float
    finished: float | None
    counts: dict[str, int]
    """Rows by kind."""
    content: str
    """sha256 of the content without the run's name; equal in every store that has the run."""
    head: str = ""
    """Head of the run, see `evidence.run_head`."""
    unproved: float | None = None
    """The time before which a change of its answers cannot be found, if they are older than their digests."""

    def facts(self, manifest: str) -> Facts:
        """Return the state and times of the run."""
        return Facts(self.study, self.state, rename(manifest, ""), self.started, self.finished)


class Exported(NamedTuple):
    """The written bundle."""

    path: Path
    sha256: str
    """sha256 of the whole file."""
    counts: dict[str, int]
    absent: int
    """Number of images of requests that the store does not have."""
    head: str
    """Head of the run."""


def export_run(store: Store, run: RunRow, path: Path, processes: int = 1) -> Exported:
    """Write a run as a bundle; at most so many processes read and check its exchanges.

    Raises:
        UsageError: the file cannot be written.
        DataError: the run is damaged.
    """
    with replaced_whole(path, "Name another with --out.") as beside:
        with (
            crew(store, processes, size=lambda here: _trials(here, run)) as readers,
            zipfile.ZipFile(beside, "x") as archive,
        ):
            head = ensure_sound(readers.connection, run).hex()
            counts, absent = _Writer(archive, head).write(RunContent(readers, run))
        with beside.open("rb") as written:
            sha256 = hashlib.file_digest(written, "sha256").hexdigest()
    return Exported(path, sha256, counts, absent, head)


class _Frame(NamedTuple):
    """Rows as they are in a bundle."""

    packed: bytes
    """As they are added to the digest of the content."""
    parquet: bytes
    rows: int


class _Writer:
    def __init__(self, archive: zipfile.ZipFile, head: str) -> None:
        self._archive, self._head = archive, head
        self._digests: dict[str, str] = {}

    def write(self, content: RunContent) -> tuple[dict[str, int], int]:
        """Write all members, and return the rows by kind and the number of absent images."""
        digest, run = ContentDigest(content.facts), content.run
        counts = {"identities": len(identities := content.identities())}
        self._json("manifest.json", msgspec.json.decode(run.manifest))
        self._json("identities.json", {key.hex(): msgspec.json.decode(text) for key, text in identities})
        digest.add("identity", identities)
        trials = batched((tried for some in content.trials() for tried in some), MEMBER_ROWS)
        failures = batched(content.failures(), MEMBER_ROWS)
        parts = {
            "exchanges": content.exchanges(_exchanges, MEMBER_ROWS, WAITING),
            "trials": (_frame("trials", rows) for rows in trials),
            "attempts": (_frame("attempts", rows) for rows in failures),
        }
        for kind, frames in parts.items():
            counts[kind] = self._frames(kind, frames, digest)
        kept = self._pictures(content.pictures())
        digest.add("picture", kept.items())
        counts["images"] = len(kept)
        facts = content.facts._asdict()
        del facts["manifest"]
        head = Head(
            format=FORMAT,
            run=run.name,
            counts=counts,
            content=digest.hexdigest(),
            head=self._head,
            unproved=run.unproved,
            **facts,
        )
        self._json("bundle.json", head)
        self._json("digests.json", dict(sorted(self._digests.items())))
        return counts, len(content.images()) - len(kept)

    def _frames(self, kind: str, frames: Iterable[_Frame], digest: ContentDigest) -> int:
        count = 0
        for number, frame in enumerate(frames):
            digest.add_packed(frame.packed)
            self._member(f"{kind}/{number:05}.parquet", frame.parquet)
            count += frame.rows
        return count

    def _pictures(self, pictures: Iterator[Picture]) -> dict[str, str]:
        kept = {}
        for picture in pictures:
            self._member(f"blobs/{picture.sha256}", picture.data)
            kept[picture.sha256] = picture.media_type
        self._json("blobs.json", kept)
        return kept

    def _json(self, name: str, value: Any) -> None:
        self._member(name, msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2))

    def _member(self, name: str, data: bytes) -> None:
        info = zipfile.ZipInfo(name, FIRST_DAY)
        info.external_attr = 0o644 << 16
        info.create_system = 3  # a fixed value, since zip files record the system
        self._archive.writestr(info, data)
        self._digests[name] = hashlib.sha256(data).hexdigest()


def _trials(connection: sa.Connection, run: RunRow) -> int:
    table = table_of(RunTrial)
    return connection.scalar(sa.select(sa.func.count()).select_from(table).where(table.c.run_id == run.id)) or 0


def _exchanges(connection: sa.Connection, numbers: Sequence[int]) -> _Frame:
    return _frame("exchanges", sent_of(connection, numbers))


def _frame(kind: str, rows: Sequence[Any]) -> _Frame:
    buffer = BytesIO()
    pl.DataFrame(rows, schema=SCHEMAS[kind], orient="row").write_parquet(buffer)
    return _Frame(packed(KINDS[kind], rows), buffer.getvalue(), len(rows))


KINDS = {"exchanges": "exchange", "trials": "trial", "attempts": "failure"}
"""Names of the rows in the digest of the content."""
