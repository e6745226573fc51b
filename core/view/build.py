"""Build the index of a run: its trials as columns, and the texts asked and answered.

The store is read once, in parts; memory does not grow with the run. Where the study's probe is installed, its reader
says what the answers are, as it does for the report; a stage whose review sees all answers at once is reviewed, too.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ..catalogue.study import Catalogue
from ..contracts import Stage
from ..contracts.canonical import decode_request, decode_response
from ..contracts.errors import PrejudgeError
from ..contracts.records import Classification, Generation
from ..engine.manifest import as_made, manifest_of
from ..engine.observations import TRIALS, UNFINISHED, build_observations, were_asked
from ..engine.reading import as_read, read_part
from ..report.examples import show_request, show_response
from ..store import RunProof, RunRow, Store, finish_proof, read_failures, trial_counts
from ..store.damage import damaged
from ..store.parts import unpack
from ..store.proof import READ
from ..store.trials import stream_rows
from .columns import Role, marks_of
from .texts import TextWriter
from .writing import Described, Writer

DESCRIPTION = "index.json"
ROWS = ("ordinal", "trial-mark", "answer-mark")
"""Arrays with a number per row: place in the plan of its stage, and digests of 64 bits of trial and answer."""


class Description(msgspec.Struct, frozen=True):
    """What an index says of itself."""

    rows: int
    columns: tuple[Described, ...]
    seconds: float
    """How long it took to build."""
    unread: str = ""
    """Why no reader has read the answers; empty if one has."""
    unproved: str = ""
    """What is first found to be damaged of a run that is not as it was stored; empty if nothing is."""


class Built(msgspec.Struct):
    """How far a build is."""

    done: int = 0
    total: int = 0
    started: float = 0.0

    @property
    def left(self) -> float | None:
        """Return the seconds that are left, by the pace so far."""
        spent = time.monotonic() - self.started
        return spent * (self.total - self.done) / self.done if self.done else None


class Reader(NamedTuple):
    """The stages whose readers are installed, and how they read."""

    stages: dict[str, Stage]
    why: str = ""


def reader_of(catalogue: Catalogue, run: RunRow) -> Reader:
    """Return the readers of a run's stages; where they cannot be had, why."""
    manifest = manifest_of(run)
    try:
        study = as_made(catalogue, manifest)
        return Reader({stage.name: stage for stage in catalogue.instrument(study).stages()})
    except PrejudgeError as error:
        return Reader({}, str(error))


def build(store: Store, run: RunRow, catalogue: Catalogue, folder: Path, seen: Callable[[Built], None]) -> None:
    """Write the index of a run into an empty folder; `seen` is told how far it is.

    Raises:
        DataError: the run is not as it was stored.
        StoreError: the store cannot be read.
    """
    reader, proof, table = reader_of(catalogue, run), RunProof(store, run), _Table(folder)
    built = Built(0, sum(trial_counts(store, run.id).values()), time.monotonic())

    def told(rows: int) -> None:
        built.done += rows
        seen(built)

    try:
        _fill(table, _Source(store, run, reader, proof), told)
        finish_proof(store, run.id, proof)
    except BaseException:
        table.discard()
        raise
    described = Description(table.rows, table.close(), time.monotonic() - built.started, reader.why, proof.problem)
    (folder / DESCRIPTION).write_bytes(msgspec.json.encode(described))


class _Source(NamedTuple):
    """What an index is made of."""

    store: Store
    run: RunRow
    reader: Reader
    proof: RunProof


def _fill(table: _Table, source: _Source, told: Callable[[int], None]) -> None:
    """Write all trials of a run, stage by stage; `told` is told how many at a time."""
    store, run, reader, proof = source
    counts, failures = trial_counts(store, run.id), read_failures(store, run.id)
    for name in [name for name in reader.stages if name in counts] + sorted(counts.keys() - reader.stages.keys()):
        stage = reader.stages.get(name)
        reviewed = stage is not None and type(stage).review is not Stage.review
        kept: list[pl.DataFrame] = []
        for trials, requests in _parts(store, run.id, name, proof):
            rows = trials.height
            if run.state in UNFINISHED:
                asked = were_asked(trials, failures)
                trials, requests = trials.filter(asked), list(compress(requests, asked))
            table.note(name, trials, requests)
            frame = _observed(stage, trials, failures)
            if reviewed:
                kept.append(frame)
            else:
                table.add(name, stage, frame)
            told(rows)
        if reviewed and stage is not None and kept:
            table.add(name, stage, stage.review(pl.concat(kept, how="diagonal_relaxed"), store.blob))


