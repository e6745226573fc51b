"""A log of inspect_ai is imported as it is: epochs are samples, errors are failed, requests are the log's messages."""

from __future__ import annotations

import json

import pytest

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.errors import DataError
from prejudge.core.tables.documents import read_documents
from prejudge.testing import raises_code
from tests.command import call

PART = {"per_cell": 1, "domains": ["ageism"]}
WORDS = ("--set", "per_cell=1", "--set", "domains=ageism")


def sample(trial, epoch, answer, **more):
    choice = {"message": {"role": "assistant", "content": answer}, "stop_reason": "stop"}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": f"Which one? {trial.id}"}]},
        {"role": "assistant", "content": answer},
    ]
    output = {"model": "m", "choices": [choice], "completion": answer}
    metadata = {name: value for name, value in trial.factors.items() if value is not None}
    return {"id": trial.id, "epoch": epoch, "metadata": metadata, "messages": messages, "output": output} | more


def log(samples):
    reductions = [{"scorer": "includes", "samples": [{"value": 1.0, "sample_id": "a"}]}]
    return {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": samples, "reductions": reductions}


@pytest.fixture
def trials():
    catalogue = Catalogue.load(None)
    return list(catalogue.instrument(catalogue.study("subtle-sai", {}, PART)).stages()[0].trials({}))


def take(tmp_path, samples, *more):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log(samples)))
    return call(tmp_path, "import", "subtle-sai", *WORDS, "--responses", str(path), "--model", "m", *more)


def test_epochs_are_samples_and_errors_have_failed(tmp_path, trials):
    failed = {"output": {"model": "m", "choices": [], "completion": ""}, "error": {"message": "TimeoutError()"}}
    samples = [sample(trial, epoch, trial.factors["positive"]) for trial in trials[1:] for epoch in (1, 2)]
    result = take(tmp_path, [sample(trials[0], 1, "", **failed), *samples])
    assert result.returncode == 0, result.stderr
    (folder,) = (tmp_path / "runs").glob("*subtle*")
    rows = prejudge.load(folder).observations
    assert rows.height == 1 + 2 * (len(trials) - 1)
    assert rows.filter(status="failed").height == 1 and rows.filter(status="ok").height == len(samples)
    assert "TimeoutError()" in rows.filter(status="failed")["reason"][0]
    key = rows.filter(status="ok")["key"][0]
    settings = prejudge.Settings(store=str(tmp_path / "prejudge.db"))
    parts = prejudge.exchanges(folder.name, [key], settings)[key]
    assert [label for label, _ in parts] == ["system", "user", "answer"]
    assert parts[1][1].startswith("Which one?")


def test_one_epoch_twice_is_a_duplicate_that_is_named(tmp_path, trials):
    samples = [sample(trials[0], 1, trials[0].factors[name]) for name in ("positive", "negative")]
    result = take(tmp_path, samples)
    assert result.returncode == 2 and "epochs 1, 1" in result.stderr


def test_a_log_without_samples_is_refused():
    text = json.dumps(log(None))
    with raises_code(DataError, "data.syntax", "samples"):
        read_documents("log.json", text, ())


def test_a_filtered_answer_is_filtered():
    one = {"id": "a", "output": {"choices": [{"message": {}, "stop_reason": "content_filter"}], "completion": ""}}
    ((_, record),) = read_documents("log.json", json.dumps(log([one])), ()).records
    assert record["status"] == "filtered" and record["trial"] == "a"


def test_log_of_a_sample_of_its_own_is_matched_and_what_is_not_there_is_counted(tmp_path, shared_data):
    path = shared_data / "cases" / "inspect_log.json"
    names = ("--set", "per_cell=1", "--model", "m")
    result = call(tmp_path, "import", "subtle-sai", "--responses", str(path), *names)
    assert result.returncode == 0, result.stderr
    (folder,) = (tmp_path / "runs").glob("*subtle*")
    run = prejudge.load(folder)
    samples = json.loads(path.read_text())["samples"]
    assert run.observations.height == len(samples)
    assert dict(run.observations["status"].value_counts().iter_rows())["failed"] == 2
    assert any("a sample of their own: 12 trials" in note and "are not in them" in note for note in run.manifest.notes)


def test_row_for_no_trial_is_told_in_few_words(tmp_path, trials):
    wrong = sample(trials[0], 1, "x")
    wrong["metadata"] = {name: f"{value}{'f' * 99}" for name, value in wrong["metadata"].items()}
    wrong["metadata"]["item"] = "nobody"
    result = take(tmp_path, [wrong])
    assert result.returncode == 2 and "more" in result.stderr
    assert len(result.stderr) < 900 and "f" * 73 not in result.stderr
