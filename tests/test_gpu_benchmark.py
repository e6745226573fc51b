"""The benchmark for GPUs runs whole with toys on a processor, and leaves out with a line what is not there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from .package_parts import ROOT

COMMAND = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "--rival-batches", "2"]


def test_toys_on_a_processor(tmp_path):
    pytest.importorskip("torch")
    path = tmp_path / "rows.json"
    words = [*COMMAND, "--size", "toy", "--device", "cpu", "--json", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    made = json.loads(path.read_text())
    assert {row["way"] for row in made["rows"]} >= {"hf-causal", "hf-masked", "hf-vlm", "generate, batch 2"}
    assert {row["job"] for row in made["rows"]} == {"answers", "options", "PLL", "images"}
    assert all(row["seconds"] > 0 and row["amount"] > 0 for row in made["rows"])
    speed = next(row["rate"] for row in made["rows"] if row["way"] == "hf-vlm")
    assert made["hours"]["hf-vlm"] == pytest.approx(1_009_008 / speed / 3600)
    assert "vLLM is not installed" in done.stdout and "| job on cpu |" in done.stdout


def test_machine_without_a_gpu_is_told():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    done = subprocess.run(COMMAND, capture_output=True, text=True)
    assert done.returncode == 2 and "--size toy" in done.stderr
