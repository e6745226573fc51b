"""A run as one portable file: a zip of JSON, Parquet and images, with the sha256 of every member.

Equal content gives equal bytes: members have a fixed order and time, rows are sorted, and the zip does not compress
(Parquet files and images are compressed already).
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
import sqlalchemy as sa
from numpy.typing import NDArray

from ..contracts.errors import DataError
from ..contracts.files import replaced_whole
from .bulk import batched, table_of
from .content import ContentDigest, Facts, Failed, Picture, RunContent, Sent, Tried, ensure_sound, packed, rename
from .crew import crew
from .reachable import READ
from .reading import RunRow
from .signatures import Signed, signatures_of
from .store import Store
from .tables import RunTrial

FORMAT = 1
"""Format 1 has no head."""
MEMBER_ROWS = 50_000
"""Most rows of a Parquet member."""
MEMBER_BYTES, ROW_BYTES, SLICE_BYTES = 256 << 20, 64 << 20, 16 << 20
"""Most bytes of texts in a Parquet member, in a row, and in the rows that are in memory as objects at a time."""
FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can represent."""
EARLIER = "earlier"
"""Column of trials that a member lacks where none of them was asked again."""
BYTES, TEXT, WHOLE, REAL = pl.Binary, pl.String, pl.Int64, pl.Float64
SCHEMAS: dict[str, dict[str, Any]] = {
    "exchanges": dict(zip(Sent._fields, (BYTES, BYTES, TEXT, TEXT, TEXT, TEXT, WHOLE, WHOLE, REAL, REAL), strict=True)),
    "trials": dict(zip(Tried._fields, (TEXT, WHOLE, TEXT, TEXT, BYTES, WHOLE, BYTES), strict=True)),
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
        DataError: the run is damaged, or has a row that is too large.
    """
    with replaced_whole(path, "Name another with --out.") as beside:
        with (
            crew(store, processes, size=lambda here: _trials(here, run)) as readers,
            zipfile.ZipFile(beside, "x") as archive,
        ):
            head = ensure_sound(readers.connection, run).hex()
            writer = _Writer(archive, head)
            if signatures := signatures_of(readers.connection, run.id):
                writer.signatures(signatures)
            counts, absent = writer.write(RunContent(readers, run))
        with beside.open("rb") as written:
            sha256 = hashlib.file_digest(written, "sha256").hexdigest()
    return Exported(path, sha256, counts, absent, head)


class _Rows(NamedTuple):
    """Rows in two forms."""

    packed: bytes
    """As they are added to the digest of the content."""
    frame: pl.DataFrame


class _Writer:
    def __init__(self, archive: zipfile.ZipFile, head: str) -> None:
        self._archive, self._head = archive, head
        self._digests: dict[str, str] = {}

    def signatures(self, signatures: Sequence[Signed]) -> None:
        """Write the signatures of the run."""
        self._json("signatures.json", signatures)

    def write(self, content: RunContent) -> tuple[dict[str, int], int]:
        """Write all members, and return the rows by kind and the number of absent images."""
        digest, run = ContentDigest(content.facts), content.run
        counts = {"identities": len(identities := content.identities())}
        self._json("manifest.json", msgspec.json.decode(run.manifest))
        self._json("identities.json", {key.hex(): msgspec.json.decode(text) for key, text in identities})
        digest.add("identity", identities)
        trials = (tried for some in content.trials() for tried in some)
        parts = {
            "exchanges": content.exchanges(_exchanges),
            "trials": (_rows("trials", rows) for rows in batched(trials, READ)),
            "attempts": (_rows("attempts", rows) for rows in batched(content.failures(), READ)),
        }
        for kind, rows in parts.items():
            counts[kind] = self._tables(kind, rows, digest)
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
            **facts,
        )
        self._json("bundle.json", head)
        self._json("digests.json", dict(sorted(self._digests.items())))
        return counts, len(content.images) - len(kept)

    def _tables(self, kind: str, parts: Iterable[_Rows], digest: ContentDigest) -> int:
        def frames() -> Iterator[pl.DataFrame]:
            for part in parts:
                digest.add_packed(part.packed)
                yield part.frame

        count = 0
        for number, frame in enumerate(_members(kind, frames())):
            if kind == "trials" and not frame[EARLIER].bin.size().sum():
                frame = frame.drop(EARLIER)
            buffer = BytesIO()
            frame.write_parquet(buffer)
            self._member(f"{kind}/{number:05}.parquet", buffer.getvalue())
            count += frame.height
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


def row_bytes(frame: pl.DataFrame) -> NDArray[np.int64]:
    """Return how many bytes the texts of each row have; Polars holds equal texts once, other objects do not."""
    texts = [pl.col(name).str.len_bytes() for name, kind in frame.schema.items() if kind == TEXT]
    texts += [pl.col(name).bin.size() for name, kind in frame.schema.items() if kind == BYTES]
    return frame.select(pl.sum_horizontal(*texts).cast(WHOLE)).to_series().to_numpy()


def slices(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table, at most `READ` and about `SLICE_BYTES` at a time."""
    for part in frame.iter_slices(READ):
        groups = row_bytes(part).cumsum() // SLICE_BYTES
        starts = [0, *(np.flatnonzero(np.diff(groups)) + 1), part.height]
        yield from (part[start:end] for start, end in pairwise(starts))


def _members(kind: str, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield rows in tables of which each may be a member.

    Raises:
        DataError: a row is too large for a bundle.
    """
    waiting, rows, size = list[pl.DataFrame](), 0, 0
    for part in (part for frame in frames for part in slices(frame)):
        sizes = row_bytes(part)
        if (most := int(sizes.max(initial=0))) > ROW_BYTES:
            raise DataError(
                f"a row of {kind} has {most:,} bytes; a bundle holds rows of up to {ROW_BYTES:,}.", code="bundle.size"
            )
        added = int(sizes.sum())
        if waiting and (rows + part.height > MEMBER_ROWS or size + added > MEMBER_BYTES):
            yield pl.concat(waiting, rechunk=True)
            waiting, rows, size = [], 0, 0
        waiting.append(part)
        rows, size = rows + part.height, size + added
    if waiting:
        yield pl.concat(waiting, rechunk=True)


def _exchanges(rows: Sequence[Sent]) -> _Rows:
    return _rows("exchanges", rows)


def _rows(kind: str, rows: Sequence[Any]) -> _Rows:
    fields = [row.fields for row in rows] if kind == "trials" else rows
    return _Rows(packed(KINDS[kind], fields), pl.DataFrame(rows, schema=SCHEMAS[kind], orient="row"))


KINDS = {"exchanges": "exchange", "trials": "trial", "attempts": "failure"}
"""Names of the rows in the digest of the content."""
