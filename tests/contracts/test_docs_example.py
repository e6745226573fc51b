"""The adapter that docs/adapters/new.md shows works against a real HTTP server and passes the contract kit."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import sys
import tomllib
import types
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from prejudge.core.contracts.abilities import Need, methods_of
from prejudge.core.contracts.errors import PermanentError, RateLimitError, TransientError
from prejudge.core.contracts.records import Generate, Image, Message, Sampling, Text
from prejudge.testing import AdapterContract

pytest.importorskip("aiohttp", reason="the example is built on aiohttp")
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adapters" / "new.md"
EXAMPLE, CHOOSER, KIT = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
RULES = [name for name in dir(AdapterContract) if name.startswith("test_")]
NEEDS_MORE = {
    "test_identity_is_stable_across_processes",
    "test_identity_changes_with_the_answers",
    "test_identity_keeps_through_the_rest",
}
"""Rules of settings that the page's class does not set."""


class Model(BaseHTTPRequestHandler):
    """Answers with the prompt in capitals; a prompt that is a number is answered with that status."""

    def do_POST(self) -> None:
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        body = json.dumps({"text": prompt.upper()}).encode()
        self.send_response(int(prompt) if prompt.isdigit() else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return None


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(EXAMPLE, str(PAGE), "exec"), names)
    return names


def ask(text: str) -> Generate:
    return Generate(messages=(Message("user", (Text(text),)),), sampling=Sampling(temperature=0.0))


def answers(example: dict[str, Any], url: str, *requests: Any) -> list[Any]:
    async def run() -> list[Any]:
        adapter = example["MyModel"](example["MyOptions"](url=url, model="tiny"))
        try:
            return list(await adapter.answer(requests))
        finally:
            await adapter.aclose()

    return asyncio.run(run())


def test_example_is_short():
    written = [line for line in EXAMPLE.splitlines() if line.strip()]
    assert len(written) < 80


def test_example_needs_what_its_extra_installs():
    """Of other packages it imports those that the package needs, or that the extra on the page names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (extra,) = set(re.findall(r"pip install 'prejudge\[(\w+)\]'", PAGE.read_text("utf-8")))
    extras = project["optional-dependencies"]
    own = extras[extra] + [
        one for other in re.findall(r"prejudge\[(\w+)\]", " ".join(extras[extra])) for one in extras[other]
    ]
    named = [*project["dependencies"], *own]
    given = {re.match(r"[\w-]+", requirement)[0].lower() for requirement in named}
    nodes = [*ast.walk(ast.parse(EXAMPLE))]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    foreign = {name.partition(".")[0] for name in imported} - sys.stdlib_module_names - {"prejudge"}
    assert foreign and foreign <= given


def test_example_answers(example, url):
    assert [answer.text for answer in answers(example, url, ask("yes"), ask("no"))] == ["YES", "NO"]


@pytest.mark.parametrize(
    ("status", "error"), [("429", RateLimitError), ("400", PermanentError), ("500", TransientError)]
)
def test_status_becomes_a_typed_error(example, url, status, error):
    first, second = answers(example, url, ask(status), ask("yes"))
    assert type(first) is error and second.text == "YES"


def test_dead_server_is_a_transient_error(example):
    (answer,) = answers(example, "http://127.0.0.1:9", ask("yes"))
    assert isinstance(answer, TransientError)


def test_image_is_a_permanent_error(example, url):
    (answer,) = answers(example, url, Generate(messages=(Message("user", (Image("0" * 64),)),)))
    assert isinstance(answer, PermanentError)


@pytest.mark.parametrize("rule", sorted(set(RULES) - NEEDS_MORE))
def test_example_keeps_the_contract(example, rule, monkeypatch):
    """Run the page's own test class, on the page's own adapter."""
    monkeypatch.setitem(sys.modules, "my_package", types.ModuleType("my_package"))
    vars(sys.modules["my_package"]).update(example)
    names: dict[str, Any] = {}
    exec(compile(KIT, str(PAGE), "exec"), names)
    getattr(names["TestMyModel"](), rule)()


def test_example_can_do_what_it_overrides(example):
    assert methods_of(example["MyModel"]) == {"generate"}


def test_example_of_abilities_says_what_is_missing(example):
    names = dict(example)
    exec(compile(CHOOSER, str(PAGE), "exec"), names)
    able = names["MyChooser"].abilities(None)
    assert able.missing(Need(operation="generate", fields=frozenset({"top_k"}))) == ""
    assert "text only" in able.missing(Need(operation="generate", images=True))
