"""A server that fails on demand, and the adapter `openai` in front of it."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.contracts.adapter import Services

from ..real_servers import serve_python

if any(find_spec(package) is None for package in ("openai", "aiohttp")):
    # The extra 'openai' is not installed: there is nothing to test here.
    collect_ignore_glob = ["test_*.py"]
else:
    # Shared by several test modules; under importlib mode a test folder is no package to import from.
    _spec = importlib.util.spec_from_file_location("fault_server", Path(__file__).parents[1] / "fault_server.py")
    assert _spec and _spec.loader
    fault_server = sys.modules.setdefault("fault_server", importlib.util.module_from_spec(_spec))
    if not hasattr(fault_server, "FaultServer"):
        _spec.loader.exec_module(fault_server)

KEY = "sk-test-Zq9/very+secret=key~0123456789"


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Return `start(code, words, health)`, which gives the address of a server that ends with the tests."""
    with ExitStack() as running:

        def start(code: str, words: Sequence[str], health: str) -> str:
            log = tmp_path_factory.mktemp("server") / "log"
            return running.enter_context(serve_python(code, words, health, log))

        yield start


@pytest.fixture(scope="session")
def _server() -> Iterator[Any]:
    server = fault_server.FaultServer()
    yield server
    server.close()


@pytest.fixture
def server(_server: Any) -> Any:
    """Return a server without a history that answers well."""
    _server.plan, _server.seen, _server.delay, _server.model = [], [], 0.0, fault_server.answer_well
    _server.busy = _server.most_busy = 0
    return _server


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the key, which stands in the environment; nothing else of OpenAI's does."""
    for name in ("OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return KEY


@pytest.fixture(params=["lean", "sdk"])
def transport(request: pytest.FixtureRequest) -> str:
    """Return each way to send a request."""
    return str(request.param)


@pytest.fixture
def ask(server: Any) -> Callable[..., list[Any]]:
    """Return `ask(*requests, **settings)`: the answers and errors of the adapter in front of the server."""

    async def once(requests: tuple[Any, ...], settings: dict[str, Any], hooks: dict[str, Any]) -> list[Any]:
        adapter = OpenAIApi(
            OpenAIOptions(**{"model": "tiny", "base_url": server.url, "api_key_env": "OPENAI_API_KEY", **settings})
        )
        adapter.bind(Services(**hooks))
        try:
            return list(await adapter.answer(requests))
        finally:
            await adapter.aclose()

    def run(*requests: Any, blobs: Any = None, keep: Any = None, **settings: Any) -> list[Any]:
        return asyncio.run(once(requests, settings, {"blobs": blobs, "keep": keep}))

    return run
