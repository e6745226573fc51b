"""The observations of published scores that are stored as a run: each row is an answer in JSON; see `published`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from ..contracts import Stage
from ..contracts.records import Generation
from ..store import RunRow, Store
from ..store.proof import RunProof
from ..store.trials import stream_trials


def published_frame(
    store: Store, run: RunRow, columns: Sequence[tuple[str, str]], stage: Stage, proof: RunProof
) -> pl.DataFrame:
    """Return the observations of a run of published scores, as they were read from their file.

    Args:
        store: where the run is.
        run: the run.
        columns: name and type of each column, as the manifest has them.
        stage: the stage that the observations are of.
        proof: checks the rows as they are read.
    """
    texts = [
        msgspec.json.decode(response, type=Generation).text
        for part in stream_trials(store, run.id, stage.name, check=proof)
        for response in part["response"]
    ]
    rows = [msgspec.json.decode(text) for text in texts]
    kinds = {column: getattr(pl, kind, pl.String) for column, kind in columns}
    return pl.DataFrame([pl.Series(name, [row.get(name) for row in rows], dtype=kind) for name, kind in kinds.items()])
