"""Reading a bundle from somebody else. All content is checked before use, and nothing is unpacked to disk."""

from __future__ import annotations

import hashlib
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
import polars as pl
import sqlalchemy as sa

from ..contracts.errors import DataError
from ..contracts.inputs import ensure_file
from ..contracts.installing import upgrade_line
from ..contracts.processes import ProcessPool, start_helpers
from .bundle import EARLIER, FORMAT, KINDS, MEMBER_BYTES, MEMBER_ROWS, ROW_BYTES, SCHEMAS, Head, row_bytes, slices
from .chunks import Chunks
from .content import ContentDigest, Failed, Picture, Places, Proof, RunContent, Sent, Tried, packed, rename
from .crew import Crew, worthwhile
from .evidence import VERSION, answer_digest, trial_digest
from .intake import ensure_factors, ensure_identity, ensure_name, ensure_picture, ensure_whole
from .parquet_sizes import expanded_bytes
from .reading import RunRow, runs_of
from .signatures import Signed, attach, ensure_modest
from .snapshots import snapshot
from .store import Store

_MEMBER = re.compile(
    r"(?:bundle|manifest|identities|blobs|digests|signatures)\.json|(?:exchanges|trials|attempts)/\d{5}\.parquet|blobs/[0-9a-f]{64}"
)
NEEDED = ("bundle.json", "manifest.json", "identities.json", "blobs.json")
SHOWN = 5
BLOCK = 1 << 20
_ROWS: dict[str, Any] = {"exchanges": Sent, "trials": Tried, "attempts": Failed}


class Imported(NamedTuple):
    """The result of an import."""

    run: str
    """The run's name in this store."""
    new: bool
    """False if the store already had the run."""
    exchanges: int
    """Number of new exchanges."""
    images: int


