"""Batches in the store: what prune, merge and verify do with them."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress

import pytest
from fakes import FakeModel
from provider import Provider

from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.errors import PendingError, UsageError
from prejudge.core.contracts.records import Generate
from prejudge.core.engine.batch.options import BatchOptions
from prejudge.core.engine.retry import RetryPolicy
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.engine.tokens import learn
from prejudge.core.store import Store, chunks, get_run
from prejudge.core.store.batches import Batches
from prejudge.core.store.bundle import export_run
from prejudge.core.store.checks import Checks
from prejudge.core.store.merge import merge
from prejudge.core.store.patience import LostError
from prejudge.core.store.prune import PruneOptions, prune
from prejudge.core.store.unbundle import Bundle, import_bundle

from .cutting import CutError, cut_after

EVERY_STORE = True


@pytest.fixture(autouse=True)
def provider(monkeypatch):
    monkeypatch.setattr(RetryPolicy, "wait", lambda *_: 0.0)
    made = Provider()
    monkeypatch.setattr(FakeModel, "batch_api", made, raising=False)
    return made


@pytest.fixture
def run(catalogue, store):
    def run(n=6, name=None, wait=True):
        study = catalogue.study("count", {"subject": "fake"}, {"n": n})
        batch = BatchOptions(poll_seconds=0.001, sentinel=0, wait=wait, only=True)
        return asyncio.run(execute(catalogue, study, store, RunOptions(name=name, batch=batch)))

    return run


def rows(store, table):
    with store.engine.connect() as connection:
        return connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()


def test_removed_run_takes_its_batches_along(run, store, provider):
    provider.items = lambda name, request, tried: "wrong" if tried == 0 and "5" in str(request) else None
    first, second = run(n=6), run(n=9)
    prune(store, get_run(store, second), PruneOptions())
    assert (rows(store, "exchange"), rows(store, "batch")) == (5, 1)
    assert list(Checks(store).problems()) == []
    prune(store, get_run(store, first), PruneOptions())
    assert [rows(store, table) for table in ("exchange", "batch", "batch_item", "model")] == [0, 0, 0, 0]
    assert list(Checks(store).problems()) == []


def test_run_whose_batch_is_open_is_not_removed(run, store):
    with pytest.raises(PendingError):
        run(name="mine", wait=False)
    with pytest.raises(UsageError) as raised:
        prune(store, get_run(store, "mine"), PruneOptions(killed=True))
    assert raised.value.code == "batch.open"


def test_merged_store_knows_the_batches_of_its_answers(run, store, tmp_path):
    run(n=6)
    with pytest.raises(PendingError):
        run(n=9, name="open", wait=False)
    (mine, _) = Batches(store).all()
    with Store(tmp_path / "other.db") as other:
        for _ in range(2):
            merge(other, store)
        (row,) = Batches(other).all()
        assert (row.mark, row.state, Batches(other).counts(row.id)) == (mine.mark, "collected", {"ok": 6})
        key = next(iter(Batches(store).keys(mine.id)))
        assert [(found.mark, state) for found, state in Batches(other).of_exchange(key)] == [(mine.mark, "ok")]
        assert list(Checks(other).problems()) == []


def test_batch_is_there_from_its_last_chunk_on(run, store, place, tmp_path, monkeypatch, request):
    """A merge is cut off at each of its chunks, and begun again: nobody sees a part of a batch."""
    run(n=9)
    source = Store(tmp_path / "source.db")
    merge(source, store)
    (mine,) = Batches(source).all()
    for name in ("PIECE", "FIRST", "CHUNK"):
        monkeypatch.setattr(chunks, name, 2)
    seen = []
    for number in range(100):
        server = request.getfixturevalue("postgresql") if "://" in place else None
        with Store(server.new_database() if server else tmp_path / f"{number}.db") as other:
            with monkeypatch.context() as patch, suppress(CutError):
                left = cut_after(patch, number)
                merge(other, source)
            seen.append((rows(other, "batch_item"), len(Batches(other).all())))
            assert list(Checks(other).problems()) == []
            merge(other, source)
            (row,) = Batches(other).all()
            assert (row.mark, row.state, Batches(other).counts(row.id)) == (mine.mark, "collected", {"ok": 9})
            assert Batches(other).keys(row.id) == Batches(source).keys(mine.id) and rows(other, "batch") == 1
        if left[0] > 0:
            break
    source.close()
    assert {items for items, _ in seen} == {0, 2, 4, 6, 8, 9} and {items for items, whole in seen if whole} == {9}


def test_bundle_has_the_batches_of_its_manifest(run, store, tmp_path):
    name = run(n=6)
    export_run(store, get_run(store, name), tmp_path / "run.db.gz")
    with Store(tmp_path / "other.db") as other, Bundle(tmp_path / "run.db.gz") as bundle:
        import_bundle(other, bundle)
        assert '"batches":{"batch-0":"ended"}' in get_run(other, name).manifest and not Batches(other).all()
        assert list(Checks(other).problems()) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("UPDATE batch_item SET exchange_id = (SELECT max(exchange_id) FROM batch_item)", "key"),
        ("DELETE FROM batch_item", "items"),
        ("UPDATE batch SET items = 2", "items"),
    ],
)
def test_changed_rows_are_found(run, store, change, field):
    run(n=6)
    with store.engine.begin() as connection:
        connection.exec_driver_sql(change)
    problems = list(Checks(store).problems())
    assert problems and {problem.field for problem in problems} == {field}


class Gone:
    """A connection whose server is gone."""

    def __getattr__(self, name):
        raise LostError("the server does not answer", code="store.lost")


@pytest.mark.parametrize(
    "read",
    [
        lambda store: Batches(store).all(),
        lambda store: Batches(store).holding([b"k" * 32]),
        lambda store: Batches(store).described([b"k" * 32]),
        lambda store: Batches(store).of_stage(1, "s"),
        lambda store: Batches(store).items(1),
        lambda store: Batches(store).keys(1),
        lambda store: Batches(store).counts(1),
        lambda store: Batches(store).singles(1, "r", "s"),
        lambda store: Batches(store).asked_alone(1),
        lambda store: Batches(store).of_exchange(b"k" * 32),
        lambda store: learn(store, Identity(adapter="fake", version="1", model="m"), Generate),
    ],
)
def test_server_that_goes_in_the_middle_of_a_read_is_waited_for(store, monkeypatch, read):
    expected, real, begun = read(store), Store.reading, []

    @contextmanager
    def reading(self):
        begun.append(self)
        with real(self) as connection:
            yield Gone() if len(begun) == 1 else connection

    monkeypatch.setattr(Store, "reading", reading)
    assert read(store) == expected and len(begun) == 2
