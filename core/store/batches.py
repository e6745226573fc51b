"""Batches in the store: each is recorded before a provider hears of it, and holds its keys until it has ended.

A claim ends with its process; an item of a batch does not, because the provider goes on answering. All writes are
transactions that check the present state first, so that of two processes at one batch only one settles an item.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from .bulk import insert_many, rows_where, table_of
from .claims import batches_of, claimed_by_others, is_alive
from .evidence import IMPORTING
from .patience import Patience, enduring
from .store import NewExchange, Store
from .tables import Batch, BatchItem, Exchange, Model, RunTrial

OPEN = ("drafted", "uploaded", "submitted", "running", "ended")
"""States of a batch that holds its keys."""


class Draft(NamedTuple):
    """A request to hand in."""

    key: bytes
    request: bytes
    """Canonical JSON."""
    anew: str | None
    """Why its stored answer is asked for anew; None if it has none."""
    size: int
    """Bytes of its line."""


class Item(NamedTuple):
    """An open item of a batch."""

    key: bytes
    request: bytes
    anew: str | None


class Result(NamedTuple):
    """What became of an item."""

    key: bytes
    state: str
    answer: NewExchange | None = None
    problem: str = ""


class Settled(NamedTuple):
    """What a transaction settled."""

    done: frozenset[bytes]
    """Keys that this call settled; others were settled before."""
    new: frozenset[bytes]
    """Keys whose answer this call stored."""


class BatchRow(NamedTuple):
    """A row of the table `batch`; see there."""

    id: int
    mark: str
    model_id: int
    name: str
    operation: str
    run: str
    stage: str
    state: str
    outcome: str
    problem: str
    file: str
    provider_id: str
    worker_id: int
    items: int
    size: int
    created: float
    tried: float | None
    submitted: float | None
    finished: float | None


class Batches:
    """The batches of a store. All calls block."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def patience(self) -> Patience:
        """How long the store waits for its server."""
        return self._store.patience

    def draft(self, rows: Sequence[Draft], worker: int, **facts: Any) -> tuple[BatchRow | None, frozenset[bytes]]:
        """Record a batch of those requests that have no answer and that nobody asks; return it, and their keys.

        Args:
            rows: what to hand in.
            worker: the process that will.
            facts: `model_id`, `name`, `operation`, `run` and `stage`.
        """
        with self._store.writing() as connection:
            keys = [row.key for row in rows if row.anew is None]
            taken = _answered(connection, keys) | claimed_by_others(connection, self._store, keys, worker)
            taken |= batches_of(connection, [row.key for row in rows]).keys()
            mine = {row.key: row for row in rows if row.key not in taken}
            if not mine:
                return None, frozenset()
            values = dict.fromkeys(("outcome", "problem", "file", "provider_id"), "") | facts
            values |= {"mark": new_mark(), "state": "drafted", "worker_id": worker, "created": time.time()}
            values |= {"items": len(mine), "size": sum(row.size + 1 for row in mine.values())}
            table = table_of(Batch)
            number = int(connection.execute(sa.insert(table).values(values).returning(table.c.id)).scalar_one())
            items = [(number, row.key, "open", row.request.decode(), row.anew) for row in mine.values()]
            insert_many(connection, table_of(BatchItem), ("batch_id", "key", "state", "request", "anew"), items)
            return _row(connection, number), frozenset(mine)

    def get(self, number: int) -> BatchRow:
        """Return a batch."""
        table = table_of(Batch)
        (row,) = self._store.rows(sa.select(table).where(table.c.id == number))
        return BatchRow(*row)

    def all(self, *, only_open: bool = False) -> list[BatchRow]:
        """Return the batches, oldest first."""
        table = table_of(Batch)
        query = sa.select(table).where(is_batch()).order_by(table.c.id)
        rows = self._store.rows(query.where(table.c.state.in_(OPEN)) if only_open else query)
        return [BatchRow(*row) for row in rows]

    @enduring
    def holding(self, keys: Collection[bytes]) -> dict[bytes, int]:
        """Return the open batch that holds each of some keys, where one does."""
        with self._store.reading() as connection:
            return batches_of(connection, keys)

    def described(self, keys: Collection[bytes]) -> str:
        """Return a sentence on the batch that holds most of some keys; nothing if none does."""
        if not (holders := self.holding(keys)):
            return ""
        number, count = Counter(holders.values()).most_common(1)[0]
        row = self.get(number)
        what = "one request is" if count == 1 else f"{count:,} requests are"
        return f"{what} in the batch {row.id} ({row.provider_id or row.state}) of the run {row.run}."

    def of_stage(self, run_id: int, stage: str) -> list[tuple[BatchRow, int]]:
        """Return the batches that brought answers of a stage of a run, whoever handed them in, and how many."""
        batch, items, trials = table_of(Batch), table_of(BatchItem), table_of(RunTrial)
        used = (
            sa.select(items.c.batch_id, sa.func.count(items.c.key.distinct()).label("answers"))
            .join_from(trials, items, trials.c.exchange_id == items.c.exchange_id)
            .where(trials.c.run_id == run_id, trials.c.stage == stage)
            .group_by(items.c.batch_id)
            .subquery()
        )
        query = sa.select(batch, used.c.answers).join_from(batch, used, batch.c.id == used.c.batch_id).where(is_batch())
        return [(BatchRow(*row[:-1]), int(row[-1])) for row in self._store.rows(query.order_by(batch.c.id))]

    def items(self, number: int) -> list[Item]:
        """Return the open items of a batch, in the order of their keys."""
        table = table_of(BatchItem)
        return [_item(row) for row in self._store.rows(_open_items(number).order_by(table.c.key))]

    def keys(self, number: int) -> frozenset[bytes]:
        """Return the keys of all items of a batch."""
        table = table_of(BatchItem)
        return frozenset(row.key for row in self._store.rows(sa.select(table.c.key).where(table.c.batch_id == number)))

    def counts(self, number: int) -> dict[str, int]:
        """Return how many items of a batch are in each state."""
        table = table_of(BatchItem)
        query = sa.select(table.c.state, sa.func.count()).where(table.c.batch_id == number).group_by(table.c.state)
        return {state: int(count) for state, count in self._store.rows(query.order_by(table.c.state))}

    def take_over(self, number: int, worker: int) -> bool:
        """Make this process the one that hands in a batch, if no living process is."""
        table = table_of(Batch)
        with self._store.writing() as connection:
            row = _row(connection, number)
            if row.worker_id == worker:
                return True
            if is_alive(connection, self._store, row.worker_id):
                return False
            connection.execute(sa.update(table).where(table.c.id == number).values(worker_id=worker))
            return True

    def advance(self, number: int, worker: int | None = None, known: str | None = None, **values: Any) -> bool:
        """Record the progress of an open batch, and return whether it was recorded.

        Args:
            number: the batch.
            worker: only while this process is the one that hands it in.
            known: only while this is the provider's name of it.
            values: columns.
        """
        table = table_of(Batch)
        where = [table.c.id == number, table.c.state.in_(OPEN)]
        where += [] if worker is None else [table.c.worker_id == worker]
        where += [] if known is None else [table.c.provider_id == known]
        with self._store.writing() as connection:
            return bool(connection.execute(sa.update(table).where(*where).values(values)).rowcount)

    def settle(self, number: int, results: Iterable[Result]) -> Settled:
        """Store results of open items, each with its answer, in one transaction; others are left as they are."""
        wanted = {result.key: result for result in results}
        with self._store.writing() as connection:
            rows_left = rows_where(connection, _open_items(number), table_of(BatchItem).c.key, wanted)
            still = {row.key: _item(row) for row in rows_left}
            rows = [answer for key in still if (answer := wanted[key].answer) is not None]
            anew = {key: item.anew for key, item in still.items() if item.anew is not None}
            answers, met = self._store.write_exchanges(connection, rows, anew, time.time())
            numbers = {key: answer.exchange_id for key, answer in answers.items()}
            _settle(connection, number, [(wanted[key], numbers.get(key)) for key in still])
        self._store.remember(met)
        return Settled(frozenset(still), frozenset(key for key, answer in answers.items() if answer.new))

    def withdraw(self, number: int) -> frozenset[bytes] | None:
        """End a batch that was not handed in, and return its keys; None if the provider may have it."""
        with self._store.writing() as connection:
            row = _row(connection, number)
            if row.provider_id or row.tried is not None:
                return None
            return self._close(connection, number, "collected", "cancelled", "")

    def close(self, number: int, state: str, left: str, problem: str = "") -> frozenset[bytes]:
        """End a batch: `collected` or `lost`; items that are open still get the state `left`. Return their keys."""
        with self._store.writing() as connection:
            return self._close(connection, number, state, left, problem)

    def _close(self, connection: sa.Connection, number: int, state: str, left: str, problem: str) -> frozenset[bytes]:
        table, items = table_of(Batch), table_of(BatchItem)
        unanswered = sa.and_(items.c.batch_id == number, items.c.state == "open")
        keys = frozenset(map(bytes, connection.scalars(sa.select(items.c.key).where(unanswered))))
        values = {"state": left, "request": None, "problem": problem or None}
        connection.execute(sa.update(items).where(unanswered).values(values))
        ended = {"state": state, "finished": time.time(), "problem": problem}
        where = sa.and_(table.c.id == number, table.c.state.in_(OPEN))
        connection.execute(sa.update(table).where(where).values(ended))
        return keys

    def close_settled(self) -> None:
        """End the batches whose last result was stored by a process that ended right then."""
        table, items = table_of(Batch), table_of(BatchItem)
        still = sa.select(items.c.batch_id).where(items.c.state == "open")
        where = sa.and_(table.c.state.in_(OPEN), table.c.id.not_in(still))
        if not self._store.rows(sa.select(table.c.id).where(where).limit(1)):
            return
        with self._store.writing() as connection:
            connection.execute(sa.update(table).where(where).values(state="collected", finished=time.time()))

    def keep_single(self, number: int, key: bytes, response: bytes) -> None:
        """Keep what a call of its own was answered to a request of a batch."""
        items = table_of(BatchItem)
        where = sa.and_(items.c.batch_id == number, items.c.key == key)
        with self._store.writing() as connection:
            connection.execute(sa.update(items).where(where).values(single=response.decode()))

    def singles(self, run: int, name: str, stage: str) -> dict[bytes, tuple[str, str | None]]:
        """Return what was asked both ways, by key: the single response, and that of a batch.

        These are the requests of the batches that a run handed in for a stage, and those whose answers it uses. Where
        a batch expired before it came to a request, the answer is that of the one after it.
        """
        batch, items, exchange, trials = table_of(Batch), table_of(BatchItem), table_of(Exchange), table_of(RunTrial)
        other = items.alias("answered")
        used = sa.select(trials.c.exchange_id).where(trials.c.run_id == run, trials.c.stage == stage)
        handed_in = sa.and_(batch.c.run == name, batch.c.stage == stage)
        query = (
            sa.select(items.c.key, items.c.single, exchange.c.response)
            .join_from(items, batch, items.c.batch_id == batch.c.id)
            .join(other, sa.and_(other.c.key == items.c.key, other.c.exchange_id.is_not(None)), isouter=True)
            .join(exchange, other.c.exchange_id == exchange.c.id, isouter=True)
            .where(is_batch(), items.c.single.is_not(None), sa.or_(handed_in, other.c.exchange_id.in_(used)))
            .order_by(batch.c.id, sa.case((other.c.batch_id == items.c.batch_id, 1), else_=0))
        )
        return {key: (alone, both) for key, alone, both in self._store.rows(query)}

    def asked_alone(self, model_id: int) -> frozenset[bytes]:
        """Return the keys of all requests to a model that were asked both ways."""
        batch, items = table_of(Batch), table_of(BatchItem)
        query = sa.select(items.c.key).join_from(items, batch).where(is_batch(), batch.c.model_id == model_id)
        return frozenset(row.key for row in self._store.rows(query.where(items.c.single.is_not(None))))

    def identity(self, row: BatchRow) -> str:
        """Return the identity of the model of a batch, canonical JSON."""
        table = table_of(Model)
        (model,) = self._store.rows(sa.select(table.c.identity).where(table.c.id == row.model_id))
        return str(model.identity)

    def of_exchange(self, key: bytes) -> list[tuple[BatchRow, str]]:
        """Return the batches that a key was in, oldest first, with the state of its item."""
        batch, items = table_of(Batch), table_of(BatchItem)
        query = sa.select(batch, items.c.state.label("item")).join_from(items, batch)
        query = query.where(is_batch(), items.c.key == key)
        return [(BatchRow(*row[:-1]), row[-1]) for row in self._store.rows(query.order_by(batch.c.id))]


