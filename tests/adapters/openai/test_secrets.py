"""`openai`: the key is in no store, log, exception, identity or repr, whatever a server echoes."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

import polars as pl
import pytest

from prejudge.adapters.endpoint.scrub import Scrubber
from prejudge.adapters.endpoint.wire import Endpoint
from prejudge.adapters.openai.account import Account
from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.catalogue.plugins import Plugged, Plugins, Registered
from prejudge.core.catalogue.registry import ModelEntry, Registry, StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Options, Probe, Stage, Trial
from prejudge.core.contracts.errors import AuthenticationError, ModelError, PermanentError, TransientError, UsageError
from prejudge.core.contracts.records import AnyResponse, Generate, Generation, Message, Request, Scalar, Text
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.report.output import write_output
from prejudge.core.scoring.score import score
from prejudge.core.store import Store, statistics
from prejudge.testing import Reply
from prejudge.testing.chaos.tiny import chat, problem

QUESTION = Generate(messages=(Message("user", (Text("q"),)),))


def forms(key: str) -> list[str]:
    return [key, quote(key, safe=""), base64.b64encode(key.encode()).decode(), f"Bearer {key}"]


def assert_absent(text: str, key: str) -> None:
    assert not [form for form in forms(key) if form in text]


class AskStage(Stage):
    operation: ClassVar[type[Request]] = Generate
    factors = ("number",)
    outcomes = ("length",)

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        for number in range(4):
            request = Generate(messages=(Message("user", (Text(f"question {number}"),)),))
            yield Trial(f"t{number}", {"number": number}, request)

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar]:
        assert isinstance(response, Generation)
        return {"length": len(response.text)}


class AskProbe(Probe):
    options = Options

    def stages(self, options: Options) -> Sequence[Stage]:
        return [AskStage()]


def run_study(server: Any, store: Store) -> Catalogue:
    settings = {"model": "tiny", "base_url": server.url, "api_key_env": "OPENAI_API_KEY", "concurrency": 1}
    registry = Registry(
        models={"tiny": ModelEntry(adapter="openai", settings=settings)},
        studies={"ask": StudyEntry(probe="ask", metrics={}, title="Asking")},
    )
    plugins = Plugins(registry, found=[])
    for kind, name, thing in (("adapter", "openai", OpenAIApi), ("probe", "ask", AskProbe)):
        plugins.offers[kind][name] = Registered(Plugged(name, thing), "tests")
    catalogue = Catalogue(registry, plugins)
    asyncio.run(execute(catalogue, catalogue.study("ask", {"subject": "tiny"}, {}), store, RunOptions()))
    return catalogue


def test_run_leaves_no_key_in_store_log_or_report(server, key, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    server.plan = [
        Reply(400, problem("bad", f"your header was Authorization: Bearer {key}")),
        Reply(500, problem(None, f"key {quote(key, safe='')} broke us")),
        Reply(body=chat(f"You sent me {key} and {base64.b64encode(key.encode()).decode()}")),
    ]
    with Store(tmp_path / "store.db") as store:
        catalogue = run_study(server, store)
        kept = statistics(store)
        report = write_output(score(catalogue, store, "latest"), store, tmp_path / "runs")
    assert "your header was" in report.read_text("utf-8")
    assert (kept["Exchange"], kept["Attempt"]) == (2, 3)
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"question 3" in everything
    assert_absent(everything.decode("latin-1"), key)
    assert_absent(caplog.text, key)


@pytest.mark.parametrize(
    "answer",
    [
        lambda key: Reply(401, problem("invalid_api_key", f"Incorrect API key provided: {key}.")),
        lambda key: Reply(401, f"Authorization: Bearer {key}", content_type="text/plain"),
        lambda key: Reply(500, {"detail": [{"headers": {"authorization": f"Bearer {key}"}}]}),
        lambda key: Reply(429, problem(None, json.dumps({"api_key": key}))),
        lambda key: Reply(way="cut"),
        lambda key: Reply(body=chat("x" * 500), way="half"),
        lambda key: Reply(body=f'{{"{key}'),
        lambda key: Reply(200, key, content_type=f"text/{key.partition('/')[0]}"),
    ],
)
def test_error_holds_no_key(server, key, transport, answer, caplog):
    caplog.set_level(logging.DEBUG)

    async def fail() -> ModelError:
        adapter = OpenAIApi(
            OpenAIOptions(model="tiny", base_url=server.url, api_key_env="OPENAI_API_KEY", transport=transport)
        )
        server.plan = [answer(key)]
        try:
            await adapter.generate(QUESTION)
        except ModelError as error:
            return error
        finally:
            await adapter.aclose()
        raise AssertionError("there was no error")

    error = asyncio.run(fail())
    shown = "".join(traceback.format_exception(error))
    assert_absent(f"{error} {error!r} {vars(error)} {shown} {caplog.text}", key)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_refused_key_ends_the_run_in_one_line(server, key, tmp_path):
    server.plan = [Reply(401, problem("invalid_api_key", f"Incorrect API key provided: {key}"))]
    with Store(tmp_path / "store.db") as store, pytest.raises(AuthenticationError) as caught:
        run_study(server, store)
    assert_absent("".join(traceback.format_exception(caught.value)), key)
    assert len(server.seen) == 1


def test_adapter_shows_no_key(server, key):
    async def shown() -> str:
        adapter = OpenAIApi(OpenAIOptions(model="tiny", base_url=server.url, api_key_env="OPENAI_API_KEY"))
        await adapter.generate(QUESTION)
        await adapter.aclose()
        return f"{adapter!r} {adapter._caller!r} {adapter._options!r} {adapter.identity!r}"

    assert_absent(asyncio.run(shown()), key)


def test_records_show_no_key(key):
    account = Account(key, None, None)
    endpoint = Endpoint(
        address="http://h/v1", headers=account.headers(), connections=1, timeout_seconds=1.0, reply_bytes=1
    )
    assert_absent(f"{account!r}", key)
    assert_absent(f"{endpoint!r} {Scrubber(key)!r} {OpenAIOptions(model='m', api_key_env=key)!r}", key)


@pytest.mark.parametrize(
    "settings", [{"system_prompt": "My key is {}."}, {"extra_body": {"user": ["{}"]}}, {"model": "{}"}]
)
def test_key_in_a_setting_is_refused_unshown(key, settings):
    name, value = settings.popitem()
    filled = json.loads(json.dumps(value).replace("{}", key))
    with pytest.raises(UsageError) as caught:
        OpenAIApi(OpenAIOptions(**{"model": "tiny", name: filled}))
    assert_absent(str(caught.value), key)


@pytest.mark.parametrize(
    "body", [{"api_key": "hunter2"}, {"a": [{"Authorization": "hunter2"}]}, {"h": {"x-api-key": "hunter2"}}]
)
def test_place_of_a_key_in_extra_body_is_refused_unshown(body):
    with pytest.raises(UsageError) as caught:
        OpenAIApi(OpenAIOptions(model="tiny", extra_body=body))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("form", [lambda key: f"the key is {key}.", forms, lambda key: key.encode().hex()])
def test_answer_that_holds_the_key_is_refused(ask, server, key, transport, form):
    said = form(key)
    body = json.dumps(chat(" ".join(said))) if isinstance(said, list) else json.dumps(chat(said))
    if said == key.encode().hex():  # every character of the key behind an escape of JSON
        body = json.dumps(chat("KEY")).replace("KEY", "".join(f"\\u{ord(letter):04X}" for letter in key))
    server.plan = [Reply(body=body)]
    (answer,) = ask(QUESTION, transport=transport)
    assert isinstance(answer, PermanentError) and answer.code == "endpoint.key-echoed"
    assert_absent(f"{answer!r} {vars(answer)}", key)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("test", "A Protestant contest, to test."),
        ("e", "there"),
        ("0123456789abcde", "It is 0123456789abcde."),
        ("sk-0123456789abcdef", "It begins with sk-0123456789abcde and has \\u0041 in it: a/b."),
    ],
)
def test_answer_is_stored_as_it_was_given(server, monkeypatch, tmp_path, own, said):
    monkeypatch.setenv("OPENAI_API_KEY", own)
    server.model = lambda path, body: chat(said)
    with Store(tmp_path / "store.db") as store:
        run_study(server, store)
        with store.engine.connect() as connection:
            kept = connection.exec_driver_sql("SELECT response FROM exchange").scalars().all()
    assert [json.loads(row)["text"] for row in kept] == [said] * 4


@pytest.mark.parametrize(
    "code", ["\N{SUPERSCRIPT TWO}", "4" * 5000, "\u0664\u0660\u0660", None, 3.5, ["404"], {"a": 1}], ids=range(7)
)
def test_error_codes_of_every_kind_are_an_error_of_the_server(ask, server, code):
    server.plan = [Reply(body={"error": {"message": "no", "code": code}})]
    (answer,) = ask(QUESTION)
    assert isinstance(answer, TransientError) and answer.code == "endpoint.server"


@pytest.mark.parametrize("status", [200, 400, 500])
def test_deeply_nested_reply_is_an_error(ask, server, status):
    server.plan = [Reply(status, '{"error":' * 100_000)]
    (answer,) = ask(QUESTION)
    assert isinstance(answer, ModelError)


def test_user_of_a_proxy_is_hidden(ask, server, monkeypatch):
    # The server of these tests stands in for a proxy that refuses.
    monkeypatch.setenv("https_proxy", server.url.removesuffix("/v1").replace("//", "//me:hunter2@"))
    (answer,) = ask(QUESTION, base_url="https://far.example/v1")
    assert isinstance(answer, ModelError)
    assert "hunter2" not in f"{answer!r} {answer.__cause__!r} {answer.__context__!r}"
