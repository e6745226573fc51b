"""A run of somebody else, in a store that came with a folder, asks nothing that its record names unasked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.trust import KEY_BYTES, USER_KEY, user_key
from prejudge.core.contracts.errors import UsageError
from prejudge.core.engine.foreign import ensure_own, foreign_runs, is_own
from prejudge.core.engine.manifest import manifest_of
from prejudge.core.store import Store, get_run
from prejudge.testing import raises_code

from ...command import Done, call
from ...listener import Listener, listening

KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
RUN = ("run", "subtle-sai", "--set", "per_cell=1", "--max-requests", "1", "-q", "--model")


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening(500) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("STOLEN", KEY)
    become(monkeypatch, "ann")
    return folder


def become(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    """Let a user of this name give the commands that follow."""
    monkeypatch.setenv("PREJUDGE_CONFIG", str(Path.cwd().parent / user))


def refused(done: Done) -> bool:
    return done.returncode == 2 and "made by somebody else" in done.stderr


def test_run_of_somebody_else_moves_no_key(folder, monkeypatch, listener):
    pytest.importorskip("openai", reason="needs the extra openai")
    stolen = f'openai:m[base_url="http://127.0.0.1:{listener.server_port}/v1",api_key_env="STOLEN"]'
    call(folder, *RUN, stolen)
    assert any(KEY in heard for heard in listener.heard)
    # Whoever made the run resumes it.
    before = len(listener.heard)
    assert not refused(call(folder, "resume", "--max-requests", "1", "-q")) and len(listener.heard) > before

    become(monkeypatch, "bob")
    listener.heard.clear()
    for words in (["resume"], ["lab", "recheck", "latest"]):
        done = call(folder, *words)
        assert refused(done) and "api_key_env" in done.stderr and "prejudge trust" in done.stderr, done
    assert not listener.heard

    shown = call(folder, "trust", "prejudge.db", input="n\n")
    assert shown.returncode == 2 and "Secrets:" in shown.stdout and "STOLEN" in shown.stdout
    assert refused(call(folder, "resume")) and not listener.heard
    assert call(folder, "trust", "prejudge.db", "--yes").returncode == 0
    call(folder, "resume", "--max-requests", "1", "-q")
    assert any(KEY in heard for heard in listener.heard)


def test_trust_in_a_store_ends_with_another_run_of_somebody_else(folder, monkeypatch):
    (folder.parent / "words.csv").write_text("masked,stereotype,opposite\n<MASK> is here,he,she\n")
    model = f"simulated:x[masks={folder.parent / 'words.csv'}]"
    call(folder, *RUN, model)
    become(monkeypatch, "bob")
    assert refused(call(folder, "resume"))
    assert call(folder, "trust", "--yes").returncode == 0
    assert call(folder, "resume", "-q").returncode == 0
    become(monkeypatch, "ann")
    call(folder, *RUN, model.replace("[", "[seed=2,"))
    become(monkeypatch, "bob")
    assert refused(call(folder, "resume"))


def test_plain_run_of_somebody_else_is_resumed_and_leaves_no_key(folder, monkeypatch):
    assert call(folder, *RUN, "simulated-fair").returncode == 3
    become(monkeypatch, "bob")
    assert call(folder, "resume", "-q").returncode == 0
    assert not (folder.parent / "ann").exists() and not (folder.parent / "bob").exists()
    assert "needs no trust" in call(folder, "trust", "prejudge.db").stdout


def test_proof_is_of_this_run_with_these_models(folder, monkeypatch):
    call(folder, *RUN, "simulated-fair")
    model = f"simulated:x[masks={folder.parent / 'none.csv'}]"
    catalogue = Catalogue.load()
    with Store("prejudge.db", writable=False) as store:
        manifest = manifest_of(get_run(store, "latest"))
        assert not manifest.maker and not foreign_runs(catalogue, store)
        with raises_code(UsageError, "run.untrusted"):
            ensure_own(catalogue, store, manifest, [model])
    assert not is_own(manifest)


def test_user_key_is_for_the_user_alone(folder):
    key = user_key()
    path = folder.parent / "ann" / USER_KEY
    assert len(key) == KEY_BYTES and path.read_bytes() == key == user_key()
    assert path.stat().st_mode & 0o077 == 0
