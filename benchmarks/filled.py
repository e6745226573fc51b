"""Fill a store with a run of many exchanges without a scheduler: what is written is what a run writes."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path

import sqlalchemy as sa
from scale_probe import ENDINGS, ORDERS, SCENARIOS, SEEDS, VARIANTS, Asked, ScaleOptions

from prejudge.core.contracts.canonical import encode, encode_response, request_key
from prejudge.core.contracts.records import Generation, Usage
from prejudge.core.store import NewExchange, NewTrial, Store, get_run
from prejudge.core.store.bulk import batched, table_of
from prejudge.core.store.evidence import seal
from prejudge.core.store.tables import Model

BEGUN = 2
"""Faces of the run that is filled; the tests of the metric need two."""
PER_FACE = SCENARIOS * len(VARIANTS) * ORDERS * SEEDS
"""Exchanges about one face."""
WRITTEN = 1_000
"""Exchanges per transaction, as a scheduler commits them."""


def fill(folder: Path, faces: int, written: int = WRITTEN) -> int:
    """Run the study of `scale_probe.py` about two faces in a folder, add the others, and return the exchanges."""
    study = ["run", "scale", "--model", "scale", "--set", f"faces={BEGUN}", "--quiet", "--registry", "registry.toml"]
    subprocess.run([sys.executable, "-m", "prejudge.core.cli", *study], cwd=folder, check=True, capture_output=True)
    trials = islice(Asked(ScaleOptions(faces=faces)).trials({}), BEGUN * PER_FACE, None)
    with Store(folder / "prejudge.db") as store:
        run = get_run(store, "latest").id
        with store.reading() as connection:
            model, identity = connection.execute(sa.select(table_of(Model).c["id", "digest"])).one()
        answers = [(Generation(text=text, usage=Usage(input_tokens=80, output_tokens=8))) for text in ENDINGS]
        responses = [encode_response(answer) for answer in answers]
        ordinal = BEGUN * PER_FACE
        for some in batched(trials, written):
            rows, keys = [], []
            for trial in some:
                request = encode(trial.request)
                keys.append(key := request_key(bytes(identity), request))
                rows.append(NewExchange(key, model, "generate", request, responses[key[0] % 2], "ok", 80, 8, 0.01))
            found = store.add_exchanges(rows)
            store.add_trials(
                [
                    NewTrial(run, "choices", ordinal + n, one.id, encode(one.factors).decode(), key, found[key])
                    for n, (one, key) in enumerate(zip(some, keys, strict=True))
                ]
            )
            ordinal += len(some)
        with store.writing() as connection:
            seal(connection, run)
    return ordinal


if __name__ == "__main__":
    print(fill(Path.cwd(), int(sys.argv[1])), "exchanges")
