"""`Store`: the record of the evidence. Append-only, and written in bulk.

All calls block; the scheduler makes them from one thread. Times are seconds since 1970.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple, Self

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from ..contracts.adapter import Identity
from ..contracts.canonical import encode_identity, identity_digest
from ..contracts.errors import DataError, StoreError
from ..contracts.places import Places, handed_on
from ..pictures.names import MEDIA, converted_name
from .blame import blame
from .bulk import LOOKUP, batched, insert_many, marks, rows_among, rows_where, run_plain, table_of
from .damage import damaged, ensure_answer
from .engine import lacks_file, open_engine, translated
from .evidence import ANSWER, answer_digest, seal, tally, trial_digest, weigh, weigh_exchange
from .holders import Holds, ensure_free, watch
from .names import run_name
from .parts import Parts, unpack
from .patience import Patience, enduring
from .tables import Attempt, Blob, Damage, Exchange, Model, Renewal, Run, RunTrial
from .urls import store_url

NONE: Mapping[bytes, str] = MappingProxyType({})


class Found(msgspec.Struct, frozen=True, gc=False):
    """A stored answer to a key."""

    exchange_id: int
    status: str
    new: bool = False
    """Whether the call that returns it has stored it."""
    digest: bytes | None = None
    """See `evidence.answer_digest`."""


class NewExchange(NamedTuple):
    """An answer to store."""

    key: bytes
    model_id: int
    operation: str
    request: bytes
    response: bytes
    status: str
    input_tokens: int
    output_tokens: int
    latency: float


_EXCHANGE = (*NewExchange._fields, "generation", "created", "digest")


class Failure(NamedTuple):
    """A call that failed."""

    key: bytes
    decision: str
    message: str


class NewTrial(NamedTuple):
    """A trial of a run to record."""

    run_id: int
    stage: str
    ordinal: int
    trial: str
    factors: str
    key: bytes
    answer: Found | None
    earlier: bytes = b""
    """Digests of the answers to the attempts before the one that was answered."""


class Store:
    """The record of every prompt and response.

    A new file is created at once, or, with `later`, at its first use: a command that fails before leaves no file. With
    `unproved`, rows that are not as they were stored can be read, too: whoever shows a number of them marks it.
    """

    def __init__(
        self, where: str | Path, *, writable: bool = True, later: bool = False, unproved: bool = False
    ) -> None:
        self._where, self._writable, self.unproved = where, writable, unproved
        self.url = store_url(where)
        self._parts, self.holds, self.patience = Parts(), Holds(), Patience()
        self._places: dict[int, Places] = {}
        if not (later and lacks_file(self.url)):
            self.engine  # noqa: B018  # opens it

    @cached_property
    def engine(self) -> Engine:
        """Return the engine, opened at its first use."""
        return open_engine(self._where, writable=self._writable)

    @cached_property
    def _writer(self) -> Engine:
        return self.engine.execution_options(immediate=True)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a connection; wait for a server that does not answer, but not for one that goes away meanwhile."""
        engine = self.engine
        with translated(self.url), self.patience.endure(lambda _: self._begun(engine)) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Give a connection on which nobody else writes, and commit at the end; else as `reading`."""
        engine = self._writer
        with translated(self.url), self.patience.endure(lambda _: self._begun(engine)) as connection:
            yield connection
            connection.commit()

    @enduring
    def rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        """Return the rows of a query."""
        with self.reading() as connection:
            return connection.execute(query).all()

    def _begun(self, engine: Engine) -> sa.Connection:
        with translated(self.url):
            connection = engine.connect()
            try:
                connection.begin()
            except BaseException:
                connection.close()
                raise
            return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if "engine" in self.__dict__:
                blame(self, error)
        finally:
            self.close()

    def close(self) -> None:
        """Close every connection."""
        self.holds.forget()
        if "engine" in self.__dict__:
            self.engine.dispose()

    @enduring
    def ensure_model(self, identity: Identity) -> int:
        """Return the id of a model, adding it if it is new."""
        digest = identity_digest(identity)
        table = table_of(Model)
        find = sa.select(table.c.id).where(table.c.digest == digest)
        with translated(self.url), self._writer.begin() as connection:
            model_id = connection.scalar(find)
            if model_id is None:
                row = {"digest": digest, "identity": encode_identity(identity).decode(), "created": time.time()}
                model_id = _insert_one(connection, table, row)
                tally(connection, "model", [weigh(digest, row["created"])])
            return int(model_id)

    @enduring
    def find(self, keys: Iterable[bytes], since: float | None = None) -> dict[bytes, Found]:
        """Return the latest answer to each key that has one; with `since`, none that was stored before."""
        if since is not None:
            answers = self.find(keys)
            old = self.older((answer.exchange_id for answer in answers.values()), since)
            return {key: answer for key, answer in answers.items() if answer.exchange_id not in old}
        with translated(self.url), self.engine.connect() as connection:
            return {key: last.answer for key, last in _look_up(connection, keys).items()}

    @enduring
    def older(self, exchange_ids: Iterable[int], than: float) -> set[int]:
        """Return those of the exchanges that were stored before a time."""
        table = table_of(Exchange)
        query = sa.select(table.c.id).where(table.c.created < than)
        with translated(self.url), self.engine.connect() as connection:
            return {row.id for row in rows_where(connection, query, table.c.id, exchange_ids)}

    @enduring
    def generations(self, keys: list[bytes]) -> dict[bytes, int]:
        """Return how often each key was answered before, of those that were."""
        with translated(self.url), self.engine.connect() as connection:
            return {key: last.generation + 1 for key, last in _look_up(connection, keys).items()}

    @enduring
    def responses(self, exchange_ids: Iterable[int]) -> dict[int, str]:
        """Return the canonical responses of exchanges.

        Raises:
            DataError: one is not as it was stored.
        """
        query = f"SELECT id, {', '.join(ANSWER)}, digest FROM exchange WHERE id"
        responses: dict[int, str] = {}
        with translated(self.url), self.engine.connect() as connection:
            for some in batched(exchange_ids, LOOKUP):
                for number, *answer, digest in rows_among(connection, query, some):
                    if not self.unproved:
                        ensure_answer(number, answer, digest)
                    responses[number] = answer[ANSWER.index("response")]
        return responses

    @enduring
    def exchanges(self, exchange_ids: Iterable[int]) -> list[tuple[int, str, str]]:
        """Return (id, request, response) of exchanges, canonical JSON both.

        Raises:
            DataError: an answer is not as it was stored.
        """
        query = f"SELECT id, {', '.join(ANSWER)}, digest, request FROM exchange WHERE id"
        place = 1 + ANSWER.index("response")
        rows: list[tuple[int, str, str]] = []
        with translated(self.url), self.engine.connect() as connection:
            for some in batched(exchange_ids, LOOKUP):
                answers = rows_among(connection, query, some)
                for number, *answer, digest, _ in answers if not self.unproved else ():
                    ensure_answer(number, answer, digest)
                requests = unpack(connection, (row[-1] for row in answers))
                rows.extend((row[0], request, row[place]) for row, request in zip(answers, requests, strict=True))
        return rows

    def add_exchanges(self, rows: Sequence[NewExchange], *, anew: Mapping[bytes, str] = NONE) -> dict[bytes, Found]:
        """Commit answers in one transaction and return the answer of each key.

        A key that another process has answered keeps its first answer, unless it is in `anew`: it gets a new
        generation. The text there is the outcome of the answer before, if that is why it was asked again.
        """
        if not rows:
            return {}
        now = time.time()

        def write(again: bool) -> tuple[dict[bytes, Found], Mapping[str, int]]:
            with translated(self.url), self._writer.begin() as connection:
                stored_before = _stored_at(connection, anew, now) if again else ()
                still = {key: why for key, why in anew.items() if key not in stored_before}
                return self.write_exchanges(connection, rows, still, now)

        answers, met = self.patience.endure(write)
        self.remember(met)
        return answers

    def write_exchanges(
        self, connection: sa.Connection, rows: Sequence[NewExchange], anew: Mapping[bytes, str], now: float
    ) -> tuple[dict[bytes, Found], Mapping[str, int]]:
        """Write answers in a transaction of the caller's; return the answer of each key, and texts to `remember`."""
        latest = _look_up(connection, (row.key for row in rows))
        new = [row for row in rows if row.key in anew or row.key not in latest]
        requests, met = self._parts.pack(connection, [row.request.decode() for row in new])
        fresh, weights, digests = [], [], list[bytes]()
        for row, request in zip(new, requests, strict=True):
            key, model_id, operation, _, encoded, status, read, written, latency = row
            response, last = encoded.decode(), latest.get(key)
            generation = 0 if last is None else last.generation + 1
            # Never before the answer that it replaces, whatever the clocks say: times show which one is the latest.
            created = now if last is None else max(now, last.created)
            digest = answer_digest(key, operation, response, status, read, written, latency, created)
            columns = (key, model_id, operation, request, response, status, read, written, latency)
            fresh.append((*columns, generation, created, digest))
            weights.append(weigh_exchange(digest, generation))
            digests.append(digest)
        before = run_plain(connection, "SELECT max(id) FROM exchange")[0][0] or 0
        insert_many(connection, table_of(Exchange), _EXCHANGE, fresh)
        tally(connection, "exchange", weights)
        numbers = _added_after(connection, before)
        renewed = [(numbers[row.key], anew[row.key]) for row in new if anew.get(row.key)]
        insert_many(connection, table_of(Renewal), ("exchange_id", "outcome"), renewed)
        tally(connection, "renewal", (weigh(*row) for row in renewed))
        answers = {key: last.answer for key, last in latest.items()}
        for row, digest in zip(new, digests, strict=True):
            answers[row.key] = Found(numbers[row.key], row.status, True, digest)
        return answers, met

    def remember(self, met: Mapping[str, int]) -> None:
        """Keep the shared texts of `write_exchanges` in memory, once they are committed."""
        self._parts.remember(met)

    def add_failures(self, run_id: int, failures: Sequence[Failure]) -> None:
        """Record calls that failed."""
        now, places = time.time(), self._places.get(run_id, Places(()))
        rows = [(*f._replace(message=_storable(places.text(f.message))), run_id, now) for f in failures]
        table = table_of(Attempt)
        of_this_call = sa.select(table.c.id).where(table.c.run_id == run_id, table.c.created == now)

        def write(again: bool) -> None:
            with translated(self.url), self._writer.begin() as connection:
                if not (again and connection.scalar(of_this_call.limit(1))):
                    insert_many(connection, table, (*Failure._fields, "run_id", "created"), rows)

        if rows:
            self.patience.endure(write)

    def add_trials(self, rows: Sequence[NewTrial], *, again: bool = False) -> None:
        """Record trials of one run; `again`: unless an earlier call, whose end nobody saw, did.

        Raises:
            StoreError: another process has taken over the run.
        """
        if not rows:
            return
        columns, table, first = (*NewTrial._fields[:-2], "exchange_id", "digest"), table_of(RunTrial), rows[0]
        place = {"run_id": first.run_id, "stage": first.stage, "ordinal": first.ordinal}

        def write(repeated: bool) -> None:
            with translated(self.url), self._writer.begin() as connection:
                self.holds.ensure(connection, first.run_id)
                # Only the holder of a run records its trials: what is there was committed at the first try.
                if not (
                    (again or repeated) and connection.scalar(sa.select(table.c.ordinal).filter_by(**place)) is not None
                ):
                    insert_many(connection, table, columns, list(_recorded(rows)))

        self.patience.endure(write)

    @enduring
    def keep(self, data: bytes, media_type: str) -> str:
        """Store bytes under their sha256 (hex), which is returned; existing bytes are kept."""
        table, sha256 = table_of(Blob), hashlib.sha256(data).hexdigest()
        with translated(self.url), self._writer.begin() as connection:
            if connection.scalar(sa.select(table.c.sha256).where(table.c.sha256 == sha256)) is None:
                row = {"sha256": sha256, "media_type": media_type, "data": data, "created": time.time()}
                connection.execute(sa.insert(table).values(row))
                tally(connection, "blob", [weigh(sha256, media_type, row["created"])])
        return sha256

    def blob(self, name: str) -> bytes:
        """Return the bytes with a sha256, or of a converted picture; raises `DataError` if they are not there."""
        table = table_of(Blob)
        named = table.c.sha256 == name if converted_name(name) is None else table.c.media_type == MEDIA + name
        rows = self.rows(sa.select(table.c.sha256, table.c.data).where(named).order_by("created").limit(1))
        if not rows:
            raise DataError(f"the store has no image {name}.", code="store.no-image")
        sha256, image = rows[0].sha256, bytes(rows[0].data)
        if hashlib.sha256(image).hexdigest() != sha256 and not self.unproved:
            raise damaged(f"image {sha256[:12]}", "its bytes do not match its name (sha256)")
        return image

    @enduring
    def ensure_free(self, name: str) -> None:
        """Refuse a run that another process is at work on.

        Raises:
            StoreError: naming the process.
        """
        self.watch_holders(lambda run: run_name(run) == name)
        with translated(self.url), self.engine.connect() as connection:
            if (run_row := _run_named(connection, name)) is not None:
                ensure_free(connection, run_row.id)

    @enduring
    def watch_holders(self, wanted: Callable[[str], bool] = lambda _: True) -> None:
        """Look at the processes that hold runs until it is known which of them live; `wanted`: of which, by name."""
        watch(self.reading, wanted)

    def begin_run(self, name: str, study: str, manifest: bytes, earlier: str | None = None) -> int:
        """Start a run and return its id; an interrupted run of that name is resumed.

        `earlier` is the manifest that the caller has read of that run, and continues.

        Raises:
            StoreError: another process is at work on the run, or was since `earlier` was read; nothing was changed.
        """
        self.watch_holders(lambda run: run_name(run) == name)
        self._parts = Parts()  # `prune` may have removed parts while no run was running
        values = {"study": study, "state": "running", **manifest_columns(manifest), "finished": None}

        def write(again: bool) -> int:
            with translated(self.url), self._writer.begin() as connection:
                run_row = _run_named(connection, name)
                if again and run_row is not None and self.holds.has(connection, run_row.id):
                    return int(run_row.id)
                return self._begin_run(connection, name, values, run_row, earlier)

        run_id = self.patience.endure(write)
        self._places[run_id] = Places.of(json.loads(manifest))
        return run_id

    def _begin_run(
        self,
        connection: sa.Connection,
        name: str,
        values: Mapping[str, Any],
        found: sa.Row[Any, Any, Any] | None,
        earlier: str | None,
    ) -> int:
        table, trials, damage = table_of(Run), table_of(RunTrial), table_of(Damage)
        if found is None:
            run_id = _insert_one(connection, table, {**values, "name": name, "started": time.time()})
            tally(connection, "run", [weigh(name)])
        else:
            run_id = int(found.id)
            ensure_free(connection, run_id)
            if earlier is not None and found.manifest != earlier:
                raise StoreError(
                    f"another process has just resumed the run {name}. If it did not finish, resume it again.",
                    code="run.running",
                )
            connection.execute(sa.delete(trials).where(trials.c.run_id == run_id))
            connection.execute(sa.delete(damage).where(damage.c.run_id == run_id))  # it is recorded anew
            connection.execute(sa.update(table).where(table.c.id == run_id).values(values))
        self.holds.take(connection, run_id)
        seal(connection, run_id)
        return run_id

    def end_run(self, run_id: int, state: str, manifest: bytes, finished: float | None = None) -> None:
        """Record the state and end of a run; `finished` is the time, by default now.

        Raises:
            StoreError: another process has taken over the run.
        """
        table = table_of(Run)
        ended = time.time() if finished is None else finished
        values = {"state": state, **manifest_columns(manifest), "finished": ended}
        done = sa.select(table.c.id).where(table.c.id == run_id, table.c.state == state, table.c.finished == ended)

        def write(again: bool) -> None:
            with translated(self.url), self._writer.begin() as connection:
                if again and connection.scalar(done) is not None:
                    return
                self.holds.ensure(connection, run_id)
                connection.execute(sa.update(table).where(table.c.id == run_id).values(values))
                seal(connection, run_id)
                self.holds.leave(connection, run_id)

        self.patience.endure(write)
        self.holds.drop(run_id)


