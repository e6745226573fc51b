"""A study from the command line on PostgreSQL: run, score, look into the store, and never show the password."""

from __future__ import annotations

import threading
import time

import pytest
import sqlalchemy as sa
from fakes import ask

from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import (
    decode_request,
    decode_response,
    encode,
    encode_response,
    identity_digest,
    request_key,
)
from prejudge.core.contracts.errors import StoreError
from prejudge.core.contracts.records import Generation
from prejudge.core.store import NewExchange, Store, statistics
from prejudge.core.store.urls import store_url
from prejudge.testing import raises_code

from ...command import call

PASSWORD = "hunter2"
WORDS = ["--model", "simulated-biased", "--set", "per_cell=4"]


@pytest.fixture
def url(postgresql):
    return postgresql.new_database()


@pytest.fixture
def prejudge(tmp_path, url):
    """Return a function that runs the command line on PostgreSQL, and makes sure that no password is shown."""

    def run(*words, code=0):
        done = call(tmp_path, *words, "--store", url)
        assert done.returncode == code, done.stderr
        assert PASSWORD not in done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_study_from_the_command_line(prejudge, tmp_path, url):
    first = prejudge("run", "bistereo-pairs", *WORDS)
    assert "asked 144" in first
    assert "asked 0, cached 144" in " ".join(prejudge("run", "bistereo-pairs", *WORDS).split())
    assert "report.html" in prejudge("score")
    assert "Exchange: 144" in prejudge("cache", "stats")
    assert "144 exchanges checked, 0 problems" in prejudge("cache", "verify")
    with Store(url, writable=False) as store, store.engine.connect() as connection:
        key = bytes(connection.exec_driver_sql("SELECT key FROM exchange LIMIT 1").scalar_one())
        assert PASSWORD not in connection.exec_driver_sql("SELECT manifest FROM run LIMIT 1").scalar_one()
    assert "Most similar key" in prejudge("cache", "explain", key.hex())
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 4
    assert not [path for path in written if PASSWORD.encode() in path.read_bytes()]


def test_password_is_in_no_error(url, tmp_path):
    right = store_url(url)
    wrong = {
        "no such database": right.set(database="nowhere"),
        "no such place": right.set(query={"host": str(tmp_path)}),
        "no such driver": right.set(drivername="postgresql+nosuch"),
    }
    for case, place in wrong.items():
        with pytest.raises(StoreError) as caught:
            Store(place.render_as_string(hide_password=False))
        assert PASSWORD not in str(caught.value) and caught.value.code.startswith("store."), case
    for text in (f"postgresql+psycopg://me:{PASSWORD}@host:port/d", f"postgresql+nosuch://host/d?password={PASSWORD}"):
        with pytest.raises(StoreError) as caught:
            Store(text)
        assert PASSWORD not in str(caught.value)


def test_nul_is_kept_as_it_is(url):
    identity = Identity(adapter="fake", version="1", model="nul\0")
    request = ask("a\0b")
    encoded = encode(request)
    key = request_key(identity_digest(identity), encoded)
    answer = encode_response(Generation(text="\0 \x01 \x7f"))
    with Store(url) as store:
        model = store.ensure_model(identity)
        found = store.add_exchanges([NewExchange(key, model, "generate", encoded, answer, "ok", 1, 1, 0.0)])
        ((_, asked, said),) = store.exchanges([found[key].exchange_id])
    assert decode_request(asked) == request and decode_response(said) == Generation(text="\0 \x01 \x7f")


def test_server_that_stays_away_is_one_clear_error(url, postgresql):
    with Store(url) as store:
        store.begin_run("a", "s", b"{}")
        store.patience.seconds = 0.3
        postgresql.stop()
        try:
            with raises_code(StoreError, "store.lost", "does not answer") as caught:
                store.begin_run("b", "s", b"{}")
            assert type(caught.value) is StoreError and PASSWORD not in str(caught.value)
            began = time.monotonic()
            with raises_code(StoreError, "store.lost"):
                Store(url)
            assert time.monotonic() - began < 5, "an address that never answered is not waited for"
        finally:
            postgresql.start()
        store.begin_run("b", "s", b"{}")
        assert statistics(store)["Run"] == 2


def test_writer_that_is_locked_out_says_so(url, monkeypatch):
    monkeypatch.setattr("prejudge.core.store.engine.BUSY_SECONDS", 1)
    with Store(url) as one, Store(url) as other, one._writer.begin():
        with raises_code(StoreError, "store.locked"):
            other.begin_run("b", "s", b"{}")


def test_stores_that_open_a_new_database_at_once_agree(url):
    problems = []

    def make():
        try:
            Store(url).close()
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    engine = sa.create_engine(url)
    assert "exchange" in sa.inspect(engine).get_table_names()
    engine.dispose()
