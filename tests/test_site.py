"""The documentation is built strictly: no broken link, no page left out, every name and command in the reference."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import prejudge
from prejudge.core.cli.main import COMMANDS, LAB, STUDY, plugin_commands

from .package_parts import ROOT
from .reference_api import MODULES


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("mkdocs", "material"):
        if find_spec(module) is None:
            pytest.skip(f"needs {module}: pip install 'prejudge[docs]'")
    built = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "PREJUDGE_PLUGINS": "none", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(built)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return built


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text("utf-8")))


def test_every_command_is_in_the_reference(site):
    shown = text_of(site / "reference" / "commands.html")
    groups = {"": COMMANDS, "lab ": LAB, "study ": {*STUDY, *plugin_commands()}}
    for group, names in groups.items():
        for name in names:
            assert f"prejudge {group}{name}" in shown, name
    assert "UNSET" not in shown and "UNSET" not in (ROOT / "docs/reference/commands.md").read_text("utf-8")


def test_every_name_of_the_door_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    told = set(re.findall(r"^### `(\w+)`$", page, re.M))
    missing = {name for name in prejudge.__all__ if not name.startswith("_")} - told - MODULES
    assert not missing, f"docs/reference/api.md leaves out {sorted(missing)}"


@pytest.mark.parametrize("module", [prejudge.statistics, prejudge.design], ids=["statistics", "design"])
def test_every_name_of_a_module_of_the_door_is_in_the_reference(module):
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    missing = [name for name in module.__all__ if not re.search(rf"\b{name}\b", page)]
    assert not missing, f"docs/reference/api.md leaves out {missing}"


def test_pages_fetch_nothing_from_elsewhere_to_be_read(site):
    front = (site / "index.html").read_text("utf-8")
    assert not re.findall(r'<link[^>]+href="https?://(?!github)[^"]+\.css', front)


@pytest.mark.parametrize("page", ["index.html", "reference/api.html"])
def test_search_works_from_disk_without_a_network(site, chromium, page):
    tab = chromium.new_page()
    fetched: list[str] = []
    tab.on("request", lambda request: fetched.append(request.url))
    tab.goto((site / page).as_uri())
    tab.keyboard.press("/")
    tab.keyboard.type("dialects", delay=30)
    result = tab.locator(".md-search-result__link").first
    result.wait_for(timeout=60_000)
    assert (site / "adapters" / "endpoints.html").as_uri() in (result.get_attribute("href") or "")
    assert fetched and not [url for url in fetched if not url.startswith(("file:", "about:", "data:", "blob:"))]
    tab.close()
