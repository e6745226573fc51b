"""Digests of answers, trials and runs, and tallies of rows: with them `cache verify` finds what was changed.

They show damage. They do not show a forger, who can compute them anew: against that, the head of a run is kept
elsewhere. None of them contains ids of rows, names of runs or paths, except the record of a run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlmodel import SQLModel

from .bulk import plain_rows, run_plain, table_of
from .tables import Attempt, Blob, Exchange, Model, Renewal, Run, RunTrial, Tally

VERSION = b"prejudge-evidence-1"
DIGEST_BYTES = 32
READ = 10_000
"""Rows read at a time."""
WEIGHED: dict[str, tuple[type[SQLModel], tuple[str, ...]]] = {
    "exchange": (Exchange, ("digest", "generation")),
    "blob": (Blob, ("sha256", "media_type", "created")),
    "model": (Model, ("digest", "created")),
    "run": (Run, ("name",)),
    "renewal": (Renewal, ("exchange_id", "outcome")),
}
"""Tables that are tallied, and the columns that a row is weighed by."""
IMPORTING = "importing"
"""State of a row of `run` that is no run yet."""
RECORDED = ("study", "state", "manifest", "started", "finished")
"""Columns of a run that its record covers."""
ANSWER = ("key", "operation", "response", "status", "input_tokens", "output_tokens", "latency", "created")
"""Columns of an exchange that its digest covers, in the order of `answer_digest`."""
_pack = msgspec.msgpack.Encoder().encode


def answer_digest(
    key: bytes,
    operation: str,
    response: str,
    status: str,
    input_tokens: int,
    output_tokens: int,
    latency: float,
    created: float,
) -> bytes:
    """Return the digest (32 bytes) of what never changes of an exchange.

    Model and request are covered by the key, which is their digest. The time of the answer is covered; a merge keeps
    it. The generation is not: it depends on the other answers that a store has.
    """
    fields = (key, operation, response, status, input_tokens, output_tokens, float(latency), float(created))
    return hashlib.sha256(_pack(fields)).digest()


def trial_digest(
    stage: str, ordinal: int, trial: str, factors: str, key: bytes, answer: bytes | None, earlier: bytes = b""
) -> bytes:
    """Return the digest of a trial at its place in the plan: a sha256, and after it `earlier`, which it covers.

    Args:
        stage: name of the stage.
        ordinal: index in the plan.
        trial: id of the trial.
        factors: canonical JSON.
        key: of the last attempt.
        answer: digest of the answer to the last attempt.
        earlier: digests of the answers to the attempts before it, in order.
    """
    fields = (stage, ordinal, trial, factors, key, answer)
    return hashlib.sha256(_pack((*fields, earlier) if earlier else fields)).digest() + earlier


def earlier_answers_in(digest: Any) -> bytes:
    """Return the digests of earlier answers that a trial's digest contains; none where it is damaged."""
    return digest[DIGEST_BYTES:] if isinstance(digest, bytes) else b""


def run_head(digests: Iterable[bytes]) -> bytes:
    """Return the head (32 bytes) of a run from the digests of its trials, by stage and then in plan order."""
    head = hashlib.sha256(VERSION)
    for digest in digests:
        head.update(digest)
    return head.digest()


def record_digest(run: Sequence[Any], failures: Iterable[Sequence[Any]]) -> bytes:
    """Return the digest (32 bytes) of a run's row (study, state, manifest, times) and its failed calls."""
    record = hashlib.sha256(VERSION + _pack(tuple(run)))
    for failure in failures:
        record.update(_pack(tuple(failure)))
    return record.digest()


def weigh(*fields: Any) -> int:
    """Return the weight (32 bits) of a row in the tally of its table."""
    return int.from_bytes(hashlib.sha256(_pack(fields)).digest()[:4], "big")


def weigh_exchange(digest: bytes, generation: int) -> int:
    """Return the weight of an exchange; two exchanges that swap their generations weigh something else."""
    weight = int.from_bytes(digest[:4], "big")
    return weight + generation * int.from_bytes(digest[4:6], "big") if generation else weight


