"""`make bench-quick` fails where a bound is broken, and keeps one line of figures for each commit."""

from __future__ import annotations

import json
import sys

import pytest

from prejudge.core.contracts.installing import ROOT

from .benchmark_scripts import benchmark_script

pytest.importorskip("torch", reason="needs the extra hf")


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return benchmark_script("quick")


def call(quick, monkeypatch, ratios, *words):
    monkeypatch.setattr(quick, "PARTS", {"store": lambda: iter(ratios)})
    monkeypatch.setattr(sys, "argv", ["quick.py", "--only", "store", *words])
    return quick.main()


def test_broken_bound_fails(quick, monkeypatch, capsys):
    slow = quick.Ratio("score", 5.0, 1.0, 4.0)
    assert call(quick, monkeypatch, [quick.Ratio("run", 3.0, 1.0, 4.0)]) == 0
    assert call(quick, monkeypatch, [slow, quick.Ratio("run", 3.0, 1.0, 4.0)]) == 1
    assert capsys.readouterr().out.count("   over") == 1


def test_history_has_one_line_for_a_commit(quick, monkeypatch, tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps({"commit": "0000000", "ratios": {}}) + "\n", "utf-8")
    monkeypatch.setattr(quick, "HISTORY", path)
    monkeypatch.setattr(quick.subprocess, "run", lambda *_, **__: type("Done", (), {"stdout": "1234567\n"}))
    for seconds in (3.0, 2.0):
        call(quick, monkeypatch, [quick.Ratio("run", seconds, 1.0, 4.0)], "--keep")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line["commit"] for line in lines] == ["0000000", "1234567"]
    assert lines[1]["ratios"] == {"run": 2.0}


def test_bare_ways_read_what_is_there(quick, tmp_path):
    """A floor that did nothing would hide any slowness."""
    assert set(quick.BARE) == {"write", "lookup", "score", "verify"}
    for way in quick.BARE.values():
        with pytest.raises(Exception, match="no such table"):
            way(tmp_path)
