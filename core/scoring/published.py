"""Score measurements that others published, and store them as a run.

Each row is an exchange of a model whose adapter is `published` and whose settings name the file by its sha256: the
request names the row, the answer is the observation in JSON. So the rows are verified, bundled and scored again like
answers, and never confused with any.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import polars as pl

from ..catalogue.origins import origins
from ..catalogue.refusal_stage import last_measured
from ..catalogue.study import SUBJECT, Catalogue, Study
from ..contracts import Probe, Stage
from ..contracts.abilities import OPERATIONS
from ..contracts.adapter import Identity
from ..contracts.canonical import encode, encode_identity, encode_response, identity_digest, request_key
from ..contracts.errors import UsageError
from ..contracts.records import Generate, Generation, Message, Text
from ..design import Roles
from ..engine.manifest import (
    PUBLISHED,
    PUBLISHED_STATE,
    Manifest,
    StageRecord,
    describe_machine,
    digest_files,
    new_name,
)
from ..engine.observations import with_parts
from ..store import RunRow, Store
from ..store.chunks import Chunks
from ..store.content import Facts, Sent, Stored, Tried
from ..store.evidence import answer_digest, trial_digest
from ..store.names import run_name
from ..store.store import manifest_columns
from .score import Scores, measure_scores

WHEN = 0.0
"""When others measured is not known; the same file therefore always gives the same exchanges."""


def score_published(catalogue: Catalogue, study: Study, path: str, model: str = "") -> Scores:
    """Score published measurements from a file.

    Args:
        catalogue: where the study's probe and metrics are.
        study: the study.
        path: the file or folder of the measurements.
        model: name of the model that they are of; empty: not stated.

    Raises:
        UsageError: the study's probe reads no published scores, or cannot read these.
    """
    if catalogue.plugins.load("probe", study.probe).import_scores is Probe.import_scores:
        raise UsageError(
            f"study {study.name!r} cannot read published scores; run it on a model.", code="published.no-reader"
        )
    roles = {SUBJECT: model} if model else {}
    study = catalogue.described(msgspec.structs.replace(study, options=study.options | {"data": path}, roles=roles))
    # A file of scores is no file of the study's texts, whose design it therefore has not.
    instrument = catalogue.instrument(study, design := Roles((), {}))
    imported = instrument.probe.import_scores(path, instrument.options)
    name = new_name(study.name, f"{model}-published" if model else "published")
    stage = last_measured(tuple(instrument.stages()))
    last, frame = stage.name, with_parts(imported.observations, instrument.design)
    data = digest_files([path])
    manifest = Manifest(
        run=name,
        study=study,
        identities={},
        stages={last: StageRecord(frame.height, {"trials": frame.height, "answered": frame.height})},
        data=data,
        notes=imported.notes,
        options=instrument.every_option,
        origins=origins(catalogue, study, models=False),
        design=design,
        mode=PUBLISHED,
        columns=tuple((column, str(kind)) for column, kind in frame.schema.items()),
        **describe_machine(),
    )
    run = RunRow(0, run_name(name), study.name, PUBLISHED_STATE, "", time.time(), None)
    return measure_scores(catalogue, Scores(run, manifest, (stage,), {last: frame}, {}, (), {}, ()), instrument)


def store_published(store: Store, scores: Scores) -> str:
    """Store published scores as a run, all of them or none, and return its name.

    Raises:
        StoreError: the store cannot be written.
    """
    manifest, stage, began = scores.manifest, scores.stages[-1], time.time()
    manifest = msgspec.structs.replace(manifest, study=scores.made)
    identity = _identity(manifest.study.roles.get(SUBJECT, ""), manifest.data)
    digest = identity_digest(identity)
    sent = list(_sent(scores.last, digest))
    stored = [Stored(index, row, answer_digest(row.key, row.operation, *row[4:])) for index, row in enumerate(sent)]
    tried = [_tried(stage, row, cells) for row, cells in zip(stored, scores.last.iter_rows(named=True), strict=True)]
    content = hashlib.sha256(b"".join(row.digest for row in tried)).hexdigest()
    with Chunks(store, f"published {digest.hex()}", {digest: encode_identity(identity).decode()}) as chunks:
        places = [number for _, numbers in chunks.exchanges(stored) for number in numbers]
        run_id = chunks.begin_run(content)
        chunks.trials(run_id, (row._replace(exchange=at) for row, at in zip(tried, places, strict=True)))
        facts = Facts(manifest.study.name, PUBLISHED_STATE, "", began, began)

        def values(name: str) -> dict[str, Any]:
            return facts._asdict() | manifest_columns(encode(msgspec.structs.replace(manifest, run=name)))

        chunks.end_run(run_id, lambda _: manifest.run, values)
    return manifest.run


def _identity(model: str, data: Mapping[str, str]) -> Identity:
    digests = ",".join(data.values())
    return Identity(adapter=PUBLISHED, version="1", model=model, settings={"file_sha256": digests})


def _sent(frame: pl.DataFrame, identity: bytes) -> Iterator[Sent]:
    for index, cells in enumerate(frame.iter_rows(named=True)):
        request = encode(Generate(messages=(Message("user", (Text(f"published row {index + 1}"),)),)))
        written = {column: value for column, value in cells.items() if value is not None}
        answer = Generation(text=msgspec.json.encode(written).decode())
        parts = (request.decode(), encode_response(answer).decode(), answer.status, 0, 0, 0.0, WHEN)
        yield Sent(request_key(identity, request), identity, OPERATIONS[Generate], *parts)


def _tried(stage: Stage, stored: Stored, cells: Mapping[str, Any]) -> Tried:
    factors = encode({name: cells[name] for name in stage.factors if name in cells}).decode()
    place = (stage.name, stored.id, f"row-{stored.id + 1}", factors, stored.sent.key)
    return Tried(*place, None, trial_digest(*place, stored.digest))
