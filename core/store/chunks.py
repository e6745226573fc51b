"""Copying into a store in chunks: no writer waits long for the lock, and a copy that was cut off is taken up again.

Before the first chunk a row of the table `run` with the state `importing` and a name that no run can have is written.
It is nobody's run: `runs_of` leaves it out. While it is there, `prune` spares every answer that is newer than it. A run
that is copied is such a row until its last chunk, which gives it its name. A chunk that is written twice is there once:
a copy that begins again finds what it had written.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from types import TracebackType
from typing import Any, Self, TypeVar

import sqlalchemy as sa

from ..contracts.errors import StoreError
from .bulk import table_of
from .content import Failed, Picture, Proof, Sent, Tried, snapshot, writing
from .evidence import IMPORTING, RECORDED, sums_of, tally, weigh
from .holders import held
from .intake import Intake, ensure_name
from .store import Store
from .tables import Attempt, Exchange, Holder, Run, RunTrial

CHUNK = 50_000
"""Most rows of a chunk."""
FEWEST, FIRST = 200, 1_000
LOCKED_SECONDS = 0.25
"""For how long a chunk is meant to hold the write lock; the next one has more or fewer rows accordingly."""
IMAGES = 8
"""Images of a chunk."""
T = TypeVar("T")


class Chunks:
    """The writing transactions of one copy; its `name` is the same when it is taken up again."""

    def __init__(self, store: Store, name: str, identities: Mapping[bytes, str]) -> None:
        self.added: Counter[str] = Counter()
        self._store, self._size, self._identities = store, FIRST, identities
        self._name = f".{hashlib.sha256(name.encode()).hexdigest()[:32]}"
        self._first = 0
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

        def attempt(_: bool) -> T:
            with writing(self._store) as here:
                began = time.monotonic()
                self._store.holds.beat(here)
                found = write(here)
            held = max(time.monotonic() - began, 0.001)
            self._size = int(max(FEWEST, min(CHUNK, self._size * min(2.0, LOCKED_SECONDS / held))))
            return found

        return self._store.patience.endure(attempt)

    def each(self, rows: Iterable[T], key: Callable[[T], Any]) -> Iterator[list[T]]:
        """Yield rows in chunks that are as large as the lock may be held for; neighbours of one key stay together."""
        part: list[T] = []
        for _, group in groupby(rows, key):
            part += group
            if len(part) >= self._size:
                yield part
                part = []
        if part:
            yield part

    def exchanges(self, rows: Sequence[Sent], proofs: Sequence[Proof] | None = None) -> list[int]:
        """Copy exchanges that were checked, all those of a key together, and return their ids in this store."""

        def write(here: sa.Connection) -> tuple[list[int], dict[str, int]]:
            intake = Intake(here)
            intake.identities((digest, self._identities[digest]) for digest in {row.identity for row in rows})
            return intake.exchanges(rows, proofs, checked=True), intake.added

        numbers, added = self.commit(write)
        self.added.update(added)
        return numbers

    def renewals(self, rows: Iterable[tuple[int, str]]) -> None:
        """Copy why exchanges were asked for; they are ids of this store."""
        for part in self.each(rows, lambda row: row[0]):
            self._taken(lambda intake, part=part: intake.renewals(part))  # type: ignore[misc]

    def pictures(self, rows: Iterable[Picture]) -> None:
        """Copy images."""
        images = iter(rows)
        while part := list(islice(images, IMAGES)):
            self._taken(lambda intake, part=part: intake.pictures(part))  # type: ignore[misc]

    def begin_run(self, content: str) -> int:
        """Return the id of a row that becomes a run; `content` tells it from the others of this copy."""
        return self.commit(lambda here: self._row(here, f"{self._name}-{content}"))

    def trials(self, run_id: int, rows: Iterable[Tried]) -> None:
        """Copy the trials of a run, in plan order, that are not there; their exchanges are ids of this store."""
        there = self._count(RunTrial, run_id)
        for part in self.each(islice(rows, there, None), lambda row: row.ordinal):
            first = {"run_id": run_id, "stage": part[0].stage, "ordinal": part[0].ordinal}
            table = table_of(RunTrial)
            known = sa.select(table.c.ordinal).filter_by(**first)
            self._taken(
                lambda intake, part=part, known=known: (  # type: ignore[misc]
                    None if intake.connection.scalar(known) is not None else intake.trials(run_id, part)
                )
            )

    def failures(self, run_id: int, rows: Sequence[Failed]) -> None:
        """Copy the failed calls of a run, but for those that are there."""
        place = self._count(Attempt, run_id)
        while place < len(rows):
            part = rows[place : place + self._size]
            self._taken(
                lambda intake, part=part, place=place: (  # type: ignore[misc]
                    None if _count(intake.connection, Attempt, run_id) > place else intake.failures(run_id, part)
                )
            )
            place += len(part)

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

    def _taken(self, take: Callable[[Intake], None]) -> None:
        def write(here: sa.Connection) -> dict[str, int]:
            intake = Intake(here)
            take(intake)
            return intake.added

        self.added.update(self.commit(write))

    def _begin(self, here: sa.Connection) -> int:
        table, exchange = table_of(Run), table_of(Exchange)
        found = here.execute(sa.select(table.c.id, table.c.manifest).where(table.c.name == self._name)).first()
        if found is not None and self._name in held(here):
            raise StoreError(
                "another process copies from the same source into this store. Wait until it ends.", code="run.running"
            )
        newest = here.scalar(sa.select(sa.func.max(exchange.c.id))) or 0
        self._first = int(newest if found is None else found.manifest)
        mark = self._row(here, self._name)
        self._store.holds.take(here, mark)
        return mark

    def _row(self, here: sa.Connection, name: str) -> int:
        table = table_of(Run)
        found = here.scalar(sa.select(table.c.id).where(table.c.name == name))
        values = {"name": name, "study": "", "state": IMPORTING, "manifest": str(self._first), "started": time.time()}
        return int(found or here.execute(sa.insert(table).values(values).returning(table.c.id)).scalar_one())

    def _count(self, kind: type[RunTrial] | type[Attempt], run_id: int) -> int:
        return self.read(lambda connection: _count(connection, kind, run_id))

    def _forget(self) -> None:
        """Remove the rows of this copy, and what an earlier one left of a run that changed meanwhile."""
        table, holder = table_of(Run), table_of(Holder)
        own = sa.or_(table.c.id == self._mark, table.c.name.like(f"{self._name}-%"))
        query = sa.select(table.c.id).where(own, table.c.state == IMPORTING)
        left = self.read(lambda connection: list(connection.scalars(query)))
        for number in left:
            while self.commit(lambda here, number=number: _emptied(here, number, self._size)):  # type: ignore[misc]
                pass
        self.commit(lambda here: here.execute(sa.delete(holder).where(holder.c.run_id.in_(left))))
        self.commit(lambda here: here.execute(sa.delete(table).where(table.c.id.in_(left))))


def spared(here: sa.Connection) -> int | None:
    """Return the id above which exchanges may belong to an unfinished copy; None if there is none."""
    table = table_of(Run)
    marks = here.scalars(sa.select(table.c.manifest).where(table.c.state == IMPORTING)).all()
    return min(map(int, marks), default=None)


def give_up(here: sa.Connection) -> None:
    """Remove what copies that nobody goes on with have copied of runs; their answers are then of no run."""
    table, holder = table_of(Run), table_of(Holder)
    unfinished = sa.select(table.c.id).where(table.c.state == IMPORTING)
    for rows in (table_of(RunTrial), table_of(Attempt), holder):
        here.execute(sa.delete(rows).where(rows.c.run_id.in_(unfinished)))
    here.execute(sa.delete(table).where(table.c.state == IMPORTING))


def _named(here: sa.Connection, run_id: int, name: str, values: Mapping[str, Any]) -> bool:
    """Return whether a row is the run of that name now; not if there is another one."""
    table = table_of(Run)
    found = here.execute(sa.select(table.c.id, table.c.state).where(table.c.name == name)).first()
    if found is not None:
        return bool(found.id == run_id)
    here.execute(sa.update(table).where(table.c.id == run_id).values({**values, "name": name}))
    tally(here, "run", [weigh(name)])
    return True


def _count(connection: sa.Connection, kind: type[RunTrial] | type[Attempt], run_id: int) -> int:
    table = table_of(kind)
    query = sa.select(sa.func.count()).select_from(table).where(table.c.run_id == run_id)
    return int(connection.scalar(query) or 0)


def _emptied(here: sa.Connection, run_id: int, most: int) -> bool:
    """Remove some rows of a copied run, and return whether there may be more."""
    trials, attempts = table_of(RunTrial), table_of(Attempt)
    here.execute(sa.delete(attempts).where(attempts.c.run_id == run_id))
    some = sa.select(trials.c.stage, trials.c.ordinal).where(trials.c.run_id == run_id).limit(most)
    place = sa.tuple_(trials.c.stage, trials.c.ordinal)
    return here.execute(sa.delete(trials).where(trials.c.run_id == run_id, place.in_(some))).rowcount > 0
