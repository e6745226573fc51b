"""The documentation says what is so: its Python runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from prejudge.core.cli.main import cli
from prejudge.core.plugins import Plugged, Registered
from prejudge.core.registry import StudyEntry
from prejudge.core.runs import RunOptions, execute
from prejudge.core.scoring import score
from prejudge.core.store import Store
from prejudge.core.study import Catalogue

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """Yield (page, text) of each fenced block."""
    for page in PAGES:
        for kind, text in FENCE.findall(page.read_text("utf-8")):
            if kind == language:
                yield str(page.relative_to(ROOT)), text


def commands() -> list[tuple[str, str]]:
    """Return (page, line) of each command line shown."""
    shown = [(page, line) for page, text in [*blocks(""), *blocks("bash")] for line in text.splitlines()]
    return [(page, line.split("#")[0].strip()) for page, line in shown if line.startswith("prejudge ")]


RUNNABLE = [(page, text) for page, text in blocks("python") if "prejudge.run(" in text]


def test_there_is_something_to_test():
    assert len(RUNNABLE) >= 2 and len(commands()) >= 5


@pytest.mark.parametrize(("page", "text"), RUNNABLE, ids=[page for page, _ in RUNNABLE])
def test_python_of_the_pages_runs(page, text, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="needs the extra hf")
    monkeypatch.chdir(tmp_path)
    exec(compile(text, page, "exec"), {})
    assert list(tmp_path.glob("runs/*/report.html"))


@pytest.mark.parametrize(("page", "line"), commands())
def test_command_of_the_pages_can_be_parsed(page, line):
    words = shlex.split(re.sub(r"\s\d?>.*", "", line))[1:]  # where its output goes is the shell's affair
    group: click.Command = cli
    context = click.Context(cli)
    while isinstance(group, click.Group):
        name = words.pop(0)
        found = group.get_command(context, name)
        assert found is not None, f"{page}: no command {name}"
        group, context = found, click.Context(found)
    group.make_context("prejudge", words)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_probe_of_the_plugin_page_works(tmp_path):
    pytest.importorskip("torch", reason="needs the extra hf")
    (text,) = (text for page, text in blocks("python") if "class MyProbe" in text)
    names: dict[str, Any] = {}
    exec(compile(text, "my_bias/probe.py", "exec"), names)
    catalogue = Catalogue.load()
    for kind, name in (("probe", "MyProbe"), ("metric", "MyMetric")):
        catalogue.plugins.offers[kind][name] = Registered(Plugged(name, names[name]), "my-bias")
    catalogue.registry.studies["my-study"] = StudyEntry(probe="MyProbe", metrics={"MyMetric": {}})
    study = catalogue.study("my-study", {"subject": "reference-masked-fair"}, {})
    with Store(tmp_path / "s.db") as store:
        scores = score(catalogue, store, asyncio.run(execute(catalogue, study, store, RunOptions())))
    (estimate,) = scores.estimates["MyMetric"]
    assert estimate.n == 2 and estimate.value is not None