class Bundle:
    """An open bundle whose members match their digests."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            ensure_file(self.path, sys.maxsize)
            self._archive = zipfile.ZipFile(self.path)
        except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
            problem = getattr(error, "strerror", None) or "it is not a bundle (not a zip file), or incomplete"
            raise DataError(f"cannot read {str(path)!r}: {problem}.", code="bundle.unreadable") from None
        try:
            self._check_members()
            self.head = self._decode("bundle.json", Head)
            self._check_format()
        except BaseException:
            self._archive.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._archive.close()

    @property
    def manifest(self) -> str:
        """Return the run's manifest."""
        return msgspec.json.encode(self._decode("manifest.json", dict[str, Any])).decode()

    def identities(self) -> list[tuple[bytes, str]]:
        """Return (digest, canonical identity) of each model."""
        found = self._decode("identities.json", dict[str, dict[str, Any]])
        return [(self._hex(name), msgspec.json.encode(value, order="sorted").decode()) for name, value in found.items()]

    def signatures(self) -> list[Signed]:
        """Return the signatures of the run."""
        if "signatures.json" not in self._archive.NameToInfo:
            return []
        signatures: list[Signed] = self._decode("signatures.json", list[Signed])
        try:
            ensure_modest(signatures)
        except ValueError as error:
            raise self._fault(f"signatures.json has {error}", "bundle.content") from None
        return signatures

    def rows(self, kind: str) -> Iterator[list[Any]]:
        """Yield the rows of a kind, in parts."""
        return (_rows(kind, part) for frame in self.frames(kind) for part in slices(frame))

    def frames(self, kind: str) -> Iterator[pl.DataFrame]:
        """Yield the rows of a kind as tables, one at a time."""
        return (self._frame(name, SCHEMAS[kind]) for name in self._names(rf"{kind}/.*"))

    def most(self, kind: str) -> int:
        """Return how many rows of a kind there can be at most."""
        return MEMBER_ROWS * len(self._names(rf"{kind}/.*"))

    def pictures(self) -> Iterator[Picture]:
        """Yield the images."""
        for name, media_type in self._decode("blobs.json", dict[str, str]).items():
            if f"blobs/{name}" not in self._archive.NameToInfo:
                raise self._fault(f"blobs.json names the image {name}, which is not in it", "bundle.members")
            yield Picture(name, media_type, self._read(f"blobs/{name}"))

    def _check_members(self) -> None:
        names = [info.filename for info in self._archive.infolist()]
        if odd := [name for name in names if not _MEMBER.fullmatch(name)]:
            raise self._fault(f"it has unknown members: {_some(odd)}", "bundle.members")
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise self._fault(f"it has duplicate members: {_some(twice)}", "bundle.members")
        compressed = [info for info in self._archive.infolist() if info.compress_type or info.flag_bits & 1]
        if compressed or sum(info.file_size for info in self._archive.infolist()) > self.path.stat().st_size:
            raise self._fault(
                "its members are compressed, or larger than the file itself. A bundle stores them as is",
                "bundle.compressed",
            )
        if "digests.json" not in names:
            raise self._fault("digests.json is missing", "bundle.members")
        self._check_digests(set(names) - {"digests.json"})

    def _check_digests(self, names: set[str]) -> None:
        digests = self._decode("digests.json", dict[str, str])
        if missing := sorted((digests.keys() | set(NEEDED)) - names):
            raise self._fault(f"missing: {_some(missing)}", "bundle.members")
        if added := sorted(names - digests.keys()):
            raise self._fault(f"added: {_some(added)}", "bundle.members")
        if differing := [name for name in sorted(names) if self._digest(name) != digests[name]]:
            raise self._fault(f"different from digests.json: {_some(differing)}", "bundle.digest")

    def _check_format(self) -> None:
        if self.head.format != FORMAT:
            mend = upgrade_line() if self.head.format > FORMAT else "export it again"
            raise DataError(
                f"{self.path} has format {self.head.format}; this version reads format {FORMAT}. To fix it: {mend}",
                code="bundle.format",
            )
        if not re.fullmatch("[0-9a-f]{64}", self.head.head):
            raise self._fault(f"bundle.json has the head {self.head.head[:80]!r}", "bundle.content")

    def _names(self, pattern: str) -> list[str]:
        return sorted(name for name in self._archive.namelist() if re.fullmatch(pattern, name))

    def _frame(self, name: str, schema: dict[str, Any]) -> pl.DataFrame:
        raw = self._read(name)
        data = BytesIO(raw)
        try:
            # The metadata is checked first, because a few bytes can encode an unlimited number of rows and of texts.
            if (size := expanded_bytes(raw)) > MEMBER_BYTES + ROW_BYTES:
                raise self._too_large(name, size)
            height = pl.scan_parquet(data).select(pl.len()).collect().item()
            own = pl.read_parquet_schema(data)
            if height > MEMBER_ROWS or own not in (schema, {n: kind for n, kind in schema.items() if n != EARLIER}):
                raise self._fault(f"{name} has other columns, or more rows, than a bundle has", "bundle.table")
            data.seek(0)
            frame = pl.read_parquet(data).with_columns(pl.lit(b"").alias(name) for name in schema if name not in own)
        except (ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise self._fault(f"{name} cannot be read ({str(error)[:200]})", "bundle.content") from None
        # A text that many rows repeat is in the file, and so far in memory, once: as objects each row has its own.
        sizes = row_bytes(frame)
        if (most := int(sizes.max(initial=0))) > ROW_BYTES:
            raise self._too_large(f"a row of {name}", most)
        if (size := int(sizes.sum())) > MEMBER_BYTES:
            raise self._too_large(name, size)
        # A trial without an answer has no exchange; all other cells are required.
        if empty := [column.name for column in frame if column.name != "exchange" and column.null_count()]:
            raise self._fault(f"{name} has empty cells in the column {empty[0]!r}", "bundle.table")
        return frame

    def _decode(self, name: str, kind: Any) -> Any:
        try:
            return msgspec.json.decode(self._read(name), type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._fault(f"{name} cannot be read ({error})", "bundle.content") from None

    def _read(self, name: str) -> bytes:
        try:
            return self._archive.read(name)
        except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, RuntimeError) as error:
            raise self._fault(f"{name} cannot be read ({error})", "bundle.content") from None

    def _digest(self, name: str) -> str | None:
        digest = hashlib.sha256()
        try:
            with self._archive.open(name) as member:
                while block := member.read(BLOCK):
                    digest.update(block)
        except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, RuntimeError):
            return None
        return digest.hexdigest()

    def _hex(self, text: str) -> bytes:
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise self._fault(f"identities.json has the digest {text[:80]!r}", "bundle.content") from None

    def _too_large(self, what: str, size: int) -> DataError:
        most = f"{MEMBER_BYTES:,} bytes, and a row {ROW_BYTES:,}"
        return self._fault(f"{what} holds {size:,} bytes; a file of a bundle holds at most {most}", "bundle.size")

    def _fault(self, problem: str, code: str) -> DataError:
        return DataError(f"{self.path} was changed or is damaged: {problem}. Nothing was imported.", code=code)


