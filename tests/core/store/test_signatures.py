"""Signatures of runs by `ssh-keygen -Y`: who vouches for a head, in this store and wherever the run goes."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess

import pytest

from prejudge.core.contracts.errors import DataError, StoreError, UsageError
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import get_run
from prejudge.core.store.bundle import export_run
from prejudge.core.store.evidence import seal
from prejudge.core.store.merge import merge
from prejudge.core.store.prune import PruneOptions, prune
from prejudge.core.store.signatures import Signed, attach, ensure_able, sign_run, signatures_of, signer_of, statement_of
from prejudge.core.store.snapshots import snapshot
from prejudge.core.store.store import Store
from prejudge.core.store.unbundle import Bundle, import_bundle
from prejudge.testing import raises_code

from .bundles import expanded

needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen (openssh-client)")
EVERY_STORE = True


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Return a folder with the keys of alice and bob, and lists of allowed signers."""
    folder = tmp_path_factory.mktemp("keys")
    for name, phrase in (("alice", ""), ("bob", ""), ("locked", "secret")):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-C", "", "-f", str(folder / name)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        public = (folder / f"{name}.pub").read_text("ascii").strip()
        (folder / f"only-{name}").write_text(f"{name}@example.org {public}\n", "ascii")
        (folder / f"commits-{name}").write_text(f'{name}@example.org namespaces="git" {public}\n', "ascii")
        (folder / f"past-{name}").write_text(f'{name}@example.org valid-before="20200101" {public}\n', "ascii")
    return folder


@pytest.fixture
def signed(run_study, store, keys):
    """Return a run that alice has signed."""
    name, _ = run_study(n=4)
    sign_run(store, get_run(store, name), str(keys / "alice"))
    return name


def signer(store, name, file):
    return signer_of(store, get_run(store, name), str(file)).name


@needs_ssh
def test_signer_is_found_by_the_list(store, signed, keys):
    by = signer_of(store, get_run(store, signed), str(keys / "only-alice"))
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", str(keys / "alice.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    assert by.name == "alice@example.org" and by.key.endswith(fingerprint)


