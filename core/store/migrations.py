"""Numbered migrations of the store: appended, never edited, each in one transaction with its own record.

A migration has a frozen copy of the tables that it creates, so that later changes of the tables do not change it. A
test migrates an empty database and compares it with `tables`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from ..contracts.errors import StoreError
from ..contracts.installing import upgrade_line
from .server import widen
from .urls import show

LOG = logging.getLogger(__name__)
ANNOUNCED, REWRITE_SECONDS = 100_000, 60e-6
"""Answers from which on the wait for a server is announced, and about how long it needs for each."""


def m001_first(connection: Connection) -> None:
    """Create the first schema."""
    frozen = sa.MetaData()
    _frozen_evidence(frozen)
    _frozen_runs(frozen)
    frozen.create_all(connection)


def _frozen_evidence(meta: sa.MetaData) -> None:
    sa.Table(
        "model",
        meta,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
    sa.Table(
        "exchange",
        meta,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("model_id", sa.Integer, sa.ForeignKey("model.id"), nullable=False),
        sa.Column("operation", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("response", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("latency", sa.Float, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.UniqueConstraint("key", "generation"),
    )
    sa.Table(
        "blob",
        meta,
        sa.Column("sha256", sa.Text, primary_key=True),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )


def _frozen_runs(meta: sa.MetaData) -> None:
    sa.Table(
        "run",
        meta,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("study", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("manifest", sa.Text, nullable=False),
        sa.Column("started", sa.Float, nullable=False),
        sa.Column("finished", sa.Float),
    )
    sa.Table(
        "run_trial",
        meta,
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("stage", sa.Text, primary_key=True),
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("trial", sa.Text, nullable=False),
        sa.Column("factors", sa.Text, nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("exchange_id", sa.Integer, sa.ForeignKey("exchange.id")),
        sa.Index("ix_run_trial_exchange", "exchange_id"),
    )
    sa.Table(
        "attempt",
        meta,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Index("ix_attempt_key", "key"),
    )


def m002_parts(connection: Connection) -> None:
    """Store texts that requests repeat only once; existing requests keep their full text."""
    frozen = sa.MetaData()
    sa.Table(
        "part",
        frozen,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("literal", sa.Text, nullable=False),
    )
    frozen.create_all(connection)


def m003_claims(connection: Connection) -> None:
    """Add claims, with which processes that share a store announce the keys that they ask."""
    frozen = sa.MetaData()
    sa.Table(
        "worker",
        frozen,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
        sa.Column("met", sa.Integer, nullable=False),
        sqlite_autoincrement=True,
    )
    sa.Table(
        "claim",
        frozen,
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("worker_id", sa.Integer, sa.ForeignKey("worker.id"), nullable=False),
    )
    frozen.create_all(connection)


def m004_holders(connection: Connection) -> None:
    """Add holders, so that one process at a time works on a run."""
    frozen = sa.MetaData()
    sa.Table("run", frozen, sa.Column("id", sa.Integer, primary_key=True))
    sa.Table(
        "holder",
        frozen,
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("mark", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("born", sa.Text, nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
    ).create(connection)


def m005_renewals(connection: Connection) -> None:
    """Add renewals: answers that were asked for because of what the answer before was."""
    frozen = sa.MetaData()
    sa.Table("exchange", frozen, sa.Column("id", sa.Integer, primary_key=True))
    sa.Table(
        "renewal",
        frozen,
        sa.Column("exchange_id", sa.Integer, sa.ForeignKey("exchange.id"), primary_key=True),
        sa.Column("outcome", sa.Text, nullable=False),
    ).create(connection)


def m006_evidence(connection: Connection) -> None:
    """Add digests; those of existing rows are made afterwards, in parts (`fill`)."""
    columns = {
        "exchange": (sa.Column("digest", sa.LargeBinary), sa.Column("filled", sa.Float)),
        "run": (
            sa.Column("head", sa.LargeBinary),
            sa.Column("record", sa.LargeBinary),
            sa.Column("unproved", sa.Float),
        ),
        "run_trial": (sa.Column("digest", sa.LargeBinary),),
    }
    for table, added in columns.items():
        for column in added:
            kind = column.type.compile(connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column.name} {kind}")
    frozen = sa.MetaData()
    tally = sa.Table(
        "tally",
        frozen,
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("weight", sa.BigInteger, nullable=False),
    )
    sa.Table(
        "damage",
        frozen,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("exchange_id", sa.Integer),
        sa.Column("run_id", sa.Integer),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("found", sa.Float, nullable=False),
    )
    frozen.create_all(connection)
    kinds = ("exchange", "blob", "model", "run", "renewal", "unproved")
    connection.execute(sa.insert(tally), [{"kind": kind, "rows": 0, "weight": 0} for kind in kinds])
    tables = ("exchange", "blob", "model", "run")
    if any(connection.exec_driver_sql(f"SELECT 1 FROM {table} LIMIT 1").first() for table in tables):
        connection.execute(sa.insert(tally).values(kind="filling", rows=0, weight=0))


def m007_local(connection: Connection) -> None:
    """Add the column of what is not handed on: manifests with the paths of this machine."""
    connection.exec_driver_sql("ALTER TABLE run ADD COLUMN local TEXT")


def m008_batches(connection: Connection) -> None:
    """Add batches: what is with a provider, and outlives the process that handed it in."""
    frozen = sa.MetaData()
    for referred in ("model", "exchange"):
        sa.Table(referred, frozen, sa.Column("id", sa.Integer, primary_key=True))
    batch = sa.Table(
        "batch",
        frozen,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("mark", sa.Text, nullable=False, unique=True),
        sa.Column("model_id", sa.Integer, sa.ForeignKey("model.id"), nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("name", "operation", "run", "stage")),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("state", "outcome", "problem", "file", "provider_id")),
        sa.Column("worker_id", sa.Integer, nullable=False),
        sa.Column("items", sa.Integer, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        *(sa.Column(name, sa.Float) for name in ("tried", "submitted", "finished")),
    )
    item = sa.Table(
        "batch_item",
        frozen,
        sa.Column("batch_id", sa.Integer, sa.ForeignKey("batch.id"), primary_key=True),
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        *(sa.Column(name, sa.Text) for name in ("request", "anew", "problem")),
        sa.Column("exchange_id", sa.Integer, sa.ForeignKey("exchange.id")),
        sa.Column("single", sa.Text),
        sa.Index("ix_batch_item_key", "key"),
        sa.Index("ix_batch_item_exchange", "exchange_id"),
    )
    frozen.create_all(connection, [batch, item])


def m009_wide_ids(connection: Connection) -> None:
    """Let the ids of a server's rows have 64 bits, as SQLite's have; a server writes these tables anew for it."""
    if connection.dialect.name != "postgresql":
        return
    rows = connection.exec_driver_sql("SELECT count(*) FROM exchange").scalar_one()
    level = logging.WARNING if rows >= ANNOUNCED else logging.INFO
    LOG.log(
        level,
        "store %s: %s answers are written anew, once, with ids of 64 bits. The server needs as much free space as they "
        "take, and about %s; nothing else can use the store meanwhile. An interruption changes nothing.",
        show(connection.engine.url),
        f"{rows:,}",
        f"{max(1, round(rows * REWRITE_SECONDS / 60)):,} min",
    )
    widen(
        connection,
        {
            "exchange": ("id",),
            "part": ("id",),
            "attempt": ("id",),
            "renewal": ("exchange_id",),
            "run_trial": ("exchange_id",),
            "batch_item": ("exchange_id",),
            "damage": ("exchange_id",),
            "worker": ("id", "met"),
            "claim": ("worker_id",),
            "batch": ("worker_id",),
        },
    )


def m010_endpoints(connection: Connection) -> None:
    """Add the endpoints that a process asks: processes share what an endpoint allows."""
    connection.exec_driver_sql("ALTER TABLE worker ADD COLUMN endpoints TEXT")


def m011_signatures(connection: Connection) -> None:
    """Add signatures of runs."""
    frozen = sa.MetaData()
    sa.Table("run", frozen, sa.Column("id", sa.Integer, primary_key=True))
    signature = sa.Table(
        "signature",
        frozen,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), nullable=False),
        sa.Column("statement", sa.Text, nullable=False),
        sa.Column("signature", sa.Text, nullable=False),
        sa.Index("ix_signature_run", "run_id"),
    )
    signature.create(connection)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    m001_first,
    m002_parts,
    m003_claims,
    m004_holders,
    m005_renewals,
    m006_evidence,
    m007_local,
    m008_batches,
    m009_wide_ids,
    m010_endpoints,
    m011_signatures,
)

_applied = sa.Table(
    "migration",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("applied", sa.Float, nullable=False),
)


def schema_number(engine: Engine) -> int:
    """Return the number of the last migration applied; 0 for an empty database.

    Raises:
        StoreError: the database has tables of another program.
    """
    names = set(sa.inspect(engine).get_table_names())
    if "migration" not in names:
        if names:
            raise StoreError(
                f"{show(engine.url)} is not a prejudge store; it has the tables {', '.join(sorted(names)[:5])}.",
                code="store.foreign",
            )
        return 0
    with engine.connect() as connection:
        return int(connection.scalar(sa.select(sa.func.max(_applied.c.number))) or 0)


def migrate(engine: Engine, migrations: tuple[Callable[[Connection], None], ...] = MIGRATIONS) -> int:
    """Apply missing migrations, each with its record in one transaction; return the number applied.

    Raises:
        StoreError: the store was written by a newer version.
    """
    at = schema_number(engine)
    refuse_newer(at, len(migrations), engine.url)
    for number, step in enumerate(migrations[at:], start=at + 1):
        _apply(engine, number, step)
    return len(migrations) - at


def refuse_newer(at: int, known: int, url: sa.URL) -> None:
    """Raise `StoreError` if a store's schema is newer than this version."""
    if at > known:
        raise StoreError(
            f"the store {show(url)} was written by a newer prejudge (schema {at}; this version knows "
            f"{known}). Upgrade: {upgrade_line()}",
            code="store.newer",
        )


def _apply(engine: Engine, number: int, step: Callable[[Connection], None]) -> None:
    with engine.begin() as connection:
        _applied.create(connection, checkfirst=True)
        # Another process may have been faster; the transaction makes check and migration atomic.
        if connection.scalar(sa.select(_applied.c.number).where(_applied.c.number == number)) is None:
            step(connection)
            connection.execute(sa.insert(_applied).values(number=number, name=step.__name__, applied=time.time()))
            LOG.info("store %s migrated to schema %d (%s)", show(engine.url), number, step.__name__)
