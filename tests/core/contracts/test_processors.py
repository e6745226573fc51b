"""How many cores there are, of processors that share some."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prejudge.core.contracts import processors
from prejudge.core.contracts.processors import physical_cores, usable_cores


@pytest.mark.parametrize(
    ("siblings", "cores"),
    [(["0,2", "1,3", "0,2", "1,3"], 2), (["0", "1"], 2), (["0-1", "0-1"], 1)],
)
def test_threads_of_one_core_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, siblings: list[str], cores: int
) -> None:
    for number, shared in enumerate(siblings):
        (folder := tmp_path / f"cpu{number}" / "topology").mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(shared + "\n")
    monkeypatch.setattr(processors, "TOPOLOGY", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(len(siblings))), raising=False)
    assert physical_cores() == cores


def test_processors_are_cores_where_nothing_says_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "TOPOLOGY", tmp_path)
    assert physical_cores() == usable_cores()
