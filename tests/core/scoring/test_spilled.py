"""A large run, whose observations are in files: the same rows, estimates and reports as of one in memory."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest
from fakes import FakeModel, MeanLength
from polars.testing import assert_frame_equal

from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine import observations, spilled
from prejudge.core.engine.integrity import repeats
from prejudge.core.report import observed
from prejudge.core.report.card import data_sheet
from prejudge.core.report.output import build_content, write_output
from prejudge.core.scoring.score import score
from prejudge.core.store import trials

PARTS = 5
"""Of 17 rows, read 2 at a time and written 4 at a time."""


@pytest.fixture
def large(monkeypatch):
    """Return a function that lets 17 rows be a large run."""

    def lower():
        for module in (observations, observed):
            monkeypatch.setattr(module, "SPILL", 17)
        monkeypatch.setattr(spilled, "PART", 4)
        monkeypatch.setattr(trials, "STREAMED", 2)
        monkeypatch.setattr(repeats, "COUNTED", 3)

    return lower


@pytest.fixture
def run(run_study):
    """Return the name of a run with answers of every status, and prompts that are asked twice."""
    answers = {
        "q 1": Generation(text=""),
        "q 2": Generation(text="no", status="refused"),
        "q 3": PermanentError("too long"),
    }
    FakeModel.script = lambda request, seen: answers.get(request.messages[0].parts[0].text)
    return run_study(n=17, distinct=10, max_attempts=2, name="r")[0]


def test_large_run_is_scored_alike(run, catalogue, store, large):
    one = score(catalogue, store, run)
    large()
    other = score(catalogue, store, run)
    assert other.frames.spilled("count") and other.height("count") == 17
    assert_frame_equal(other.frame, one.frame)
    assert other.estimates == one.estimates and other.manifest.repeats == one.manifest.repeats
    said, before = (msgspec.structs.asdict(build_content(scores, store)) for scores in (other, one))
    assert {name for name in said if said[name] != before[name]} <= {"charts"}
    assert data_sheet(other) == data_sheet(one)


def test_folder_of_parts_is_read_like_a_file(run, catalogue, store, large, tmp_path):
    one = score(catalogue, store, run)
    file = write_output(one, store, tmp_path).with_name("observations.parquet")
    assert file.is_file()
    large()
    write_output(score(catalogue, store, run), store, tmp_path)
    assert len(list(file.glob("part-*.parquet"))) == PARTS and [*file.parent.glob("*.new")] == []
    assert_frame_equal(pl.read_parquet(file / "*.parquet"), one.frame)
    assert_frame_equal(observed.read_observations(file), one.frame)


def test_small_run_replaces_a_folder_of_parts(run, catalogue, store, tmp_path):
    place = tmp_path / run / "observations.parquet"
    place.mkdir(parents=True)
    (place / "part-00000.parquet").write_bytes(b"")
    write_output(score(catalogue, store, run), store, tmp_path)
    assert pl.read_parquet(place).height == 17


def test_lean_metric_receives_what_it_needs(run, catalogue, store, large, monkeypatch):
    seen = []
    compute = MeanLength.compute
    monkeypatch.setattr(
        MeanLength, "compute", lambda self, frame, options: seen.append(frame) or compute(self, frame, options)
    )
    whole = score(catalogue, store, run).estimates
    large()
    monkeypatch.setattr(MeanLength, "lean", True)
    assert score(catalogue, store, run).estimates == whole
    assert {"key", "trial"} <= set(seen[0].columns) and set(seen[1].columns) == {*MeanLength.needs, "status"}


def test_metric_that_holds_all_rows_is_named(run, catalogue, store, large, caplog):
    large()
    score(catalogue, store, run)
    assert "lean = True" in caplog.text and "17 rows" in caplog.text


def test_column_of_several_types_has_one(monkeypatch):
    monkeypatch.setattr(spilled, "PART", 4)
    parts = [
        pl.DataFrame({"a": [1] * 4}),
        pl.DataFrame({"a": [0.5] * 4}),
        pl.DataFrame({"a": [None] * 4, "b": ["x"] * 4}),
    ]
    whole = spilled.Spilled(parts)
    assert whole.lazy().collect().schema == {"a": pl.Float64, "b": pl.String}
