"""Two stores become one: nothing is lost, changed or asked again, and every run keeps the answers it had."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa
from fakes import FakeModel

from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run, list_runs, read_trials, statistics
from prejudge.core.store.checks import Checks
from prejudge.core.store.merge import merge
from prejudge.testing import raises_code

EVERY_STORE = True


@pytest.fixture
def other(tmp_path):
    with Store(tmp_path / "other.db") as opened:
        yield opened


@pytest.fixture
def run_in(catalogue):
    """Return a function that runs the study `count` in a store, with this text before every answer."""

    def run(store, before="", name=None, mode="use", **options):
        FakeModel.script = lambda request, seen: Generation(text=before + request.messages[0].parts[0].text)
        study = catalogue.study("count", {"subject": "fake"}, options)
        return asyncio.run(execute(catalogue, study, store, RunOptions(name=name, mode=mode)))

    return run


def answers(store, name):
    return read_trials(store, get_run(store, name).id, "count")["response"].to_list()


def test_runs_and_answers_come_over(store, other, run_in, catalogue):
    mine, theirs = run_in(store, n=5), run_in(other, n=8)
    merged = merge(store, other)
    assert (merged.exchanges, merged.runs) == (8, 1) and {run.name for run in list_runs(store)} == {mine, theirs}
    assert answers(store, theirs) == answers(other, theirs)
    assert score(catalogue, store, theirs).estimates == score(catalogue, other, theirs).estimates
    assert not list(Checks(store).problems())


def test_merging_again_changes_nothing(store, other, run_in):
    run_in(store, n=5), run_in(other, "x", n=8)
    merge(store, other)
    before = statistics(store)
    again = merge(store, other)
    assert (again.exchanges, again.runs, again.same, again.renamed) == (0, 0, 1, ())
    assert statistics(store) == before


def test_each_run_keeps_its_answers(store, other, run_in):
    mine, theirs = run_in(store, "mine ", n=3), run_in(other, "theirs ", n=3)
    before = answers(store, mine), answers(other, theirs)
    merge(store, other)
    assert (answers(store, mine), answers(store, theirs)) == before


def test_lookups_go_on_finding_what_was_here(store, other, run_in):
    mine = run_in(store, "mine ", n=3)
    run_in(other, "theirs ", n=3), run_in(other, "again ", mode="refresh", n=3)
    merge(store, other)
    again = run_in(store, "never asked", n=3)
    assert answers(store, again) == answers(store, mine) and statistics(store)["Exchange"] == 9


def test_answers_to_new_keys_keep_their_order(store, other, run_in):
    run_in(other, "first ", n=3)
    latest = run_in(other, "second ", mode="refresh", n=3)
    merge(store, other)
    assert answers(store, run_in(store, n=3)) == answers(other, latest)


def test_other_run_of_the_same_name_is_renamed(store, other, run_in):
    run_in(store, name="r", n=3), run_in(other, name="r", n=4)
    assert merge(store, other).renamed == (("r", "r-2"),)
    assert merge(store, other).same == 1 and len(answers(store, "r-2")) == 4
    assert '"run":"r-2"' in get_run(store, "r-2").manifest


def test_same_run_is_not_doubled(store, other, run_in):
    run_in(other, name="r", n=3)
    merge(store, other)
    assert merge(other, store).same == 1 and len(list_runs(other)) == 1


def test_damaged_store_is_refused_whole(store, other, run_in):
    run_in(other, n=3)
    other.keep(b"bytes", "image/png")
    with other.engine.begin() as connection:
        connection.execute(sa.text("UPDATE model SET identity = replace(identity, 'fake', 'fine')"))
    with raises_code(DataError, "bundle.identity"):
        merge(store, other)
    assert not any(statistics(store).values())


def test_store_is_not_merged_into_itself(store):
    with raises_code(UsageError, "store.same"):
        merge(store, store)
