"""A bundle: a store of one run in an SQLite file, compressed with gzip, which checks its bytes.

The run is copied as a merge copies it, and checked in the bundle as in any other store.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..contracts.errors import DataError
from ..contracts.files import replaced_whole
from .blame import UNEXPECTED, blame
from .bulk import byte_length, plain_rows, table_of
from .checks import Checks
from .damage import damaged
from .merge import copy
from .parts import PART_BEGINS, PartLengths
from .reading import RunRow, list_runs, statistics
from .run_checks import record_fault
from .snapshots import snapshot
from .store import Store
from .tables import Exchange, Part

EXPANSION, SMALL = 50, 64 << 20
"""A bundle has at most so many times its bytes when it is expanded, or so many bytes."""
CELL_BYTES = KEY_BYTES = 64 << 20
"""Most bytes of a row of a bundle, and of all answers to one request with their requests: they are copied together."""
LEVEL = 1
"""Of the compression: most of an exchange are digests, which no level makes smaller."""
COUNTED = {
    "identities": "Model",
    "exchanges": "Exchange",
    "trials": "RunTrial",
    "attempts": "Attempt",
    "images": "Blob",
}
"""What is counted of a bundle, and the tables of the rows."""
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
        with snapshot(store) as source:
            _copy_run(store, source, run, file)
        with Store(file, writable=False) as copied:
            checks, (copy_of_run,) = Checks(copied, processes), list_runs(copied)
            if any(checks.problems()) or run.head not in (None, copy_of_run.head):
                raise _damage_of(store, run)
            with snapshot(copied) as connection:
                ensure_sizes(connection)
            rows = statistics(copied)
        _compress(file, beside)
        with beside.open("rb") as written:
            sha256 = hashlib.file_digest(written, "sha256").hexdigest()
    counts = {kind: rows[table] for kind, table in COUNTED.items()}
    return Exported(path, sha256, counts, len(checks.absent), (copy_of_run.head or b"").hex())


def _copy_run(store: Store, source: sa.Connection, run: RunRow, file: Path) -> None:
    if (problem := record_fault(source, run)) is not None:
        raise damaged(f"run {run.name}", problem)
    try:
        with Store(file) as target:
            copy(target, source, "bundle", lambda *_: run.name, run)
    except UNEXPECTED as error:
        blame(store, error)
        raise


def _damage_of(store: Store, run: RunRow) -> DataError:
    """Return the error of a run whose copy is not sound, which names the row in the store that was copied."""
    problem = next(Checks(store).problems(), None)
    if problem is None:
        return damaged(f"run {run.name}", "its trials are not those that were recorded")
    return damaged(problem.where, problem.problem)


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