def import_bundle(store: Store, bundle: Bundle, name: str | None = None, processes: int = 1) -> Imported:
    """Import a bundle's run, as `name` if given, in chunks; importing it again changes nothing.

    All of it is checked before the first chunk, by at most so many processes. An import that was cut off goes on when
    it is begun again.

    Raises:
        DataError: the bundle is inconsistent, or another run has its name; nothing was imported.
        StoreError: the store cannot be written, or another process imports the same.
    """
    name, signatures = name or bundle.head.run, bundle.signatures()
    with snapshot(store) as here:
        present = _is_there(here, bundle, name)
    if present:
        attach(store, signatures)
        return Imported(name, False, 0, 0)
    taking = _Taking(bundle)
    ensure_name(name)
    with start_helpers(worthwhile(processes, bundle.most("exchanges")), nullcontext, ()) as helpers:
        taking.check(ProcessPool(helpers))
    with Chunks(store, f"bundle {bundle.head.content} {name}", taking.identities) as chunks:
        taking.take(chunks, name)
    attach(store, signatures)
    return Imported(name, True, chunks.added["exchanges"], chunks.added["images"])


def _is_there(here: sa.Connection, bundle: Bundle, name: str) -> bool:
    known: dict[str, RunRow] = {run.name: run for run in runs_of(here)}
    if name not in known:
        return False
    if RunContent(Crew(here), known[name]).digest() == bundle.head.content:
        return True
    mend = f"Import it under another name: --as {name}-2"
    raise DataError(f"the store has another run {name!r}, with other content. {mend}", code="bundle.run-differs")


class _Exchanges(NamedTuple):
    """Exchanges that were checked."""

    packed: bytes
    """As they are added to the digest of the content."""
    keys: bytes
    answers: bytes
    """Digests of the answers."""
    size: int
    """Bytes of their texts."""


