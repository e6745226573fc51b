"""What looks like a secret is refused before anything is asked, and one that a store already has is told."""

from __future__ import annotations

import base64
import json
import random
import re
import sqlite3
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.secrets import HIDDEN, hide, is_random, looks_secret, secret_name, secret_place
from prejudge.testing import ChaosServer
from prejudge.testing.chaos.tiny import chat

from ...command import Done, call
from ...forging import reseal

RUN = ("run", "subtle-sai", "--set", "per_cell=1", "--set", "domains=beauty", "--set", "subtle.resamples=99", "-q")


def made(letters: str, size: int, seed: int) -> str:
    draw = random.Random(seed)
    return "".join(draw.choice(letters) for _ in range(size))


ALL = string.ascii_letters + string.digits
JWT = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"HS256"}', b'{"sub":"12345"}'))
TOKEN = "Zx9Qw7Er5Ty3Ui1Op2As4Df6Gh8"
SECRETS = [
    f"sk-{made(ALL, 48, 1)}0",
    f"sk-proj-{made(ALL, 40, 2)}0",
    f"sk-ant-api03-{made(ALL, 40, 3)}0",
    f"ghp_{made(ALL, 36, 4)}",
    f"github_pat_{made(ALL, 60, 5)}",
    f"hf_{made(string.ascii_letters, 34, 6)}",
    f"gsk_{made(ALL, 52, 7)}",
    f"AKIA{made(string.ascii_uppercase + string.digits, 16, 8)}",
    f"AIza{made(ALL, 35, 9)}",
    f"xoxb-{made(string.digits, 12, 10)}-{made(ALL, 24, 11)}",
    f"{JWT}.{made(ALL, 43, 12)}",
    f"Bearer {made(ALL, 30, 13)}",
    "-----BEGIN RSA PRIVATE KEY-----\nMII",
]
INNOCENT = [
    "meta-llama/Meta-Llama-3.1-405B-Instruct-Turbo",
    "deepseek-r1-distill-llama-8b",
    "You are a bearer of good news, basic and task-specific. Ask about sk-ip in 1999.",
    "https://router.huggingface.co/models/Qwen/Qwen2.5-VL-72B-Instruct/v1",
    "https://x.example/projects/123e4567-e89b-12d3-a456-426614174000/openai/deployments/gpt-4o-2024-08-06",
    "https://generativelanguage.googleapis.com/v1beta/openai/",
    "http://127.0.0.1:8000/v1",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "5b0f3d2c1e4a59687786a5b4c3d2e1f001122334",
    "Die unverhältnismäßige Donaudampfschifffahrtsgesellschaft 1234",
]


@pytest.mark.parametrize("text", SECRETS, ids=range(len(SECRETS)))
def test_forms_of_keys_are_known_wherever_they_stand(text):
    for shown in (text, f"My key is {text}.", f"https://gateway.example/{text}/v1", f'{{"a": "{text}"}}'):
        assert looks_secret(shown, {}), shown
    assert secret_place({"a": 1, "b": {"c": ["x", text]}}, {}) == "b"
    assert secret_place({"a": {text: 1}}, {}) == "a"


@pytest.mark.parametrize("text", INNOCENT)
def test_names_addresses_and_digests_are_no_secrets(text):
    assert not looks_secret(text, {"HOME": text, "MY_KEY": "short"})


@pytest.mark.parametrize("seed", range(20))
def test_random_part_of_a_path_is_one(seed):
    token = made(ALL, 40, seed)
    assert looks_secret(f"https://gateway.example/{token}/v1", {}) and is_random(token)
    assert looks_secret(f"https://gateway.example/v1/{made('0123456789abcdef', 32, seed)}", {})


NUMBER = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "url",
    [
        f"https://api.example/client/v4/accounts/{NUMBER}/ai/v1",
        f"https://x.example/openai/deployments/{NUMBER}/chat",
        f"https://x.example/Projects/{NUMBER}{NUMBER}",
        f"https://gateway.ai.cloudflare.com/v1/{NUMBER}/lab/openai",
    ],
)
def test_number_of_a_named_thing_is_no_secret(url):
    assert not looks_secret(url, {})


@pytest.mark.parametrize(
    "url",
    [
        f"https://x.example/accounts/{TOKEN}/v1",
        f"https://x.example/accounts/{NUMBER}/{NUMBER[::-1]}",
        f"https://x.example/accounts/{NUMBER}-{TOKEN}/v1",
        f"https://x.example/token/{NUMBER}/v1",
        f"https://gateway.ai.cloudflare.com.evil.example/v1/{NUMBER}/lab",
    ],
)
def test_token_behind_a_named_thing_is_one(url):
    assert looks_secret(url, {})


@pytest.mark.parametrize(
    "name", ["api_key", "X-API-Key", "Proxy-Authorization", "clientSecret", "client_secret", "refresh token", "passwd"]
)
def test_names_of_secrets_are_known_at_any_depth(name):
    assert secret_name({"a": [1, {"b": {name: None}}]}) == name and secret_name({name: 1}) == name
    assert secret_name({"a": name}) is secret_name({f"{name}_env": 1}) is secret_name([]) is None


@pytest.mark.parametrize("text", SECRETS, ids=range(len(SECRETS)))
def test_whole_secrets_are_hidden_from_errors(text):
    shown = hide(f"wrong: {text} (see the page)")
    assert HIDDEN in shown and not any(part in shown for part in re.findall(r"[A-Za-z0-9]{12,}", text))