class _Last(NamedTuple):
    """The latest answer to a key."""

    generation: int
    answer: Found
    created: float


def _look_up(connection: sa.Connection, keys: Iterable[bytes]) -> dict[bytes, _Last]:
    """Return the latest answer to each key that has one.

    Raises:
        DataError: by their times, another one is the latest.
    """
    latest: dict[bytes, _Last] = {}
    for some in batched(keys, LOOKUP):
        query = "SELECT key, id, status, generation, digest, created FROM exchange WHERE key"
        for key, number, status, generation, digest, created in rows_among(connection, query, some):
            last = _Last(generation, Found(number, status, False, digest), created)
            before = latest.setdefault(bytes(key), last)
            first, second = sorted((before, last), key=lambda one: one.generation)
            if first.generation >= 0 and first.created > second.created:
                number = second.answer.exchange_id
                raise damaged(f"exchange {number}", "it is older than the answer that its generation says it replaced")
            latest[bytes(key)] = second
    return latest


def _stored_at(connection: sa.Connection, keys: Iterable[bytes], when: float) -> set[bytes]:
    """Return the keys that were answered at one time."""
    table = table_of(Exchange)
    query = sa.select(table.c.key).where(table.c.created == when)
    return {row.key for row in rows_where(connection, query, table.c.key, keys)}


