"""The observations of published scores that are stored as a run: each row is an answer in JSON; see `published`."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from ..contracts import Stage
from ..contracts.records import Generation
from ..engine.manifest import Manifest
from ..store import RunProof, RunRow, Store, finish_proof
from ..store.repair import damage_words
from ..store.trials import stream_trials


def read_published(
    store: Store, run: RunRow, manifest: Manifest, stage: Stage
) -> tuple[dict[str, pl.DataFrame], Manifest, dict[str, Any]]:
    """Return the observations of a run of published scores, checked as they are read.

    Args:
        store: where the run is.
        run: the run.
        manifest: its manifest, which has the columns.
        stage: the stage that the observations are of.

    Returns:
        The frame by stage, the manifest with the head, and what is wrong with the run: `damage`, `unproved`.

    Raises:
        DataError: the run is not as it was stored.
    """
    proof = RunProof(store, run)
    texts = [
        msgspec.json.decode(response, type=Generation).text
        for part in stream_trials(store, run.id, stage.name, check=proof)
        for response in part["response"]
    ]
    finish_proof(store, run.id, proof)
    rows = [msgspec.json.decode(text) for text in texts]
    kinds = {column: getattr(pl, kind, pl.String) for column, kind in manifest.columns}
    frame = pl.DataFrame([pl.Series(name, [row.get(name) for row in rows], dtype=kind) for name, kind in kinds.items()])
    flaws = {"damage": damage_words(store, run.id), "unproved": proof.problem}
    return {stage.name: frame}, msgspec.structs.replace(manifest, head=proof.head), flaws
