"""`make quick`: which tests belong to what changed, and that it ends in its time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .quick import BASE, ROOT, UNTIL, changed, modules_of

TREE = (
    "core/store/tables.py",
    "core/engine/batch/stage.py",
    "tests/conftest.py",
    "tests/test_docs.py",
    "tests/baseline/cases.py",
    "tests/core/test_places.py",
    "tests/core/store/test_store.py",
    "tests/core/engine/test_runs.py",
    "tests/probes/dora/test_study.py",
    "tests/metrics/dora/test_metric.py",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("core/store", ["tests/core/store"]),
        ("tests/core/store/", ["tests/core/store"]),
        ("core/store/tables.py", ["tests/core/store"]),
        ("tests/core/store/helper.py", ["tests/core/store"]),
        ("tests/core/store/test_store.py", ["tests/core/store/test_store.py"]),
        # A room without tests of its own has those of the room around it.
        ("core/engine/batch/stage.py", ["tests/core/engine"]),
        ("metrics/dora/plugin.py", ["tests/metrics/dora"]),
        ("core/__init__.py", ["tests/core/test_places.py"]),
        ("tests/baseline/cases.py", ["tests/baseline"]),
        ("core", ["tests/core"]),
        ("tests/test_docs.py", ["tests/test_docs.py"]),
        ("docs/store.md", []),
        ("pyproject.toml", []),
        ("tests/conftest.py", []),
    ],
)
def test_a_change_has_the_modules_of_its_folder(tree: Path, path: str, places: list[str]):
    assert modules_of([path], tree) == places


def test_a_folder_is_named_once(tree: Path):
    assert modules_of(["tests/core/store/test_store.py", "core/store/tables.py", "core/store"], tree) == [
        "tests/core/store"
    ]


def test_every_folder_of_the_base_is_there():
    assert modules_of(BASE) == sorted(BASE)


def test_what_changed_is_what_differs_from_main(tmp_path: Path):
    def git(*words: str) -> None:
        identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *identity, *words], check=True, capture_output=True)

    git("init", "--initial-branch=main")
    (tmp_path / "old.py").touch()
    git("add", "old.py")
    git("commit", "-m", "first")
    assert changed(tmp_path) == []
    git("switch", "-c", "branch")
    (tmp_path / "committed.py").touch()
    git("add", "committed.py")
    git("commit", "-m", "second")
    (tmp_path / "old.py").write_text("1")
    (tmp_path / "new.py").touch()
    assert changed(tmp_path) == ["committed.py", "new.py", "old.py"]


@pytest.mark.parametrize(("left", "outcome"), [(60.0, "1 passed"), (-1.0, "1 skipped")])
def test_no_test_begins_when_the_time_is_over(left: float, outcome: str):
    words = ["-m", "pytest", "-p", "no:cacheprovider", f"{__file__}::test_every_folder_of_the_base_is_there"]
    ran = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, UNTIL: str(time.time() + left)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0 and outcome in ran.stdout, ran.stdout
