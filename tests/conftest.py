"""Fixtures every test may use."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from .command import blank_figure
from .kinds import KINDS, Watch, is_of, kinds_of
from .quick import UNTIL

# Threads cost more than they give on models this small; torch reads it when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

HERE = Path(__file__).resolve().parent
Rows = Sequence[dict[str, Any]]
SIGNS = {"positive": 1.0, "negative": -1.0, "neutral": 0.0}


def pytest_configure(config: pytest.Config) -> None:
    """Name the kinds of tests, and watch over `make quick`."""
    for kind, what in KINDS.items():
        config.addinivalue_line("markers", f"{kind}: {what}; see tests/kinds.py")
    config.addinivalue_line("markers", "soak: repeats for long what a test of `make test` does; `make soak` runs it")
    if UNTIL in os.environ:
        config.pluginmanager.register(Quick(float(os.environ[UNTIL])))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collection, which finds none there and takes a sixth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test with its kinds; what is slow begins first, so that no process waits for another at the end.

    `make quick` begins it last. Tests for `make soak` are left out where nobody asks for them.
    """
    for item in items:
        values = getattr(item, "callspec", None)
        place = f"{_place(item.path)}::{item.name}"
        for kind in kinds_of(place, getattr(item, "fixturenames", ()), values.params.values() if values else ()):
            item.add_marker(kind)
    last = UNTIL in os.environ
    items.sort(key=lambda item: [is_of(_place(item.path), [kind]) is last for kind in ("slow", "models", "servers")])
    if "soak" not in config.option.markexpr:
        soak = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=soak)
        items[:] = [item for item in items if item not in set(soak)]


def pytest_runtest_setup() -> None:
    """Leave what was imported out of garbage collection: adapters collect when they close, half a second each time."""
    if len(sys.modules) > _frozen[-1]:
        _frozen.append(len(sys.modules))
        gc.freeze()


_frozen = [0]
"""How many modules there were when garbage collection was last told to leave things alone."""


@cache
def _place(path: Path) -> str:
    return path.relative_to(HERE).as_posix() if path.is_relative_to(HERE) else ""


class Quick:
    """Ends `make quick` in its time, and warns of tests that are not quick."""

    def __init__(self, until: float) -> None:
        self._until, self._watch = until, Watch()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Leave out what would begin too late."""
        if time.time() > self._until:
            pytest.skip("the time of `make quick` is over: `make test` runs this")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Warn of a test that needs a kind and has none: a slow machine fails no test."""
        self._watch.begin()
        result = yield
        if (advice := self._watch.advice()) and not any(map(item.get_closest_marker, KINDS)):
            with warnings.catch_warnings():
                warnings.simplefilter("always")  # this warning is no error
                item.warn(pytest.PytestWarning(advice))
        return result


@pytest.fixture(scope="module")
def no_figures() -> Iterator[None]:
    """Write figures without drawing them, which takes longer than most runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.savefig", blank_figure)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of published data beside the checkout, or skip."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PREJUDGE_SHARED_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"published data is not at {folder} (set PREJUDGE_SHARED_DATA)")
    return folder


def two_rows(pair: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Turn one pair with its `difference` into its two rows; `status` belongs to the undesirable side."""
    cell = {"axis": "height", "gender": "women", "sentiment": "positive", "template": "t", "attribute": None} | {
        key: value for key, value in pair.items() if key not in ("difference", "status")
    }
    status = pair.get("status", "ok")
    second = -30.0 if status == "ok" else None
    return [
        {"pair": name, "side": "desirable", "log_probability": -30.0 + pair.get("difference", 0.0), "status": "ok"}
        | cell
        | {"key": f"{name}d".encode()},
        {"pair": name, "side": "undesirable", "log_probability": second, "status": status}
        | cell
        | {"key": f"{name}u".encode()},
    ]


@pytest.fixture(scope="session")
def observed() -> Callable[[Rows], pl.DataFrame]:
    """Return a function from pairs to observations."""

    def build(pairs: Rows) -> pl.DataFrame:
        rows = [row for number, pair in enumerate(pairs) for row in two_rows(pair, f"p{number}")]
        return pl.DataFrame(rows, schema_overrides={"attribute": pl.String, "log_probability": pl.Float64})

    return build


@pytest.fixture(scope="session")
def study() -> Callable[..., pl.DataFrame]:
    """Return a function that simulates a study: D = effect * sign of the context + template + noise."""

    def build(effect: float = 0.0, templates: int = 12, size: int = 6, seed: int = 0) -> pl.DataFrame:
        rng = np.random.default_rng(seed)
        cells = [
            {"axis": axis, "gender": gender, "sentiment": sentiment, "template": f"{axis}{template}"}
            for axis in ("skin complexion", "height")
            for gender in ("women", "men")
            for sentiment in SIGNS
            for template in range(templates)
        ]
        table = pl.DataFrame(cells).with_columns(mean=pl.Series(rng.normal(0, 0.5, len(cells))))
        table = table.select(pl.all().repeat_by(size)).explode(pl.all()).with_row_index("pair")
        noise = pl.Series(rng.normal(0, 1, table.height))
        sign = pl.col("sentiment").replace_strict(SIGNS, return_dtype=pl.Float64)
        table = table.with_columns(pl.col("pair").cast(pl.String), d=pl.col("mean") + sign * effect + noise)
        sides = [
            table.with_columns(side=pl.lit(side), status=pl.lit("ok"), log_probability=pl.lit(-30.0) + score)
            for side, score in (("desirable", pl.col("d")), ("undesirable", pl.lit(0.0)))
        ]
        return pl.concat(sides).drop("d", "mean")

    return build


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Start the machine's own Chromium. Playwright keeps an event loop in this thread, so it ends with the module."""
    sync_api = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip(f"no Chromium on the PATH ({', '.join(names)}): the page is not tried in a browser")
    sync_api.expect.set_options(timeout=60_000)  # 5 s are too few where other work keeps all processors busy
    with sync_api.sync_playwright() as driver, driver.chromium.launch(executable_path=program) as started:
        yield started
