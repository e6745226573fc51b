"""The documentation says what is so: its Python runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from prejudge.core.cli.main import cli

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


RUNNABLE = [(page, text) for page, text in blocks("python") if "import prejudge" in text and "hookimpl" not in text]


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
    words = shlex.split(line)[1:]
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
