"""The notebooks of the documentation: executed, without an error, and their code runs in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]


def code_cells(path: Path) -> list[dict[str, Any]]:
    """Return the code cells of a notebook."""
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_there_is_a_notebook():
    assert "first-look" in NAMES


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_notebook_was_executed_from_top_to_bottom(path):
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} == {"execute_result"}
    assert any("image/png" in output["data"] for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_notebook_tells_nothing_of_a_machine(path):
    assert not any(f'"{root}/' in path.read_text("utf-8") for root in ("/home", "/root", "/tmp", "/usr"))


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_notebook_runs(path, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="needs the extra hf")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for number, cell in enumerate(code_cells(path), 1):
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
    assert list(tmp_path.glob("runs/compare-*/report.html"))