class _Taking:
    """The import of one bundle into a store."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._facts = bundle.head.facts(bundle.manifest)
        self._head = bytes.fromhex(bundle.head.head)
        self.identities = dict(bundle.identities())

    def check(self, readers: ProcessPool) -> None:
        """Refuse a bundle that is inconsistent.

        Raises:
            DataError: naming what.
        """
        digest, head = ContentDigest(self._facts), hashlib.sha256(VERSION)
        for model, identity in self.identities.items():
            ensure_identity(model, identity)
        digest.add("identity", self.identities.items())
        keys, answers, models, size = bytearray(), bytearray(), frozenset(self.identities), 0
        parts = ((part, models) for frame in self._bundle.frames("exchanges") for part in slices(frame))
        for part in readers.map(_check_exchanges, parts):
            digest.add_packed(part.packed)
            # Those of one key are copied together.
            size = size + part.size if keys[-32:] == part.keys[:32] == part.keys[-32:] else part.size
            if size > MEMBER_BYTES:
                raise self._changed(f"its answers to one key hold more than {MEMBER_BYTES:,} bytes", "bundle.size")
            keys += part.keys
            answers += part.answers
        last: tuple[bytes, int] = (b"", -1)
        earlier = set[bytes]()
        for tried in self._bundle.rows("trials"):
            digest.add(KINDS["trials"], (trial.fields for trial in tried))
            trial: Tried
            for trial in tried:
                ensure_factors(trial)
                answer = self._answer(trial, keys, answers)
                head.update(trial_digest(*trial[:5], answer, trial.earlier))
                earlier.update(trial.earlier[start : start + 32] for start in range(0, len(trial.earlier), 32))
                if (place := (trial.stage.encode(), trial.ordinal)) <= last:
                    raise self._changed("its trials are not in the order of their plan", "bundle.content")
                last = place
        earlier.difference_update(bytes(answers[start : start + 32]) for start in range(0, len(answers), 32))
        if earlier:
            raise self._changed(f"{len(earlier):,} answers to earlier attempts are not in it", "bundle.exchange")
        for failed in self._bundle.rows("attempts"):
            digest.add(KINDS["attempts"], failed)
        pictures = []
        for picture in self._bundle.pictures():
            ensure_picture(picture)
            pictures.append((picture.sha256, picture.media_type))
        digest.add("picture", pictures)
        made = digest.hexdigest(), head.digest()
        if made != (self._bundle.head.content, self._head):
            raise self._changed("bundle.json has another digest of its content", "bundle.digest")

    def take(self, chunks: Chunks, name: str) -> None:
        """Import what was checked."""
        proof = Proof(None)
        rows = ((place, row, proof) for place, row in enumerate(self._every("exchanges")))
        numbers = [np.array(here, dtype=np.int64) for _, here in chunks.exchanges(rows)]
        places = np.concatenate([np.empty(0, dtype=np.int64), *numbers])
        chunks.pictures(self._bundle.pictures())
        run_id = chunks.begin_run(self._bundle.head.content)
        chunks.trials(run_id, (_numbered(row, places) for row in self._every("trials")))
        chunks.failures(run_id, self._every("attempts"))

        def free(here: sa.Connection) -> str | None:
            return None if _is_there(here, self._bundle, name) else name

        def values(name: str) -> Mapping[str, Any]:
            return {**self._facts._asdict(), "manifest": rename(self._facts.manifest, name)}

        chunks.end_run(run_id, free, values)

    def _every(self, kind: str) -> Iterator[Any]:
        return (row for rows in self._bundle.rows(kind) for row in rows)

    def _answer(self, row: Tried, keys: bytearray, answers: bytearray) -> bytes | None:
        """Return the digest of a trial's answer."""
        if row.exchange is None:
            return None
        place = slice(32 * row.exchange, 32 * row.exchange + 32)
        if row.exchange < 0 or bytes(keys[place]) != row.key:
            where = f"trial {row.trial!r} of stage {row.stage!r}"
            raise self._changed(f"{where} refers to the exchange of another key", "bundle.exchange")
        return bytes(answers[place])

    def _changed(self, problem: str, code: str) -> DataError:
        return DataError(f"{self._bundle.path} was changed: {problem}.", code=code)


def _check_exchanges(frame: pl.DataFrame, models: Container[bytes]) -> _Exchanges:
    rows: list[Sent] = _rows("exchanges", frame)
    for row in rows:
        ensure_whole(row, models)
    answers = b"".join(answer_digest(row.key, row.operation, *row[4:]) for row in rows)
    size = int(row_bytes(frame).sum())
    return _Exchanges(packed(KINDS["exchanges"], rows), b"".join(row.key for row in rows), answers, size)


def _rows(kind: str, frame: pl.DataFrame) -> list[Any]:
    return [_ROWS[kind](*row) for row in frame.iter_rows()]


def _numbered(row: Tried, places: Places) -> Tried:
    return row if row.exchange is None else row._replace(exchange=int(places[row.exchange]))


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(repr(name) for name in names[:SHOWN]) + more
