"""A server that fails on demand, and the adapters of all dialects in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from prejudge.core.catalogue.plugins import load_target
from prejudge.core.catalogue.trust import built_in_registry
from prejudge.core.contracts.adapter import ModelAdapter, Services
from prejudge.core.contracts.options import build_options
from prejudge.testing import ChaosServer

if find_spec("aiohttp") is None:
    collect_ignore_glob = ["test_d*.py", "test_s*.py"]

KEY = "ek-test-Zq9/very+secret=key~0123456789"
KEYS = ("ANTHROPIC_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "GEMINI_API_KEY", "OPENAI_API_KEY")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the key, which stands in the environment of every provider; nothing else of theirs does."""
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "AWS_PROFILE", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in KEYS:
        monkeypatch.setenv(name, KEY)
    return KEY


def make(adapter: str, server: ChaosServer, **settings: Any) -> ModelAdapter:
    """Return an adapter in front of the server, whose address the key may go to."""
    if find_spec("botocore") is None and adapter == "bedrock":
        pytest.skip("botocore is not installed")
    kind = load_target(built_in_registry().adapters[adapter].target, "tests")
    own = {"region": "eu-central-1"} if adapter == "bedrock" else {}
    address = server.url.removesuffix("/v1")
    key_env = next(name for name in KEYS if name.startswith(adapter[:3].upper() if adapter != "bedrock" else "AWS"))
    values = {"model": "tiny", "base_url": address, "api_key_env": key_env, **own, **settings}
    return kind(build_options("model", kind.options, {name: value for name, value in values.items() if value != "-"}))


@pytest.fixture(params=["lean", "httpx"])
def transport(request: pytest.FixtureRequest) -> str:
    """Return each client."""
    return str(request.param)


@pytest.fixture
def ask(server: ChaosServer, transport: str) -> Callable[..., list[Any]]:
    """Return `ask(adapter, *requests, **settings)`: the answers and errors of an adapter in front of the server."""

    async def once(adapter: ModelAdapter, requests: tuple[Any, ...], services: Services) -> list[Any]:
        adapter.services = services
        try:
            return list(await adapter.answer(requests))
        finally:
            await adapter.aclose()

    def run(adapter: str, *requests: Any, blobs: Any = None, hear: Any = None, **settings: Any) -> list[Any]:
        async def whole() -> list[Any]:
            asked = {"transport": transport, **settings}
            return await once(make(adapter, server, **asked), requests, Services(blobs=blobs, hear=hear))

        return asyncio.run(whole())

    return run
