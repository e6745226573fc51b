"""What a run leaves behind, and what `plan` and `explain` say."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import polars as pl
import pytest
from fakes import FakeModel, fake_catalogue

import prejudge
from prejudge.core.catalogue.registry import Published, StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import (
    MOST_NAMED,
    AuthenticationError,
    DataError,
    PermanentError,
    UnknownNameError,
    UsageError,
)
from prejudge.core.contracts.estimates import Estimate
from prejudge.core.engine.plan import plan
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.report.output import build_content, published_beside_measured, write_output
from prejudge.core.scoring.estimates_frame import estimates_frame
from prejudge.core.scoring.published import score_published
from prejudge.core.scoring.score import score
from prejudge.core.scoring.warnings import warnings_of
from prejudge.core.store import Store
from prejudge.core.store.evidence import seal
from prejudge.core.store.explain import differences, find_parts, nearest
from prejudge.testing import raises_code


def test_output_has_all_files(run_study, catalogue, store, tmp_path):
    name, _ = run_study()
    report = write_output(score(catalogue, store, name), store, tmp_path / "runs")
    assert report == tmp_path / "runs" / name / "report.html"
    assert "The mean length is 3.0." in report.read_text()
    assert pl.read_parquet(report.with_name("estimates.parquet"))["value"].to_list() == [3.0]
    assert pl.read_csv(report.with_name("estimates.csv"))["metric"].to_list() == ["mean_length"]
    assert pl.read_parquet(report.with_name("observations.parquet")).height == 10
    answers = json.loads(report.with_name("answers.json").read_text())
    (number,) = answers["numbers"]
    assert (number["measure"], number["value"], answers["answers"][0]["state"]) == ("mean_length", 3.0, "unjudged")
    manifest = json.loads(report.with_name("manifest.json").read_text())
    assert manifest["identities"]["subject"]["model"] == "fake"
    assert manifest["stages"]["count"]["planned"] == 10


def test_table_of_a_run_runs_no_formula(run_study, catalogue, store, tmp_path):
    name, _ = run_study()
    scores = score(catalogue, store, name)
    hostile = Estimate.from_flat(metric="=1+1", group={"@who": "-2+3"}, value=-1.5)
    report = write_output(msgspec.structs.replace(scores, estimates={"mean": [hostile]}), store, tmp_path)
    head, line = report.with_name("estimates.csv").read_text().splitlines()
    assert head.startswith("metric,'@who,value") and line.startswith("'=1+1,'-2+3,-1.5")


def test_unfinished_run_is_marked(run_study, catalogue, store):
    FakeModel.script = lambda request, seen: AuthenticationError("no")
    with pytest.raises(AuthenticationError):
        run_study()
    FakeModel.script = None
    with raises_code(DataError, "run.incomplete", "prejudge resume", "0 of 10"):
        score(catalogue, store, "latest")


def test_missing_answers_stand_in_the_report(run_study, catalogue, store):
    FakeModel.script = lambda request, seen: PermanentError("too long") if seen == 0 and "3" in str(request) else None
    name, _ = run_study()
    content = build_content(score(catalogue, store, name), store)
    reasons = next(table for table in content.missing if "reason" in table.columns)
    assert reasons.rows == (("failed", "too long", 1),)


def test_published_count_stands_beside_ours(store):
    published = (Published("questions", 7, {"parity": "odd"}), Published("mean_length", 3.5))
    catalogue = fake_catalogue(with_paper=StudyEntry("count", {"mean": {}}, published=published))
    study = catalogue.study("with_paper", {"subject": "fake"}, {})
    name = asyncio.run(execute(catalogue, study, store, RunOptions()))
    shown = build_content(score(catalogue, store, name), store).published
    assert [(value.published, value.measured) for value in shown] == [(7, 5.0), (3.5, 3.0)]


def test_estimates_frame_spreads_groups_and_statuses(run_study, catalogue, store):
    FakeModel.script = lambda request, seen: PermanentError("no") if "3" in str(request.messages) else None
    name, _ = run_study()
    frame = estimates_frame(score(catalogue, store, name).estimates["mean"])
    assert frame["missing_failed"].to_list() == [1] and frame["n"].to_list() == [9]


def test_estimates_without_an_interval_have_no_level():
    ends = [(0.1, 0.3), (None, None)]
    frame = estimates_frame(
        [Estimate.from_flat(metric="m", group={}, value=0.2, low=low, high=high) for low, high in ends]
    )
    assert frame["level"].to_list() == [0.95, None]


def test_long_lists_of_known_names_are_cut():
    said = str(UnknownNameError("run", "zzzz", [f"{number:03}-run" for number in range(MOST_NAMED + 3)]))
    assert "000-run, 001-run" in said and said.endswith(", and 3 more.") and f"{MOST_NAMED:03}-run" not in said


def test_plan_counts_cells_and_cache(run_study, catalogue, store):
    run_study(n=6)
    study = catalogue.study("count", {"subject": "fake"}, {"n": 10})
    (stage,) = plan(catalogue, study, store)
    assert (stage.trials, stage.cached) == (10, 6)
    assert {cell.group["parity"]: cell.units for cell in stage.cells} == {"even": 5, "odd": 5}
    assert FakeModel.made[-1].calls == []


def test_plan_needs_no_model(catalogue):
    (stage,) = plan(catalogue, catalogue.study("count", {}, {}))
    assert stage.cached is None and stage.units == 10


def test_explain_shows_where_two_keys_differ(run_study, store):
    first, _ = run_study("fake", n=2)
    second, _ = run_study("other", n=2)
    one, two = find_parts(store, f"{first}/t1"), find_parts(store, f"{second}/t1")
    assert [tuple(d) for d in differences(one, two)] == [("model.model", "fake", "other")]
    assert nearest(store, one).identity["model"] == "other"


def test_explain_finds_a_key_by_its_first_digits(run_study, store):
    name, _ = run_study(n=3)
    parts = find_parts(store, f"{name}/t2")
    assert find_parts(store, parts.key.hex()[:10]).key == parts.key
    assert parts.response["text"] == "Q 2" and differences(parts, parts) == []


@pytest.mark.parametrize("name", ["ffffffff", "abc", "no hex", "latest/t99"])
def test_explain_of_nothing_says_so(run_study, store, name):
    run_study(n=1)
    with raises_code(UnknownNameError, "unknown-trial", "RUN/TRIAL"):
        find_parts(store, name)


def test_explain_of_a_failed_trial_says_so(run_study, store):
    FakeModel.script = lambda request, seen: PermanentError("no")
    run_study(n=1)
    with raises_code(DataError, "store.no-answer"):
        find_parts(store, "latest/t0")


def test_published_value_is_not_judged_by_other_data(store):
    published = (Published("mean_length", 3.5, {}, tolerance=1.0),)
    catalogue = fake_catalogue(with_paper=StudyEntry("count", {"mean": {}}, published=published))
    study = catalogue.study("with_paper", {"subject": "fake"}, {"n": 8})
    scores = score(catalogue, store, asyncio.run(execute(catalogue, study, store, RunOptions())))
    (value,) = published_beside_measured(scores)
    assert value.tolerance is not None
    own = msgspec.structs.replace(scores.manifest.study, own_data=("pairs of mine.csv (sha256 0...)",))
    mine = msgspec.structs.replace(scores, manifest=msgspec.structs.replace(scores.manifest, study=own))
    (value,) = published_beside_measured(mine)
    assert value.tolerance is None and "pairs of mine.csv" in value.note


def test_published_scores_need_a_probe_that_reads_them(catalogue):
    with raises_code(UsageError, "published.no-reader"):
        score_published(catalogue, catalogue.study("count", {}, {}), "scores.csv")


@pytest.fixture
def five_lines(catalogue, monkeypatch, tmp_path):
    monkeypatch.setattr(Catalogue, "load", classmethod(lambda cls, registry=None: catalogue))
    return prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"))


def test_python_api_runs_and_scores(five_lines):
    run = prejudge.run("count", "fake", five_lines, n=4)
    assert run.estimates["value"].to_list() == [3.0] and run.observations.height == 4
    assert run.report.exists() and run.conclusions == {"mean": "The mean length is 3.0."}
    assert prejudge.score(run.name, five_lines).estimates.equals(run.estimates)
    assert prejudge.plan("count", "fake", five_lines, n=6)[0].cached == 4


def test_blocking_form_works_inside_a_loop(five_lines):
    async def notebook():
        return prejudge.run("count", "fake", five_lines, n=4)

    assert asyncio.run(notebook()).estimates.height == 1


def test_async_form(five_lines):
    assert asyncio.run(prejudge.arun("count", {"subject": "fake"}, five_lines)).estimates.height == 1


def test_score_leaves_the_store_alone(five_lines):
    prejudge.run("count", "fake", five_lines)
    before = Path(five_lines.store).read_bytes()
    Path(five_lines.store).chmod(0o444)
    prejudge.score("latest", five_lines)
    assert Path(five_lines.store).read_bytes() == before


def test_store_is_closed_after_a_run(five_lines):
    prejudge.run("count", "fake", five_lines)
    Path(five_lines.store).unlink()
    with Store(five_lines.store) as store:
        assert store.find([b"x"]) == {}


def test_failures_are_told_with_their_reason(run_study, catalogue, store):
    FakeModel.script = lambda request, seen: PermanentError("the tokenizer does not fit")
    name, _ = run_study(n=4)
    (warning,) = warnings_of(score(catalogue, store, name))
    assert "4 of 4 trials" in warning and "4 times): the tokenizer does not fit" in warning


def test_interrupted_run_is_told_as_incomplete(run_study, catalogue, store):
    name, _ = run_study(n=4)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'interrupted'")
        connection.exec_driver_sql("DELETE FROM run_trial WHERE ordinal = 3")
        seal(connection, 1)
    (warning,) = warnings_of(score(catalogue, store, name))
    assert "3 of 4 trials of stage 'count'" in warning


def test_unknown_mode_is_refused():
    with raises_code(UnknownNameError, "unknown-mode", "refresh, replay, use"):
        prejudge.Settings(mode="bad")  # type: ignore[arg-type]


def test_run_has_a_short_repr(five_lines):
    assert len(repr(prejudge.run("count", "fake", five_lines))) < 500
