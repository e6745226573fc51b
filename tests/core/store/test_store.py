"""The store: committed, checked, and clear about what is wrong with a file."""

from __future__ import annotations

import hashlib
import threading

import msgspec
import pytest
import sqlalchemy as sa
from fakes import ask
from sqlmodel import Field, SQLModel

from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import encode, encode_response, identity_digest, request_key
from prejudge.core.contracts.errors import DataError, StoreError, UnknownNameError
from prejudge.core.contracts.installing import upgrade_line
from prejudge.core.contracts.records import Generation
from prejudge.core.store import Failure, NewExchange, Store, get_run, read_failures, statistics
from prejudge.core.store.bulk import LOOKUP
from prejudge.core.store.checks import Checks
from prejudge.core.store.schema import SCHEMA, create_schema
from prejudge.core.store.tables import WIDE, StoreTable
from prejudge.core.store.urls import store_url
from prejudge.testing import raises_code

EVERY_STORE = True
IDENTITY = Identity(adapter="fake", version="1", model="m")


class Foreign(SQLModel, table=True):
    """A table that another program in this process has."""

    id: int = Field(primary_key=True)


def exchange(store, text, answer="yes"):
    request = encode(ask(text))
    key = request_key(identity_digest(IDENTITY), request)
    response = encode_response(Generation(text=answer))
    return NewExchange(key, store.ensure_model(IDENTITY), "generate", request, response, "ok", 1, 2, 0.1)


def test_answer_is_found_by_its_key(store):
    row = exchange(store, "a")
    added = store.add_exchanges([row])
    assert added[row.key].new
    assert store.find([row.key, b"0" * 32]) == {row.key: msgspec.structs.replace(added[row.key], new=False)}
    assert store.responses([added[row.key].exchange_id]) == {added[row.key].exchange_id: row.response.decode()}


def test_answer_is_there_after_opening_again(place):
    with Store(place) as store:
        row = exchange(store, "a")
        store.add_exchanges([row])
    with Store(place, writable=False) as store:
        assert row.key in store.find([row.key])


def test_first_answer_stays(store):
    first = store.add_exchanges([exchange(store, "a", "one")])
    second = store.add_exchanges([exchange(store, "a", "two")])
    ((key, kept),) = first.items()
    assert second == {key: msgspec.structs.replace(kept, new=False)} and kept.new and statistics(store)["Exchange"] == 1


def test_refreshed_answer_is_a_new_generation(store):
    first = store.add_exchanges([exchange(store, "a", "one")])
    row = exchange(store, "a", "two")
    second = store.add_exchanges([row], anew={row.key: ""})
    ((key, renewed),) = second.items()
    assert first != second and renewed.new and store.find(second) == {key: msgspec.structs.replace(renewed, new=False)}
    assert statistics(store)["Exchange"] == 2


def test_many_keys_are_looked_up(store):
    rows = [exchange(store, f"t{i}") for i in range(2)]
    store.add_exchanges(rows)
    unknown = [number.to_bytes(32) for number in range(LOOKUP + 1000)]
    assert set(store.find([rows[0].key, *unknown, rows[1].key])) == {row.key for row in rows}


def test_more_keys_are_found_than_one_look_up_takes(store, few_at_once):
    rows = [exchange(store, f"t{i}") for i in range(2 * few_at_once + 20)]
    store.add_exchanges(rows)
    others = [exchange(store, f"t{i}", "other") for i in range(len(rows))]
    again = store.add_exchanges(others, anew={row.key: "refused" for row in others})
    assert store.find(row.key for row in rows) == {
        key: msgspec.structs.replace(found, new=False) for key, found in again.items()
    }


def test_failure_is_not_an_answer(store):
    row = exchange(store, "a")
    run = store.begin_run("r", "s", b"{}")
    store.add_failures(run, [Failure(row.key, "transient", "cut"), Failure(row.key, "permanent", "too long")])
    assert store.find([row.key]) == {}
    assert read_failures(store, run) == {row.key: "too long"}


def test_run_is_found_by_the_beginning_of_its_name(store):
    store.begin_run("20260101-a", "s", b"{}")
    store.begin_run("20260102-b", "s", b"{}")
    assert get_run(store, "20260102").name == get_run(store, "latest").name == "20260102-b"
    with raises_code(DataError, "run.ambiguous"):
        get_run(store, "2026")
    with raises_code(UnknownNameError, "unknown-run", "'20260102-b'"):
        get_run(store, "20260102-c")
    with raises_code(UnknownNameError, "unknown-run", "'latest'"):
        get_run(store, "lastest")


def test_latest_is_not_suggested_where_there_is_no_run(store):
    with raises_code(UnknownNameError, "unknown-run") as caught:
        get_run(store, "lastest")
    assert "latest" not in caught.value.known


def test_keys_verify(store):
    store.add_exchanges([exchange(store, text) for text in "abc"])
    assert list(Checks(store).problems()) == []


def test_changed_request_is_noticed(store):
    store.add_exchanges([exchange(store, text) for text in "abc"])
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE exchange SET request = replace(request, '\"b\"', '\"x\"')"))
    (wrong,) = Checks(store).problems()
    assert wrong.where == "exchange 2"


