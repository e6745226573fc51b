"""A server that fails on demand, and the adapter `openai` in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import pytest

from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.contracts.adapter import Services
from prejudge.testing import ChaosServer

from ..real_servers import serve_python

if any(find_spec(package) is None for package in ("aiohttp", "httpx")):
    # A client of endpoints is not installed: there is nothing to test here.
    collect_ignore_glob = ["test_*.py"]

KEY = "sk-test-Zq9/very+secret=key~0123456789"


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Return `start(code, words, health)`, which gives the address of a server that ends with the tests."""
    with ExitStack() as running:

        def start(code: str, words: Sequence[str], health: str) -> str:
            log = tmp_path_factory.mktemp("server") / "log"
            return running.enter_context(serve_python(code, words, health, log))

        yield start


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the key, which stands in the environment; nothing else of OpenAI's does."""
    for name in ("OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return KEY


@pytest.fixture(params=["lean", "httpx"])
def transport(request: pytest.FixtureRequest) -> str:
    """Return each way to send a request."""
    return str(request.param)


@pytest.fixture
def ask(server: ChaosServer) -> Callable[..., list[Any]]:
    """Return `ask(*requests, **settings)`: the answers and errors of the adapter in front of the server."""

    async def once(requests: tuple[Any, ...], settings: dict[str, Any], hooks: dict[str, Any]) -> list[Any]:
        adapter = OpenAIApi(
            OpenAIOptions(**{"model": "tiny", "base_url": server.url, "api_key_env": "OPENAI_API_KEY", **settings})
        )
        adapter.services = Services(**hooks)
        try:
            return list(await adapter.answer(requests))
        finally:
            await adapter.aclose()

    def run(*requests: Any, blobs: Any = None, keep: Any = None, note: Any = None, **settings: Any) -> list[Any]:
        return asyncio.run(once(requests, settings, {"blobs": blobs, "keep": keep, "note": note}))

    return run
