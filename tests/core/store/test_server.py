"""PostgreSQL as it behaves in production: it is started again, cuts connections, and has silent sessions."""

from __future__ import annotations

import os
import time

import pytest
import sqlalchemy as sa
from children import CountingApi
from fakes import ask
from psycopg import OperationalError

from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import encode, encode_response, identity_digest, request_key
from prejudge.core.contracts.records import Generation
from prejudge.core.store import (
    Failure,
    NewExchange,
    NewTrial,
    Store,
    engine,
    list_runs,
    reading,
    server,
    stream_trials,
    trials,
)
from prejudge.core.store.bulk import table_of
from prejudge.core.store.checks import Checks
from prejudge.core.store.claims import Claims
from prejudge.core.store.tables import Attempt, Exchange, RunTrial, Worker

IDENTITY = Identity(adapter="fake", version="1", model="m")
DOWN_SECONDS = float(os.environ.get("PREJUDGE_DOWN", "4"))
"""How long the server is away; longer than a lease with PREJUDGE_DOWN=25."""


@pytest.fixture
def url(postgresql):
    return postgresql.new_database()


def exchanges(model, numbers, said="yes"):
    rows = []
    for number in numbers:
        encoded = encode(ask(f"q {number}"))
        key, answer = request_key(identity_digest(IDENTITY), encoded), encode_response(Generation(text=said))
        rows.append(NewExchange(key, model, "generate", encoded, answer, "ok", 1, 2, 0))
    return rows


class Cut:
    """Cuts the connection at the next commits of a store: just before one, or when the server has done it."""

    def __init__(self, store, when):
        self._commit, self._when, self.left = store.engine.dialect.do_commit, when, 0
        store.engine.dialect.do_commit = self

    def __call__(self, connection):
        if self.left <= 0:
            return self._commit(connection)
        self.left -= 1
        if self._when == "after":
            self._commit(connection)
        connection.driver_connection.close()
        raise OperationalError("server closed the connection unexpectedly")


def written(store, cut):
    """Write everything that a run writes, each with a cut commit; return what is there."""

    def do(call, *args, **kwargs):
        cut.left = 1
        given = call(*args, **kwargs)
        assert cut.left == 0
        return given

    model = do(store.ensure_model, IDENTITY)
    run = do(store.begin_run, "r", "s", b"{}")
    claims = Claims(store)
    do(claims.join)
    first = do(store.add_exchanges, exchanges(model, range(5)))
    do(claims.take, [b"k" * 32], ())
    keys = list(first)
    anew = {keys[0]: "", keys[1]: "refused"}
    do(store.add_exchanges, exchanges(model, range(6), "no"), anew=anew)
    do(store.add_failures, run, [Failure(b"f" * 32, "transient", "busy")])
    do(store.add_trials, [NewTrial(run, "one", place, "t", "{}", key, first[key]) for place, key in enumerate(keys)])
    picture = do(store.keep, b"bytes", "image/png")
    assert store.blob(picture) == b"bytes"
    do(claims.leave)
    do(store.end_run, run, "finished", b"{}")
    assert do(store.begin_run, "r", "s", b"{}", "{}") == run
    do(store.end_run, run, "failed", b"{}")
    with store.engine.connect() as connection:
        table = table_of(Exchange)
        columns = (table.c.key, table.c.generation, table.c.response)
        answers = connection.execute(sa.select(*columns).order_by(table.c.key, table.c.generation)).all()
        others = [len(connection.execute(sa.select(table_of(kind))).all()) for kind in (Attempt, RunTrial, Worker)]
    assert list(Checks(store).problems()) == [] and [row.state for row in list_runs(store)] == ["failed"]
    return [(bytes(key), *rest) for key, *rest in answers], others


@pytest.mark.parametrize("when", ["before", "after"])
def test_connection_cut_at_any_commit_changes_nothing(url, when):
    with Store(url) as store:
        answers, others = written(store, Cut(store, when))
    assert len(answers) == 8 and {generation for _, generation, _ in answers} == {0, 1}
    assert others == [1, 0, 0]


@pytest.mark.parametrize("kind", ["exchange", "claim"])
def test_transaction_that_was_cut_in_the_middle_is_repeated(url, postgresql, monkeypatch, kind):
    with Store(url) as store:
        model, cut = store.ensure_model(IDENTITY), []

        def once(connection, *rest):
            if not cut:
                postgresql.disconnect(store.url.database)
            cut.append(1)

        claims = Claims(store)
        claims.join()
        sa.event.listen(store.engine, "begin", once)
        if kind == "exchange":
            assert len(store.add_exchanges(exchanges(model, range(3)))) == 3
        else:
            assert claims.take([b"k"], ()).mine == {b"k"}
        assert len(cut) > 1