class _Table:
    """The columns of an index while it is written."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.rows = folder, 0
        self._writers: dict[str, Writer] = {}
        self._asked, self._said = TextWriter(folder, "asked"), TextWriter(folder, "said")
        self._rows = {name: (folder / f"{name}.part").open("wb") for name in ROWS}

    def note(self, stage: str, trials: pl.DataFrame, requests: Sequence[str | None]) -> None:
        """Write what every trial has, whatever its study."""
        said, marks = [], []
        known: dict[str | None, tuple[str, int]] = {}
        for response in trials["response"]:
            if response not in known:
                text = answer_text(response)
                known[response] = text, int.from_bytes(hashlib.sha256(text.encode(errors="replace")).digest()[:8])
            text, mark = known[response]
            said.append(text)
            marks.append(mark)
        self._said.write(said)
        self._asked.write([request_text(request) for request in requests])
        named = marks_of(trials.select(pl.concat_str(pl.lit(f"{stage}\n"), "trial")).to_series())
        ordinals = trials["ordinal"].to_numpy().astype(np.int64)
        for name, values in zip(ROWS, (ordinals, named, np.array(marks, dtype=np.uint64)), strict=True):
            self._rows[name].write(np.ascontiguousarray(values).tobytes())

    def add(self, stage: str, own: Stage | None, frame: pl.DataFrame) -> None:
        """Write the observations of the next trials of a stage."""
        roles: dict[str, Role] = {"stage": "stage", "status": "status", "reason": "reason"}
        factors = own.factors if own is not None else ()
        outcomes = own.outcomes if own is not None else ()
        frame = frame.with_columns(pl.lit(stage).alias("stage"))
        left_out = {"trial", "key", "ordinal"}
        names = [name for name in ("stage", "status", *factors, *outcomes, "reason") if name in frame.columns]
        names += [name for name in frame.columns if name not in left_out and name not in names]
        for name in names:
            role = roles.get(name) or ("outcome" if name in outcomes else "factor")
            if name not in self._writers:
                self._writers[name] = Writer(self._folder, len(self._writers), name, role)
                if self.rows:
                    self._writers[name].skip(self.rows)
            self._writers[name].write(frame[name])
        for name, writer in self._writers.items():
            if name not in names:
                writer.skip(frame.height)
        self.rows += frame.height

    def discard(self) -> None:
        """Close all files of an index that is given up."""
        self._asked.discard()
        self._said.discard()
        for writer in self._writers.values():
            writer.discard()
        for file in self._rows.values():
            file.close()

    def close(self) -> tuple[Described, ...]:
        self._asked.close()
        self._said.close()
        for name, file in self._rows.items():
            file.close()
            path = self._folder / f"{name}.part"
            np.save(self._folder / f"{name}.npy", np.fromfile(path, dtype=np.int64 if name == "ordinal" else np.uint64))
            path.unlink()
        return tuple(writer.close() for writer in self._writers.values())


def answer_text(response: str | None) -> str:
    """Return the words of an answer, with its reasoning; of others, what the report shows of them."""
    if response is None:
        return ""
    try:
        found = as_read(decode_response(response))
    except (msgspec.MsgspecError, UnicodeError):
        return response
    match found:
        case Generation():
            return "\n".join(filter(None, [found.reasoning, found.text]))
        case Classification(text=text) if text:
            return text
    return "\n".join(text for _, text in show_response(found))


def request_text(request: str | None) -> str:
    """Return the words of a request."""
    try:
        texts = [] if request is None else [text for _, text in show_request(decode_request(request))]
        # Names of images would make a text of its own of every request.
        return "\n".join(text for text in texts if not text.startswith("[image "))
    except (msgspec.MsgspecError, UnicodeError):
        return request or ""


def _parts(store: Store, run_id: int, stage: str, proof: RunProof) -> Iterator[tuple[pl.DataFrame, list[str | None]]]:
    """Yield a stage's trials in plan order, and their requests."""
    schema = {"ordinal": pl.Int64, **TRIALS}
    for parts in stream_rows(store, run_id, stage, proof, list):
        rows = [row for part in parts for row in part]
        try:
            frame = pl.DataFrame({name: [row[READ.index(name)] for row in rows] for name in schema}, schema=schema)
        except (TypeError, pl.exceptions.PolarsError):
            raise damaged(f"stage {stage!r}", "a trial or its answer is no text") from None
        packed = [row[-1] if isinstance(row[-1], str) else None for row in rows]
        with store.reading() as connection:
            texts = iter(unpack(connection, (text for text in packed if text is not None)))
        yield frame, [None if text is None else next(texts) for text in packed]


def _observed(stage: Stage | None, trials: pl.DataFrame, failures: dict[bytes, str]) -> pl.DataFrame:
    if stage is not None:
        return build_observations(stage, read_part(trials), failures)
    factors = [msgspec.json.decode(text, type=dict[str, Any]) for text in trials["factors"]]
    frame = pl.DataFrame(factors, infer_schema_length=None, strict=False)
    return frame.with_columns(trials["status"].fill_null("failed"))
