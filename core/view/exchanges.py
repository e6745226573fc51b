"""The full exchanges behind rows of an index, read from the store as they are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from ..contracts.canonical import decode_request, decode_response
from ..contracts.records import AnyResponse, Generation, Scalar
from ..engine.manifest import manifest_of
from ..report.examples import request_notes, show_images, show_request, show_response
from ..store import RunRow, Store
from ..store.bulk import batched, table_of
from ..store.engine import translated
from ..store.parts import unpack
from ..store.proof import RowCheck
from ..store.tables import Attempt, Exchange, Model, RunTrial
from ..store.trials import check_trials
from .columns import Column
from .pages import BEGIN
from .shelf import Index

BEGINNING = 240
"""Characters of an answer in a list."""
REASONING = "reasoning"
BESIDES = ("raw reply", "finish reason")
"""What the store has of an answer besides its words."""
SHOWN = frozenset("tag type messages prompt continuations text pair contrast".split())
"""Fields of a request that are shown as texts, or name its kind."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A trial with what was asked and answered."""

    row: int
    stage: str
    ordinal: int
    trial: str
    factors: dict[str, Any]
    key: str
    status: str
    """As the reader says; `failed` without an answer."""
    reason: str = ""
    outcomes: dict[str, str] = {}
    asked: tuple[tuple[str, str], ...] = ()
    """(label, text) of the request."""
    said: tuple[tuple[str, str], ...] = ()
    images: tuple[tuple[str, str], ...] = ()
    """(label, sha256)."""
    settings: dict[str, Scalar] = {}
    stored: dict[str, Scalar] = {}
    """What the store says of the exchange: operation, tokens, latency, time."""
    model: str = ""
    """JSON of the model's identity."""
    failures: tuple[str, ...] = ()

    @property
    def beginning(self) -> str:
        """Return the beginning of the answer, without its reasoning."""
        texts = [text for label, text in self.said if label not in (REASONING, *BESIDES)]
        return " ".join(" ".join(texts).split())[:BEGINNING]

    @property
    def words(self) -> str:
        """Return the words of the answer, without its reasoning."""
        return "\n\n".join(text for label, text in self.said if label not in (REASONING, *BESIDES))

    @property
    def opening(self) -> str:
        """Return the beginning of the words that stands beside others."""
        return opening(self.words)

    @property
    def reasoning(self) -> str:
        """Return what the model thought before it answered."""
        return "\n\n".join(text for label, text in self.said if label == REASONING)


def opening(text: str) -> str:
    """Return the beginning of a long text, and how much more there is."""
    left = len(text) - BEGIN
    return text if left <= 0 else f"{text[:BEGIN]}\n[{left:,} more characters]"


def shown(store: Store, run: RunRow, index: Index, rows: Sequence[int], *, whole: bool = False) -> list[Shown]:
    """Return the trials of these rows in this order; `whole`: with settings, model and failed calls.

    Raises:
        StoreError: the store cannot be read.
        DataError: a trial is not as it was stored.
    """
    found: dict[tuple[str, int], Any] = {}
    trials, exchange, model = table_of(RunTrial), table_of(Exchange), table_of(Model)
    columns = [trials.c[name] for name in ("ordinal", "trial", "factors", "key")]
    columns += [exchange.c[name] for name in ("status", "request", "response", "operation", "input_tokens")]
    columns += [exchange.c[name] for name in ("output_tokens", "latency", "created")]
    query = (
        sa.select(*columns, model.c.identity)
        .join_from(trials, exchange, trials.c.exchange_id == exchange.c.id, isouter=True)
        .join(model, exchange.c.model_id == model.c.id, isouter=True)
        .where(trials.c.run_id == run.id)
    )
    by_stage: dict[str, list[int]] = {}
    check = RowCheck(strict=not store.unproved)
    for row in rows:
        by_stage.setdefault(index.stage_of(row), []).append(int(index.ordinals[row]))
    with translated(store.url), store.engine.connect() as connection:
        for stage, ordinals in by_stage.items():
            for some in batched(ordinals, 500):
                chosen = query.where(trials.c.stage == stage, trials.c.ordinal.in_(some))
                found |= {(stage, one.ordinal): one for one in connection.execute(chosen)}
                check_trials(connection, (run.id, stage, some), check)
        places = [(index.stage_of(row), int(index.ordinals[row])) for row in rows]
        texts = unpack(connection, [_text(found[p].request) if p in found else "" for p in places])
        failures = _failures(connection, run.id, found.values()) if whole else {}
    unrecorded = manifest_of(run).unrecorded
    return [
        _unasked(_shown(index, row, stage, found[stage, ordinal], request, failures), unrecorded)
        for row, (stage, ordinal), request in zip(rows, places, texts, strict=True)
        if (stage, ordinal) in found
    ]