@pytest.mark.parametrize(
    "text",
    [*(text for text in INNOCENT if "bearer" not in text), "unexpected token: }", "max_tokens = 5", "a bad password"],
)
def test_other_words_are_shown(text):
    assert hide(text) == text


def test_value_of_a_secret_variable_is_one():
    environment = {"LAB_TOKEN": "correct horse battery", "LAB_TOKENS_FILE": "/etc/some/long/path", "A_KEY": "test"}
    assert looks_secret("it is correct horse battery!", environment)
    assert not looks_secret("/etc/some/long/path test", environment)


@pytest.fixture(scope="module")
def server() -> Iterator[ChaosServer]:
    with ChaosServer(lambda path, body: chat("A")) as started:
        yield started


@pytest.mark.parametrize(
    ("settings", "mend"),
    [
        ({"base_url": f"/{TOKEN}/v1"}, "endpoint ="),
        ({"base_url": "/v1/sk%2Dabcdef0123456789abcdef/x"}, "endpoint ="),
        ({"extra_body": {"token": "hunter2"}}, "api_key_env"),
        ({"extra_body": {"a": [{"client_secret": "hunter2"}]}}, "api_key_env"),
        ({"extra_body": {"user": TOKEN}}, "api_key_env"),
        ({"extra_body": {"user": {"name": SECRETS[0]}}}, "environment"),
        ({"model": SECRETS[1]}, "environment"),
        ({"system_prompt": f"Log in with {SECRETS[3]}."}, "environment"),
        ({"endpoint": SECRETS[5]}, "environment"),
        ({"revision": "the value of the variable"}, "environment"),
        ({"organization": SECRETS[0]}, "environment"),
    ],
)
def test_secret_in_a_setting_is_refused_before_anything_is_asked(server, tmp_path, monkeypatch, settings, mend):
    pytest.importorskip("openai", reason="needs the extra openai")
    monkeypatch.setenv("LAB_SECRET", "the value of the variable")
    server.clear()
    done = ask(server, tmp_path, settings)
    assert done.returncode == 2 and mend in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    for secret in (TOKEN, "hunter2", "abcdef0123456789", "the value of the variable", *SECRETS):
        assert secret not in done.stderr
    assert not server.seen and b"hunter2" not in written(tmp_path) and TOKEN.encode() not in written(tmp_path)


def test_secret_as_a_model_or_an_option_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    for words in (["--model", f"openai:{SECRETS[0]}"], ["--model", "simulated-fair", "--set", f"seed={SECRETS[0]}"]):
        done = call(tmp_path, *RUN, *words)
        assert done.returncode == 2 and "looks like a secret" in done.stderr and SECRETS[0] not in done.stderr
    assert SECRETS[0].encode() not in written(tmp_path)


def test_endpoint_stands_in_the_place_of_a_secret_path(server, tmp_path):
    pytest.importorskip("openai", reason="needs the extra openai")
    server.clear()
    done = ask(server, tmp_path, {"base_url": f"/{TOKEN}/v1", "endpoint": "lab"})
    assert "Traceback" not in done.stderr and "Report:" in done.stdout, done.stderr
    assert server.seen and TOKEN.encode() not in written(tmp_path)
    assert not [
        path for path in (tmp_path / "runs").rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]
    assert "looks like" not in call(tmp_path, "cache", "verify").stdout


def test_store_that_has_one_is_warned_about(tmp_path):
    assert call(tmp_path, *RUN, "--model", "simulated-fair").returncode == 0
    for words in (["cache", "verify"], ["cache", "export"], ["score"]):
        assert "looks like a secret" not in call(tmp_path, *words).stdout
    url = f"https://gateway.example/{TOKEN}/v1"
    changes = {
        "UPDATE run SET manifest = json_set(manifest, '$.identities.subject.settings.endpoint', ?)": [
            ["cache", "export", "--force"],
            ["score"],
        ],
        # Its digest is that of the identity as it was: what is damaged is neither exported nor scored.
        "UPDATE model SET identity = json_set(identity, '$.settings.endpoint', ?)": [["cache", "verify"]],
    }
    for change, commands in changes.items():
        with sqlite3.connect(tmp_path / "prejudge.db") as store:
            store.execute(change, (url,))
        store.close()
        reseal(tmp_path / "prejudge.db")
        for words in commands:
            done = call(tmp_path, *words)
            said = " ".join(done.stdout.split())
            assert "looks like a secret" in said and TOKEN not in said, words


def test_models_and_studies_of_the_package_are_no_secrets(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    catalogue = Catalogue.load()
    for name, model in catalogue.registry.models.items():
        assert secret_place(model.settings) is None, name
    for name in catalogue.registry.studies:
        catalogue.study(name, {}, {})


def ask(server: ChaosServer, folder: Path, settings: dict[str, Any]) -> Done:
    address = f"http://127.0.0.1:{server.port}"
    known = {"model": "m", "api_key_env": "", **settings, "base_url": address + settings.get("base_url", "/v1")}
    lines = "\n".join(f"{name} = {toml(value)}" for name, value in known.items())
    (folder / "mine.toml").write_text(f'[models.mine]\nadapter = "openai"\n[models.mine.settings]\n{lines}\n')
    return call(folder, *RUN, "--model", "mine", "--registry", "mine.toml")


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(inner)}" for name, inner in value.items()) + " }"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


def written(folder: Path) -> bytes:
    return b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.suffix != ".toml")
