"""Counts of equal answers, against a count by hand."""

from __future__ import annotations

import gc
from collections import defaultdict
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from prejudge.core.contracts.canonical import encode_response
from prejudge.core.contracts.records import Generation, Usage
from prejudge.core.engine.integrity.repeats import Tally


@pytest.mark.parametrize(("spill", "counted"), [(1_000_000, 2_000_000), (10, 7), (1, 1)])
def test_counts_are_those_by_hand_whatever_the_parts(monkeypatch, tmp_path, spill, counted):
    """In memory, and of a large stage in files, some prompts at a time; the files are removed."""
    monkeypatch.setattr("prejudge.core.engine.integrity.repeats.SPILL", spill)
    monkeypatch.setattr("prejudge.core.engine.integrity.repeats.COUNTED", counted)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    numbers = np.random.default_rng(3)
    rows, texts = [], defaultdict(list)
    for prompt in range(40):
        for sample in range(1 + prompt % 4):
            key, text = f"{prompt}/{sample}".encode(), f"t{numbers.integers(1 + prompt % 3)}"
            status = "refused" if prompt == 7 and sample == 1 else "ok"
            # The count of tokens differs: equal texts are equal answers.
            response = encode_response(Generation(text=text, usage=Usage(output_tokens=len(rows)))).decode()
            rows.append({"key": key, "prompt": f"{prompt}/0".encode(), "status": status, "response": response})
            if status == "ok":
                texts[prompt].append(text)
    tally, frame = Tally(), pl.DataFrame(rows, schema_overrides={"key": pl.Binary, "prompt": pl.Binary})
    for part in (frame[:33], frame[33:], frame[:5]):
        tally.see(part)  # an answer that several trials use is one draw
    assert len(list(tmp_path.rglob("*.parquet"))) == {1_000_000: 0, 10: 3, 1: 3}[spill]
    found = tally.count()
    del tally
    gc.collect()
    assert not list(tmp_path.iterdir())
    several = [one for one in texts.values() if len(one) > 1]
    assert found is not None
    assert (found.prompts, found.draws) == (len(several), sum(map(len, several)))
    assert found.alike == sum(len(set(one)) == 1 for one in several)
    assert found.distinct == sum(len(set(one)) for one in several)
    shares = [np.mean([a == b for a, b in combinations(one, 2)]) for one in several]
    assert np.isclose(found.pairs, np.mean(shares))


def test_nothing_is_counted_where_nothing_repeats():
    frame = pl.DataFrame({"key": [b"a"], "prompt": [b"a"], "status": ["ok"], "response": ['{"text":"x"}']})
    tally = Tally()
    assert tally.count() is None
    tally.see(frame)
    assert tally.count() is None
