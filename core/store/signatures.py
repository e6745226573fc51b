"""Signatures of runs: who vouches for a head and a record. They go with the run into bundles and other stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import sqlalchemy as sa

from ..contracts.errors import StoreError, UsageError
from .bulk import insert_many, table_of
from .content import ensure_sound, facts_of
from .engine import translated
from .evidence import failures_of, record_digest
from .reading import RunRow, runs_of
from .snapshots import snapshot
from .ssh import Signer, sign, signer
from .store import Store
from .tables import Signature

TITLE = "prejudge run 1"
MOST, LONGEST = 100, 20_000
"""Most signatures of a run that a bundle brings, and most characters of one."""


class Signed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signature, and the text that was signed."""

    statement: str
    signature: str


def statement_of(connection: sa.Connection, run: RunRow) -> str:
    """Return what is signed of a run that has ended, equal in every store that has the run, whatever its name there.

    Two digests: the head (factors, keys and answers), and the record (study, options, models, times, failed calls, and
    the earlier runs whose answers it took).
    """
    record = record_digest(facts_of(run), failures_of(connection, run.id))
    return f"{TITLE}\nhead {(run.head or b'').hex()}\nrecord {record.hex()}\n"


def sign_run(store: Store, run: RunRow, key: str) -> None:
    """Sign a run that has ended, once its trials and record were found to be as they were written.

    Raises:
        DataError: the run is damaged.
        UsageError: the run has not ended, or the key cannot sign.
    """
    if run.head is None:
        raise UsageError(f"the run {run.name} has not ended, so it cannot be signed. Resume it.", code="sign.running")
    with snapshot(store) as connection:
        ensure_sound(connection, run)
        statement = statement_of(connection, run)
    attach(store, [Signed(statement, sign(statement, key))])


def signatures_of(connection: sa.Connection, run_id: int | None = None) -> list[Signed]:
    """Return the signatures of a run, or of all."""
    table = table_of(Signature)
    query = sa.select(table.c.statement, table.c.signature).order_by(table.c.id)
    rows = connection.execute(query if run_id is None else query.where(table.c.run_id == run_id))
    return [Signed(*row) for row in rows]


def attach(store: Store, signatures: Sequence[Signed]) -> None:
    """Store signatures beside the runs that they are of; those of no run of this store are left out."""
    if not signatures:
        return
    statements = {signed.statement for signed in signatures}
    with snapshot(store) as connection:
        runs = [run for run in runs_of(connection) if run.head is not None and _names(run.head, statements)]
        of_run = {run.id: statement_of(connection, run) for run in runs}

    def write(_: bool) -> None:
        table = table_of(Signature)
        with store.writing() as connection:
            for run_id, statement in of_run.items():
                stored = {signed.signature for signed in signatures_of(connection, run_id)}
                new = [s for s in signatures if s.statement == statement and s.signature not in stored]
                rows = [(run_id, signed.statement, signed.signature) for signed in dict.fromkeys(new)]
                insert_many(connection, table, ("run_id", "statement", "signature"), rows)

    store.patience.endure(write)


def signer_of(store: Store, run: RunRow, signers: str) -> Signer:
    """Return who of a list of allowed signers has signed a run as it is.

    The head and the record of the run are taken as they are stored: check them first, as `Checks` does.

    Raises:
        UsageError: `ssh-keygen` is not installed, or the list cannot be read.
        StoreError: the run has no signature, or none that is valid, of this run and by one of them.
    """
    with translated(store.url), store.engine.connect() as connection:
        signatures = signatures_of(connection, run.id)
        statement = statement_of(connection, run)
    if not signatures:
        raise StoreError("it has no signature", code="signature.missing")
    problems = []
    for signed in signatures:
        try:
            by = signer(signed.statement, signed.signature, signers, run.finished or 0.0)
            if signed.statement == statement:
                return by
            head = signed.statement.partition("head ")[2][:16]
            what = f"{by.name} signed another state of it, with the head {head}: it was resumed or changed since"
            problems.append(StoreError(what, code="signature.other-run"))
        except StoreError as error:
            problems.append(error)
    raise problems[-1]


def ensure_able(key: str) -> None:
    """Refuse a key that cannot sign, before a run that shall be signed begins.

    Raises:
        UsageError: `ssh-keygen` is not installed, or the key cannot sign.
    """
    sign(f"{TITLE}\ntrial\n", key)


def ensure_modest(signatures: Iterable[Signed]) -> None:
    """Refuse more, or longer, signatures than a run can have.

    Raises:
        ValueError: there are.
    """
    several = list(signatures)
    if len(several) > MOST or any(len(s.statement) + len(s.signature) > LONGEST for s in several):
        raise ValueError(f"more than {MOST} signatures, or one of more than {LONGEST:,} characters")


def _names(head: bytes, statements: Iterable[str]) -> bool:
    return any(f"head {head.hex()}\n" in statement for statement in statements)