def _unasked(one: Shown, unrecorded: Collection[str]) -> Shown:
    """Return a trial whose request says that it is not recorded, if so; its settings are those of the study then."""
    notes = request_notes(unrecorded)
    return msgspec.structs.replace(one, asked=(*notes, *one.asked), settings={}) if notes else one


def _shown(index: Index, row: int, stage: str, one: Any, request: str, failures: dict[bytes, tuple[str, ...]]) -> Shown:
    asked, said = _decoded(request, decode_request), _decoded(one.response, decode_response)
    columns = index.columns
    return Shown(
        row=row,
        stage=stage,
        ordinal=one.ordinal,
        trial=str(one.trial),
        factors=_factors(one.factors),
        key=bytes(one.key).hex(),
        status=columns["status"].word(row) or "",
        reason=(columns["reason"].word(row) or "") if "reason" in columns else "",
        outcomes={c.name: value for c in columns.values() if c.role == "outcome" and (value := _value(c, row))},
        asked=tuple(show_request(asked)) if asked is not None else (("request", request),) if request else (),
        said=tuple(_said(said)) if said is not None else (("answer", _text(one.response)),) if one.response else (),
        images=tuple(show_images(asked, said)) if asked is not None and said is not None else (),
        settings=_settings(request),
        stored=_stored(one),
        model=_text(one.identity),
        failures=failures.get(bytes(one.key), ()),
    )


def _value(column: Column, row: int) -> str:
    if column.values is not None:
        value = float(column.values[row])
        return "" if value != value else f"{value:.6g}"
    return column.word(row) or ""


def _said(response: AnyResponse) -> list[tuple[str, str]]:
    ended = response.finish_reason if isinstance(response, Generation) else ""
    return [*show_response(response), *([("finish reason", ended)] if ended else [])]


def _decoded(text: Any, decode: Any) -> Any:
    try:
        return decode(text) if isinstance(text, str) and text else None
    except (msgspec.MsgspecError, UnicodeError):
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _factors(text: Any) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, TypeError):
        return {}


def _settings(request: str) -> dict[str, Scalar]:
    try:
        fields: dict[str, Any] = msgspec.json.decode(request, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}
    flat: dict[str, Scalar] = {}
    for name, value in fields.items():
        if name in SHOWN:
            continue
        if isinstance(value, dict):
            flat |= {str(k): v if isinstance(v, str | int | float | bool) else repr(v) for k, v in value.items()}
        else:
            flat[name] = value if isinstance(value, str | int | float | bool) else repr(value)
    return flat


def _stored(one: Any) -> dict[str, Scalar]:
    if one.operation is None:
        return {}
    names = ("operation", "input_tokens", "output_tokens", "latency", "created")
    return {name: getattr(one, name) for name in names}


def _failures(connection: sa.Connection, run_id: int, rows: Iterable[Any]) -> dict[bytes, tuple[str, ...]]:
    table = table_of(Attempt)
    keys = [bytes(one.key) for one in rows]
    query = sa.select(table.c.key, table.c.decision, table.c.message).where(
        table.c.run_id == run_id, table.c.key.in_(keys)
    )
    found: dict[bytes, tuple[str, ...]] = {}
    for key, decision, message in connection.execute(query.order_by(table.c.id)):
        found[bytes(key)] = (*found.get(bytes(key), ()), f"{decision}: {message}")
    return found
