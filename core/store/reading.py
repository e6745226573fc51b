"""Bulk reads of the store: a run's trials with their answers, and row counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import polars as pl
import sqlalchemy as sa

from ..contracts.adapter import Identity
from ..contracts.canonical import decode_request, encode, encode_identity, request_key
from ..contracts.errors import DataError, UnknownNameError
from ..contracts.places import handed_on
from .bulk import LOOKUP, batched, run_plain, table_of
from .engine import translated
from .evidence import is_run
from .names import RunName, run_name
from .parts import unpack
from .patience import enduring
from .store import Store
from .tables import Attempt, Blob, Exchange, Model, Renewal, Run, RunTrial

STREAMED = 50_000
"""Trials read at once."""
TRIAL_SCHEMA = {
    "trial": pl.String,
    "factors": pl.String,
    "key": pl.Binary,
    "status": pl.String,
    "response": pl.String,
}
_NUMBER = r'"(?:attempt|sample|seed)":-?[0-9]+'
_ASKED = {"model": pl.Int64, "request": pl.String}

RECHECK = "recheck of "
"""Prefix of a recheck's study name; the name of the original run follows."""
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
    unproved: float | None = None
    """The time before which a change of its answers cannot be found, if they are older than their digests."""
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


def damaged(what: str, problem: str) -> DataError:
    """Return the error of a damaged row of a store."""
    mend = "`prejudge cache verify` names every damaged row; `prejudge cache repair --from` restores them."
    return DataError(f"the store is damaged: {what}: {problem}. {mend}", code="store.row-damaged")


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
    return [RunRow(number, run_name(name), *rest) for number, name, *rest in rows]


def get_run(store: Store, name: str) -> RunRow:
    """Return a run by its name, `latest`, or an unambiguous beginning of its name.

    `latest` is never a recheck, nor a run that was only begun to time a study.

    Raises:
        UnknownNameError: no run has that name.
        DataError: several runs begin with it.
    """
    runs = list_runs(store)
    studies = [run for run in runs if run.is_result]
    if name == "latest" and studies:
        return studies[-1]
    exact = [run for run in runs if run.name == name]
    found = exact or [run for run in runs if name and run.name.startswith(name)]
    if len(found) > 1:
        raise DataError(
            f"{len(found)} runs begin with {name!r}, such as {found[0].name} and {found[1].name}.", code="run.ambiguous"
        )
    if not found:
        known = [*(["latest"] if studies else []), *(run.name for run in runs)]
        raise UnknownNameError("run", name, known, "List them: prejudge list runs." if runs else "")
    return found[0]


def unfinished_runs(store: Store) -> list[RunRow]:
    """Return the runs that were interrupted or are under way, the newest first."""
    runs = [run for run in list_runs(store) if run.state in ("interrupted", "running")]
    return [run for run in reversed(runs) if run.is_result]


def read_trials(store: Store, run_id: int, stage: str) -> pl.DataFrame:
    """Return a stage's trials in plan order with their answers (columns of `TRIAL_SCHEMA`)."""
    return pl.concat([pl.DataFrame(schema=TRIAL_SCHEMA), *stream_trials(store, run_id, stage)])


def stream_trials(store: Store, run_id: int, stage: str, *, prompts: bool = False) -> Iterator[pl.DataFrame]:
    """Yield a stage's trials as `read_trials` returns them, in parts, so that memory does not grow with the run.

    With `prompts` they have a column `prompt` besides: the key that all samples of a prompt share, that of a first one
    without a seed; the trial's own key where it has no answer.
    """
    last: int | None = -1
    while last is not None:
        rows, texts = _trials_after(store, run_id, stage, last, prompts=prompts)
        last = rows[-1][0] if len(rows) == STREAMED else None
        if not rows:
            return
        try:
            part = pl.DataFrame(
                [row[1:] for row in rows], schema=TRIAL_SCHEMA | (_ASKED if prompts else {}), orient="row"
            )
        except (TypeError, pl.exceptions.PolarsError):
            raise damaged(f"stage {stage!r}", "a trial or its answer is no text") from None
        yield _with_prompts(part, texts) if prompts else part