def _open_items(number: int) -> sa.Select[Any]:
    table = table_of(BatchItem)
    query = sa.select(table.c.key, table.c.request, table.c.anew)
    return query.where(table.c.batch_id == number, table.c.state == "open")


def _item(row: Any) -> Item:
    return Item(row.key, row.request.encode(), row.anew)


def is_batch() -> sa.ColumnElement[bool]:
    """Return the condition for rows of `batch` that are whole; see `chunks.py` for the others."""
    return table_of(Batch).c.state != IMPORTING


def new_mark() -> str:
    """Return a mark that no other batch has."""
    return f"prejudge-{secrets.token_hex(16)}"


def _answered(connection: sa.Connection, keys: Collection[bytes]) -> set[bytes]:
    table = table_of(Exchange)
    return {row.key for row in rows_where(connection, sa.select(table.c.key), table.c.key, keys)}


def _settle(connection: sa.Connection, number: int, results: Sequence[tuple[Result, int | None]]) -> None:
    table = table_of(BatchItem)
    change = (
        sa.update(table)
        .where(table.c.batch_id == number, table.c.key == sa.bindparam("of"))
        .values(
            state=sa.bindparam("now"),
            exchange_id=sa.bindparam("answer"),
            problem=sa.bindparam("told"),
            request=None,
        )
    )
    rows = [
        {"of": result.key, "now": result.state, "answer": answer, "told": result.problem or None}
        for result, answer in results
    ]
    if rows:
        connection.execute(change, rows)


def _row(connection: sa.Connection, number: int) -> BatchRow:
    table = table_of(Batch)
    return BatchRow(*connection.execute(sa.select(table).where(table.c.id == number)).one())