def tally(connection: sa.Connection, kind: str, weights: Iterable[int], sign: int = 1) -> None:
    """Add rows with these weights to a tally, or take them away with `sign` -1."""
    rows, weight = 0, 0
    for row_weight in weights:
        rows, weight = rows + 1, weight + row_weight
    mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
    statement = f"UPDATE tally SET rows = rows + {mark}, weight = weight + {mark} WHERE kind = {mark}"
    if rows:
        run_plain(connection, statement, (sign * rows, sign * weight, kind))


def is_run() -> sa.ColumnElement[bool]:
    """Return the condition for rows of `run` that are runs; see `chunks.py` for the others."""
    return table_of(Run).c.state != IMPORTING


def weights_of(connection: sa.Connection, kind: str, where: sa.ColumnElement[bool] | None = None) -> Iterable[int]:
    """Yield the weights of the rows of a table, as they are."""
    rows_of, names = WEIGHED[kind]
    table = table_of(rows_of)
    query = sa.select(*(table.c[name] for name in names)).where(sa.true() if where is None else where)
    if kind == "run":
        query = query.where(is_run())
    weight = weigh_exchange if kind == "exchange" else weigh
    for rows in plain_rows(connection, query, READ):
        for row in rows:
            try:
                yield weight(*row)
            except (TypeError, ValueError):
                yield 0  # a damaged row; its table stays reported


def recount(connection: sa.Connection, kinds: Iterable[str] = tuple(WEIGHED)) -> None:
    """Make tallies anew from the rows."""
    table = table_of(Tally)
    for kind in kinds:
        connection.execute(sa.update(table).where(table.c.kind == kind).values(rows=0, weight=0))
        tally(connection, kind, weights_of(connection, kind))


def seal(connection: sa.Connection, run_id: int, parts: Collection[str] = ("head", "record")) -> bytes | None:
    """Compute the digests of a run from its rows, store these, and return its head; a running run has none yet."""
    run = table_of(Run)
    row = connection.execute(sa.select(*(run.c[name] for name in RECORDED)).where(run.c.id == run_id)).one()
    sums = sums_of(connection, run_id, row)
    stored = {name: sums[name] for name in parts}
    connection.execute(sa.update(run).where(run.c.id == run_id).values(stored))
    head: bytes | None = sums["head"]
    return head


def sums_of(connection: sa.Connection, run_id: int, row: Sequence[Any]) -> dict[str, Any]:
    """Return the digests of a run with these values of `RECORDED`, from its trials and failed calls."""
    ended = row[RECORDED.index("state")] != "running"
    return {
        "record": record_digest(row, failures_of(connection, run_id) if ended else ()),
        "head": run_head(_digests(connection, run_id)) if ended else None,
    }


def failures_of(connection: sa.Connection, run_id: int) -> Iterable[Sequence[Any]]:
    """Yield (key, decision, message, time) of the failed calls of a run, in order of time."""
    table = table_of(Attempt)
    columns = (table.c.key, table.c.decision, table.c.message, table.c.created)
    query = sa.select(*columns).where(table.c.run_id == run_id).order_by(table.c.created, table.c.id)
    for rows in plain_rows(connection, query, READ):
        yield from rows


def plan_order(connection: sa.Connection) -> tuple[sa.ColumnElement[Any], ...]:
    """Return the order of a run's trials, equal in all databases."""
    trials = table_of(RunTrial)
    return sa.collate(trials.c.stage, bytewise(connection)), trials.c.ordinal


def bytewise(connection: sa.Connection) -> str:
    """Return the collation with Python's order, so that all databases sort equally."""
    return "BINARY" if connection.dialect.name == "sqlite" else "C"


def _digests(connection: sa.Connection, run_id: int) -> Iterable[bytes]:
    trials = table_of(RunTrial)
    query = sa.select(trials.c.digest).where(trials.c.run_id == run_id).order_by(*plan_order(connection))
    for rows in plain_rows(connection, query, READ):
        yield b"".join(row[0] for row in rows)