def _added_after(connection: sa.Connection, number: int) -> dict[bytes, int]:
    """Return the ids of exchanges above one, by key; within a transaction that writes, those that it has added."""
    query = f"SELECT key, id FROM exchange WHERE id > {marks(connection, 1)}"
    return {bytes(key): exchange_id for key, exchange_id in run_plain(connection, query, (number,))}


def manifest_columns(manifest: bytes) -> dict[str, Any]:
    """Return a manifest without the paths of this machine, and, if it has any, the manifest as it is."""
    text = manifest.decode()
    named = handed_on(text)
    return {"manifest": named, "local": None if named == text else text}


def _run_named(connection: sa.Connection, name: str) -> sa.Row[Any, Any, Any] | None:
    """Return (id, name, manifest) of a run. One of somebody else's is known by the `run_name` made of its name."""
    table = table_of(Run)
    rows = connection.execute(sa.select(table.c.id, table.c.name).order_by(table.c.id)).all()
    run_id = next((row.id for row in rows if run_name(row.name) == name), None)
    query = sa.select(table.c.id, table.c.name, table.c.manifest).where(table.c.id == run_id)
    return None if run_id is None else connection.execute(query).one()


def _recorded(rows: Iterable[NewTrial]) -> Iterator[tuple[Any, ...]]:
    for run_id, stage, ordinal, trial, factors, key, answer, earlier in rows:
        number, digest_of_answer = (None, None) if answer is None else (answer.exchange_id, answer.digest)
        digest = trial_digest(stage, ordinal, trial, factors, key, digest_of_answer, earlier)
        yield run_id, stage, ordinal, trial, factors, key, number, digest


def _storable(text: str) -> str:
    """Return a text that any database can store; a server's error message may contain any characters."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")


def _insert_one(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> int:
    return int(connection.execute(sa.insert(table).values(row).returning(table.c.id)).scalar_one())
