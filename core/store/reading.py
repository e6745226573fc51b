"""The runs of a store, and what is looked up of them without reading answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from ..contracts.adapter import Identity
from ..contracts.canonical import encode_identity
from ..contracts.errors import DataError, UnknownNameError
from ..contracts.places import handed_on
from .bulk import rows_where, table_of
from .engine import translated
from .evidence import is_run
from .names import RunName, run_name
from .patience import enduring
from .store import Store
from .tables import Attempt, Blob, Exchange, Model, Renewal, Run, RunTrial

RECHECK = "recheck of "
"""Prefix of a recheck's study name; the name of the original run follows."""
LATEST_OF = "latest "
"""What stands before the name of a study whose latest run is meant."""
TIMED = "timed"
"""State of a run that was only begun to time a study. Resuming it makes it a run like others."""


class _Asked(msgspec.Struct):
    """The models that a manifest names."""

    identities: dict[str, Identity] = {}


class _Begun(msgspec.Struct):
    """What the manifest of such a run says while it is under way, and after it was killed."""

    timing: bool = False


class RunRow(NamedTuple):
    """A run in the store."""

    id: int
    name: RunName
    study: str
    state: str
    manifest: str
    started: float
    finished: float | None
    head: bytes | None = None
    """See `evidence.run_head`."""
    local: str | None = None

    @property
    def own(self) -> str:
        """Return the manifest with the paths of this machine, if it is `manifest` but for these, which has a digest."""
        try:
            return self.local if self.local is not None and handed_on(self.local) == self.manifest else self.manifest
        except (ValueError, TypeError, AttributeError):
            return self.manifest  # what only this machine has is damaged

    @property
    def is_result(self) -> bool:
        """Return whether somebody asked for this run of a study: no recheck of another, and not begun to be timed."""
        return self.told != TIMED and not self.study.startswith(RECHECK)

    @property
    def told(self) -> str:
        """Return the state as a reader is told: a run that was killed while it was timed has no state of its own."""
        if self.state not in ("running", "interrupted"):
            return self.state
        try:
            return TIMED if msgspec.json.decode(self.manifest, type=_Begun).timing else self.state
        except msgspec.MsgspecError:
            return self.state  # whoever reads a damaged manifest says so


@enduring
def list_runs(store: Store) -> list[RunRow]:
    """Return every run, the newest last."""
    with translated(store.url), store.engine.connect() as connection:
        return runs_of(connection)


def runs_of(connection: sa.Connection) -> list[RunRow]:
    """Return every run, the newest last, on this connection."""
    table = table_of(Run)
    columns = [table.c[name] for name in RunRow._fields]
    rows = connection.execute(sa.select(*columns).where(is_run()).order_by(table.c.id))
    return [RunRow(number, run_name(name), *values) for number, name, *values in rows]


def get_run(store: Store, name: str) -> RunRow:
    """Return a run by its name, an unambiguous beginning of it, `latest`, or `latest STUDY`.

    `latest` is never a recheck, nor a run that was only begun to time a study. STUDY too may be an unambiguous
    beginning, of the names of the studies that have runs.

    Raises:
        UnknownNameError: no run has that name.
        DataError: several runs begin with it.
    """
    runs = list_runs(store)
    studies = [run for run in runs if run.is_result]
    if name == "latest" and studies:
        return studies[-1]
    if name.startswith(LATEST_OF):
        return _latest_of(name.removeprefix(LATEST_OF).strip(), studies)
    exact = [run for run in runs if run.name == name]
    matches = exact or [run for run in runs if name and run.name.startswith(name)]
    if len(matches) > 1:
        raise DataError(
            f"{len(matches)} runs begin with {name!r}, such as {matches[0].name} and {matches[1].name}. "
            "Write more of the name, or `latest STUDY`.",
            code="run.ambiguous",
        )
    if not matches:
        names = [*(["latest"] if studies else []), *(run.name for run in runs)]
        raise UnknownNameError("run", name, names, "List them: prejudge list runs." if runs else "")
    return matches[0]


