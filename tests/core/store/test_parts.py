"""Texts that requests repeat are stored once, and every request reads back to the byte."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from fakes import ask

from prejudge.core.contracts.abilities import OPERATIONS
from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import encode, encode_response, identity_digest, request_key
from prejudge.core.contracts.records import Classify, Generation, Likelihood
from prejudge.core.store import NewExchange, Store
from prejudge.core.store.checks import Checks

IDENTITY = Identity(adapter="fake", version="1", model="fake")
LONG = "A long \"text\": {'part':1} \\ with \n quotes, \0 and é, which many requests of a study repeat word for word."


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "prejudge.db") as opened:
        yield opened


def add(store, *requests):
    model = store.ensure_model(IDENTITY)
    digest, answer = identity_digest(IDENTITY), encode_response(Generation(text="yes"))
    rows = []
    for request in requests:
        encoded = encode(request)
        key = request_key(digest, encoded)
        rows.append(NewExchange(key, model, OPERATIONS[type(request)], encoded, answer, "ok", 0, 0, 0.0))
    found = store.add_exchanges(rows)
    return [found[row.key].exchange_id for row in rows]


def stored(store):
    with store.engine.connect() as connection:
        return [text for (text,) in connection.execute(sa.text("SELECT request FROM exchange ORDER BY id"))]


def parts(store):
    with store.engine.connect() as connection:
        return connection.scalar(sa.text("SELECT count(*) FROM part"))


def test_text_that_requests_share_is_stored_once(store):
    add(store, *(ask(LONG, sample=number) for number in range(5)))
    assert parts(store) == 1
    assert all('{"part":1}' in text and "many requests" not in text for text in stored(store))


def test_requests_read_back_to_the_byte(store):
    requests = [
        *(ask(LONG, sample=number) for number in range(3)),
        ask(f'{{"part":1}} {LONG}'),
        ask('{"part":1}'),
        *(Likelihood(prompt=LONG, continuations=(f" {number}",)) for number in range(2)),
        *(Classify(text=LONG, pair=f"{LONG} {number}") for number in range(2)),
        *(Classify(text=str(number), pair=LONG) for number in range(2)),
    ]
    found = {number: request for number, request, _ in store.exchanges(add(store, *requests))}
    assert sorted(found.values()) == sorted(encode(request).decode() for request in requests)
    assert not list(Checks(store).problems())


def test_text_of_one_request_stays_where_it_is(store):
    add(store, ask(LONG), ask("short"), ask("short", sample=1))
    assert parts(store) == 0


def test_part_is_used_by_later_requests_of_other_processes(store, tmp_path):
    add(store, ask(LONG), ask(LONG, sample=1))
    with Store(tmp_path / "prejudge.db") as other:
        add(other, ask(LONG, sample=2))
    assert parts(store) == 1 and all("many requests" not in text for text in stored(store))


def test_parts_of_a_failed_commit_are_forgotten(store, monkeypatch):
    def fail(*_):
        raise RuntimeError("no commit")

    with monkeypatch.context() as broken, pytest.raises(RuntimeError):
        broken.setattr("prejudge.core.store.store.insert_many", fail)
        add(store, ask(LONG), ask(LONG, sample=1))
    add(store, ask("another " + LONG), ask("another " + LONG, sample=1))
    (number,) = add(store, ask(LONG, sample=2))
    assert store.exchanges([number])[0][1] == encode(ask(LONG, sample=2)).decode()


def test_changed_part_is_found_by_verify(store):
    add(store, ask(LONG), ask(LONG, sample=1))
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE part SET literal = replace(literal, 'long', 'wide')"))
    assert [found.where for found in Checks(store).problems()] == ["part 1", "exchange 1", "exchange 2"]
