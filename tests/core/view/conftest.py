"""A room over a store whose answers a test gives."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import fakes
import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

from prejudge.core.contracts.records import Generation
from prejudge.core.store import get_run
from prejudge.core.view.app import application
from prejudge.core.view.desk import sample_pages
from prejudge.core.view.room import Room
from prejudge.core.view.serve import serve

SAID = ("Yes, she is.", "", "No, he is not.", "I cannot say.")


@pytest.fixture
def room(catalogue, store, tmp_path):
    return Room(store, catalogue, tmp_path / "runs", tmp_path / "cache")


@pytest.fixture
def answered(run_study, store):
    """Return a function that makes a run with these answers by number, and returns the run."""

    def make(said: Any = lambda number: SAID[number % len(SAID)], name: str = "told", **options: Any) -> Any:
        fakes.FakeModel.script = lambda request, _: _given(said(int(fakes.text_of(request).split()[1])))
        # In a thread of its own: Playwright keeps an event loop in this one.
        with ThreadPoolExecutor(1) as other:
            other.submit(run_study, name=name, **options).result()
        return get_run(store, name)

    return make


def _given(answer: Any) -> Any:
    return Generation(text=answer) if isinstance(answer, str) else answer


@pytest.fixture
def client(room):
    return TestClient(application(room))


@pytest.fixture
def served(room):
    """Serve the room as the command does with --no-open; return its start link and port."""
    yield from _served(room)


@pytest.fixture
def served_to_browser(room, monkeypatch):
    """Serve the room as the command does; return its start link and port, and what the browser was opened at."""
    urls: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: not urls.append(url))
    for served in _served(room, browser=True):
        yield served, urls


def _served(room, **how):
    told: list[Any] = []
    ready = lambda *what: told.extend(what)  # noqa: E731
    application_ = application(room, sample_pages(room.runs.parent / "samples"))
    thread = threading.Thread(target=serve, args=(application_, 0, "/", ready), kwargs=how, daemon=True)
    thread.start()
    while len(told) < 2 or not told[1].started:
        time.sleep(0.01)
    link, server = told
    port = int(link.split(":")[2].split("/")[0])
    yield SimpleNamespace(link=link, port=port, base=f"http://127.0.0.1:{port}")
    server.should_exit = True
    thread.join(240)