def test_connection_that_died_while_it_rested_is_not_handed_out(url, postgresql, monkeypatch):
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.0)
    with Store(url) as store:
        store.begin_run("a", "s", b"{}")
        postgresql.disconnect(store.url.database)
        assert [run.name for run in reading.list_runs.__wrapped__(store)] == ["a"]  # once: without a second try


def test_server_that_goes_away_while_a_store_is_opened_is_waited_for(url, postgresql, monkeypatch):
    create, calls = engine.create_schema, []

    def cut(writer):
        create(writer)
        calls.append(1)
        if len(calls) == 1:
            postgresql.disconnect(sa.make_url(url).database)

    monkeypatch.setattr(engine, "create_schema", cut)
    with Store(url) as store:
        assert list_runs(store) == [] and len(calls) == 2


def test_reads_of_a_run_outlast_a_cut_connection(url, postgresql, monkeypatch):
    monkeypatch.setattr(trials, "STREAMED", 2)
    with Store(url) as store:
        model = store.ensure_model(IDENTITY)
        found = store.add_exchanges(exchanges(model, range(5)))
        run = store.begin_run("r", "s", b"{}")
        store.add_trials([NewTrial(run, "one", i, f"t{i}", "{}", key, found[key]) for i, key in enumerate(found)])
        names = []
        for part in stream_trials(store, run, "one"):
            names += part["trial"].to_list()
            postgresql.disconnect(store.url.database)
        assert names == [f"t{i}" for i in range(5)]
        postgresql.disconnect(store.url.database)
        assert reading.statistics(store)["Exchange"] == 5


def test_silent_writer_holds_up_others_for_a_short_time(url, monkeypatch):
    monkeypatch.setattr(server, "SILENT_SECONDS", 1)
    with Store(url) as silent, Store(url) as other, silent._writer.connect() as connection:
        connection.begin()
        began = time.monotonic()
        other.begin_run("b", "s", b"{}")
        assert time.monotonic() - began < engine.BUSY_SECONDS / 2
        connection.invalidate()
        silent.begin_run("c", "s", b"{}")
        assert len(list_runs(other)) == 2


def test_all_finish_where_the_server_was_away(url, postgresql, nursery):
    with CountingApi((0.02, 0.05)) as api:
        settings = {"port": api.port, "concurrency": 4}
        children = [nursery.start(store=url, n=200, api=settings) for _ in range(4)]
        until = time.monotonic() + 120
        with Store(url) as store:  # an address where there was no server yet is not waited for
            while len(list_runs(store)) < 4 and time.monotonic() < until:
                time.sleep(0.01)
        postgresql.stop()
        time.sleep(DOWN_SECONDS)
        postgresql.start()
        assert [child.wait(240) for child in children] == [""] * 4
        assert api.asked.total() == 200 == len(api.asked), "a claim was lost"
    with Store(url) as store:
        assert [run.state for run in list_runs(store)] == ["finished"] * 4
        assert list(Checks(store).problems()) == []


def test_dead_are_not_told_from_the_living_right_after_a_start(url):
    with Store(url) as store, store.engine.connect() as connection:
        assert server.horizon(connection, 1e9) == 0.0
        assert abs(time.time() - server.horizon(connection, 0.001)) < 60.0


def test_ids_beyond_32_bits_are_used(url):
    with Store(url) as store:
        model = store.ensure_model(IDENTITY)
        with store.engine.begin() as connection:
            connection.exec_driver_sql(f"SELECT setval('exchange_id_seq', {2**31 + 5})")
        run = store.begin_run("r", "s", b"{}")
        found = store.add_exchanges(exchanges(model, range(2)))
        assert min(answer.exchange_id for answer in found.values()) > 2**31
        store.add_trials([NewTrial(run, "one", 0, "t", "{}", key, found[key]) for key in list(found)[-1:]])
        store.end_run(run, "finished", b"{}")
        assert list(Checks(store).problems()) == []


def test_session_settings_leave_those_of_the_user(monkeypatch):
    url = sa.make_url("postgresql+psycopg://h/d?connect_timeout=3")
    monkeypatch.setenv("PGTCPUSERTIMEOUT", "1")
    given = server.connect_args(url)
    assert "connect_timeout" not in given and "tcp_user_timeout" not in given and given["keepalives_idle"] == 30
