"""The stand-in for vLLM, and ways to ask the adapter that runs on it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from prejudge.adapters.vllm.adapter import VLLM
from prejudge.adapters.vllm.engine import INVARIANT
from prejudge.adapters.vllm.options import VLLMOptions
from prejudge.core.contracts.adapter import Services

FAKE = Path(__file__).parent / "fake"


def _forget():
    for name in [name for name in sys.modules if name == "vllm" or name.startswith("vllm.")]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    """Put the stand-in in the place of vLLM, freshly imported."""
    _forget()
    before = os.environ.pop(INVARIANT, None)
    monkeypatch.syspath_prepend(str(FAKE))
    yield
    _forget()
    os.environ.pop(INVARIANT, None)
    if before is not None:
        os.environ[INVARIANT] = before


def make(folder, **options):
    return VLLM(VLLMOptions(model=str(folder), **options))


async def ask_all(adapter, requests):
    """Return the answers to requests of several kinds, in order: a batch is of one kind."""
    found = {}
    for kind in dict.fromkeys(map(type, requests)):
        places = [place for place, request in enumerate(requests) if type(request) is kind]
        found.update(zip(places, await adapter.answer([requests[place] for place in places]), strict=True))
    return [found[place] for place in range(len(requests))]


@pytest.fixture
def ask():
    """Return `ask(folder, requests, blobs=, **options)`."""

    def ask(folder, requests, blobs=None, **options):
        async def run():
            adapter = make(folder, **options)
            adapter.services = Services(blobs=blobs)
            try:
                return await ask_all(adapter, requests)
            finally:
                await adapter.aclose()

        return asyncio.run(run())

    return ask


def engines():
    """Return the engines that were started since the import."""
    from vllm.engine import STARTED

    return STARTED
