"""Copying into a store in chunks: no writer waits long for the lock, and a copy that was cut off is taken up again.

Before the first chunk a row of the table `run` with the state `importing` and a name that no run can have is written.
It is nobody's run: `runs_of` leaves it out. While it is there, `prune` spares every answer that is newer than it. A run
that is copied is such a row until its last chunk, which gives it its name; so is a batch a row of the table `batch`. A
chunk that is written twice is there once: a copy that begins again finds what it had written.

A chunk ends when it has held the lock for as long as it may: on a disk that has become slow it has fewer rows than were
meant for it. What cannot be divided is a piece of `PIECE` rows, and the commit.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby, islice
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import sqlalchemy as sa

from ..contracts.errors import StoreError
from .bulk import batched, insert_many, table_of
from .content import Failed, Picture, Stored, Tried
from .evidence import IMPORTING, RECORDED, sums_of, tally, weigh
from .holders import held
from .intake import Intake, ensure_name
from .snapshots import snapshot
from .store import Store
from .tables import Attempt, Batch, BatchItem, Exchange, Holder, Model, Run, RunTrial

CHUNK = 50_000
"""Most rows of a chunk."""
PIECE, FIRST = 250, 1_000
"""Rows of a piece, after each of which the clock is looked at; rows that are meant for a first chunk."""
REMOVED = 1_000
"""Rows that one transaction removes."""
LONG = 1_000
"""Characters or bytes that count as one more row, so that a chunk of images or long texts has fewer."""
LOCKED_SECONDS = 0.1
"""For how long a chunk is meant to hold the write lock; the next one is given more or fewer rows accordingly."""
T = TypeVar("T")
R = TypeVar("R")


class _Unfinished(NamedTuple):
    """Ids of rows of copies."""

    runs: list[int]
    batches: list[int]


class _Piece(NamedTuple):
    """Rows that are written together."""

    rows: list[Any]
    size: int
    """How many rows they count as."""


class Chunks:
    """The writing transactions of one copy; its `name` is the same when it is taken up again."""

    def __init__(self, store: Store, name: str, identities: Mapping[bytes, str]) -> None:
        self.added: Counter[str] = Counter()
        self._store, self._identities, self._began = store, identities, 0.0
        self._name = f".{hashlib.sha256(name.encode()).hexdigest()[:32]}"
        self._first = 0
        store.watch_holders(lambda run: run == self._name)
        self._mark = self.commit(self._begin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._store.holds.drop(self._mark)
        if kind is None:
            self._forget()

    def commit(self, write: Callable[[sa.Connection], T]) -> T:
        """Write in one transaction, which has to give the same when it is written twice.

        Raises:
            StoreError: the store cannot be written.
        """

        def timed(here: sa.Connection) -> T:
            self._began = time.monotonic()
            self._store.holds.beat(here)
            return write(here)

        return _commit(self._store, timed)

    def exchanges(self, rows: Iterable[Stored]) -> Iterator[tuple[list[Stored], list[int]]]:
        """Copy exchanges that were checked, and yield them with their ids in this store.

        All those of a key have to follow each other: they are copied together.
        """

        def take(intake: Intake, part: Sequence[Stored]) -> list[int]:
            digests = {row.sent.identity for row in part}
            intake.identities((digest, self._identities[digest]) for digest in digests)
            return intake.exchanges(part)

        yield from self._copied(rows, lambda row: row.sent.key, _characters, take)

    def renewals(self, rows: Iterable[tuple[int, str]]) -> None:
        """Copy why exchanges were asked for; they are ids of this store."""
        self._copy(rows, lambda row: row[0], Intake.renewals)

    def pictures(self, rows: Iterable[Picture]) -> None:
        """Copy images."""
        self._copy(rows, lambda row: row.sha256, Intake.pictures)

    def begin_run(self, content: str) -> int:
        """Return the id of a row that becomes a run; `content` tells it from the others of this copy."""
        return self.commit(lambda here: self._row(here, f"{self._name}-{content}"))

    def trials(self, run_id: int, rows: Iterable[Tried]) -> None:
        """Copy the trials of a run, in plan order, that are not there; their exchanges are ids of this store."""

        def take(intake: Intake, part: Sequence[Tried]) -> None:
            first = {"run_id": run_id, "stage": part[0].stage, "ordinal": part[0].ordinal}
            if intake.connection.scalar(sa.select(table_of(RunTrial).c.ordinal).filter_by(**first)) is None:
                intake.trials(run_id, part)

        self._copy(islice(rows, self._count(RunTrial, run_id), None), lambda row: (row.stage, row.ordinal), take)

    def failures(self, run_id: int, rows: Iterable[Failed]) -> None:
        """Copy the failed calls of a run, but for those that are there."""
        table = table_of(Attempt)
        number = count()
        for part, _ in _pieces(islice(rows, self._count(Attempt, run_id), None), lambda _: next(number), _length):
            # Only newer rows show whether the part was written before: to count the run's would read the whole table.
            last = self.read(lambda connection: connection.scalar(sa.select(sa.func.max(table.c.id)))) or 0
            newer = sa.select(table.c.id).where(table.c.id > last, table.c.run_id == run_id).limit(1)

            def write(here: sa.Connection, part: list[Failed] = part, newer: sa.Select[Any] = newer) -> None:
                if here.scalar(newer) is None:
                    Intake(here).failures(run_id, part)

            self.commit(write)

    def batch(self, row: Mapping[str, Any], identity: bytes, items: Iterable[Mapping[str, Any]]) -> None:
        """Copy a batch that has ended, if it is not there; it is one from its last chunk on.

        Args:
            row: its columns, but `id` and `model_id`.
            identity: the digest of its model.
            items: the columns of its items, but `batch_id`; their exchanges are ids of this store.
        """
        batch, model, kind = table_of(Batch), table_of(Model), table_of(BatchItem)
        stored, unfinished = sa.select(batch.c.id).where(batch.c.mark == row["mark"]), f"{self._name}-{row['mark']}"

        def begin(here: sa.Connection) -> int | None:
            if here.scalar(stored) is not None:
                return None
            batch_id = here.scalar(sa.select(batch.c.id).where(batch.c.mark == unfinished))
            asked = here.scalar(sa.select(model.c.id).where(model.c.digest == identity))
            values = {**row, "model_id": asked, "worker_id": 0, "mark": unfinished, "state": IMPORTING}
            return int(batch_id or here.execute(sa.insert(batch).values(values).returning(batch.c.id)).scalar_one())

        if (number := self.commit(begin)) is None:
            return
        names = [column.name for column in kind.c if column.name != "batch_id"]

        def take(intake: Intake, part: Sequence[tuple[Any, ...]]) -> None:
            keys = [item[0] for item in part]
            stored_keys = sa.select(kind.c.key).where(kind.c.batch_id == number, kind.c.key.in_(keys))
            met = set(map(bytes, intake.connection.scalars(stored_keys)))
            insert_many(
                intake.connection, kind, ["batch_id", *names], [(number, *item) for item in part if item[0] not in met]
            )

        def end(here: sa.Connection) -> None:
            if here.scalar(stored) is None:  # else another copy brought it meanwhile, and this one is removed
                change = sa.update(batch).where(batch.c.id == number)
                here.execute(change.values(mark=row["mark"], state=row["state"]))

        self._copy((tuple(item[name] for name in names) for item in items), lambda item: item[0], take)
        self.commit(end)

    def end_run(
        self, run_id: int, name: Callable[[sa.Connection], str | None], values: Callable[[str], Mapping[str, Any]]
    ) -> str | None:
        """Make a row a run: this is its last chunk.

        Args:
            run_id: the row.
            name: a name that is free, or None if the run is not wanted after all; read from the store.
            values: the columns of the run of a name, all of `RECORDED` among them.

        Returns:
            The name.

        Raises:
            DataError: the name is not valid for a folder.
        """
        while True:
            if (chosen := self.read(name)) is None:
                return None
            ensure_name(chosen)
            row = dict(values(chosen))
            record = [row[column] for column in RECORDED]
            row |= self.read(lambda connection, record=record: sums_of(connection, run_id, record))  # type: ignore[misc]
            if self.commit(lambda here, row=row, chosen=chosen: _named(here, run_id, chosen, row)):  # type: ignore[misc]
                self.added["runs"] += 1
                return chosen

    def read(self, look: Callable[[sa.Connection], T]) -> T:
        """Return what is read from the store."""
        with snapshot(self._store) as connection:
            return look(connection)

    def _copy(self, rows: Iterable[T], key: Callable[[T], Any], take: Callable[[Intake, Sequence[T]], None]) -> None:
        for _ in self._copied(rows, key, _length, take):
            pass

    def _copied(
        self,
        rows: Iterable[T],
        key: Callable[[T], Any],
        length: Callable[[T], int],
        take: Callable[[Intake, list[T]], R],
    ) -> Iterator[tuple[list[T], R]]:
        """Copy rows in chunks, and yield each piece that is written with what `take` gives for it."""
        pieces, waiting, size = _pieces(rows, key, length), deque[_Piece](), FIRST
        while True:
            while sum(piece.size for piece in waiting) < size and (piece := next(pieces, None)) is not None:
                waiting.append(piece)
            if not waiting:
                return
            results, added = self.commit(lambda here, size=size: _write(here, waiting, size, take))  # type: ignore[misc]
            held_for = max(time.monotonic() - self._began, 0.001)
            self.added.update(added)
            done = [waiting.popleft() for _ in results]
            size = int(sum(piece.size for piece in done) * min(2.0, LOCKED_SECONDS / held_for))
            size = max(PIECE, min(CHUNK, size))
            yield from zip((piece.rows for piece in done), results, strict=True)

    def _begin(self, here: sa.Connection) -> int:
        table, exchange = table_of(Run), table_of(Exchange)
        row = here.execute(sa.select(table.c.id, table.c.manifest).where(table.c.name == self._name)).first()
        if row is not None and self._name in held(here):
            raise StoreError(
                "another process copies from the same source into this store. Wait until it ends.", code="run.running"
            )
        newest = here.scalar(sa.select(sa.func.max(exchange.c.id))) or 0
        self._first = int(newest if row is None else row.manifest)
        mark = self._row(here, self._name)
        self._store.holds.take(here, mark)
        return mark

    def _row(self, here: sa.Connection, name: str) -> int:
        table = table_of(Run)
        run_id = here.scalar(sa.select(table.c.id).where(table.c.name == name))
        values = {"name": name, "study": "", "state": IMPORTING, "manifest": str(self._first), "started": time.time()}
        return int(run_id or here.execute(sa.insert(table).values(values).returning(table.c.id)).scalar_one())

    def _count(self, kind: type[RunTrial] | type[Attempt], run_id: int) -> int:
        return self.read(lambda connection: _count(connection, kind, run_id))

    def _forget(self) -> None:
        """Remove the rows of this copy, and what an earlier one left of a run or a batch that changed meanwhile."""

        def ours(name: str) -> bool:
            return name == self._name or name.startswith(f"{self._name}-")

        _remove(self._store, self.read(lambda connection: _unfinished(connection, ours)))


def spared(here: sa.Connection) -> int | None:
    """Return the id above which exchanges may belong to an unfinished copy; None if there is none."""
    table = table_of(Run)
    marks = here.scalars(sa.select(table.c.manifest).where(table.c.state == IMPORTING)).all()
    return min(map(int, marks), default=None)


def give_up(store: Store) -> None:
    """Remove, in chunks, what copies that nobody goes on with have copied of runs; their answers are then of no run.

    Raises:
        StoreError: the store cannot be written.
    """

    def claim(here: sa.Connection) -> _Unfinished:
        """Rename the rows first: a copy that is begun again meanwhile must not go on with what is half removed."""
        alive = held(here)
        left = _unfinished(here, lambda name: not any(name == copy or name.startswith(f"{copy}-") for copy in alive))
        run, batch = table_of(Run), table_of(Batch)
        for number in left.runs:
            here.execute(sa.update(run).where(run.c.id == number).values(name=f".given-up-{number}"))
        for number in left.batches:
            here.execute(sa.update(batch).where(batch.c.id == number).values(mark=f".given-up-{number}"))
        return left

    _remove(store, _commit(store, claim))


def _commit(store: Store, write: Callable[[sa.Connection], T]) -> T:
    def attempt(_: bool) -> T:
        with store.writing() as connection:
            return write(connection)

    return store.patience.endure(attempt)


def _write(
    here: sa.Connection, pieces: Iterable[_Piece], size: int, take: Callable[[Intake, list[T]], R]
) -> tuple[list[R], dict[str, int]]:
    """Write pieces up to a size, or until the lock was held for long enough; return what each gave, and what is new."""
    began, intake, results = time.monotonic(), Intake(here), list[R]()
    for piece in pieces:
        results.append(take(intake, piece.rows))
        size -= piece.size
        if size <= 0 or time.monotonic() - began > LOCKED_SECONDS:
            break
    return results, intake.added


def _pieces(rows: Iterable[T], key: Callable[[T], Any], length: Callable[[T], int]) -> Iterator[_Piece]:
    """Yield rows in pieces; neighbours of one key stay together."""
    part, size = list[T](), 0
    for _, group in groupby(rows, key):
        for row in group:
            part.append(row)
            size += 1 + length(row) // LONG
        if size >= PIECE:
            yield _Piece(part, size)
            part, size = [], 0
    if part:
        yield _Piece(part, size)


def _characters(row: Stored) -> int:
    return len(row.sent.request) + len(row.sent.response)


def _length(row: Any) -> int:
    return sum(len(value) for value in row if isinstance(value, str | bytes))


def _unfinished(connection: sa.Connection, ours: Callable[[str], bool]) -> _Unfinished:
    """Return the rows that are no runs and batches yet, those with a name for which `ours` holds."""
    run, batch = table_of(Run), table_of(Batch)
    names = ((run.c.id, run.c.name, run.c.state), (batch.c.id, batch.c.mark, batch.c.state))
    queries = [sa.select(number, name).where(state == IMPORTING) for number, name, state in names]
    return _Unfinished(*([number for number, name in connection.execute(query) if ours(name)] for query in queries))


def _remove(store: Store, left: _Unfinished) -> None:
    """Remove rows of copies with all that belongs to them, some in each transaction."""
    run, trials, attempts, holder = table_of(Run), table_of(RunTrial), table_of(Attempt), table_of(Holder)
    batch, items = table_of(Batch), table_of(BatchItem)
    with snapshot(store) as connection:  # nothing finds the calls of a run but reading all, which must hold no lock
        failed = list(connection.scalars(sa.select(attempts.c.id).where(attempts.c.run_id.in_(left.runs))))
    for some in batched(failed, REMOVED):
        _commit(store, lambda here, some=some: here.execute(sa.delete(attempts).where(attempts.c.id.in_(some))))  # type: ignore[misc]
    rows = [(trials, trials.c.run_id == number) for number in left.runs]
    for table, where in [*rows, *((items, items.c.batch_id == number) for number in left.batches)]:
        while _commit(store, lambda here, table=table, where=where: _fewer(here, table, where)):  # type: ignore[misc]
            pass

    def last(here: sa.Connection) -> None:
        here.execute(sa.delete(holder).where(holder.c.run_id.in_(left.runs)))
        here.execute(sa.delete(run).where(run.c.id.in_(left.runs)))
        here.execute(sa.delete(batch).where(batch.c.id.in_(left.batches)))

    _commit(store, last)


def _fewer(here: sa.Connection, table: sa.Table, where: sa.ColumnElement[bool]) -> bool:
    """Remove some rows of a table, and return whether there may be more."""
    place = tuple(table.primary_key.columns)
    some = sa.select(*place).where(where).limit(REMOVED)
    return here.execute(sa.delete(table).where(where, sa.tuple_(*place).in_(some))).rowcount == REMOVED


def _named(here: sa.Connection, run_id: int, name: str, values: Mapping[str, Any]) -> bool:
    """Return whether a row is the run of that name now; not if there is another one."""
    table = table_of(Run)
    row = here.execute(sa.select(table.c.id, table.c.state).where(table.c.name == name)).first()
    if row is not None:
        return bool(row.id == run_id)
    here.execute(sa.update(table).where(table.c.id == run_id).values({**values, "name": name}))
    tally(here, "run", [weigh(name)])
    return True


def _count(connection: sa.Connection, kind: type[RunTrial] | type[Attempt], run_id: int) -> int:
    table = table_of(kind)
    query = sa.select(sa.func.count()).select_from(table).where(table.c.run_id == run_id)
    return int(connection.scalar(query) or 0)
