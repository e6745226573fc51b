"""Reading a bundle from somebody else: it is expanded to a temporary file, and all of it is checked before use."""

from __future__ import annotations

import gzip
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ..contracts.errors import DataError, PrejudgeError, StoreError
from ..contracts.inputs import ensure_file
from ..contracts.installing import upgrade_line
from .blame import UNEXPECTED, fits
from .bulk import table_of
from .bundle import CELL_BYTES, EXPANSION, KINDS, SMALL, ensure_sizes
from .checks import Checks
from .content import run_digest
from .crew import Crew, crew
from .damage import DamageError
from .intake import ensure_name
from .merge import check, copy
from .reachable import gather_uses
from .reading import RunRow, runs_of
from .signatures import attach, ensure_modest, signatures_of
from .snapshots import snapshot
from .store import Store
from .tables import Exchange, Run, RunTrial, StoreTable

MAGIC = b"\x1f\x8b"
"""The first bytes of a file of gzip."""
BLOCK = 1 << 20


class Imported(NamedTuple):
    """The result of an import."""

    run: str
    """The run's name in this store."""
    new: bool
    """False if the store already had the run."""
    exchanges: int
    """Number of new exchanges."""
    images: int


def is_bundle(path: str | Path) -> bool:
    """Return whether a file may be a bundle; a store is none."""
    try:
        with Path(path).open("rb") as file:
            return file.read(2) == MAGIC
    except OSError:
        return False


class Bundle:
    """An open bundle: a store of one run, with the schema of this version, that cannot be written."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._folder = TemporaryDirectory(prefix="prejudge-", ignore_cleanup_errors=True)
        try:
            file = Path(self._folder.name) / "bundle.db"
            self._expand(file)
            file.chmod(0o400)
            with self.blamed():
                self._check_file(file)
                self.store = Store(file, writable=False)
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.store.close()
        self._folder.cleanup()

    def check(self, readers: Crew) -> RunRow:
        """Check all rows, and return the run.

        Raises:
            DataError: something is not as it was stored, or does not belong to one run.
        """
        connection = readers.connection
        with self.blamed():
            if len(runs := runs_of(connection)) != 1:
                raise self.fault(f"it has {len(runs):,} runs, not one", "bundle.content")
            names = table_of(Run)
            ensure_name(connection.execute(sa.select(names.c.name).where(names.c.id == runs[0].id)).scalar_one())
            try:
                ensure_modest(signatures_of(connection))
            except ValueError as error:
                raise self.fault(f"it has {error}", "bundle.content") from None
            ensure_sizes(connection)
            check(readers, Checks(self.store))
            used = gather_uses(connection, "used_by_run", table_of(RunTrial).c.run_id == runs[0].id)
            counts = [connection.scalar(sa.select(sa.func.count()).select_from(t)) for t in (table_of(Exchange), used)]
            if counts[0] != counts[1]:
                raise self.fault(f"its run uses {counts[1]:,} of its {counts[0]:,} answers", "bundle.content")
        return runs[0]

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Turn what reading a damaged store raises into the error of a bundle.

        Raises:
            DataError: the bundle was changed or is damaged.
        """
        try:
            yield
        except DamageError as error:
            raise self.fault(error.problem, "bundle.digest") from None
        except StoreError as error:
            raise self.fault(str(error), "bundle.content") from None
        except PrejudgeError:
            raise
        except (*UNEXPECTED, SQLAlchemyError) as error:
            raise self.fault(f"it cannot be read ({str(error)[:200]})", "bundle.content") from None

    def fault(self, problem: str, code: str) -> DataError:
        """Return the error of a bundle that was changed or is damaged."""
        return DataError(f"{self.path} was changed or is damaged: {problem}. Nothing was imported.", code=code)

    def _expand(self, file: Path) -> None:
        """Expand the file, as far as it may be.

        Raises:
            DataError: it is no bundle, incomplete, or too large.
        """
        try:
            ensure_file(self.path, sys.maxsize)
            most, size = max(SMALL, EXPANSION * self.path.stat().st_size), 0
            with gzip.open(self.path) as packed, file.open("xb") as expanded:
                while block := packed.read(BLOCK):
                    size += len(block)
                    if size > most:
                        problem = f"it expands to over {most:,} bytes, {EXPANSION} times its size"
                        raise self.fault(problem, "bundle.size")
                    expanded.write(block)
        except (OSError, ValueError, EOFError, zlib.error) as error:
            problem = getattr(error, "strerror", None) or f"it is not a bundle, or incomplete ({error})"
            raise DataError(f"cannot read {str(self.path)!r}: {problem}.", code="bundle.unreadable") from None

    def _check_file(self, file: Path) -> None:
        """Refuse a file with anything but the tables of a store, or with values that no bundle has.

        Raises:
            DataError: naming what.
        """
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, CELL_BYTES)
            for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
                connection.execute(f"PRAGMA {pragma}")
            try:
                if _schema_of(connection) != _schema():
                    raise DataError(
                        f"{self.path} is not a bundle of this version: its tables are others. Export the run again "
                        f"with this version, or upgrade: {upgrade_line()}",
                        code="bundle.format",
                    )
                ((sound,),) = connection.execute("PRAGMA integrity_check(1)")
                if sound != "ok":
                    raise self.fault(str(sound), "bundle.content")
                for table in StoreTable.metadata.tables.values():
                    self._check_values(connection, table)
            except sqlite3.Error as error:
                if "too big" in str(error):
                    raise self.fault(f"a value has more than {CELL_BYTES:,} bytes", "bundle.size") from None
                if "not a database" in str(error):
                    raise DataError(f"{self.path} is not a bundle.", code="bundle.unreadable") from None
                raise self.fault(f"it cannot be read ({error})", "bundle.content") from None

    def _check_values(self, connection: sqlite3.Connection, table: sa.Table) -> None:
        lengths = " + ".join(f'coalesce(length(CAST("{name}" AS BLOB)), 0)' for name in table.c.keys())
        others = [f"sum(NOT {fits(column)})" for column in table.c]
        query = f'SELECT count(*), max({lengths}), {", ".join(others)} FROM "{table.name}"'
        ((rows, longest, *wrong),) = connection.execute(query)
        if rows and table.name not in KINDS:
            raise self.fault(f"it has {rows:,} rows of the table {table.name}", "bundle.content")
        if odd := [name for name, count in zip(table.c.keys(), wrong, strict=True) if count]:
            raise self.fault(f"{table.name}.{odd[0]} holds values of another type", "bundle.content")
        if (longest or 0) > CELL_BYTES:
            raise self.fault(f"a row of {table.name} has {longest:,} bytes", "bundle.size")


