"""A bundle: whole, equal for equal content, and refused when anything in it was changed."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
import warnings
import zipfile
from io import BytesIO

import polars as pl
import pytest
from fakes import FakeModel

from prejudge.core.contracts.errors import DataError, PermanentError
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, get_run, read_failures, statistics
from prejudge.core.store.bundle import export_run
from prejudge.core.store.checks import Checks
from prejudge.core.store.unbundle import Bundle, import_bundle
from prejudge.testing import raises_code

from ...forging import reseal


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
    return export(store, name, tmp_path / "r.zip")


@pytest.fixture
def elsewhere(tmp_path):
    with Store(tmp_path / "elsewhere.db") as opened:
        yield opened


def export(store, name, path):
    return export_run(store, get_run(store, name), path).path


def take(store, path, name=None):
    with Bundle(path) as opened:
        return import_bundle(store, opened, name)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, content, *, digests=True):
    """Write a zip of members, its digests made anew if wanted."""
    if digests:
        own = {name: hashlib.sha256(data).hexdigest() for name, data in content.items() if name != "digests.json"}
        content = content | {"digests.json": json.dumps(own).encode()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def edited(path, name, change):
    """Return members in which the Parquet member `name` was changed by `change`."""
    content = members(path)
    buffer = BytesIO()
    change(pl.read_parquet(BytesIO(content[name]))).write_parquet(buffer)
    return content | {name: buffer.getvalue()}


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


def test_equal_content_gives_equal_bytes(bundle, elsewhere, tmp_path):
    take(elsewhere, bundle)
    assert export(elsewhere, "r", tmp_path / "again.zip").read_bytes() == bundle.read_bytes()


def test_replay_works_from_a_bundle(run_study, store, elsewhere, catalogue, tmp_path):
    FakeModel.script = lambda request, seen: Generation(text="") if request.attempt < 2 else None
    name, _ = run_study(n=3, max_attempts=3)
    take(elsewhere, export(store, name, tmp_path / "r.zip"))
    study = catalogue.study("count", {"subject": "fake"}, {"n": 3, "max_attempts": 3})
    again = asyncio.run(execute(catalogue, study, elsewhere, RunOptions(mode="replay")))
    assert score(catalogue, elsewhere, again).last.equals(score(catalogue, store, name).last)


def test_bundle_without_an_earlier_answer_of_a_trial_is_refused(bundle, elsewhere):
    def change(frame):
        other = pl.when(pl.col("earlier") != b"").then(pl.lit(b"x" * 32)).otherwise("earlier")
        return frame.with_columns(other.alias("earlier"))

    refused(elsewhere, write(bundle, edited(bundle, "trials/00000.parquet", change)), "bundle.exchange")


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
    take(elsewhere, export(store, name, tmp_path / "p.zip"))
    assert elsewhere.blob(sha256) == b"a picture"


def test_any_changed_byte_is_refused(bundle, elsewhere, tmp_path):
    content = members(bundle)
    for name, data in content.items():
        changed = data[:-1] + bytes([data[-1] ^ 1])
        write(tmp_path / "t.zip", content | {name: changed}, digests=False)
        refused(elsewhere, tmp_path / "t.zip", "bundle.content" if name == "digests.json" else "bundle.digest", name)


def test_byte_changed_in_the_file_is_refused(bundle, elsewhere):
    data = bytearray(bundle.read_bytes())
    at = data.index(b"PAR1") + 20
    data[at] ^= 1
    bundle.write_bytes(data)
    refused(elsewhere, bundle, "bundle.digest", "'exchanges/00000.parquet'")


def test_missing_and_added_members_are_refused(bundle, elsewhere, tmp_path):
    content = members(bundle)
    for name in content:
        less = {other: data for other, data in content.items() if other != name}
        refused(elsewhere, write(tmp_path / "t.zip", less, digests=False), "bundle.members", name)
    more = content | {"blobs/" + "0" * 64: b"x"}
    refused(elsewhere, write(tmp_path / "t.zip", more, digests=False), "bundle.members", "'blobs/000")


@pytest.mark.parametrize("name", ["/etc/passwd", "../x.json", "blobs/../../x", "C:\\x", "notes.txt", "bundle.json/"])
def test_odd_names_are_refused(bundle, elsewhere, tmp_path, name):
    refused(elsewhere, write(tmp_path / "t.zip", members(bundle) | {name: b"x"}), "bundle.members", repr(name))


def test_member_that_stands_twice_is_refused(bundle, elsewhere):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(bundle, "a") as archive:
            archive.writestr("manifest.json", b"{}")
    refused(elsewhere, bundle, "bundle.members", "'manifest.json'")


def test_bomb_is_refused(bundle, elsewhere, tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members(bundle).items():
            archive.writestr(name, data)
        archive.writestr("blobs/" + "0" * 64, bytes(10**7))
    refused(elsewhere, tmp_path / "t.zip", "bundle.compressed")


def test_bomb_of_rows_is_refused(bundle, elsewhere, tmp_path):
    content = edited(bundle, "exchanges/00000.parquet", lambda frame: pl.concat([frame] * 10_000))
    refused(elsewhere, write(tmp_path / "t.zip", content), "bundle.table")


@pytest.mark.parametrize("path", ["none.zip", "text.zip", "half.zip"])
def test_what_is_no_bundle_is_refused(bundle, elsewhere, tmp_path, path):
    (tmp_path / "text.zip").write_text("no zip")
    (tmp_path / "half.zip").write_bytes(bundle.read_bytes()[:500])
    refused(elsewhere, tmp_path / path, "bundle.unreadable", path)


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("exchanges", pl.col("request").str.replace("q 5", "q 50"), "bundle.exchange"),
        ("exchanges", pl.col("status").str.replace("refused", "ok"), "bundle.exchange"),
        ("exchanges", pl.col("response").str.replace("Q 5", "Q 50"), "bundle.digest"),
        ("exchanges", pl.col("response").str.replace("generation", "x"), "bundle.exchange"),
        ("exchanges", pl.col("latency") * float("nan"), "bundle.exchange"),
        ("exchanges", pl.when(pl.col("status") == "ok").then("status").alias("status"), "bundle.table"),
        ("exchanges", pl.col("latency").cast(pl.String), "bundle.table"),
        ("trials", (pl.col("exchange") + 1).alias("exchange"), "bundle.exchange"),
        ("trials", pl.lit("[]").alias("factors"), "bundle.content"),
        ("trials", pl.col("trial").str.replace("t5", "t50"), "bundle.digest"),
    ],
)
def test_change_with_new_digests_is_refused(bundle, elsewhere, tmp_path, name, change, code):
    content = edited(bundle, f"{name}/00000.parquet", lambda frame: frame.with_columns(change))
    refused(elsewhere, write(tmp_path / "t.zip", content), code)


def test_identity_changed_with_new_digests_is_refused(bundle, elsewhere, tmp_path):
    content = members(bundle)
    content["identities.json"] = content["identities.json"].replace(b'"fake"', b'"fine"')
    refused(elsewhere, write(tmp_path / "t.zip", content), "bundle.identity")


def test_name_that_leaves_the_folder_is_refused(bundle, elsewhere, tmp_path):
    content = members(bundle)
    content["bundle.json"] = content["bundle.json"].replace(b'"r"', b'"../../r"')
    refused(elsewhere, write(tmp_path / "t.zip", content), "bundle.run-name", "'../../r'")


def test_newer_format_is_refused(bundle, elsewhere, tmp_path):
    content = members(bundle)
    content["bundle.json"] = content["bundle.json"].replace(b'"format": 1', b'"format": 2')
    refused(elsewhere, write(tmp_path / "t.zip", content), "bundle.format", "2", "1", "pip install")


def test_image_that_is_not_its_name_is_refused(bundle, elsewhere, tmp_path):
    name = "0" * 64
    content = members(bundle) | {"blobs.json": json.dumps({name: "image/png"}).encode(), f"blobs/{name}": b"x"}
    refused(elsewhere, write(tmp_path / "t.zip", content), "bundle.image", name)


def test_damage_anywhere_is_refused_or_harmless(bundle, elsewhere, tmp_path):
    good, rng = bundle.read_bytes(), random.Random(0)
    take(elsewhere, bundle)
    before = statistics(elsewhere)
    for _ in range(200):
        damaged = bytearray(good)
        damaged[rng.randrange(len(good))] ^= 1 << rng.randrange(8)
        (tmp_path / "t.zip").write_bytes(damaged)
        with contextlib.suppress(DataError):
            assert not take(elsewhere, tmp_path / "t.zip").new
    assert statistics(elsewhere) == before