def test_changed_identity_is_noticed(store):
    store.add_exchanges([exchange(store, "a")])
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE model SET identity = replace(identity, '\"m\"', '\"n\"')"))
    (wrong,) = Checks(store).problems()
    assert "identity" in wrong.problem


def test_blob_is_kept_once(store):
    name = store.keep(b"bytes", "image/png")
    assert store.keep(b"bytes", "image/png") == name == hashlib.sha256(b"bytes").hexdigest()
    assert store.blob(name) == b"bytes" and statistics(store)["Blob"] == 1
    with raises_code(DataError, "store.no-image"):
        store.blob("cd")


def test_two_stores_write_one_place(place):
    problems = []

    def write(start):
        try:
            with Store(place) as store:
                for i in range(30):
                    store.add_exchanges([exchange(store, f"t{start + i}")])
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(start,)) for start in (0, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store(place) as store:
        assert problems == [] and statistics(store)["Exchange"] == 50


def test_file_that_is_no_database(tmp_path):
    path = tmp_path / "s.db"
    path.write_text("not a database, but long enough to be looked at " * 20)
    before = path.read_bytes()
    with raises_code(StoreError, "store.foreign"):
        Store(path)
    assert path.read_bytes() == before


def test_database_of_something_else(place):
    engine = sa.create_engine(store_url(place))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE invoices (id INTEGER)"))
    engine.dispose()
    with raises_code(StoreError, "store.foreign"):
        Store(place)


def test_read_only_store(tmp_path):
    path = tmp_path / "s.db"
    Store(path).close()
    path.chmod(0o444)
    with raises_code(StoreError, "store.read-only"):
        Store(path)
    with Store(path, writable=False) as store:
        assert statistics(store)["Exchange"] == 0


def test_read_only_media(tmp_path):
    path = tmp_path / "s.db"
    Store(path).close()
    with raises_code(StoreError, "store.read-only"), Store(f"sqlite:///file:{path}?mode=ro&uri=true") as store:
        store.ensure_model(IDENTITY)


@pytest.mark.parametrize("number", [SCHEMA + 1, 0, -1])
@pytest.mark.parametrize("writable", [True, False])
def test_store_of_another_schema_is_refused_and_unchanged(place, number, writable):
    def rows():
        with engine.connect() as connection:
            return connection.execute(sa.text("SELECT number, applied FROM migration")).all(), names(connection)

    def names(connection):
        return sa.inspect(connection).get_table_names()

    with Store(place) as store, store.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE damage"))  # as in a schema that has not all tables of this one
        connection.execute(sa.text(f"UPDATE migration SET number = {number}"))
    engine = sa.create_engine(store.url)
    before = rows()
    with raises_code(StoreError, "store.schema", f"schema {number};", f"schema {SCHEMA} only", upgrade_line()) as error:
        Store(place, writable=writable)
    assert "\n" not in str(error.value) and rows() == before
    engine.dispose()


def test_missing_store_is_not_made_by_reading(tmp_path):
    with raises_code(StoreError, "store.missing", "none.db"):
        Store(tmp_path / "none.db", writable=False)
    assert not (tmp_path / "none.db").exists()


def test_folder_and_bad_url(tmp_path):
    with raises_code(StoreError, "store.folder"):
        Store(tmp_path)
    with raises_code(StoreError, "store.unopened"):
        Store(tmp_path / "no" / "such" / "folder.db")
    with raises_code(StoreError, "store.driver"):
        Store("nosuch://host/db")


def test_schema_is_that_of_the_tables(store):
    found = sa.inspect(store.engine)
    wanted = StoreTable.metadata.tables
    assert set(found.get_table_names()) == set(wanted)
    for name, table in wanted.items():
        columns = {column["name"]: column["nullable"] for column in found.get_columns(name)}
        assert columns == {column.name: bool(column.nullable) for column in table.columns}, name
        assert [c.name for c in table.primary_key] == found.get_pk_constraint(name)["constrained_columns"]


def test_ids_have_64_bits(store):
    wide = {f"{name}.{c.name}" for name, table in StoreTable.metadata.tables.items() for c in table.c if c.type is WIDE}
    # SQLite numbers rows by a column of this very type, which has 64 bits there.
    expected = "INTEGER" if store.engine.dialect.name == "sqlite" else "BIGINT"
    assert {"exchange.id", "run_trial.exchange_id", "renewal.exchange_id", "part.id", "claim.worker_id"} <= wide
    for name in wide:
        table, _, column = name.partition(".")
        (kind,) = [str(c["type"]) for c in sa.inspect(store.engine).get_columns(table) if c["name"] == column]
        assert kind == expected, name


def test_tables_of_another_program_are_not_created(store):
    assert Foreign.__tablename__ not in sa.inspect(store.engine).get_table_names()


def test_interrupted_creation_leaves_no_trace(place, monkeypatch):
    def dies(connection, clause, *_):
        if "INSERT INTO tally" in str(clause):
            raise KeyboardInterrupt

    engine = sa.create_engine(store_url(place))
    sa.event.listen(engine, "before_execute", dies)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    with pytest.raises(KeyboardInterrupt):
        create_schema(engine)
    assert sa.inspect(engine).get_table_names() == []
    engine.dispose()
    with Store(place) as store:
        assert statistics(store)["Exchange"] == 0
