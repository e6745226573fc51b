"""A bundle: whole, of equal content wherever it comes from, and refused when anything in it was changed."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random

import pytest
from fakes import FakeModel

from prejudge.core.contracts.errors import DataError, PermanentError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run, list_runs, read_failures, statistics
from prejudge.core.store.bundle import export_run
from prejudge.core.store.checks import Checks
from prejudge.core.store.content import run_digest
from prejudge.core.store.evidence import seal
from prejudge.core.store.snapshots import snapshot
from prejudge.core.store.unbundle import Bundle, import_bundle
from prejudge.testing import raises_code

from ...forging import reseal
from .bundles import edit, expanded


@pytest.fixture
def bundle(run_study, store, tmp_path):
    """Return the path of a bundle of a run with an unreadable, a refused and a failed answer."""
    answers = {
        "q 1": Generation(text=""),
        "q 2": Generation(text="no", status="refused"),
        "q 3": PermanentError("too long"),
    }
    FakeModel.script = lambda request, seen: answers.get(request.messages[0].parts[0].text)
    name, _ = run_study(n=12, distinct=10, max_attempts=2, name="r")
    return export(store, name, tmp_path / "r.db.gz")


@pytest.fixture
def elsewhere(tmp_path):
    with Store(tmp_path / "elsewhere.db") as opened:
        yield opened


def export(store, name, path):
    return export_run(store, get_run(store, name), path).path


def take(store, path, name=None):
    with Bundle(path) as opened:
        return import_bundle(store, opened, name)


def refused(store, path, code, *named):
    with raises_code(DataError, code, *named):
        take(store, path)
    assert not any(statistics(store).values())


def test_run_scores_the_same_elsewhere(bundle, store, elsewhere, catalogue):
    done = take(elsewhere, bundle)
    assert (done.run, done.new, done.exchanges) == ("r", True, 10)
    assert score(catalogue, elsewhere, "r").estimates == score(catalogue, store, "r").estimates
    assert score(catalogue, elsewhere, "r").last.equals(score(catalogue, store, "r").last)
    assert read_failures(elsewhere, get_run(elsewhere, "r").id) == read_failures(store, 1)
    assert not list(Checks(elsewhere).problems())


def digest_in(path):
    with Bundle(path) as opened, snapshot(opened.store) as connection:
        (run,) = list_runs(opened.store)
        return run_digest(connection, run)


def test_equal_content_has_an_equal_digest(bundle, store, elsewhere, tmp_path):
    take(elsewhere, bundle, "other")
    exported = [
        export_run(opened, get_run(opened, name), tmp_path / f"{name}.db.gz")
        for opened, name in ((store, "r"), (elsewhere, "other"))
    ]
    assert exported[0].head == exported[1].head and exported[0].counts == exported[1].counts
    digests = [digest_in(done.path) for done in exported]
    with snapshot(store) as connection:
        assert digests == [run_digest(connection, get_run(store, "r"))] * 2


@pytest.mark.parametrize("state", ["interrupted", "running"])
def test_run_that_has_not_ended_is_exported_as_interrupted(run_study, store, elsewhere, tmp_path, state):
    name, _ = run_study(n=3)
    with store.engine.begin() as connection:
        values = ", head = NULL, record = NULL, finished = NULL" if state == "running" else ""
        connection.exec_driver_sql(f"UPDATE run SET state = '{state}'{values}")
        seal(connection, 1)
    exported = export_run(store, get_run(store, name), tmp_path / "r.db.gz")
    assert take(elsewhere, exported.path).new
    assert get_run(elsewhere, name).state == "interrupted" and get_run(elsewhere, name).head.hex() == exported.head
    assert not take(elsewhere, exported.path).new and not list(Checks(elsewhere).problems())


def test_bundle_is_a_sound_store_of_one_run(bundle, store):
    with expanded(bundle) as file, Store(file, writable=False) as opened:
        assert list(Checks(opened).problems()) == []
        assert [run.head for run in list_runs(opened)] == [get_run(store, "r").head]


def test_bundle_has_nothing_of_other_runs(bundle, store, run_study, tmp_path):
    FakeModel.script = None
    run_study(n=40, words=("another",), name="z")
    again = export_run(store, get_run(store, "r"), tmp_path / "again.db.gz")
    with Bundle(bundle) as before, Bundle(again.path) as after:
        assert statistics(before.store) == statistics(after.store)


def test_replay_works_from_a_bundle(run_study, store, elsewhere, catalogue, tmp_path):
    FakeModel.script = lambda request, seen: Generation(text="") if request.attempt < 2 else None
    name, _ = run_study(n=3, max_attempts=3)
    take(elsewhere, export(store, name, tmp_path / "r.db.gz"))
    study = catalogue.study("count", {"subject": "fake"}, {"n": 3, "max_attempts": 3})
    again = asyncio.run(execute(catalogue, study, elsewhere, RunOptions(mode="replay")))
    assert score(catalogue, elsewhere, again).last.equals(score(catalogue, store, name).last)


def test_bundle_without_an_earlier_answer_of_a_trial_is_refused(bundle, elsewhere):
    edit(bundle, "DELETE FROM exchange WHERE request LIKE '%q 1%' AND request NOT LIKE '%attempt%'", digests=False)
    refused(elsewhere, bundle, "bundle.digest")


def test_importing_twice_changes_nothing(bundle, elsewhere):
    take(elsewhere, bundle)
    before = statistics(elsewhere)
    assert not take(elsewhere, bundle).new and statistics(elsewhere) == before


def test_other_run_of_that_name_is_refused_with_a_way_out(bundle, elsewhere):
    elsewhere.begin_run("r", "count", b"{}")
    with raises_code(DataError, "bundle.run-differs", "'r'", "--as"):
        take(elsewhere, bundle)
    assert take(elsewhere, bundle, "r-2").new and not take(elsewhere, bundle, "r-2").new
    assert '"run":"r-2"' in get_run(elsewhere, "r-2").manifest


def test_images_come_along(store, elsewhere, run_study, tmp_path):
    sha256 = store.keep(b"a picture", "image/png")
    FakeModel.script = lambda request, seen: Generation(text=f'see {{"sha256":"{"0" * 64}"}}')
    name, _ = run_study(n=2)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE exchange SET response = ?", (f'{{"image":"{sha256}","type":"drawing"}}',))
    reseal(store)
    take(elsewhere, export(store, name, tmp_path / "p.db.gz"))
    assert elsewhere.blob(sha256) == b"a picture"


@pytest.mark.parametrize("position", [-1, -6])
def test_file_with_another_checksum_or_length_is_refused(bundle, elsewhere, position):
    data = bytearray(bundle.read_bytes())
    data[position] ^= 1
    bundle.write_bytes(data)
    refused(elsewhere, bundle, "bundle.unreadable")


@pytest.mark.parametrize("path", ["none.db.gz", "text.db.gz", "half.db.gz", "packed.db.gz", "plain.db"])
def test_what_is_no_bundle_is_refused(bundle, store, elsewhere, tmp_path, path):
    (tmp_path / "text.db.gz").write_text("no bundle")
    (tmp_path / "half.db.gz").write_bytes(bundle.read_bytes()[:500])
    (tmp_path / "packed.db.gz").write_bytes(gzip.compress(b"no database " * 1_000))
    (tmp_path / "plain.db").write_bytes(gzip.decompress(bundle.read_bytes()))
    refused(elsewhere, tmp_path / path, "bundle.unreadable", path)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW more AS SELECT * FROM exchange",
        "CREATE TABLE more (number INTEGER)",
        "CREATE TRIGGER more AFTER INSERT ON exchange BEGIN DELETE FROM exchange; END",
        "CREATE INDEX more ON exchange (hex(key))",
        "ALTER TABLE exchange ADD COLUMN more",
        "DROP TABLE damage",
    ],
)
def test_other_schema_is_refused(bundle, elsewhere, statement):
    refused(elsewhere, edit(bundle, statement, digests=False), "bundle.format", "pip install")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("exchange SET request = replace(request, 'q 5', 'q 50')", "bundle.digest"),
        ("exchange SET status = replace(status, 'refused', 'ok')", "bundle.digest"),
        ("exchange SET response = replace(response, 'generation', 'x')", "bundle.digest"),
        ("exchange SET latency = 9e999", "bundle.digest"),
        ("exchange SET latency = 'slow'", "bundle.content"),
        ("exchange SET model_id = 7", "bundle.digest"),
        ("run_trial SET exchange_id = exchange_id + 1 WHERE ordinal = 5", "bundle.digest"),
        ("run_trial SET factors = '[]'", "bundle.digest"),
        ("run_trial SET factors = x'00'", "bundle.content"),
        ("model SET identity = replace(identity, 'fake', 'fine')", "bundle.identity"),
        ("run SET name = '../../r'", "bundle.run-name"),
        ("run SET manifest = '['", "bundle.digest"),
        ("run SET state = 'importing'", "bundle.content"),
    ],
)
def test_change_with_new_digests_is_refused(bundle, elsewhere, change, code):
    digests = "x'00'" not in change and "'slow'" not in change and "'['" not in change
    refused(elsewhere, edit(bundle, f"UPDATE {change}", digests=digests), code)


@pytest.mark.parametrize(
    "change",
    [
        "exchange SET response = replace(response, 'Q 5', 'Q 50')",
        "exchange SET latency = latency + 1",
        "run_trial SET trial = 't50' WHERE trial = 't5'",
        "run SET head = zeroblob(32)",
        "run SET study = 'other'",
        "attempt SET message = 'other'",
    ],
)
def test_change_without_new_digests_is_refused(bundle, elsewhere, change):
    refused(elsewhere, edit(bundle, f"UPDATE {change}", digests=False), "bundle.digest")


def test_second_run_is_refused(bundle, elsewhere):
    other = "INSERT INTO run (name, study, state, manifest, started) VALUES ('b', 'count', 'running', '{}', 1.0)"
    refused(elsewhere, edit(bundle, other), "bundle.content", "2 runs")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO exchange SELECT 99, key, 7, model_id, operation, request, response, status, input_tokens, "
        "output_tokens, latency, created + 1, digest FROM exchange WHERE id = 1",
        "INSERT INTO renewal VALUES (1, 'refused')",
        "INSERT INTO claim VALUES (x'00', 1)",
        "INSERT INTO damage (exchange_id, place, problem, found) VALUES (1, 'a', 'b', 1.0)",
    ],
)
def test_rows_that_are_not_of_the_run_are_refused(bundle, elsewhere, statement):
    refused(elsewhere, edit(bundle, statement), "bundle.content")


def test_image_that_is_not_its_name_is_refused(store, run_study, elsewhere, tmp_path):
    FakeModel.script = lambda request, seen: Generation(text=f'see {{"sha256":"{"0" * 64}"}}')
    sha256 = store.keep(b"a picture", "image/png")
    name, _ = run_study(n=2)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE exchange SET response = ?", (f'{{"image":"{sha256}","type":"drawing"}}',))
    reseal(store)
    path = edit(export(store, name, tmp_path / "p.db.gz"), "UPDATE blob SET data = sha256", digests=False)
    refused(elsewhere, path, "bundle.content")
    path = edit(export(store, name, path), "UPDATE blob SET data = CAST('x' AS BLOB)", digests=False)
    refused(elsewhere, path, "bundle.digest", sha256[:12])


def test_damage_anywhere_is_refused_or_harmless(bundle, elsewhere, tmp_path):
    good, rng = bundle.read_bytes(), random.Random(0)
    take(elsewhere, bundle)
    before = statistics(elsewhere)
    for _ in range(200):
        damaged = bytearray(good)
        damaged[rng.randrange(len(good))] ^= 1 << rng.randrange(8)
        (tmp_path / "t.db.gz").write_bytes(damaged)
        with contextlib.suppress(DataError):
            assert not take(elsewhere, tmp_path / "t.db.gz").new
    assert statistics(elsewhere) == before
