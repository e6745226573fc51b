"""Requests to Bedrock are signed as AWS documents it; the signature is computed here again, without botocore."""

from __future__ import annotations

import hashlib
import hmac
import json
from urllib.parse import quote

import pytest

from prejudge.core.contracts.errors import AuthenticationError, UsageError
from prejudge.core.contracts.records import Generate, Message, Text
from prejudge.testing import Reply, raises_code

from .documented import PROVIDERS, told

pytest.importorskip("botocore", reason="botocore is not installed")
QUESTION = Generate(messages=(Message("user", (Text("Who?"),)),))
ACCESS, SECRET, TOKEN = (
    "AKIAEXAMPLE0123456",
    "wJalr/XUtnFEMI+K7MDENG=bPxRfiCYEXAMPLEKEY",
    "FwoGZXIvYXdzEBYaDExampleToken0123456789",
)


@pytest.fixture
def credentials(monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name, value in (("ACCESS_KEY_ID", ACCESS), ("SECRET_ACCESS_KEY", SECRET), ("SESSION_TOKEN", TOKEN)):
        monkeypatch.setenv(f"AWS_{name}", value)


def sign(path: str, host: str, moment: str, body: bytes) -> str:
    """Return the signature (AWS Signature Version 4: canonical request, string to sign, signing key)."""
    headers = {"content-type": "application/json", "host": host, "x-amz-date": moment, "x-amz-security-token": TOKEN}
    names = ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    canonical = "\n".join(("POST", quote(path, safe="/-_.~"), "", lines, names, hashlib.sha256(body).hexdigest()))
    scope = f"{moment[:8]}/eu-central-1/bedrock/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


@pytest.mark.parametrize("model", ["tiny", "eu.anthropic.claude-sonnet-4-v1:0", "arn:aws:bedrock:eu:1:model/abc def"])
def test_signature_is_the_one_that_aws_computes(ask, server, credentials, model):
    server.plan = [told(PROVIDERS["bedrock"].answer("A."))]
    (answer,) = ask("bedrock", QUESTION, api_key_env="-", model=model)
    assert answer.text == "A."
    seen = server.seen[0]
    path = f"/model/{quote(model, safe='')}/converse"
    assert seen.path == path
    body = json.dumps(seen.body, separators=(",", ":"), ensure_ascii=False).encode()
    host, moment = server.url.split("/")[2], seen.headers["X-Amz-Date"]
    assert seen.headers["X-Amz-Security-Token"] == TOKEN
    assert seen.headers["Authorization"].endswith(f"Signature={sign(path, host, moment, body)}")


def test_secrets_of_aws_are_hidden(ask, server, credentials):
    server.plan = [
        Reply(403, {"message": f"token {TOKEN} of {SECRET} has expired"}),
        told(PROVIDERS["bedrock"].answer(TOKEN)),
    ]
    refused, echoed = (ask("bedrock", QUESTION, api_key_env="-")[0] for _ in range(2))
    assert isinstance(refused, AuthenticationError) and echoed.code == "endpoint.key-echoed"
    assert not any(text in f"{refused!r} {echoed!r}" for text in (TOKEN, SECRET))


def test_no_credentials_stop_the_run(ask, server, credentials, monkeypatch):
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"):
        monkeypatch.delenv(f"AWS_{name}")
    (error,) = ask("bedrock", QUESTION, api_key_env="-")
    assert isinstance(error, AuthenticationError) and error.code == "endpoint.key-missing" and not server.seen


def test_region_must_be_named(ask, credentials, monkeypatch):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with raises_code(UsageError, "options.missing", "region"):
        ask("bedrock", QUESTION, api_key_env="-", region="-")


def test_unknown_profile_is_named(ask, credentials):
    with raises_code(UsageError, "options.value", "nobody"):
        ask("bedrock", QUESTION, api_key_env="-", profile="nobody")


def test_address_is_that_of_the_region(ask, credentials):
    from prejudge.adapters.bedrock.adapter import Bedrock
    from prejudge.adapters.bedrock.options import BedrockOptions

    adapter = Bedrock(BedrockOptions(model="m", region="ap-south-1"))
    assert adapter.identity.settings["endpoint"] == "https://bedrock-runtime.ap-south-1.amazonaws.com"
    assert SECRET not in f"{adapter.identity!r} {adapter!r}"


def test_server_that_wants_no_key_gets_no_signature(ask, server, credentials, monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", TOKEN)
    server.plan = [told(PROVIDERS["bedrock"].answer("A."))]
    (answer,) = ask("bedrock", QUESTION, api_key_env="")
    assert answer.text == "A."
    sent = {name.lower() for name in server.seen[0].headers}
    assert not sent & {"authorization", "x-amz-date", "x-amz-security-token"}


@pytest.mark.parametrize("region", ["evil.example/x", "EU", "eu central"])
def test_region_is_no_part_of_another_address(ask, server, credentials, region):
    with raises_code(UsageError, "options.value"):
        ask("bedrock", QUESTION, api_key_env="-", region=region)
    assert not server.seen
