"""A batch of trials with the rows that answer them, as a store takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ..contracts import Trial
from ..contracts.abilities import OPERATIONS
from ..contracts.canonical import encode, encode_response, request_key
from ..contracts.records import AnyResponse
from ..store.chunks import Chunks
from ..store.content import Failed, Sent, Stored, Tried
from ..store.evidence import answer_digest, trial_digest
from ..store.trials import TRIAL_SCHEMA
from ..tables.faults import RowError
from .answers import Answers, NoAnswer, Row, Source, read_answer

WHEN = 0.0
"""The time of an imported answer is not known. The same file therefore always gives the same exchanges."""


class Part:
    """A batch of trials of a stage, with the rows that answer them."""

    def __init__(self, answers: Answers, identity: bytes, stage: str, ordered: Sequence[tuple[int, Trial]]) -> None:
        self._answers, self._identity, self._stage, self._ordered = answers, identity, stage, ordered
        self.tried: list[Tried] = []
        self.failed: list[Failed] = []
        self.faults: list[RowError] = []
        self._sent: list[Sent | None] = []

    def answer(self, rows: Mapping[int, Row], stated: Mapping[int, Mapping[str, Any]]) -> None:
        """Read the answers of these trials, with the factors that a row states in another way."""
        for ordinal, trial in self._ordered:
            sent = self._one(trial, rows.get(ordinal))
            self._sent.append(sent)
            key = sent.key if sent is not None else self._key(encode(trial.request))
            factors = encode(trial.factors | dict(stated.get(ordinal, {}))).decode()
            place = (self._stage, ordinal, trial.id, factors, key)
            self.tried.append(Tried(*place, None, trial_digest(*place, None if sent is None else _digest(sent))))

    def copied(self, chunks: Chunks) -> list[int | None]:
        """Copy the answers, and return the ids of their exchanges, None for a trial without one."""
        answered = (Stored(index, sent, _digest(sent)) for index, sent in enumerate(self._sent) if sent is not None)
        numbers = iter([number for _, here in chunks.exchanges(answered) for number in here])
        return [None if sent is None else next(numbers) for sent in self._sent]

    def frame(self) -> pl.DataFrame:
        """Return these trials as the store returns them."""
        rows = [
            (tried.trial, tried.factors, tried.key, sent and sent.status, sent and sent.response)
            for tried, sent in zip(self.tried, self._sent, strict=True)
        ]
        return pl.DataFrame(rows, schema=TRIAL_SCHEMA, orient="row")

    def _one(self, trial: Trial, row: Row | None) -> Sent | None:
        request = encode(trial.request)
        if row is None:
            names = ", ".join(Path(source.path).name for source in self._answers.sources)
            answer: AnyResponse | NoAnswer = NoAnswer(f"not in {names}")
        else:
            answer = self._read(row, trial)
        if isinstance(answer, NoAnswer):
            where = "" if row is None else f" in {row._replace(source=_named(row.source)).place}"
            reason = f"{answer.reason}{where}"
            self.failed.append(Failed(self._key(request), "permanent", reason, WHEN))
            return None
        operation, response = OPERATIONS[type(trial.request)], encode_response(answer).decode()
        parts = (request.decode(), response, answer.status, 0, 0, 0.0, WHEN)
        return Sent(self._key(request), self._identity, operation, *parts)

    def _read(self, row: Row, trial: Trial) -> AnyResponse | NoAnswer:
        try:
            return read_answer(row, trial.request)
        except RowError as fault:
            self.faults.append(fault)
            return NoAnswer(fault.reason)

    def _key(self, request: bytes) -> bytes:
        return request_key(self._identity, request)


def _digest(sent: Sent) -> bytes:
    return answer_digest(sent.key, sent.operation, *sent[4:])


def _named(source: Source) -> Source:
    return source._replace(path=Path(source.path).name)
