"""A trial's digest covers the answers to all its attempts, whatever other answers a store has to their requests."""

from __future__ import annotations

import asyncio
import hashlib
from types import SimpleNamespace

import msgspec
import pytest
import sqlalchemy as sa
from fakes import FakeModel, text_of

from prejudge.core.contracts import StageRules
from prejudge.core.contracts.errors import DataError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run
from prejudge.core.store.bundle import export_run
from prejudge.core.store.checks import Checks
from prejudge.core.store.merge import merge
from prejudge.core.store.repair import repair
from prejudge.core.store.unbundle import Bundle, import_bundle
from prejudge.testing import raises_code

from .test_bundle import digest_in

EVERY_STORE = True
REFUSED, EMPTY = Generation(text="No.", status="refused"), Generation(text="")


@pytest.fixture
def elsewhere(tmp_path):
    with Store(tmp_path / "elsewhere.db") as opened:
        yield opened


@pytest.fixture(autouse=True)
def asks_refusals_again(monkeypatch):
    monkeypatch.setattr("fakes.CountStage.rules", StageRules(again=("unreadable", "refused")))


def answer_at_last(*earlier):
    """Let the model answer question 1 with these first; all other questions at once."""
    FakeModel.script = lambda request, seen: (
        earlier[request.attempt] if text_of(request) == "q 1" and request.attempt < len(earlier) else None
    )


@pytest.fixture
def asked_again(store, run_study):
    answer_at_last(EMPTY, REFUSED)
    run_study(n=3, max_attempts=4, name="r")
    return store


def rows(store, statement):
    with store.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(statement))]


def firsts(catalogue, store, name="r"):
    return score(catalogue, store, name).last["first"].to_list()


def carry(how, store, elsewhere, folder):
    if how == "merge":
        merge(elsewhere, store)
        return
    path = export_run(store, get_run(store, "r"), folder / "r.db.gz").path
    with Bundle(path) as bundle:
        import_bundle(elsewhere, bundle)


def test_digest_of_a_trial_is_what_the_page_says(asked_again):
    answers = dict(rows(asked_again, "SELECT response, digest FROM exchange WHERE request LIKE '%q 1%'"))
    earlier = b"".join(d for text in ('""', '"No."') for response, d in answers.items() if f'"text":{text}' in response)
    last = next(digest for response, digest in answers.items() if '"Q 1"' in response)
    columns = "stage, ordinal, trial, factors, key, digest"
    for *fields, digest in rows(asked_again, f"SELECT {columns} FROM run_trial WHERE ordinal = 1"):
        packed = msgspec.msgpack.encode((*fields, last, earlier))
        assert len(earlier) == 64 and digest == hashlib.sha256(packed).digest() + earlier
    lengths = rows(asked_again, "SELECT length(digest) FROM run_trial ORDER BY ordinal")
    assert lengths == [(32,), (96,), (32,)]


def change(store, statement, attempt):
    with store.engine.begin() as connection:
        where = sa.column("response").like('%"text":""%' if attempt == 1 else "%No.%")
        condition = where.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})
        assert connection.exec_driver_sql(f"{statement} WHERE {condition}").rowcount == 1


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("statement", ["UPDATE exchange SET digest = key", "DELETE FROM exchange"])
def test_check_names_the_attempt_of_a_changed_answer(asked_again, attempt, statement):
    change(asked_again, statement, attempt)
    faults = [problem for problem in Checks(asked_again).problems() if problem.table == "run_trial"]
    assert [(fault.field, f"attempt {attempt} " in fault.problem) for fault in faults] == [("answer", True)]


@pytest.mark.parametrize("how", ["merge", "bundle"])
def test_head_and_first_answers_go_with_the_run(asked_again, elsewhere, catalogue, tmp_path, how):
    carry(how, asked_again, elsewhere, tmp_path)
    assert get_run(elsewhere, "r").head == get_run(asked_again, "r").head
    assert list(Checks(elsewhere).problems()) == []
    assert firsts(catalogue, elsewhere) == firsts(catalogue, asked_again) == ["ok", "unreadable", "ok"]


@pytest.mark.parametrize("how", ["merge", "bundle"])
def test_first_answer_of_another_store_that_came_between_changes_no_number(
    asked_again, elsewhere, catalogue, tmp_path, how, monkeypatch
):
    """Two machines ask the same model at the same time, and one store receives what both were answered."""
    created = rows(asked_again, "SELECT created FROM exchange WHERE request LIKE '%q 1%' ORDER BY created")
    (first,), (second,), (third,) = created
    now = [(first + second) / 2]

    def script(request, seen):
        if request.attempt:
            now[0] = third + 1
        return REFUSED if text_of(request) == "q 1" and not request.attempt else None

    FakeModel.script = script
    monkeypatch.setattr("prejudge.core.store.store.time", SimpleNamespace(time=lambda: now[0]))
    study = catalogue.study("count", {"subject": "fake"}, {"n": 3, "max_attempts": 4})
    other = asyncio.run(execute(catalogue, study, elsewhere, RunOptions(name="other")))
    assert firsts(catalogue, elsewhere, other) == ["ok", "refused", "ok"]
    carry(how, asked_again, elsewhere, tmp_path)
    assert firsts(catalogue, elsewhere, "r") == ["ok", "unreadable", "ok"]
    assert firsts(catalogue, elsewhere, other) == ["ok", "refused", "ok"]
    assert list(Checks(elsewhere).problems()) == []


def test_later_answers_to_first_requests_do_not_change_the_bundle(asked_again, run_study, tmp_path):
    before = export_run(asked_again, get_run(asked_again, "r"), tmp_path / "before.db.gz")
    answer_at_last()
    run_study(n=3, max_attempts=4, mode="refresh")
    after = export_run(asked_again, get_run(asked_again, "r"), tmp_path / "after.db.gz")
    assert before.counts == after.counts and digest_in(before.path) == digest_in(after.path)


def test_removed_first_answer_is_repaired(asked_again, elsewhere, catalogue):
    merge(elsewhere, asked_again)
    change(asked_again, "DELETE FROM exchange", 1)
    with raises_code(DataError, "store.row-damaged"):
        firsts(catalogue, asked_again)
    assert repair(asked_again, [elsewhere]).left == ()
    assert firsts(catalogue, asked_again) == ["ok", "unreadable", "ok"]
