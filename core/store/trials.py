"""Bulk reads of a run's trials with their answers, which are checked as they are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeVar

import polars as pl
import sqlalchemy as sa

from ..contracts.canonical import request_key
from .attempts import stream_attempts
from .bulk import LOOKUP, batched, plain_rows, rows_among, table_of
from .damage import answer_fault, damaged
from .engine import translated
from .evidence import ANSWER
from .parts import unpack
from .patience import enduring
from .proof import READ, RowCheck, RunProof, checked_columns
from .store import Store
from .tables import Exchange, Model, RunTrial

STREAMED = 50_000
"""Trials of a part."""
CHECKED = 1_000
"""Trials checked at once."""
R = TypeVar("R")
TRIAL_SCHEMA = {
    "trial": pl.String,
    "factors": pl.String,
    "key": pl.Binary,
    "status": pl.String,
    "response": pl.String,
}
_NUMBER = r'"(?:attempt|sample|seed)":-?[0-9]+'
_ASKED = {"model": pl.Int64, "request": pl.String}
_PLACES = {name: READ.index({"model": "model_id"}.get(name, name)) for name in (*TRIAL_SCHEMA, *_ASKED)}


def read_trials(store: Store, run_id: int, stage: str) -> pl.DataFrame:
    """Return a stage's trials in plan order with their answers (columns of `TRIAL_SCHEMA`)."""
    return pl.concat([pl.DataFrame(schema=TRIAL_SCHEMA), *stream_trials(store, run_id, stage)])


