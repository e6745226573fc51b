"""The files around the code: they parse, and what they name is there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

from prejudge.core.contracts.version import VERSION

from .package_parts import PARTS, ROOT

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
YAML = [*FORMS, ROOT / ".github/workflows/ci.yml", ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]
NEEDED = ("registry.toml", "py.typed", "LICENSE", "README.md", "pyproject.toml", "core/report/report.html")


def read(path: Path):
    return yaml.safe_load(path.read_text("utf-8"))


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_file_parses(path):
    assert isinstance(read(path), dict)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_form_has_what_the_forge_demands(path):
    form = read(path)
    assert form["name"] and form["description"]
    ids = [part["id"] for part in form["body"]]
    assert len(ids) == len(set(ids)) and all(part["attributes"]["label"] for part in form["body"])


def test_citation_has_the_version_and_the_papers():
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == VERSION and citation["cff-version"] == "1.2.0" and citation["authors"]
    files = [path for path in (ROOT / "probes").glob("*/*.toml") if path.parent.name != "constructs"]
    studies = {path.stem for path in files}
    named = " ".join(paper["notes"] for paper in citation["references"])
    families = {name.split("-")[0] for name in studies}
    assert len(citation["references"]) >= 5 and not {family for family in families if family not in named}
    assert all(author for paper in citation["references"] for author in paper["authors"])


def test_owned_paths_exist():
    lines = (ROOT / ".github" / "CODEOWNERS").read_text("utf-8").splitlines()
    owned = [line.split() for line in lines if line and not line.startswith("#")]
    assert owned and all((ROOT / path.lstrip("/")).exists() and who.startswith("@") for path, who in owned)
    assert {"/core/contracts/", "/core/store/tables.py"} <= {path for path, _ in owned}


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md", "docs/release.md"])
def test_make_targets_and_links_of_a_page_exist(page):
    text = (ROOT / page).read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert set(re.findall(r"`make ([a-z-]+)`", text)) <= targets
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert all((ROOT / page).parent.joinpath(link).exists() for link in links)


def test_continuous_integration_runs_targets_of_the_makefile():
    steps = [step for job in read(ROOT / ".github/workflows/ci.yml")["jobs"].values() for step in job["steps"]]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    runs = {step["run"].removeprefix("make ") for step in steps if "run" in step}
    assert {"check", "test"} <= runs <= targets


def test_ruff_of_the_hooks_is_the_one_that_is_pinned():
    (hooks,) = (repo for repo in read(ROOT / ".pre-commit-config.yaml")["repos"] if "ruff" in repo["repo"])
    assert f"ruff=={hooks['rev'].removeprefix('v')}\n" in (ROOT / "constraints.txt").read_text("utf-8")


def test_version_stands_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "version" in project["dynamic"] and re.fullmatch(r"\d+\.\d+\.\d+\S*", VERSION)


def test_source_distribution_has_what_a_build_needs(tmp_path):
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a git checkout, to know which files belong to the package")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = [name for name in listed.splitlines() if (ROOT / name).is_file()]
    for name in tracked:
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "source" / name)
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), "source"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    package = [name for name in tracked if name.split("/")[0] in PARTS]
    assert {*package, *(name for name in NEEDED if name in tracked)} <= inside