def _latest_of(study: str, runs: Sequence[RunRow]) -> RunRow:
    """Return the latest run of a study, by its name or an unambiguous beginning of it."""
    names = list(dict.fromkeys(run.study for run in runs))
    matches = [study] if study in names else [name for name in names if study and name.startswith(study)]
    if len(matches) > 1:
        raise DataError(
            f"runs of {len(matches)} studies begin with {study!r}: {', '.join(matches)}.", code="run.ambiguous"
        )
    if not matches:
        raise UnknownNameError("study with a run", study, names, "List them: prejudge list runs." if runs else "")
    return next(run for run in reversed(runs) if run.study == matches[0])


def unfinished_runs(store: Store) -> list[RunRow]:
    """Return the runs that were interrupted or are under way, the newest first."""
    runs = [run for run in list_runs(store) if run.state in ("interrupted", "running")]
    return [run for run in reversed(runs) if run.is_result]


@enduring
def used_answers(store: Store, run_id: int, keys: Iterable[bytes]) -> dict[bytes, int]:
    """Return the exchange that answered each key in a run; later runs may have newer answers to the same key."""
    table = table_of(RunTrial)
    query = sa.select(table.c.key, table.c.exchange_id).where(
        table.c.run_id == run_id, table.c.exchange_id.is_not(None)
    )
    with translated(store.url), store.engine.connect() as connection:
        return {row.key: row.exchange_id for row in rows_where(connection, query, table.c.key, keys)}


def read_failures(store: Store, run_id: int) -> dict[bytes, str]:
    """Return the last failure of each key that failed in a run."""
    table = table_of(Attempt)
    query = sa.select(table.c.key, table.c.message).where(table.c.run_id == run_id).order_by(table.c.id)
    return {row.key: row.message for row in store.rows(query)}


@enduring
def statistics(store: Store) -> dict[str, int]:
    """Return how many rows each table has."""
    with translated(store.url), store.engine.connect() as connection:
        counts = {
            kind.__name__: int(connection.scalar(sa.select(sa.func.count()).select_from(table_of(kind))) or 0)
            for kind in (Model, Exchange, Attempt, Blob, Run, RunTrial)
        }
        return counts | {Run.__name__: len(runs_of(connection))}


def trial_counts(store: Store, run_id: int) -> dict[str, int]:
    """Return how many trials of each stage of a run are recorded."""
    trials = table_of(RunTrial)
    query = sa.select(trials.c.stage, sa.func.count()).where(trials.c.run_id == run_id).group_by(trials.c.stage)
    return {stage: int(count) for stage, count in store.rows(query)}


def renewed_answers(store: Store, run_id: int) -> dict[str, int]:
    """Return how many trials of a run have an answer that was asked for because of the one before, by its outcome."""
    trials, renewal = table_of(RunTrial), table_of(Renewal)
    query = (
        sa.select(renewal.c.outcome, sa.func.count())
        .join_from(trials, renewal, trials.c.exchange_id == renewal.c.exchange_id)
        .where(trials.c.run_id == run_id)
        .group_by(renewal.c.outcome)
    )
    return {outcome: int(count) for outcome, count in store.rows(query.order_by(renewal.c.outcome))}


def model_names(store: Store) -> dict[str, list[str]]:
    """Return the names that runs gave each model, by the canonical JSON of its identity."""
    names: dict[str, list[str]] = {}
    for run in list_runs(store):
        with suppress(msgspec.MsgspecError, UnicodeError):  # `cache verify` names what is damaged
            for identity in msgspec.json.decode(run.manifest, type=_Asked).identities.values():
                of_model = names.setdefault(encode_identity(identity).decode(), [])
                of_model += [] if identity.model in of_model else [identity.model]
    return names


def exchanges_by_model(store: Store) -> list[tuple[str, str, str, int]]:
    """Return (identity JSON, operation, status, exchanges) for each model, operation and status."""
    exchange, models = table_of(Exchange), table_of(Model)
    query = (
        sa.select(models.c.identity, exchange.c.operation, exchange.c.status, sa.func.count())
        .join_from(exchange, models)
        .group_by(models.c.identity, exchange.c.operation, exchange.c.status)
        .order_by(models.c.identity, exchange.c.operation, exchange.c.status)
    )
    return [(model, kind, status, count) for model, kind, status, count in store.rows(query)]