class _Texts(NamedTuple):
    """What the prompts of a part are made of."""

    digests: dict[int, bytes]
    """Of the models' identities, by id."""
    whole: dict[str, str]
    """Canonical questions by stored ones."""


@enduring
def _trials_after(
    store: Store, run_id: int, stage: str, ordinal: int, *, prompts: bool
) -> tuple[list[tuple[Any, ...]], _Texts]:
    trials, exchanges, model = table_of(RunTrial), table_of(Exchange), table_of(Model)
    columns = [trials.c.ordinal, trials.c.trial, trials.c.factors, trials.c.key, exchanges.c.status]
    asked = [exchanges.c.model_id, exchanges.c.request] if prompts else []
    query = (
        sa.select(*columns, exchanges.c.response, *asked)
        .join_from(trials, exchanges, trials.c.exchange_id == exchanges.c.id, isouter=True)
        .where(trials.c.run_id == run_id, trials.c.stage == stage, trials.c.ordinal > ordinal)
        .order_by(trials.c.ordinal)
        .limit(STREAMED)
    )
    with translated(store.url), store.engine.connect() as connection:
        statement = query.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})
        rows = run_plain(connection, str(statement))
        if not prompts:
            return rows, _Texts({}, {})
        known = connection.execute(sa.select(model.c.id, model.c.digest))
        digests = {number: bytes(digest) for number, digest in known}
        questions = pl.DataFrame({"request": [row[-1] for row in rows]}, schema={"request": pl.String})
        stored = questions.filter(_numbered()).select(question_texts(pl.col("request"))).to_series().unique()
        return rows, _Texts(digests, dict(zip(stored, unpack(connection, stored), strict=True)))


def _numbered() -> pl.Expr:
    """Return which requests have the number of a sample or attempt; others are themselves the question."""
    return pl.col("request").str.contains(_NUMBER)


def _with_prompts(part: pl.DataFrame, texts: _Texts) -> pl.DataFrame:
    """Replace the requests of a part by the keys of their prompts."""
    question = pl.when(_numbered()).then(question_texts(pl.col("request"))).alias("question")
    asked = part.select("model", question)
    # Samples of one prompt follow each other: each question is put together and hashed once.
    first = asked.drop_nulls().unique()
    keys = [
        request_key(texts.digests[number], texts.whole[stored].encode())
        for number, stored in zip(first["model"], first["question"], strict=True)
    ]
    shared = first.with_columns(prompt=pl.Series(keys, dtype=pl.Binary))
    found = asked.join(shared, on=["model", "question"], how="left", maintain_order="left")["prompt"]
    return part.drop("model", "request").with_columns(prompt=found.fill_null(part["key"]))


@enduring
def first_statuses(store: Store, run_id: int, stage: str) -> dict[bytes, str]:
    """Return the status of the first answer to each trial that was asked again, by the key of its last request.

    A first answer with the status `ok` was `unreadable`: otherwise it was the last.
    """
    trials, exchange, model = table_of(RunTrial), table_of(Exchange), table_of(Model)
    query = (
        sa.select(trials.c.key, model.c.digest, exchange.c.request)
        .join_from(trials, exchange, trials.c.exchange_id == exchange.c.id)
        .join(model)
        .where(trials.c.run_id == run_id, trials.c.stage == stage, exchange.c.request.like('%"attempt":%'))
    )
    firsts: dict[bytes, bytes] = {}
    with translated(store.url), store.engine.connect() as connection:
        for rows in connection.execute(query).partitions(LOOKUP):
            requests = unpack(connection, (request for *_, request in rows))
            for (key, digest, _), text in zip(rows, requests, strict=True):
                firsts[bytes(key)] = request_key(bytes(digest), _first_attempt(text))
    found = store.find(firsts.values())
    statuses = {key: found[first].status for key, first in firsts.items() if first in found}
    return {key: "unreadable" if status == "ok" else status for key, status in statuses.items()}


def question_texts(requests: pl.Expr) -> pl.Expr:
    """Return the canonical requests without the numbers of their samples and attempts: `question_of`, undecoded."""
    # Quotes inside a JSON string are escaped, so the patterns match members only.
    rest = requests.str.replace_all(f",{_NUMBER}", "").str.replace_all(rf"\{{{_NUMBER},?", "{")
    return rest.str.replace_all(',"sampling":{}', "", literal=True)