@needs_ssh
def test_signature_is_checked_without_this_program(store, signed, keys, tmp_path):
    """`ssh-keygen` alone accepts it for the text that the page of the store documents."""
    with snapshot(store) as connection:
        (made,) = signatures_of(connection)
    head = get_run(store, signed).head.hex()
    title, head_line, record_line, end = made.statement.split("\n")
    assert (title, head_line, end) == ("prejudge run 1", f"head {head}", "") and len(record_line) == len("record ") + 64
    (tmp_path / "s.sig").write_text(made.signature, "ascii")
    words = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-n",
        "prejudge-run",
        "-I",
        "alice@example.org",
        "-s",
        str(tmp_path / "s.sig"),
    ]
    done = subprocess.run(
        [*words, "-f", str(keys / "only-alice")], input=made.statement, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr


@needs_ssh
@pytest.mark.parametrize("file", ["only-bob", "commits-alice", "past-alice"])
def test_signature_of_somebody_who_may_not_is_refused(store, signed, keys, file):
    with raises_code(StoreError, "signature.other-signer"):
        signer(store, signed, keys / file)


@needs_ssh
def test_run_without_a_signature_is_named(run_study, store, keys):
    name, _ = run_study(n=4)
    with raises_code(StoreError, "signature.missing"):
        signer(store, name, keys / "only-alice")


@needs_ssh
def test_signature_of_an_earlier_state_is_refused(store, signed, keys):
    """A trial is taken out and all digests are made anew: the store is sound, and the signature is of another head."""
    run = get_run(store, signed)
    with store.writing() as connection:
        connection.exec_driver_sql(f"DELETE FROM run_trial WHERE run_id = {run.id} AND ordinal = 3")
        seal(connection, run.id)
    with raises_code(StoreError, "signature.other-run"):
        signer(store, signed, keys / "only-alice")


@needs_ssh
@pytest.mark.parametrize("column", ["manifest", "study", "state", "started", "finished"])
def test_signature_covers_the_record(store, signed, keys, column):
    run = get_run(store, signed)
    value = {"manifest": run.manifest.replace('"mode":"use"', '"mode":"replay"'), "study": "other", "state": "failed"}
    with store.writing() as connection:
        changed = value.get(column, 1.5)
        assert changed != getattr(run, column)
        mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
        connection.exec_driver_sql(f"UPDATE run SET {column} = {mark} WHERE id = {run.id}", (changed,))
        seal(connection, run.id)
    with raises_code(StoreError, "signature.other-run"):
        signer(store, signed, keys / "only-alice")


@needs_ssh
@pytest.mark.parametrize("field", ["statement", "signature"])
def test_changed_signature_is_refused(store, signed, keys, field):
    with store.writing() as connection:
        change = {"statement": ("head ", "head 0"), "signature": ("\nU1NIU0lH", "\nU1NIU0lI")}[field]
        connection.exec_driver_sql(f"UPDATE signature SET {field} = replace({field}, '{change[0]}', '{change[1]}')")
    with raises_code(StoreError, "signature.invalid"):
        signer(store, signed, keys / "only-alice")


@needs_ssh
def test_several_sign_one_run(store, signed, keys):
    sign_run(store, get_run(store, signed), str(keys / "bob"))
    assert signer(store, signed, keys / "only-alice") == "alice@example.org"
    assert signer(store, signed, keys / "only-bob") == "bob@example.org"


@needs_ssh
def test_damaged_run_is_not_signed(store, signed, keys):
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE run_trial SET factors = '{}' WHERE ordinal = 2")
    with raises_code(DataError, "store.row-damaged"):
        sign_run(store, get_run(store, signed), str(keys / "bob"))


@needs_ssh
@pytest.mark.parametrize("key", ["none", "locked", "only-alice", "locked.pub"])
def test_key_that_cannot_sign_is_refused_before_anything_is_asked(run_study, catalogue, store, keys, key, monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")  # no terminal is asked
    monkeypatch.setenv("SSH_ASKPASS", shutil.which("false"))
    study = catalogue.study("count", {"subject": "fake"}, {"n": 4})
    with raises_code(UsageError, "sign.key"):
        asyncio.run(execute(catalogue, study, store, RunOptions(sign=str(keys / key))))
    with snapshot(store) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM run").scalar() == 0


@needs_ssh
def test_run_is_signed_when_it_is_finished(catalogue, store, keys):
    study = catalogue.study("count", {"subject": "fake"}, {"n": 4})
    name = asyncio.run(execute(catalogue, study, store, RunOptions(sign=str(keys / "alice"))))
    assert signer(store, name, keys / "only-alice") == "alice@example.org"


@needs_ssh
def test_finished_run_is_signed_by_resuming_it(run_study, catalogue, store, keys):
    name, model = run_study(n=4)
    study = catalogue.study("count", {"subject": "fake"}, {"n": 4})
    asyncio.run(execute(catalogue, study, store, RunOptions(name=name, sign=str(keys / "alice"))))
    assert signer(store, name, keys / "only-alice") == "alice@example.org"


def test_missing_program_is_named(monkeypatch, tmp_path):
    (tmp_path / "key").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises_code(UsageError, "sign.program"):
        ensure_able(str(tmp_path / "key"))


def test_missing_list_of_signers_is_named(run_study, store, tmp_path):
    name, _ = run_study(n=1)
    attach(store, [Signed(_statement(store, name), "x")])
    with raises_code(UsageError, "sign.signers"):
        signer(store, name, tmp_path / "none")


def _statement(store, name):
    with snapshot(store) as connection:
        return statement_of(connection, get_run(store, name))


@pytest.fixture
def elsewhere(tmp_path):
    with Store(tmp_path / "elsewhere.db") as opened:
        yield opened


@needs_ssh
@pytest.mark.parametrize("there_before", [False, True])
def test_signature_goes_with_a_bundle(store, signed, keys, elsewhere, tmp_path, there_before):
    """Also under another name, and where the run was imported before it was signed."""
    if there_before:
        with store.writing() as connection:
            rows = connection.exec_driver_sql("SELECT statement, signature FROM signature").all()
            connection.exec_driver_sql("DELETE FROM signature")
        export_run(store, get_run(store, signed), tmp_path / "first.db.gz")
        with Bundle(tmp_path / "first.db.gz") as bundle:
            import_bundle(elsewhere, bundle, "renamed")
        attach(store, [Signed(*row) for row in rows])
    export_run(store, get_run(store, signed), tmp_path / "r.db.gz")
    with Bundle(tmp_path / "r.db.gz") as bundle:
        assert import_bundle(elsewhere, bundle, "renamed").new is not there_before
    assert signer(elsewhere, "renamed", keys / "only-alice") == "alice@example.org"
    export_run(elsewhere, get_run(elsewhere, "renamed"), tmp_path / "again.db.gz")
    with Bundle(tmp_path / "again.db.gz") as again, Bundle(tmp_path / "r.db.gz") as bundle:
        assert signatures_in(again) == signatures_in(bundle) != []


@needs_ssh
def test_signature_goes_with_a_merge(store, signed, keys, elsewhere):
    merge(elsewhere, store)
    assert signer(elsewhere, signed, keys / "only-alice") == "alice@example.org"
    merge(elsewhere, store)
    with snapshot(elsewhere) as connection:
        assert len(signatures_of(connection)) == 1


@needs_ssh
def test_signature_is_removed_with_its_run(store, signed):
    prune(store, get_run(store, signed), PruneOptions())
    with snapshot(store) as connection:
        assert not signatures_of(connection)


def signatures_in(bundle):
    with snapshot(bundle.store) as connection:
        return signatures_of(connection)


@pytest.mark.parametrize(
    "values",
    ["VALUES (1, 's', replace(hex(zeroblob(15000)), '00', 'xx'))", "VALUES " + ", ".join(["(1, 's', 'x')"] * 101)],
)
def test_bundle_with_odd_signatures_is_refused(run_study, store, elsewhere, tmp_path, values):
    name, _ = run_study(n=2)
    path = export_run(store, get_run(store, name), tmp_path / "r.db.gz").path
    with expanded(path) as file, sqlite3.connect(file) as plain:
        (number,) = plain.execute("SELECT id FROM run").fetchone()
        statement = values.replace("(1,", f"({number},")
        plain.execute(f"INSERT INTO signature (run_id, statement, signature) {statement}")
        plain.commit()
        plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with Bundle(path) as bundle, raises_code(DataError, "bundle.content"):
        import_bundle(elsewhere, bundle)
