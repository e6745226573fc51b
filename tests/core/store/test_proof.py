"""No number stands beside a head that it does not follow from: every column of a store is changed behind its back."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator, Mapping

import polars as pl
import pytest
from fakes import CountOptions, CountStage, FakeModel, fake_catalogue, text_of

from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.registry import StudyEntry
from prejudge.core.contracts import Probe, Trial
from prejudge.core.contracts.canonical import encode_response
from prejudge.core.contracts.errors import DataError, PermanentError, PrejudgeError
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.contracts.records import Generate, Generation, Message, Sampling, Text
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run
from prejudge.core.store.checks import Checks
from prejudge.core.store.tables import StoreTable
from prejudge.testing import raises_code

from ...forging import rewrite

LONG = "a text that many requests repeat, so that it is stored once in a table of its own " * 2
RUN = "r"
INDEPENDENT = {
    "run.name": "a name is chosen by whoever runs, and a copy of the run may have another",
    "run.local": "it counts only where it is the manifest, but for the folders of this machine",
    "exchange.generation": "a run points to the answer that it used; look-ups compare the times of answers",
    "model.created": "the time at which a model was first asked is shown nowhere",
    "part.digest": "a shared text is proved by the keys of its requests",
    "attempt.id": "failed calls are read in order of time",
    "renewal.exchange_id": "how many answers were renewed stands in the manifest",
    "renewal.outcome": "how many answers were renewed stands in the manifest",
    "blob.sha256": "no stage of this study reads images; see the test of an image",
    "blob.media_type": "bytes are decoded by what they are",
    "blob.data": "no stage of this study reads images; see the test of an image",
    "blob.created": "the time of an image is shown nowhere",
    **{f"tally.{name}": "sums of tables, for `cache verify`" for name in ("kind", "rows", "weight")},
    **{
        f"{table}.*": "it says what is under way, and is no evidence"
        for table in ("worker", "claim", "holder", "batch", "batch_item")
    },
    "migration.*": "it says which schema the store has",
    "signature.*": "it says who vouches for a head, which `cache verify --signed-by` checks",
    "damage.*": "it has what `cache repair` found; whatever it says, the rows are checked",
}
"""Columns, and tables, on which no number depends, with the reason."""
CHANGES = {
    "TEXT": "{0} || 'x'",
    "BIGINT": "{0} + 1000000",
    "INTEGER": "{0} + 1000000",
    "FLOAT": "{0} + 1",
    "BLOB": "CAST('changed ' || rowid AS BLOB)",
}
EMPTY = {"TEXT": "'x'", "BIGINT": "1", "INTEGER": "1", "FLOAT": "1.0", "BLOB": "CAST('x' AS BLOB)"}


class SharedStage(CountStage):
    """Asks with a long text before each question."""

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        for trial in super().trials(earlier):
            words = (Message("user", (Text(LONG),)), Message("user", (Text(text_of(trial.request)),)))
            yield Trial(trial.id, trial.factors, Generate(messages=words, sampling=Sampling(temperature=0.0)))


class SharedProbe(Probe):
    options = CountOptions

    def stages(self, options):
        return [SharedStage(options)]


@pytest.fixture(scope="module")
def catalogue():
    found = fake_catalogue(shared=StudyEntry(probe="shared", metrics={"mean": {}}, title="Counting"))
    found.plugins.offers["probe"]["shared"] = Registered(Plugged("shared", SharedProbe), "tests")
    return found


@pytest.fixture(scope="module")
def sound(tmp_path_factory, catalogue):
    """Return the file of a store: a run with failures, answers that were asked again, renewed ones, and an image."""
    path = tmp_path_factory.mktemp("sound") / "store.db"
    answers = {"q 3": PermanentError("too long"), "q 2": Generation(text="no", status="refused")}

    def script(request, seen):
        words = text_of(request)
        if words == "q 1" and request.attempt == 0:
            return Generation(text="")
        return answers.get(words, Generation(text=f"said {'x' * int(words[2:])}"))

    FakeModel.script = script
    try:
        with Store(path) as store:
            study = catalogue.study("shared", {"subject": "fake"}, {"n": 8, "max_attempts": 2})
            asyncio.run(execute(catalogue, study, store, RunOptions(refresh=())))
            run = asyncio.run(execute(catalogue, study, store, RunOptions(refresh=("refused",))))
            store.keep(b"a picture", "image/png")
    finally:
        FakeModel.script = None
    with sqlite3.connect(path) as plain:
        plain.execute("UPDATE run SET name = ? WHERE name = ?", (RUN, run))
        for table in ("part", "renewal", "attempt", "blob"):
            assert plain.execute(f"SELECT count(*) FROM {table}").fetchone()[0], table
    plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    plain.close()
    return path


@pytest.fixture
def copy(sound, tmp_path):
    """Return a function that changes a copy of the store by SQL, and returns its path and the number of rows."""

    def change(*statements):
        path = shutil.copyfile(sound, tmp_path / "copy.db")
        with sqlite3.connect(path) as plain:
            rows = sum(plain.execute(statement).rowcount for statement in statements)
        plain.close()
        return path, rows

    return change


def numbers(catalogue, path, name=RUN, **options):
    with Store(path, writable=False, **options) as store:
        scores = score(catalogue, store, name)
        estimates = [(e.metric, e.value, e.n, e.missing.counts) for e in scores.estimates["mean"]]
        return scores.manifest.head, estimates, scores.last.drop("key").rows()


def columns():
    return [
        (name, column.name, str(column.type).split("(")[0])
        for name, table in sorted(StoreTable.metadata.tables.items())
        for column in table.columns
    ]


def is_independent(table, column):
    return f"{table}.{column}" in INDEPENDENT or f"{table}.*" in INDEPENDENT


def test_listed_columns_are_those_of_the_store():
    known = {f"{table}.{column}" for table, column, _ in columns()} | {f"{table}.*" for table, _, _ in columns()}
    assert INDEPENDENT.keys() <= known
    assert all(INDEPENDENT.values())


@pytest.mark.parametrize(("table", "column", "kind"), columns())
def test_changed_column_gives_an_error_or_the_same_numbers(catalogue, sound, copy, table, column, kind):
    value = f"CASE WHEN {column} IS NULL THEN {EMPTY[kind]} ELSE {CHANGES[kind].format(column)} END"
    if f"{table}.*" in INDEPENDENT:
        path, _ = copy(f"DELETE FROM {table}") if table != "migration" else copy()
        assert numbers(catalogue, path) == numbers(catalogue, sound)
        return
    path, rows = copy(f"UPDATE {table} SET {column} = {value}")
    assert rows
    if is_independent(table, column):
        name = f"{RUN}x" if (table, column) == ("run", "name") else RUN
        assert numbers(catalogue, path, name) == numbers(catalogue, sound)
    else:
        with raises_code(DataError, "store.row-damaged"):
            numbers(catalogue, path)


ATTACKS = {
    "all answers": "UPDATE exchange SET response = replace(response, 'said', 'says so')",
    "one answer": "UPDATE exchange SET response = replace(response, 'said', 'says') WHERE id = 1",
    "status": "UPDATE exchange SET status = 'refused' WHERE id = 1",
    "labels": "UPDATE run_trial SET factors = (SELECT b.factors FROM run_trial b WHERE b.run_id = run_trial.run_id AND "
    "b.ordinal = 1 - run_trial.ordinal) WHERE ordinal < 2",
    "answers swapped": "UPDATE run_trial SET exchange_id = (SELECT b.exchange_id FROM run_trial b WHERE b.run_id = "
    "run_trial.run_id AND b.ordinal = 4 + 5 - run_trial.ordinal) WHERE ordinal IN (4, 5)",
    "trial removed": "DELETE FROM run_trial WHERE ordinal = 7",
    "trial in the middle removed": "DELETE FROM run_trial WHERE ordinal = 4",
    "trial added": "INSERT INTO run_trial SELECT run_id, stage, 8, 't8', factors, key, exchange_id, digest "
    "FROM run_trial WHERE ordinal = 7",
    "stage added": "INSERT INTO run_trial SELECT run_id, 'a', ordinal, trial, factors, key, exchange_id, digest "
    "FROM run_trial WHERE ordinal = 7",
    "answer removed": "DELETE FROM exchange WHERE id = 5",
    "options": """UPDATE run SET manifest = replace(manifest, '"max_attempts":2', '"max_attempts":1')""",
    "identity": "UPDATE model SET identity = replace(identity, 'fake', 'fine')",
    "requests swapped": "UPDATE exchange SET request = (SELECT b.request FROM exchange b WHERE b.id = 1 + 6 - "
    "exchange.id) WHERE id IN (1, 6)",
    "no head": "UPDATE run SET head = NULL",
    "another head": "UPDATE run SET head = record",
    "failures removed": "DELETE FROM attempt",
    "first answer": "UPDATE exchange SET status = 'refused' WHERE response LIKE '%\"text\":\"\"%' AND request NOT LIKE "
    "'%attempt%'",
    "first answer removed": 'DELETE FROM exchange WHERE response LIKE \'%"text":""%\' '
    "AND request NOT LIKE '%attempt%'",
    "key of a first answer": "UPDATE exchange SET key = CAST('x' || id AS BLOB) WHERE response LIKE '%\"text\":\"\"%' "
    "AND request NOT LIKE '%attempt%'",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_an_error(catalogue, copy, name):
    path, rows = copy(ATTACKS[name])
    assert rows
    with raises_code(DataError, "store.row-damaged"):
        numbers(catalogue, path)


def test_error_names_the_row(catalogue, copy):
    path, _ = copy(ATTACKS["one answer"])
    with pytest.raises(PrejudgeError, match="exchange 1, the answer to trial 't"):
        numbers(catalogue, path)


def test_head_is_that_of_what_was_read(catalogue, sound):
    with Store(sound, writable=False) as store:
        assert score(catalogue, store, RUN).manifest.head == get_run(store, RUN).head.hex()


def test_unproved_marks_every_number_and_gives_no_head(catalogue, copy):
    path, _ = copy(ATTACKS["all answers"])
    with Store(path, writable=False, unproved=True) as store:
        scores = score(catalogue, store, RUN)
    marked = [e for estimates in scores.estimates.values() for e in estimates]
    assert marked and all(Caveat.UNPROVED in e.caveats and e.label.startswith("UNPROVED") for e in marked)
    assert scores.unproved and not scores.manifest.head
    assert all(text.startswith("UNPROVED") for text in scores.conclusions.values())


@pytest.mark.parametrize("name", ["first answer", "first answer removed", "key of a first answer"])
def test_unproved_marks_what_a_changed_first_answer_gives(catalogue, copy, name):
    path, _ = copy(ATTACKS[name])
    head, estimates, _ = numbers(catalogue, path, unproved=True)
    with Store(path, writable=False, unproved=True) as store:
        assert estimates and score(catalogue, store, RUN).unproved and not head


def test_sound_run_is_not_marked(catalogue, sound):
    with Store(sound, writable=False, unproved=True) as store:
        scores = score(catalogue, store, RUN)
    assert not scores.unproved and scores.manifest.head
    assert not any(Caveat.UNPROVED in e.caveats for e in scores.estimates["mean"])


def run_again(catalogue, path, name=None, **options):
    with Store(path) as store:
        study = catalogue.study("shared", {"subject": "fake"}, {"n": 8, "max_attempts": 2, **options})
        return asyncio.run(execute(catalogue, study, store, RunOptions(name=name)))


def test_new_run_takes_no_forged_answer(catalogue, copy):
    path, _ = copy(ATTACKS["all answers"])
    with raises_code(DataError, "store.row-damaged"):
        numbers(catalogue, path, run_again(catalogue, path))


def test_new_run_takes_no_earlier_answer_for_the_latest(catalogue, copy):
    path, rows = copy(
        "UPDATE exchange SET generation = -1 - generation WHERE key IN (SELECT key FROM exchange WHERE generation = 1)",
        "UPDATE exchange SET generation = CASE generation WHEN -1 THEN 1 ELSE 0 END WHERE generation < 0",
    )
    assert rows
    with raises_code(DataError, "store.row-damaged"):
        run_again(catalogue, path)


def test_changed_record_is_not_resumed(catalogue, copy):
    path, _ = copy(ATTACKS["options"])
    with raises_code(DataError, "store.row-damaged"):
        run_again(catalogue, path, RUN)


def test_image_is_read_only_under_its_name(copy):
    path, _ = copy("UPDATE blob SET data = CAST('another' AS BLOB)")
    with Store(path, writable=False) as store, sqlite3.connect(path) as plain:
        (name,) = plain.execute("SELECT sha256 FROM blob").fetchone()
        with raises_code(DataError, "store.row-damaged"):
            store.blob(name)


def test_later_answer_to_a_first_request_changes_no_earlier_number(catalogue, sound, copy):
    """What judged a first answer is the answer that was there then."""
    path, _ = copy()
    before = numbers(catalogue, path)
    FakeModel.script = lambda request, seen: Generation(text="now there is one")
    try:
        with Store(path) as store:
            study = catalogue.study("shared", {"subject": "fake"}, {"n": 8, "max_attempts": 1})
            asyncio.run(execute(catalogue, study, store, RunOptions(refresh=("unreadable",))))
    finally:
        FakeModel.script = None
    assert numbers(catalogue, path) == before == numbers(catalogue, sound)


FIRST_ANSWER = "response LIKE '%\"text\":\"\"%' AND request NOT LIKE '%attempt%'"


@pytest.fixture
def forged(copy):
    """Return the path of a store in which a first answer was rewritten together with its digest."""
    path, _ = copy()
    with sqlite3.connect(path) as plain:
        refusal = encode_response(Generation(text="", status="refused")).decode()
        rewrite(plain, FIRST_ANSWER, status="refused", response=refusal)
    plain.close()
    return path


def test_first_answer_that_was_rewritten_with_its_digest_is_an_error(catalogue, forged):
    with raises_code(DataError, "store.row-damaged"):
        numbers(catalogue, forged)


def test_check_names_the_trial_of_a_first_answer_that_was_rewritten_with_its_digest(forged):
    with Store(forged, writable=False) as store:
        problems = [problem for problem in Checks(store).problems() if problem.table != "run"]  # the fixture renames it
    assert {(problem.table, problem.field) for problem in problems} == {("run_trial", "answer")}
    assert all("trial 't1' of stage 'count'" in problem.where for problem in problems) and len(problems) == 2
