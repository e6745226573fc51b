"""`prejudge cache verify --head` follows a run to those that asked its answers."""

from __future__ import annotations

import shutil
import subprocess
from functools import partial

import pytest

from prejudge.core.store import get_run
from prejudge.core.store.bundle import export_run
from prejudge.core.store.evidence import seal
from prejudge.core.store.prune import PruneOptions, prune
from prejudge.core.store.signatures import sign_run
from prejudge.core.store.store import Store
from prejudge.core.store.unbundle import Bundle, import_bundle

from ...command import call

needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen (openssh-client)")


@pytest.fixture
def verify(tmp_path, place):
    return partial(call, tmp_path, "cache", "verify", "--store", place, "--head")


@pytest.fixture
def chain(run_study):
    """Return the names of three runs, each of which takes answers from those before it."""
    return [run_study(n=n)[0] for n in (4, 7, 10)]


def head(store, name):
    return get_run(store, name).head.hex()


def test_heads_of_earlier_runs_are_checked(verify, store, chain):
    first, second, third = chain
    done = verify(head(store, third))
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    begun = [f"4 of 10 answers of {third} are from {first}", f"3 of 10 answers of {third} are from {second}"]
    begun.append(f"4 of 7 answers of {second} are from {first}")
    assert done.returncode == 0 and all(map(str.startswith, lines, begun)) and len(lines) == len(begun), done.stdout
    assert all("with this head" in line for line in lines)


def test_forged_earlier_run_is_named(verify, store, chain):
    """Answers of an earlier run whose digests were all made anew: its head is another."""
    first, second, third = chain
    with store.writing() as connection:
        run = get_run(store, first)
        connection.exec_driver_sql(f"DELETE FROM run_trial WHERE run_id = {run.id} AND ordinal = 3")
        seal(connection, run.id)
    done = verify(head(store, third))
    (line,) = (line for line in done.stdout.splitlines() if f"10 answers of {third} are from {first}" in line)
    assert done.returncode == 1 and head(store, first)[:16] in line
    assert verify(head(store, first)).returncode == 0


def test_removed_earlier_run_is_told(verify, store, chain):
    first, _, third = chain
    prune(store, get_run(store, first), PruneOptions())
    done = verify(head(store, third))
    assert done.returncode == 0 and f"from {first}" in done.stdout and "not in this store" in done.stdout


def test_run_brought_alone_keeps_its_list(store, chain, tmp_path):
    _, _, third = chain
    export_run(store, get_run(store, third), tmp_path / "r.db.gz")
    with Store(tmp_path / "alone.db") as alone, Bundle(tmp_path / "r.db.gz") as bundle:
        import_bundle(alone, bundle, "renamed")
        assert head(alone, "renamed") == head(store, third)
    done = call(tmp_path, "cache", "verify", "--store", "alone.db", "--head", head(store, third))
    assert done.returncode == 0 and done.stdout.count("not in this store") == 2


def test_run_of_equal_head_is_not_its_own_source(verify, store, run_study):
    """A run that took all answers from another has the head of that; when the other is gone, it proves nothing."""
    first, _ = run_study(n=4)
    second, _ = run_study(n=4)
    assert head(store, first) == head(store, second)
    assert "with this head" in verify(head(store, second)).stdout
    prune(store, get_run(store, first), PruneOptions())
    assert "not in this store" in verify(head(store, second)).stdout


@pytest.fixture
def signers(tmp_path):
    """Return a function that makes the key of a person, and gives it with a list of that person alone."""

    def make(name):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(tmp_path / name)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        (tmp_path / f"only-{name}").write_text(f"{name} {(tmp_path / f'{name}.pub').read_text('ascii')}", "ascii")
        return str(tmp_path / name), f"only-{name}"

    return make


@needs_ssh
def test_signers_of_runs_and_of_those_before_them_are_told(tmp_path, store, place, chain, signers):
    first, second, third = chain
    alice, only_alice = signers("alice")
    sign_run(store, get_run(store, third), alice)
    check = partial(call, tmp_path, "cache", "verify", "--store", place, "--signed-by", only_alice)
    done = check("--head", head(store, third))
    lines = [line for line in done.stdout.splitlines() if line.startswith("Run ")]
    assert done.returncode == 1 and f"Run {third}: signed by alice" in lines[0]
    assert sum("[signature.missing]" in line for line in lines) == 2
    for name in (first, second):
        sign_run(store, get_run(store, name), alice)
    for words in (["--head", head(store, third)], []):
        done = check(*words)
        assert done.returncode == 0 and done.stdout.count("signed by alice") == 3
    assert check("--head", "0" * 64).returncode == 1


@needs_ssh
def test_damaged_run_has_no_signature_that_holds(tmp_path, store, place, chain, signers):
    alice, only_alice = signers("alice")
    for name in chain:
        sign_run(store, get_run(store, name), alice)
    with store.writing() as connection:
        run = get_run(store, chain[2])
        connection.exec_driver_sql(f"UPDATE run_trial SET factors = '{{}}' WHERE run_id = {run.id} AND ordinal = 9")
    done = call(tmp_path, "cache", "verify", "--store", place, "--signed-by", only_alice)
    assert done.returncode == 1 and done.stdout.count("signed by alice") == 2 and "no signature holds" in done.stdout


def test_list_of_signers_that_is_not_there_is_named(tmp_path, store, place, chain):
    with store.writing() as connection:
        connection.exec_driver_sql("INSERT INTO signature (run_id, statement, signature) SELECT id, 's', 'x' FROM run")
    done = call(tmp_path, "cache", "verify", "--store", place, "--signed-by", "none")
    assert done.returncode == 2 and "none" in done.stderr
