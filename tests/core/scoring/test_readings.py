"""Two readings of one run, and the versions of readers in its manifest."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prejudge.core.engine.reading import READERS
from prejudge.core.scoring import readings
from prejudge.core.scoring.readings import Changed, compare_readings, versions_words
from tests.command import call

BEFORE = {
    "trial": ["a", "b", "c", "d", "e", "f"],
    "status": ["ok", "ok", "unreadable", "unreadable", "ok", "failed"],
    "reason": [None, None, "other words", "empty", None, "500"],
    "value": ["x", "x", None, None, "x", None],
    "rescued": [None] * 6,
}
AFTER = BEFORE | {
    "status": ["ok", "ok", "ok", "unreadable", "unreadable", "failed"],
    "reason": [None, None, None, "cut off", "several answers", "500"],
    "value": ["x", "y", "x", None, None, "z"],
    "rescued": [False, False, True, None, None, None],
}


def scores(rows: dict[str, Any]) -> Any:
    stage = SimpleNamespace(name="main", outcomes=("value", "rescued"))
    schema = {"rescued": pl.Boolean, "reason": pl.String}
    frame = pl.DataFrame(rows, schema_overrides=schema)
    return SimpleNamespace(stages=(stage,), height=lambda name: frame.height, lazy=lambda name: frame.lazy())


@pytest.fixture
def read_twice(monkeypatch):
    both = {"paper": scores(BEFORE), "current": scores(AFTER)}
    monkeypatch.setattr(readings, "ensure_reading", lambda *_: None)
    monkeypatch.setattr(readings, "opened", lambda catalogue, store, name, chosen: (both[chosen["reading"]], None))
    return lambda before, after: compare_readings(None, None, "run", before, after)  # type: ignore[arg-type]


def test_every_kind_of_change_is_counted_once(read_twice):
    (stage,) = read_twice("paper", "current")
    assert (stage.newly_read, stage.no_longer_read, stage.other_value, stage.other_reason) == (1, 1, 1, 1)
    assert (stage.answers, stage.changed) == (5, 3)
    assert [example.trial for example in stage.examples] == ["b", "c", "e"]
    assert stage.examples[1] == Changed("c", "unreadable: other words", "value = x, rescued = true")


def test_a_reading_is_equal_to_itself(read_twice):
    (stage,) = read_twice("current", "current")
    assert (stage.changed, stage.other_reason, stage.examples) == (0, 0, ())


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        (dict(READERS), "as when the run was asked"),
        ({"reasoning": 1, "refusal": 2}, "refusal reader 2"),
        ({}, "not on"),
    ],
)
def test_a_diff_of_readings_names_the_versions_of_both(recorded, asked):
    words = versions_words(recorded)
    assert asked in words
    assert all(f"{name} reader {version}" in words for name, version in (READERS | recorded).items())


def test_readings_of_stored_answers_differ_by_what_the_authors_do_not_read(tmp_path, shared_data):
    """End to end: a number of an option, and a sentence filled in, are read in one reading alone. Nothing is asked."""
    log = json.loads((shared_data / "cases" / "inspect_log.json").read_text("utf-8"))
    samples = [sample for sample in log["samples"] if sample["epoch"] == 1]
    ways = (
        lambda cells: cells["positive"],
        lambda cells: "Option 2",
        lambda cells: cells["context"].replace("BLANK", cells["negative"]),
        lambda cells: "I like cheese.",
        lambda cells: "",
    )
    by_trial = {sample["id"]: ways[n % 5](sample["metadata"]) for n, sample in enumerate(samples)}
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(json.dumps({"trial": t, "response": a}) for t, a in by_trial.items()))
    words = ("subtle-sai", "--responses", file.name, "--model", "m", "--set", "per_cell=1")
    imported = call(tmp_path, "import", *words)
    assert imported.returncode in (0, 1), imported.stderr
    numbers = {
        name: sum(n % 5 in kinds for n in range(len(samples)))
        for name, kinds in (("both", {0}), ("new", {1, 2}), ("neither", {3, 4}))
    }
    before = (tmp_path / "prejudge.db").read_bytes()
    shown = " ".join(call(tmp_path, "score", "--against", "paper").stdout.split())
    assert f"{numbers['new']} of {len(samples)} answers have another value" in shown
    assert f"{numbers['new']} are read only in 'current', 0 only in 'paper', and 0 differ" in shown
    back = " ".join(call(tmp_path, "score", "--against", "current", "--reading", "paper").stdout.split())
    assert f"0 are read only in 'paper', {numbers['new']} only in 'current'" in back
    # The two readings as runs of `score`: the values themselves.
    for reading, read in (("paper", numbers["both"]), ("current", numbers["both"] + numbers["new"])):
        call(tmp_path, "score", "--reading", reading)
        (folder,) = (tmp_path / "runs").iterdir()
        rows = pl.read_parquet(folder / "observations.parquet")
        assert rows["status"].to_list().count("ok") == read
    assert (tmp_path / "prejudge.db").read_bytes() == before


def test_readers_have_versions():
    assert set(READERS) >= {"reasoning", "refusal"} and all(version >= 1 for version in READERS.values())
