"""A bundle: a store of one run in an SQLite file, compressed with gzip, which checks its bytes.

Its rows have the ids of the store that they come from, and are checked in the bundle as those of any other store.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import SQLModel

from ..contracts.errors import DataError
from ..contracts.files import replaced_whole
from .bulk import LOOKUP, batched, byte_length, insert_many, plain_rows, table_of
from .content import facts_of
from .crew import crew
from .damage import damaged
from .engine import translated
from .evidence import recount, seal
from .merge import check
from .parts import PART_BEGINS, PartLengths, part_numbers
from .reachable import converted_from, gather_uses, images_in
from .reading import RunRow, list_runs
from .run_checks import record_fault
from .schema import create_schema
from .snapshots import snapshot
from .store import Store
from .tables import Attempt, Blob, Exchange, Model, Part, Run, RunTrial, Signature

EXPANSION, SMALL = 50, 64 << 20
"""A bundle has at most so many times its bytes when it is expanded, or so many bytes."""
CELL_BYTES = KEY_BYTES = 64 << 20
"""Most bytes of a row of a bundle, and of all answers to one request with their requests: they are copied together."""
LEVEL = 1
"""Of the compression: most of an exchange are digests, which no level makes smaller."""
ROWS = 500
"""Rows that are copied at a time."""
KINDS = {"run", "model", "part", "exchange", "run_trial", "attempt", "signature", "blob", "tally", "migration"}
"""Tables of which a bundle has rows."""


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
    """Write a run as a bundle; at most so many processes check its exchanges.

    Raises:
        UsageError: the file cannot be written.
        DataError: the run is damaged, or has a row that is too large.
    """
    with (
        replaced_whole(path, "Name another with --out.") as beside,
        TemporaryDirectory(prefix=".prejudge-", dir=beside.parent, ignore_cleanup_errors=True) as folder,
    ):
        file = Path(folder) / "bundle.db"
        with new_store(file) as target, snapshot(store) as source:
            counts = _Copy(source, target, run).copy()
            ensure_sizes(target)
        file.chmod(0o400)
        with Store(file, writable=False) as copied, crew(copied, processes) as readers:
            absent = len(check(readers)) - counts["images"]
            (exported,) = list_runs(copied)
        _compress(file, beside)
        with beside.open("rb") as written:
            sha256 = hashlib.file_digest(written, "sha256").hexdigest()
    return Exported(path, sha256, counts, absent, (exported.head or b"").hex())


def ensure_sizes(connection: sa.Connection) -> None:
    """Refuse exchanges of a bundle that would take much memory.

    Raises:
        DataError: an exchange, or all of one request, are too large.
    """
    exchange, answers = table_of(Exchange), sa.func.count()
    lengths = [byte_length(connection, column) for column in (exchange.c.request, exchange.c.response)]
    size = sa.func.sum(lengths[0] + lengths[1])
    longest = connection.scalar(sa.select(sa.func.max(byte_length(connection, table_of(Part).c.literal)))) or 0
    most = answers * (sa.func.max(lengths[0]) // len(PART_BEGINS)) * longest
    columns: list[Any] = [answers, size, sa.func.max(exchange.c.request)]
    query = sa.select(*columns).group_by(exchange.c.key)
    parts = PartLengths(connection)
    for ((number, total, request),) in plain_rows(connection, query.having(size + most > KEY_BYTES), 1):
        if (total := total + number * parts.of(request)) > KEY_BYTES:
            problem = f"the answers to one request have {total:,} bytes; a bundle holds up to {KEY_BYTES:,} of them."
            raise DataError(problem, code="bundle.size")


class _Copy:
    """The copying of the rows of one run."""

    def __init__(self, source: sa.Connection, target: sa.Connection, run: RunRow) -> None:
        self._source, self._target, self._run = source, target, run
        self._parts, self._images = set[int](), set[str]()

    def copy(self) -> dict[str, int]:
        """Copy all rows, and return their numbers by kind.

        Raises:
            DataError: the record of the run was changed while it was running.
        """
        used = sa.select(gather_uses(self._source, "used_by_run", table_of(RunTrial).c.run_id == self._run.id).c.id)
        exchange, model = table_of(Exchange), table_of(Model)
        models = sa.select(exchange.c.model_id).where(exchange.c.id.in_(used))
        counts = {"identities": self._rows(Model, model.c.id.in_(models))}
        counts["exchanges"] = self._rows(Exchange, exchange.c.id.in_(used))
        for some in batched(sorted(self._parts), LOOKUP):
            self._rows(Part, table_of(Part).c.id.in_(some))
        self._rows(Run, table_of(Run).c.id == self._run.id)
        for name, kind in (("trials", RunTrial), ("attempts", Attempt), ("signatures", Signature)):
            counts[name] = self._rows(kind, table_of(kind).c.run_id == self._run.id)
        del counts["signatures"]
        counts["images"] = sum(self._rows(Blob, table_of(Blob).c.sha256 == name) for name in sorted(self._images))
        for name in converted_from(self._source, self._images):
            self._rows(Blob, table_of(Blob).c.sha256 == name)
        self._record()
        recount(self._target)
        return counts

    def _rows(self, kind: type[SQLModel], where: sa.ColumnElement[bool]) -> int:
        """Copy the rows of a table, by their primary key, and return how many they are."""
        table, count = table_of(kind), 0
        names = [column.name for column in table.columns]
        query = sa.select(table).where(where).order_by(*table.primary_key.columns)
        with closing(plain_rows(self._source, query, ROWS)) as parts:
            for rows in parts:
                with translated(self._target.engine.url):
                    insert_many(self._target, table, names, rows)
                count += len(rows)
                if kind is Exchange:
                    self._note(text for row in rows for text in row if isinstance(text, str))
        return count

    def _note(self, texts: Iterable[str]) -> None:
        """Note the shared texts and the images of exchanges."""
        for text in texts:
            if PART_BEGINS in text:
                self._parts |= part_numbers(text)
            self._images |= images_in(text)

    def _record(self) -> None:
        """Remove what is never handed on of the run, and give it a safe name; a running one is interrupted there."""
        table, run = table_of(Run), self._run
        self._target.execute(sa.update(table).values(name=run.name, local=None, state=facts_of(run).state))
        if run.state == "running":
            if (problem := record_fault(self._source, run)) is not None:
                raise damaged(f"run {run.name}", problem)
            seal(self._target, run.id)


@contextmanager
def new_store(file: Path) -> Iterator[sa.Connection]:
    """Create a store in a file that nobody else writes and that needs no log, and yield a connection to write it."""
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(file)))
    try:
        create_schema(engine)
        with engine.connect() as target:
            for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-65536"):
                target.exec_driver_sql(f"PRAGMA {pragma}")
            yield target
            target.commit()
    finally:
        engine.dispose()


def _compress(file: Path, path: Path) -> None:
    """Compress a file, unless it would look like a bomb: whoever reads it refuses one."""
    size = file.stat().st_size
    for level in (LEVEL, 0):
        with file.open("rb") as plain, path.open("wb") as raw:
            # Without a name and a time, so that the file says nothing of this machine.
            with gzip.GzipFile("", "wb", level, raw, mtime=0) as written:
                shutil.copyfileobj(plain, written, 1 << 20)
        if size <= max(SMALL, EXPANSION * path.stat().st_size):
            return