def import_bundle(store: Store, bundle: Bundle, name: str | None = None, processes: int = 1) -> Imported:
    """Import a bundle's run, as `name` if given, in chunks; importing it again changes nothing.

    All of it is checked before the first chunk, by at most so many processes. An import that was cut off goes on when
    it is begun again.

    Raises:
        DataError: the bundle is inconsistent, or another run has its name; nothing was imported.
        StoreError: the store cannot be written, or another process imports the same.
    """
    with crew(bundle.store, processes) as readers:
        run, source = bundle.check(readers), readers.connection
        digest, wanted = run_digest(source, run), name or run.name
        ensure_name(wanted)

        def free(connection: sa.Connection, _: RunRow, digest: str) -> str | None:
            return None if _is_there(connection, wanted, digest) else wanted

        with snapshot(store) as connection:
            present = free(connection, run, digest) is None
        if present:
            attach(store, signatures_of(source))
            return Imported(wanted, False, 0, 0)
        added, _ = copy(store, source, f"bundle {digest} {wanted}", free)
    return Imported(wanted, True, added["exchanges"], added["images"])


def _is_there(here: sa.Connection, name: str, digest: str) -> bool:
    runs: dict[str, RunRow] = {run.name: run for run in runs_of(here)}
    if name not in runs:
        return False
    if run_digest(here, runs[name]) == digest:
        return True
    mend = f"Import it under another name: --as {name}-2"
    raise DataError(f"the store has another run {name!r}, with other content. {mend}", code="bundle.run-differs")


def _schema_of(connection: sqlite3.Connection) -> set[tuple[Any, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


@cache
def _schema() -> set[tuple[Any, ...]]:
    """Return the schema of a new store of this version."""
    with TemporaryDirectory(prefix="prejudge-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "new.db"
        Store(file).close()
        with closing(sqlite3.connect(file)) as connection:
            return _schema_of(connection)
