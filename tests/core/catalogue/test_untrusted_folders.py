"""No folder of a stranger sends a credential: each is listed, planned, examined and run with canaries as keys."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from prejudge.core.catalogue.trust import read_candidate, wants_of

from ...command import call
from ...listener import Listener, listening
from .untrusted import CANARIES, Folder, folders

SECRET_FILE = "canary-in-a-file-0123456789abcdef"
ENDPOINTS = ("openai", "openai-responses", "anthropic", "gemini", "any-llm")
HARMLESS = {f"{adapter} {name}" for adapter in ENDPOINTS for name in ("keyless", "loopback")}
HARMLESS |= {"bedrock keyless", "openai httpx", "bedrock region"}
"""What may be read unasked: it asks this machine without a key, or is refused before it asks."""


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with listening(404) as server:
        yield server


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listener: Listener) -> tuple[Listener, Path]:
    """Return the listener, and a folder in which the user stands with canaries in the environment."""
    for name, value in CANARIES.items():
        monkeypatch.setenv(name, value)
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "AWS_PROFILE", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    # With a key of its own, Bedrock would not be asked with a signature.
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK")
    monkeypatch.setenv("PREJUDGE_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "elsewhere.txt").write_text(SECRET_FILE)
    folder = tmp_path / "clone"
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "config.json").write_text('{"auto_map": {"AutoModel": "evil.Model"}, "architectures": ["X"]}')
    (folder / "model" / "evil.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    (folder / "lora").mkdir()
    (folder / "lora" / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": "/etc", "peft_type": "LORA", "task_type": "CAUSAL_LM"})
    )
    monkeypatch.chdir(folder)
    listener.heard.clear()
    return listener, folder


def leaks(heard: list[str]) -> list[str]:
    """Return the names of the canaries in what was heard, plain or coded, and of signatures."""
    whole = "\n".join(heard)
    found = [
        name for name, value in CANARIES.items() if value in whole or base64.b64encode(value.encode()).decode() in whole
    ]
    return found + [word for word in (SECRET_FILE, "AWS4-HMAC-SHA256", "x-amz-security-token") if word in whole]


def every(listener: Listener, folder: Path) -> list[Folder]:
    return list(folders(f"http://127.0.0.1:{listener.server_port}/v1", str(folder.parent / "elsewhere.txt")))


NAMES = [folder.name for folder in folders("http://127.0.0.1:1/v1", "/nowhere")]


def test_there_are_seventy():
    assert len(set(NAMES)) == len(NAMES) >= 70


def test_question_without_an_answer_is_not_called_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setenv("PREJUDGE_CONFIG", str(tmp_path / "config"))
    (tmp_path / "registry.toml").write_text(
        '[models.m]\nadapter = "openai"\nsettings = { model = "m", api_key_env = "K" }\n'
    )
    done = call(tmp_path, "trust")
    assert done.returncode == 2 and "--yes" in done.stderr and "interrupted" not in done.stderr
    assert call(tmp_path, "trust", "--list").stdout.strip() != str(tmp_path / "registry.toml")


@pytest.mark.parametrize("name", NAMES)
def test_folder_sends_no_credential(stranger, name):
    pytest.importorskip("aiohttp", reason="needs the extra endpoint")
    listener, folder = stranger
    (chosen,) = [one for one in every(listener, folder) if one.name == name]
    (folder / "registry.toml").write_text(chosen.registry)
    wants = wants_of(read_candidate(Path("registry.toml")))
    assert bool(wants) is (name not in HARMLESS), wants
    words = ["doctor", chosen.model] if not name.startswith("study") else ["run", "s", "--model", chosen.model]
    done = call(folder, *words)
    assert not wants or (done.returncode == 2 and "not trusted" in done.stderr), done
    assert leaks(listener.heard) == []
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("name", ["openai another key", "bedrock loopback", "openai key file", "anthropic another key"])
def test_attack_is_a_real_one(stranger, name):
    """Named by the user, such a file does what it says: the listener hears the canary."""
    pytest.importorskip("aiohttp", reason="needs the extra endpoint")
    pytest.importorskip("botocore", reason="needs the extra bedrock")
    listener, folder = stranger
    (chosen,) = [one for one in every(listener, folder) if one.name == name]
    (folder / "registry.toml").write_text(chosen.registry)
    call(folder, "doctor", chosen.model, "--registry", "registry.toml")
    assert leaks(listener.heard)


def test_keyless_folders_ask_the_listener(stranger):
    """What is allowed works: a server of this machine is asked, without a key."""
    pytest.importorskip("aiohttp", reason="needs the extra endpoint")
    listener, folder = stranger
    for chosen in every(listener, folder):
        if chosen.name in ("openai keyless", "anthropic keyless", "gemini keyless", "bedrock keyless"):
            (folder / "registry.toml").write_text(chosen.registry)
            before = len(listener.heard)
            call(folder, "doctor", chosen.model)
            assert len(listener.heard) > before, chosen.name
    assert leaks(listener.heard) == []