def stream_trials(
    store: Store, run_id: int, stage: str, *, prompts: bool = False, check: RowCheck | None = None
) -> Iterator[pl.DataFrame]:
    """Yield a stage's trials as `read_trials` returns them, in parts, so that memory does not grow with the run.

    With `prompts` they have a column `prompt` besides: the key that all samples of a prompt share, that of a first one
    without a seed; the trial's own key where it has no answer. `check` is that of the whole run, if all is read.

    Raises:
        DataError: a trial or an answer is not as it was stored.
    """
    schema = TRIAL_SCHEMA | (_ASKED if prompts else {})

    def frame(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
        columns = list(zip(*rows, strict=True))
        try:
            return pl.DataFrame({name: pl.Series(columns[_PLACES[name]], dtype=kind) for name, kind in schema.items()})
        except (TypeError, pl.exceptions.PolarsError):
            raise damaged(f"stage {stage!r}", "a trial or its answer is no text") from None

    for frames in stream_rows(store, run_id, stage, check or RowCheck(strict=not store.unproved), frame):
        part = pl.concat(frames, rechunk=True)
        yield _with_prompts(store, part) if prompts else part


def stream_rows(
    store: Store, run_id: int, stage: str, check: RowCheck, keep: Callable[[list[tuple[Any, ...]]], R]
) -> Iterator[list[R]]:
    """Yield what `keep` makes of a stage's rows of `READ`, which are in plan order and checked, in parts.

    Raises:
        DataError: a trial or an answer is not as it was stored.
    """
    last: int | None = -1
    while last is not None:
        results, digests, last = _part_after(store, (run_id, stage, last), check, keep)
        check.receive(stage, digests)
        if results:
            yield results
    check.end(stage)


def finish_proof(store: Store, run_id: int, proof: RunProof) -> None:
    """Check what no reader wanted of a run, and the run as a whole.

    Raises:
        DataError: it is not as it was stored.
    """
    for stage in proof.remaining():
        for _ in stream_rows(store, run_id, stage, proof, len):
            pass
    proof.finish()


def check_trials(connection: sa.Connection, places: tuple[int, str, Sequence[int]], check: RowCheck) -> None:
    """Check the trials at these places: run, stage and ordinals.

    Raises:
        DataError: one is not as it was stored.
    """
    run_id, stage, ordinals = places
    trials, exchanges = table_of(RunTrial), table_of(Exchange)
    query = (
        sa.select(*checked_columns())
        .join_from(trials, exchanges, trials.c.exchange_id == exchanges.c.id, isouter=True)
        .where(trials.c.run_id == run_id, trials.c.stage == stage, trials.c.ordinal.in_(ordinals))
    )
    with closing(plain_rows(connection, query, CHECKED, few=True)) as parts:
        for rows in parts:
            check.check(connection, stage, rows)


@enduring
def _part_after(
    store: Store, after: tuple[int, str, int], check: RowCheck, keep: Callable[[list[tuple[Any, ...]]], R]
) -> tuple[list[R], bytes, int | None]:
    """Return what is kept of the `STREAMED` trials after a place, their digests, and the last place if there are more.

    Few rows at a time: while they are hashed, they are in the processor's cache.
    """
    trials, exchanges, (run_id, stage, last) = table_of(RunTrial), table_of(Exchange), after
    query = (
        sa.select(*checked_columns())
        .join_from(trials, exchanges, trials.c.exchange_id == exchanges.c.id, isouter=True)
        .where(trials.c.run_id == run_id, trials.c.stage == stage, trials.c.ordinal > last)
        .order_by(trials.c.ordinal)
        .limit(STREAMED)
    )
    results: list[R] = []
    digests, count = bytearray(), 0
    with translated(store.url), store.engine.connect() as connection:
        # A fault leaves no cursor behind: on PostgreSQL that would be closed in a later transaction.
        with closing(plain_rows(connection, query, CHECKED, few=True)) as parts:
            for rows in parts:
                digests += check.check(connection, stage, rows)
                results.append(keep(rows))
                count, last = count + len(rows), rows[-1][0]
    return results, bytes(digests), last if count == STREAMED else None


def _with_prompts(store: Store, part: pl.DataFrame) -> pl.DataFrame:
    """Replace the requests of a part by the keys of their prompts."""
    # Requests without the number of a sample or attempt are themselves the question.
    numbered = pl.col("request").str.contains(_NUMBER)
    question = pl.when(numbered).then(question_texts(pl.col("request"))).alias("question")
    asked = part.select("model", question)
    # Samples of one prompt follow each other: each question is put together and hashed once.
    first = asked.drop_nulls().unique()
    digests, questions = _texts_of(store, first["question"])
    keys = [request_key(digests[number], text.encode()) for number, text in zip(first["model"], questions, strict=True)]
    shared = first.with_columns(prompt=pl.Series(keys, dtype=pl.Binary))
    prompt = asked.join(shared, on=["model", "question"], how="left", maintain_order="left")["prompt"]
    return part.drop("model", "request").with_columns(prompt=prompt.fill_null(part["key"]))


@enduring
def _texts_of(store: Store, stored: Iterable[str]) -> tuple[dict[int, bytes], list[str]]:
    """Return the digests of the models' identities by id, and the canonical texts of stored ones."""
    model = table_of(Model)
    with translated(store.url), store.engine.connect() as connection:
        digests = {number: bytes(d) for number, d in connection.execute(sa.select(model.c.id, model.c.digest))}
        return digests, unpack(connection, stored)


@enduring
def first_statuses(
    store: Store, run_id: int, stage: str, read: Callable[[str], str], check: RowCheck | None = None
) -> dict[bytes, str]:
    """Return the status of the first answer to each trial that was asked again, by the key of its last request.

    A first answer with the status `ok` was `unreadable`: otherwise it was the last. `read` returns the status of a
    response. `check` is that of the whole run, if all is read.

    Raises:
        DataError: a first answer is not as it was stored, or was removed.
    """
    check = check or RowCheck(strict=not store.unproved)
    trials, statuses = table_of(RunTrial), dict[bytes, str]()
    with translated(store.url), store.engine.connect() as connection:
        for attempts in stream_attempts(connection, sa.and_(trials.c.run_id == run_id, trials.c.stage == stage)):
            answers = _statuses(connection, {trial.pairs[0] for trial in attempts if trial.pairs}, read, check)
            for trial in attempts:
                if not isinstance(trial.key, bytes):
                    raise damaged(f"stage {stage!r}", "the key of a trial is no digest")
                status = answers.get(trial.pairs[0]) if trial.pairs else None
                if status is None:
                    problem = "its first answer is not in the store, or was changed"
                    check.report(f"trial {trial.trial!r} of stage {stage!r}", problem)
                else:
                    statuses[trial.key] = "unreadable" if status == "ok" else status
    return statuses


def _statuses(
    connection: sa.Connection, pairs: Collection[tuple[bytes, bytes]], read: Callable[[str], str], check: RowCheck
) -> dict[tuple[bytes, bytes], str]:
    """Return the status of the answers with these keys and digests."""
    query = f"SELECT id, {', '.join(ANSWER)}, digest FROM exchange WHERE key"
    statuses: dict[tuple[bytes, bytes], str] = {}
    for keys in batched({key for key, _ in pairs}, LOOKUP):
        for number, *fields, digest in rows_among(connection, query, keys):
            if (pair := (fields[0], digest)) in pairs:
                if (problem := answer_fault(fields, digest)) is not None:
                    check.report(f"exchange {number}", problem)
                    statuses[pair] = fields[ANSWER.index("status")]
                else:
                    statuses[pair] = read(fields[ANSWER.index("response")])
    return statuses


def question_texts(requests: pl.Expr) -> pl.Expr:
    """Return the canonical requests without the numbers of their samples and attempts: `question_of`, undecoded."""
    # Quotes inside a JSON string are escaped, so the patterns match members only.
    numberless = requests.str.replace_all(f",{_NUMBER}", "").str.replace_all(rf"\{{{_NUMBER},?", "{")
    return numberless.str.replace_all(',"sampling":{}', "", literal=True)
