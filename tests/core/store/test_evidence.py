"""Whatever is changed in a store behind its back is found; what is carried elsewhere keeps its head."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import tracemalloc

import pytest
import sqlalchemy as sa
from fakes import FakeModel, ask, text_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prejudge.core.contracts.adapter import Identity
from prejudge.core.contracts.canonical import encode, encode_response, identity_digest, request_key
from prejudge.core.contracts.errors import DataError, PermanentError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import NewExchange, NewTrial, Store, get_run, list_runs
from prejudge.core.store.bundle import export_run
from prejudge.core.store.checks import Checks
from prejudge.core.store.evidence import weigh
from prejudge.core.store.merge import merge
from prejudge.core.store.prune import PruneOptions, prune
from prejudge.core.store.unbundle import Bundle, import_bundle
from prejudge.testing import raises_code

from .bundles import edit

EVERY_STORE = True
LONG = "a text that many requests repeat, so that it is stored once in a table of its own " * 2
SWAP = "swap the factors of two trials"
ATTACKS = [
    ("UPDATE exchange SET response = replace(response, 'said 1', 'said 7')", "exchange", "response"),
    ("UPDATE exchange SET response = replace(response, 'said 1', 'said 1 ') WHERE id = 2", "exchange", "response"),
    ("UPDATE exchange SET response = '{' WHERE id = 2", "exchange", "response"),
    ("UPDATE exchange SET status = 'refused' WHERE id = 2", "exchange", "status"),
    ("UPDATE exchange SET input_tokens = input_tokens + 1 WHERE id = 2", "exchange", "usage"),
    ("UPDATE exchange SET latency = latency + 1 WHERE id = 2", "exchange", "response"),
    ("UPDATE exchange SET created = created - 1 WHERE id = 2", "exchange", "response"),
    ("UPDATE exchange SET request = replace(request, 'q 1', 'q 7')", "exchange", "request"),
    ("UPDATE exchange SET generation = 1 WHERE id = 2", "exchange", "rows"),
    ("UPDATE exchange SET digest = NULL WHERE id = 2", "exchange", "digest"),
    ("UPDATE run_trial SET factors = '{}' WHERE ordinal = 1", "run_trial", "factors"),
    (SWAP, "run_trial", "factors"),
    ("UPDATE run_trial SET trial = 't9' WHERE ordinal = 1", "run_trial", "factors"),
    ("UPDATE run_trial SET exchange_id = 1 WHERE ordinal = 1", "run_trial", "answer"),
    ("UPDATE run_trial SET exchange_id = NULL WHERE ordinal = 1", "run_trial", "factors"),
    ("UPDATE run_trial SET ordinal = ordinal + 1 WHERE ordinal = 3", "run_trial", "factors"),
    ("DELETE FROM run_trial WHERE ordinal = 1", "run_trial", "trials"),
    ("DELETE FROM run_trial WHERE ordinal = 3", "run_trial", "head"),
    ("UPDATE run SET manifest = '{'", "run", "manifest"),
    ("UPDATE run SET manifest = replace(manifest, 'count', 'mount')", "run", "manifest"),
    ("UPDATE run SET state = 'interrupted'", "run", "manifest"),
    ("UPDATE run SET state = 'running'", "run", "manifest"),
    ("UPDATE run SET started = started - 1", "run", "manifest"),
    ("UPDATE run SET head = digest FROM exchange WHERE exchange.id = 1", "run_trial", "head"),
    ("UPDATE attempt SET message = 'a time-out'", "run", "manifest"),
    ("DELETE FROM attempt", "run", "manifest"),
    ("UPDATE blob SET data = sha256", "blob", "data"),
    ("UPDATE blob SET media_type = 'image/jpeg'", "blob", "rows"),
    ("DELETE FROM blob", "blob", "rows"),
    ("UPDATE model SET identity = replace(identity, 'fake', 'fine')", "model", "identity"),
    ("DELETE FROM exchange WHERE id = 5", "exchange", "rows"),
    (
        "INSERT INTO exchange SELECT 99, key, 5, model_id, operation, request, response, status, input_tokens, "
        "output_tokens, latency, created, digest FROM exchange WHERE id = 1",
        "exchange",
        "rows",
    ),
]


@pytest.fixture
def made(store, run_study):
    """Return a store with a run of four trials, one of which failed, an image, and an answer that no run uses."""
    answers = {"q 3": PermanentError("too long")}
    FakeModel.script = lambda request, seen: answers.get(
        text_of(request), Generation(text=f"said {text_of(request)[2:]}")
    )
    run_study(n=6, name="gone")
    run_study(n=4, name="r")
    store.keep(b"a picture", "image/png")
    with store.engine.begin() as connection:  # a run that was removed without its answers: those at 4 and 5 are unused
        connection.exec_driver_sql("DELETE FROM run_trial WHERE run_id = 1")
        connection.exec_driver_sql("DELETE FROM attempt WHERE run_id = 1")
        connection.exec_driver_sql("DELETE FROM run WHERE id = 1")
        gone = f"rows = 1, weight = weight - {weigh('gone')}"
        connection.exec_driver_sql(f"UPDATE tally SET {gone} WHERE kind = 'run'")
    return store


def found(store):
    return list(Checks(store).problems())


def change(store, *statements):
    with store.engine.begin() as connection:
        for statement in statements:
            if statement == SWAP:
                one, two = connection.scalars(
                    sa.text("SELECT factors FROM run_trial WHERE ordinal IN (1, 2) ORDER BY 1")
                )
                swap = sa.text(
                    "UPDATE run_trial SET factors = CASE factors WHEN :a THEN :b ELSE :a END WHERE ordinal IN (1, 2)"
                )
                connection.execute(swap, {"a": one, "b": two})
            else:
                connection.execute(sa.text(statement))


def test_store_that_nobody_touched_is_sound(made):
    assert found(made) == []
    assert get_run(made, "r").head is not None


@pytest.mark.parametrize(("statement", "table", "field"), ATTACKS)
def test_change_is_found(made, statement, table, field):
    if made.engine.dialect.name != "sqlite" and "data = sha256" in statement:
        statement = "UPDATE blob SET data = 'x'"
    change(made, statement)
    assert (table, field) in {(problem.table, problem.field) for problem in found(made)}


def test_every_edited_answer_is_named(made):
    change(made, "UPDATE exchange SET response = replace(response, 'said', 'says')")
    damaged = [problem for problem in found(made) if problem.table == "exchange"]
    with made.engine.connect() as connection:
        ids = connection.scalars(sa.text("SELECT id FROM exchange ORDER BY id")).all()
    assert [problem.row for problem in damaged] == list(ids) and all(len(p.key) == 64 for p in damaged)


def test_swapped_labels_are_named_one_by_one(made):
    change(made, SWAP)
    assert [p.where for p in found(made)] == [f"trial 't{i}' of stage 'count' of run r" for i in (1, 2)]


def test_check_goes_on_after_damage_of_every_kind(made):
    change(
        made,
        "UPDATE model SET identity = 'x'",
        "UPDATE blob SET data = 'x'",
        "UPDATE exchange SET response = '{' WHERE id = 1",
        "UPDATE run SET manifest = '['",
        "UPDATE run_trial SET factors = 'x' WHERE ordinal = 1",
    )
    assert {problem.table for problem in found(made)} >= {"model", "blob", "exchange", "run", "run_trial"}


@pytest.fixture
def elsewhere(tmp_path):
    with Store(tmp_path / "elsewhere.db") as opened:
        yield opened


def carried(made, elsewhere, tmp_path, how):
    if how == "merge":
        merge(elsewhere, made)
        return
    path = export_run(made, get_run(made, "r"), tmp_path / "r.db.gz").path
    with Bundle(path) as bundle:
        import_bundle(elsewhere, bundle, "other-name" if how == "renamed" else None)


@pytest.mark.parametrize("how", ["merge", "bundle", "renamed"])
def test_head_goes_with_the_run(made, elsewhere, tmp_path, how):
    carried(made, elsewhere, tmp_path, how)
    (run,) = list_runs(elsewhere)
    assert run.head == get_run(made, "r").head and found(elsewhere) == []


@pytest.mark.parametrize("how", ["merge", "bundle"])
@pytest.mark.parametrize(("statement", "table", "field"), ATTACKS[:6] + ATTACKS[10:18])
def test_change_is_found_in_what_was_carried(made, elsewhere, tmp_path, how, statement, table, field):
    carried(made, elsewhere, tmp_path, how)
    change(elsewhere, statement)
    assert table in {problem.table for problem in found(elsewhere)}


NOT_HANDED_ON = [a for a in ATTACKS if a[1] in {"run_trial", "model"} or a[2] == "request"] + ATTACKS[:3]


@pytest.mark.parametrize(("statement", "table", "field"), NOT_HANDED_ON)
def test_damage_is_not_handed_on(made, elsewhere, tmp_path, statement, table, field):
    change(made, statement)
    for how in ("merge", "bundle"):
        with pytest.raises(DataError):
            carried(made, elsewhere, tmp_path, how)
    assert list_runs(elsewhere) == [] and not (tmp_path / "r.db.gz").exists()


def test_head_survives_resume_and_prune(made, run_study):
    head = get_run(made, "r").head
    run_study(n=4, name="r")
    run_study(n=6, name="long")
    assert get_run(made, "r").head == head != get_run(made, "long").head
    prune(made, get_run(made, "long"), PruneOptions(unused=True))
    assert get_run(made, "r").head == head and found(made) == []


def test_equal_answers_of_another_run_have_an_equal_head(made, run_study):
    again, _ = run_study(n=4)
    assert get_run(made, again).head == get_run(made, "r").head


def test_head_depends_on_labels_and_answers(made, elsewhere, catalogue):
    FakeModel.script = lambda request, seen: Generation(text="another answer")
    study = catalogue.study("count", {"subject": "fake"}, {"n": 4})
    asyncio.run(execute(catalogue, study, elsewhere, RunOptions(name="r")))
    assert get_run(elsewhere, "r").head != get_run(made, "r").head


def test_interrupted_run_has_a_head_and_a_running_one_none(store, run_study):
    run_id = store.begin_run("open", "count", b'{"run":"open"}')
    assert get_run(store, "open").head is None and found(store) == []
    store.end_run(run_id, "interrupted", b'{"run":"open"}')
    assert get_run(store, "open").head is not None and found(store) == []


@settings(max_examples=40)
@given(data=st.data())
def test_flipped_field_is_found(made, data):
    """Change one cell of one row of the evidence; then put it back."""
    columns = {
        "exchange": "key generation operation request response status input_tokens latency created digest",
        "run_trial": "trial factors key digest ordinal stage",
        "run": "manifest study state started finished head record name",
        "attempt": "key decision message created",
        "blob": "media_type data created sha256",
        "model": "digest identity created",
    }
    table = data.draw(st.sampled_from(sorted(columns)))
    column = data.draw(st.sampled_from(columns[table].split()))
    key = {"blob": "sha256", "run_trial": "ordinal"}.get(table, "id")
    with made.engine.begin() as connection:
        rows = connection.exec_driver_sql(f"SELECT {key}, {column} FROM {table} ORDER BY {key}").all()
        where, before = data.draw(st.sampled_from([tuple(row) for row in rows]))
        after = _flipped(bytes(before) if isinstance(before, memoryview) else before, data.draw)
        assume(column != key or after not in {row[0] for row in rows})  # the database refuses a second one
        update = sa.text(f"UPDATE {table} SET {column} = :v WHERE {key} = :k")
        connection.execute(update, {"v": after, "k": where})
    assert found(made), (table, column, before, after)
    back = after if column == key else where
    with made.engine.begin() as connection:
        connection.execute(update, {"v": before, "k": back})
    assert found(made) == []


def _flipped(value, draw):
    if isinstance(value, bytes):
        place = draw(st.integers(0, len(value) - 1))
        return value[:place] + bytes([value[place] ^ (1 << draw(st.integers(0, 7)))]) + value[place + 1 :]
    if isinstance(value, str):
        place = draw(st.integers(0, len(value) - 1))
        return value[:place] + draw(st.sampled_from([c for c in "ax0 }" if c != value[place]])) + value[place + 1 :]
    return value + draw(st.integers(1, 1000))


def test_flipped_bytes_of_the_file_end_no_check(made, tmp_path):
    if made.engine.dialect.name != "sqlite":
        pytest.skip("a file is needed")
    with made.engine.connect() as connection:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("BEGIN")
    good, rng = (tmp_path / "store.db").read_bytes(), random.Random(0)
    texts = [at for word in (b"said ", b'"number"', b"q 2", b"generate") for at in _places(good, word)]
    for turn in range(40):
        damaged = bytearray(good)
        damaged[rng.choice(texts)] ^= 0xFF if turn % 2 else 1
        (tmp_path / "t.db").write_bytes(damaged)
        with Store(tmp_path / "t.db", writable=False) as opened:
            assert found(opened)
        for part in ("-wal", "-shm"):
            (tmp_path / f"t.db{part}").unlink(missing_ok=True)


def _places(data, word):
    at = data.find(word)
    while at >= 0:
        yield at
        at = data.find(word, at + 1)


def test_rows_of_other_types_end_no_check(made):
    if made.engine.dialect.name != "sqlite":
        pytest.skip("a server keeps the types of its columns")
    change(
        made,
        "UPDATE exchange SET response = x'00ff', latency = 'slow', digest = 'text' WHERE id = 1",
        "UPDATE exchange SET request = 7, created = 'today', key = 'key' WHERE id = 2",
        "UPDATE run_trial SET factors = x'ff', trial = 3, digest = 5 WHERE ordinal = 0",
        "UPDATE run SET manifest = x'00', started = 'x'",
        "UPDATE blob SET data = 'text', created = 'x'",
        "UPDATE model SET identity = 5, digest = 'x'",
    )
    assert {problem.table for problem in found(made)} >= {"exchange", "run_trial", "run", "blob", "model"}


def test_damaged_manifest_is_one_line(made, catalogue):
    from prejudge.core.scoring.score import score

    change(made, "UPDATE run SET manifest = '{\"run\":'")
    with raises_code(DataError, "store.row-damaged"):
        score(catalogue, made, "r")
    study = catalogue.study("count", {"subject": "fake"}, {"n": 4})
    with raises_code(DataError, "store.row-damaged"):
        asyncio.run(execute(catalogue, study, made, RunOptions(name="r")))


def sqlite_only(store):
    if store.engine.dialect.name != "sqlite":
        pytest.skip("a server keeps the types of its columns, and its references")


@pytest.mark.parametrize("factors", ["'{\"n\":'", "'[]'", "x'ff'"])
def test_damaged_factors_are_one_line(made, catalogue, factors):
    from prejudge.core.scoring.score import score

    sqlite_only(made)
    change(made, f"UPDATE run_trial SET factors = {factors} WHERE ordinal = 1")
    with raises_code(DataError, "store.row-damaged"):
        score(catalogue, made, "r")


@pytest.mark.parametrize(
    "statement", ["UPDATE exchange SET request = x'ff' WHERE id = 2", "UPDATE exchange SET model_id = 77 WHERE id = 2"]
)
def test_answer_without_request_or_model_is_not_exported(made, tmp_path, statement):
    sqlite_only(made)
    with sqlite3.connect(made.url.database) as connection:
        connection.execute(statement)
    with raises_code(DataError, "store.row-damaged"):
        export_run(made, get_run(made, "r"), tmp_path / "r.db.gz")


def test_tally_that_is_no_number_ends_no_check(made):
    sqlite_only(made)
    change(made, "UPDATE tally SET rows = 'many' WHERE kind = 'exchange'")
    assert ("exchange", "rows") in {(problem.table, problem.field) for problem in found(made)}


def test_times_that_are_no_times_are_named(made):
    from prejudge.core.report.provenance import when

    run = get_run(made, "r")
    for broken in (run._replace(started="x"), run._replace(finished=1e300)):
        with raises_code(DataError, "store.row-damaged"):
            when(broken)


def test_bundle_with_another_head_is_refused(made, elsewhere, tmp_path):
    path = export_run(made, get_run(made, "r"), tmp_path / "r.db.gz").path
    edit(path, "UPDATE run SET head = zeroblob(32)", digests=False)
    with raises_code(DataError, "bundle.digest"), Bundle(path) as bundle:
        import_bundle(elsewhere, bundle)


def test_check_of_a_large_store_needs_no_more_memory(tmp_path, monkeypatch):
    for name in ("checks", "exchange_checks", "run_checks"):
        monkeypatch.setattr(f"prejudge.core.store.{name}.READ", 100)
    peaks = []
    for size in (500, 4000):
        with Store(tmp_path / f"{size}.db") as store:
            fill_with(store, size)
            tracemalloc.start()
            assert found(store) == []
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 200_000, peaks


def fill_with(store, size):
    """Store a run of this many answers without a model."""
    identity = Identity(adapter="a", model="m", version="1")
    model, digest, run = store.ensure_model(identity), identity_digest(identity), store.begin_run("big", "s", b"{}")
    rows = []
    for number in range(size):
        request, answer = encode(ask(f"q {number}")), encode_response(Generation(text=f"said {number}"))
        rows.append(NewExchange(request_key(digest, request), model, "generate", request, answer, "ok", 0, 0, 0.1))
    answers = store.add_exchanges(rows)
    store.add_trials([NewTrial(run, "s", i, f"t{i}", "{}", row.key, answers[row.key]) for i, row in enumerate(rows)])
    store.end_run(run, "finished", b"{}")
