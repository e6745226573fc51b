"""Simulated observations of a discovery study: letters, words drawn by chance, and one planted word per descriptor."""

from __future__ import annotations

import numpy as np
import polars as pl

from prejudge.probes.dora.associations import PAIR, count

DIMENSIONS = ("age", "religion", "gender")
WORDS = [a + b + c for a in "bdfgklmnprt" for b in "aeiou" for c in "lmnrst"]
"""Pronounceable nothings that no dictionary makes another lemma of."""


def completions(planted=0, seed=0, settings=("noun", "verb"), descriptors=12, each=60):
    """Return completions; the planted word of a descriptor is the same in every setting."""
    rng = np.random.default_rng(seed)
    names = [f"group{d}" for d in range(descriptors)]
    own = {name: WORDS[40 + d] for d, name in enumerate(names)}
    rows = []
    for setting in settings:
        for d, name in enumerate(names):
            said = [WORDS[i] for i in rng.integers(0, 40, each)]
            said[:planted] = [own[name]] * planted
            cell = {"modality": "t2t", "setting": setting, "dimension": DIMENSIONS[d % 3], "descriptor": name}
            rows += [{**cell, "word": word, "status": "ok"} for word in said]
    keys = [number.to_bytes(4, "big") for number in range(len(rows))]
    frame = pl.DataFrame(rows).with_columns(stage=pl.lit("completions"), form="descriptor", key=pl.Series(keys))
    return frame.with_columns(reason=pl.lit(None, dtype=pl.String))


def asked(frame, stage, answer):
    """Return the rows of a stage that asks about every association; `answer` gives its outcomes, or None."""
    pairs = count(frame).pairs.select(*PAIR, "said", "count").to_dicts()
    rows = []
    for number, pair in enumerate(pairs):
        found = answer(pair)
        status = {"status": "ok", "reason": None} if found else {"status": "unreadable", "reason": "no level"}
        key = f"{stage}{number}".encode()
        rows += [{**pair, **status, "stage": stage, "key": key, **one} for one in (found or [{}])]
    return pl.DataFrame(rows, infer_schema_length=None)


def study(planted=15, negative=lambda pair: pair["word"] in WORDS[40:], level=lambda pair, j: 1 + (j % 2), **more):
    """Return all stages of a study of completions, stacked."""
    frame = completions(planted, **more)
    parts = [
        frame,
        asked(frame, "sentiment", lambda pair: [{"label": "negative" if negative(pair) else "positive"}]),
        asked(frame, "toxicity", lambda pair: [{"label": "not toxic"}]),
        asked(frame, "levels", lambda pair: [{"judgement": j, "level": level(pair, j)} for j in range(2)]),
    ]
    return pl.concat(parts, how="diagonal_relaxed")
