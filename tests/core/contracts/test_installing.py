"""The lines that a message prints install into the environment that has the package."""

import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from prejudge.core.contracts import installing
from prejudge.core.contracts.errors import MissingExtraError
from prejudge.core.contracts.installing import ROOT, install_line, upgrade_line

DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.ipynb"))]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a function that makes the package look installed, with pip's record of where it came from."""

    def install(recorded):
        text = recorded if isinstance(recorded, str | None) else json.dumps(recorded)
        monkeypatch.setattr(installing, "ROOT", tmp_path)
        monkeypatch.setattr(installing, "distribution", lambda _: SimpleNamespace(read_text=lambda _: text))
        installing._source.cache_clear()

    yield install
    installing._source.cache_clear()


def test_checkout_is_installed_in_place(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert install_line("hf") == "pip install -e '.[hf]'"
    assert str(MissingExtraError("it", "hf")).endswith("Run: pip install -e '.[hf]'")


def test_checkout_is_named_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    *_, place = shlex.split(install_line("hf"))
    assert place == f"{ROOT}[hf]" and (Path(place.removesuffix("[hf]")) / "pyproject.toml").is_file()
    assert str(ROOT) in upgrade_line()


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        (None, "prejudge[hf]"),
        ("", "prejudge[hf]"),
        ("no json", "prejudge[hf]"),
        ({"dir_info": {}, "url": "file:///a/place"}, "prejudge[hf] @ file:///a/place"),
        ({"archive_info": {}, "url": "file:///w/prejudge-1.whl"}, "prejudge[hf] @ file:///w/prejudge-1.whl"),
        (
            {"vcs_info": {"vcs": "git", "commit_id": "c"}, "url": "https://host/p.git"},
            "prejudge[hf] @ git+https://host/p.git",
        ),
        ({"dir_info": {}, "url": "file:///it's/here"}, "prejudge[hf] @ file:///it's/here"),
    ],
)
def test_installed_package_is_installed_from_where_it_came(installed, recorded, wanted):
    installed(recorded)
    pip, install, what = shlex.split(install_line("hf"))
    assert (pip, install, what) == ("pip", "install", wanted)
    assert Requirement(what).extras == {"hf"}


@pytest.mark.parametrize("page", DOCS, ids=lambda path: path.stem)
def test_pages_that_install_an_extra_say_the_line_of_a_checkout(page):
    text = " ".join(page.read_text("utf-8").split())
    named = set(re.findall(r"pip install 'prejudge\[([\w,-]+)\]'", text))
    assert all(f"pip install -e '.[{extra}]'" in text for extra in named)