def _first_attempt(text: str) -> bytes:
    return encode(msgspec.structs.replace(decode_request(text), attempt=0))


@enduring
def used_answers(store: Store, run_id: int, keys: Iterable[bytes]) -> dict[bytes, int]:
    """Return the exchange that answered each key in a run; later runs may have newer answers to the same key."""
    table = table_of(RunTrial)
    query = sa.select(table.c.key, table.c.exchange_id).where(
        table.c.run_id == run_id, table.c.exchange_id.is_not(None)
    )
    used: dict[bytes, int] = {}
    with translated(store.url), store.engine.connect() as connection:
        for some in batched(keys, LOOKUP):
            used.update((bytes(key), number) for key, number in connection.execute(query.where(table.c.key.in_(some))))
    return used


@enduring
def read_failures(store: Store, run_id: int) -> dict[bytes, str]:
    """Return the last failure of each key that failed in a run."""
    table = table_of(Attempt)
    query = sa.select(table.c.key, table.c.message).where(table.c.run_id == run_id).order_by(table.c.id)
    with translated(store.url), store.engine.connect() as connection:
        return {bytes(key): message for key, message in connection.execute(query)}


@enduring
def statistics(store: Store) -> dict[str, int]:
    """Return how many rows each table has."""
    with translated(store.url), store.engine.connect() as connection:
        counts = {
            kind.__name__: int(connection.scalar(sa.select(sa.func.count()).select_from(table_of(kind))) or 0)
            for kind in (Model, Exchange, Attempt, Blob, Run, RunTrial)
        }
        return counts | {Run.__name__: len(runs_of(connection))}


@enduring
def trial_counts(store: Store, run_id: int) -> dict[str, int]:
    """Return how many trials of each stage of a run are recorded."""
    trials = table_of(RunTrial)
    query = sa.select(trials.c.stage, sa.func.count()).where(trials.c.run_id == run_id).group_by(trials.c.stage)
    with translated(store.url), store.engine.connect() as connection:
        return {stage: int(count) for stage, count in connection.execute(query)}


@enduring
def renewed_answers(store: Store, run_id: int) -> dict[str, int]:
    """Return how many trials of a run have an answer that was asked for because of the one before, by its outcome."""
    trials, renewal = table_of(RunTrial), table_of(Renewal)
    query = (
        sa.select(renewal.c.outcome, sa.func.count())
        .join_from(trials, renewal, trials.c.exchange_id == renewal.c.exchange_id)
        .where(trials.c.run_id == run_id)
        .group_by(renewal.c.outcome)
    )
    with translated(store.url), store.engine.connect() as connection:
        return {outcome: int(count) for outcome, count in connection.execute(query.order_by(renewal.c.outcome))}


def model_names(store: Store) -> dict[str, list[str]]:
    """Return the names that runs gave each model, by the canonical JSON of its identity."""
    names: dict[str, list[str]] = {}
    for run in list_runs(store):
        with suppress(msgspec.MsgspecError, UnicodeError):  # `cache verify` names what is damaged
            for identity in msgspec.json.decode(run.manifest, type=_Asked).identities.values():
                of_model = names.setdefault(encode_identity(identity).decode(), [])
                of_model += [] if identity.model in of_model else [identity.model]
    return names


@enduring
def exchanges_by_model(store: Store) -> list[tuple[str, str, str, int]]:
    """Return (identity JSON, operation, status, exchanges) for each model, operation and status."""
    exchange, models = table_of(Exchange), table_of(Model)
    query = (
        sa.select(models.c.identity, exchange.c.operation, exchange.c.status, sa.func.count())
        .join_from(exchange, models)
        .group_by(models.c.identity, exchange.c.operation, exchange.c.status)
        .order_by(models.c.identity, exchange.c.operation, exchange.c.status)
    )
    with translated(store.url), store.engine.connect() as connection:
        return [(model, kind, status, count) for model, kind, status, count in connection.execute(query)]
