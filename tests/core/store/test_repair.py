"""What another store or a bundle still has comes back; what is lost is said with the numbers."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from fakes import FakeModel, ask, text_of

from prejudge.core.contracts.errors import DataError, PermanentError
from prejudge.core.contracts.records import Generation, Image, Message, Text
from prejudge.core.report.card import model_card
from prejudge.core.scoring.score import score
from prejudge.core.scoring.warnings import warnings_of
from prejudge.core.store import Store, get_run
from prejudge.core.store.bundle import export_run
from prejudge.core.store.checks import Checks
from prejudge.core.store.merge import merge
from prejudge.core.store.repair import damage_words, repair
from prejudge.core.store.unbundle import Bundle, import_bundle
from prejudge.testing import raises_code

EVERY_STORE = True
LONG = "a text that many requests repeat, so that it is stored once, " * 2
DAMAGE = [
    "UPDATE part SET literal = '\"x\"'",
    "UPDATE part SET digest = (SELECT digest FROM model)",
    "DELETE FROM part",
    "UPDATE exchange SET response = '{' WHERE id = 2",
    "UPDATE exchange SET response = replace(response, 'said', 'says')",
    "UPDATE exchange SET request = replace(request, 'q 1', 'q 7')",
    "UPDATE exchange SET status = 'refused', input_tokens = 99",
    "UPDATE exchange SET digest = NULL WHERE id = 2",
    "UPDATE exchange SET key = digest WHERE id = 2",
    "UPDATE run_trial SET factors = '{}'",
    "UPDATE run_trial SET exchange_id = NULL WHERE ordinal = 1",
    "DELETE FROM run_trial WHERE ordinal = 1",
    "DELETE FROM run_trial",
    "DELETE FROM attempt",
    "UPDATE run SET manifest = '{'",
    "UPDATE run SET state = 'interrupted', study = 'other'",
    "UPDATE run SET head = NULL",
    "UPDATE run SET record = NULL, started = started",
    "UPDATE blob SET data = 'x'",
    "UPDATE blob SET sha256 = 'ab'",
    "DELETE FROM blob",
    "UPDATE model SET identity = 'x'",
    "UPDATE run_trial SET exchange_id = NULL WHERE ordinal = 1; DELETE FROM exchange WHERE id = 2",
]


@pytest.fixture
def made(store, run_study, monkeypatch):
    """Return a store with a run of five trials, one of which failed, on an image and with a text that all repeat."""
    shown = Message("user", (Text(LONG), Image(store.keep(b"a picture", "image/png"))))
    monkeypatch.setattr("fakes.ask", lambda text, **fields: ask(text).__class__(messages=(shown, *ask(text).messages)))
    answers = {"q 3": PermanentError("too long")}
    FakeModel.script = lambda request, seen: answers.get(
        text_of(request), Generation(text=f"said {text_of(request)[2:]}")
    )
    run_study(n=5, name="r")
    return store


@pytest.fixture(params=["store", "bundle"])
def source(made, tmp_path, request):
    """Return a store that still has everything, from a merge or from a bundle."""
    with Store(tmp_path / "source.db") as opened:
        if request.param == "store":
            merge(opened, made)
        else:
            path = export_run(made, get_run(made, "r"), tmp_path / "r.db.gz").path
            with Bundle(path) as bundle:
                import_bundle(opened, bundle)
            opened.keep(b"a picture", "image/png")
        yield opened


def change(store, statements):
    with store.engine.begin() as connection:
        for statement in statements.split(";"):
            connection.execute(sa.text(statement))


def everything(store):
    tables = {
        "exchange": "key, operation, response, status, input_tokens, created, digest",
        "run_trial": "stage, ordinal, trial, factors, key, digest",
        "run": "name, study, state, manifest, started, finished, head, record",
        "attempt": "key, decision, message, created",
        "blob": "sha256, media_type, data",
        "model": "digest, identity",
    }
    with store.engine.connect() as connection:
        return {
            table: sorted(map(repr, connection.exec_driver_sql(f"SELECT {columns} FROM {table}").all()))
            for table, columns in tables.items()
        }


@pytest.mark.parametrize("statement", DAMAGE)
def test_what_the_source_has_comes_back(made, source, statement):
    before = everything(made)
    change(made, statement)
    done = repair(made, [source])
    assert done.found > 0 and done.left == (), done.left
    assert everything(made) == before and not list(Checks(made).problems())


def test_what_the_source_lacks_is_marked_and_told(made, tmp_path, catalogue, run_study):
    with Store(tmp_path / "empty.db") as source:
        change(made, "UPDATE exchange SET response = replace(response, 'said 1', 'said 7')")
        done = repair(made, [source])
    assert [problem.row for problem in done.left] == [2]
    with raises_code(DataError, "store.row-damaged"):
        score(catalogue, made, "r")
    made.unproved = True
    scores = score(catalogue, made, "r")
    assert warnings_of(scores)[1].startswith("DAMAGED: 1 of its answers") and "DAMAGED" in model_card(scores)
    other, _ = run_study(n=1, name="other")
    assert damage_words(made, get_run(made, other).id) == "", "it does not use the damaged answer"
    again, _ = run_study(n=5, name="again")
    assert damage_words(made, get_run(made, again).id) != "", "it uses the damaged answer"


def test_marks_go_when_it_is_repaired(made, source, catalogue):
    change(made, "UPDATE run_trial SET factors = '{}' WHERE ordinal = 1")
    made.unproved = True
    assert repair(made, []).left and "DAMAGED" in warnings_of(score(catalogue, made, "r"))[1]
    made.unproved = False
    assert not repair(made, [source]).left and not damage_words(made, get_run(made, "r").id)
    assert score(catalogue, made, "r").manifest.head


def test_damaged_source_gives_only_what_verifies(made, source):
    change(made, "UPDATE exchange SET response = replace(response, 'said', 'says')")
    change(source, "UPDATE exchange SET response = replace(response, 'said 1', 'said 9')")
    left = repair(made, [source]).left
    assert [problem.row for problem in left] == [2]


def test_damaged_trials_of_a_source_are_not_taken(made, source):
    for store in (made, source):
        change(store, "UPDATE run_trial SET factors = '{}' WHERE ordinal = 1")
    assert [problem.table for problem in repair(made, [source]).left] == ["run_trial"]


def test_two_sources_give_what_each_has(made, source, tmp_path):
    change(made, "UPDATE exchange SET response = replace(response, 'said', 'says')")
    with Store(tmp_path / "second.db") as second:
        merge(second, source)
        change(source, "UPDATE exchange SET response = '{' WHERE response LIKE '%said 1%'")
        change(second, "UPDATE exchange SET response = '{' WHERE response LIKE '%said 2%'")
        assert repair(made, [source, second]).left == ()


def test_repair_of_a_sound_store_changes_nothing(made, source):
    before = everything(made)
    assert repair(made, [source]) == (0, ()) and everything(made) == before
