"""`openai`: every way an endpoint can fail is one clear line and a decision, over either transport."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
import time
from typing import Any

import pytest

from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.contracts.errors import (
    AuthenticationError,
    ModelError,
    PermanentError,
    RateLimitError,
    TransientError,
)
from prejudge.core.contracts.records import Draw, Embed, Generate, Generation, Message, Sampling, Text
from prejudge.testing import ChaosServer, Reply
from prejudge.testing.chaos.tiny import chat, problem

QUESTION = Generate(messages=(Message("user", (Text("q"),)),))
PICTURE = Draw(prompt="p", seed=1, width=64, height=64)


def fail(ask: Any, server: Any, answer: Reply, **settings: Any) -> ModelError:
    server.plan = [answer]
    (error,) = ask(QUESTION, **settings)
    assert isinstance(error, ModelError)
    assert "\n" not in str(error)
    assert len(str(error)) < 500
    return error


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504, 529])
def test_server_trouble_is_transient(ask, server, transport, status):
    error = fail(ask, server, Reply(status, problem(None, "try later")), transport=transport)
    assert type(error) is TransientError
    assert error.code == "endpoint.server" and str(status) in str(error)
    assert "try later" in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"), [({"Retry-After": "7"}, 7.0), ({"x-ratelimit-reset-tokens": "9s"}, None)]
)
def test_server_trouble_carries_the_wait(ask, server, transport, headers, seconds):
    error = fail(ask, server, Reply(503, problem(None), headers), transport=transport)
    assert type(error) is TransientError and error.retry_after == seconds


@pytest.mark.parametrize(
    ("said", "param", "mend"),
    [
        ("Unsupported value: 'temperature' does not support 0.2 with this model.", None, ["temperature"]),
        ("Sampling parameters are fixed for this model.", "temperature", ["temperature"]),
        ("`temperature` and `top_p` cannot both be specified.", None, ["temperature", "top_p"]),
        ("Unsupported parameter: 'stop' is not supported with this model.", "stop", ["stop"]),
        ("'max_tokens' is not supported. Use 'max_completion_tokens' instead.", "max_tokens", ["max_tokens_field"]),
        ("'min_p' is no field of ours.", None, None),
        ("Please stop.", None, None),
    ],
)
def test_refused_field_is_named_with_the_mend(ask, server, transport, said, param, mend):
    server.plan = [Reply(400, {"error": {"message": said, "type": "invalid_request_error", "param": param}})]
    wish = Sampling(temperature=0.2, top_p=0.5, max_tokens=9, stop=("x",))
    (error,) = ask(Generate(messages=QUESTION.messages, sampling=wish), transport=transport)
    assert type(error) is PermanentError and error.code == "endpoint.refused"
    assert error.fields.get("mend") == mend and (mend is None or mend[0] in str(error).removeprefix(said))


@pytest.mark.parametrize(
    "body",
    [
        problem("invalid_prompt", "Invalid prompt: your prompt was flagged as potentially violating our usage policy."),
        problem("invalid_request_error", "Output blocked by content filtering policy"),
    ],
)
def test_filter_without_a_code_of_its_own_is_an_outcome(ask, server, transport, body):
    server.plan = [Reply(400, body)]
    (answer,) = ask(QUESTION, transport=transport)
    assert isinstance(answer, Generation) and answer.status == "filtered" and answer.reply


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        "Input tokens exceed the configured limit: the context window of this model is 272000 tokens.",
        "prompt is too long: 212000 tokens > 200000 maximum",
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        "Input is too long for requested model.",
        "the request exceeds the available context size, try increasing it",
    ],
)
def test_prompt_beyond_the_context_has_the_code_of_local_models(ask, server, transport, said):
    error = fail(ask, server, Reply(400, problem("invalid_request_error", said)), transport=transport)
    assert type(error) is PermanentError and error.code == "request.too-long"


@pytest.mark.parametrize("status", [400, 413, 422])
def test_refused_request_is_permanent(ask, server, transport, status):
    error = fail(ask, server, Reply(status, problem("bad", "unknown field 'x'")), transport=transport)
    assert type(error) is PermanentError
    assert error.code == "endpoint.refused" and "unknown field 'x'" in str(error)


@pytest.mark.parametrize(("status", "code"), [(401, "endpoint.key"), (403, "endpoint.key"), (402, "endpoint.account")])
def test_refused_key_stops_the_run(ask, server, transport, status, code):
    error = fail(ask, server, Reply(status, problem(None)), transport=transport)
    assert type(error) is AuthenticationError and error.code == code


def test_used_up_quota_stops_the_run(ask, server, transport):
    error = fail(ask, server, Reply(429, problem("insufficient_quota"), {"retry-after": "1"}), transport=transport)
    assert type(error) is AuthenticationError
    assert error.code == "endpoint.account"


def test_unknown_model_is_named(ask, server):
    error = fail(ask, server, Reply(404, problem("model_not_found", "no such model")), model="gpt-9")
    assert type(error) is PermanentError
    assert error.code == "endpoint.not-found" and "'gpt-9'" in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"), [({}, None), ({"Retry-After": "7"}, 7.0), ({"retry-after-ms": "250"}, 0.25)]
)
def test_rate_limit_carries_the_wait(ask, server, transport, headers, seconds):
    error = fail(ask, server, Reply(429, problem("rate_limit_exceeded"), headers), transport=transport)
    assert isinstance(error, RateLimitError)
    assert error.retry_after == seconds
    assert error.code == "endpoint.rate-limit"


def test_slow_answer_is_transient(ask, server, transport):
    began = time.monotonic()
    error = fail(ask, server, Reply(body=chat("late"), delay=1.0), transport=transport, timeout_seconds=0.2)
    assert type(error) is TransientError
    assert error.code == "endpoint.timeout" and "0.2 s" in str(error)
    assert time.monotonic() - began < 5


def test_cut_connection_is_transient(ask, server, transport):
    error = fail(ask, server, Reply(way="cut"), transport=transport)
    assert type(error) is TransientError
    assert error.code == "endpoint.connection"


def test_half_answer_is_transient(ask, server, transport):
    error = fail(ask, server, Reply(body=chat("x" * 2000), way="half"), transport=transport)
    assert type(error) is TransientError
    assert error.code == "endpoint.connection"


def test_broken_json_is_transient(ask, server, transport):
    error = fail(ask, server, Reply(body='{"choices": ['), transport=transport)
    assert type(error) is TransientError
    assert error.code == "endpoint.not-json"


def test_page_in_place_of_json_is_transient(ask, server, transport):
    error = fail(ask, server, Reply(body="<html>log in</html>", content_type="text/html"), transport=transport)
    assert type(error) is TransientError
    assert error.code == "endpoint.not-json" and "text/html" in str(error)
    assert "<html>" not in str(error)


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"choices": [{"text": 3}]}', b"\xff\xfe"])
def test_json_that_is_no_answer_is_transient(ask, server, body):
    assert type(fail(ask, server, Reply(body=body))) is TransientError


def test_error_wrapped_in_success_keeps_its_meaning(ask, server):
    error = fail(ask, server, Reply(200, {"error": {"code": 429, "message": "upstream is busy"}}))
    assert isinstance(error, RateLimitError)


@pytest.mark.parametrize("body", [{"detail": "not here"}, {"message": "not here"}, {"error": "not here"}])
def test_other_shapes_of_errors_are_read(ask, server, body):
    assert "not here" in str(fail(ask, server, Reply(400, body)))


def test_redirect_is_not_followed(ask, server, transport):
    error = fail(ask, server, Reply(308, "", {"Location": server.url + "/other"}), transport=transport)
    assert type(error) is PermanentError
    assert len(server.seen) == 1
    assert error.code == "endpoint.redirect"


def test_refusing_port_is_transient(ask, transport):
    (error,) = ask(QUESTION, base_url="http://127.0.0.1:1/v1", transport=transport)
    assert type(error) is TransientError
    assert error.code == "endpoint.unreachable"


def test_unknown_host_is_transient(ask, transport):
    (error,) = ask(QUESTION, base_url="http://no-such-host.invalid/v1", transport=transport)
    assert type(error) is TransientError
    assert error.code == "endpoint.unreachable"


@pytest.fixture
def secure_server(tmp_path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    pem = tmp_path / "own.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*command, "-keyout", pem, "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "cert.pem", pem)
    with ChaosServer(tls=context) as server:
        yield server


def test_untrusted_certificate_is_permanent(ask, secure_server, transport):
    (error,) = ask(QUESTION, base_url=secure_server.url, transport=transport)
    assert type(error) is PermanentError
    assert error.code == "endpoint.certificate" and "SSL_CERT_FILE" in str(error)
    assert not secure_server.seen


def test_plain_server_behind_https_is_transient(ask, server, transport):
    (error,) = ask(QUESTION, base_url=server.url.replace("http:", "https:"), transport=transport)
    assert type(error) is TransientError


def test_nothing_is_retried(ask, server, transport):
    server.plan = [Reply(500, problem(None))]
    ask(QUESTION, transport=transport)
    assert len(server.seen) == 1


def test_one_failure_leaves_the_others(ask, server):
    server.plan = [Reply(500, problem(None))]
    answers = ask(*[QUESTION] * 5)
    assert sum(isinstance(answer, TransientError) for answer in answers) == 1


def test_filter_without_a_text_is_permanent(ask, server):
    server.plan = [Reply(400, problem("content_filter"))]
    (error,) = ask(Embed(text="q"))
    assert isinstance(error, PermanentError)


def test_connections_stay_within_concurrency(ask, server, transport):
    server.delay = 0.02
    ask(*[QUESTION] * 12, transport=transport, concurrency=3)
    assert server.most_busy == 3


def test_cancelled_call_frees_its_connection(server):
    async def cancel_one() -> str:
        adapter = OpenAIApi(
            OpenAIOptions(model="tiny", base_url=server.url, api_key_env="OPENAI_API_KEY", concurrency=1)
        )
        server.plan = [Reply(body=chat("never"), delay=30)]
        task = asyncio.create_task(adapter.generate(QUESTION))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        answer = await asyncio.wait_for(adapter.generate(QUESTION), 5)
        await adapter.aclose()
        return answer.text

    assert asyncio.run(cancel_one()) == "Q"


def test_closed_adapter_says_so(server):
    async def close_first() -> None:
        adapter = OpenAIApi(OpenAIOptions(model="tiny", base_url=server.url, api_key_env="OPENAI_API_KEY"))
        await adapter.aclose()
        await adapter.aclose()
        await adapter.generate(QUESTION)

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(close_first())


@pytest.mark.parametrize("compressed", [False, True])
def test_reply_of_any_size_is_not_read(ask, server, transport, compressed):
    body = json.dumps(chat("x" * (3 << 20))).encode()
    headers = {"Content-Encoding": "gzip"} if compressed else {}
    server.plan = [Reply(body=gzip.compress(body) if compressed else body, headers=headers) for _ in range(2)]
    (answer,) = ask(QUESTION, transport=transport, reply_mib=1)
    assert isinstance(answer, PermanentError) and answer.code == "endpoint.too-large" and "1 MiB" in str(answer)
    assert answer.__cause__ is None and answer.__context__ is None
    (answer,) = ask(QUESTION, transport=transport, reply_mib=4)
    assert answer.text == "x" * (3 << 20)


def test_image_may_be_larger_than_a_text(ask, server, transport):
    server.plan = [Reply(500, "x" * (3 << 20)), Reply(500, "x" * (9 << 20))]
    codes = [ask(PICTURE, transport=transport, reply_mib=1)[0].code for _ in range(2)]
    assert codes == ["endpoint.server", "endpoint.too-large"]
