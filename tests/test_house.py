"""A study is two folders: without them it is gone, and everything else is as it was."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from prejudge.core.catalogue.study import Catalogue

from .package_parts import ROOT, link_package

ROOMS = ("probes", "metrics")
OF_NO_STUDY = {"constructs", "demo", "own_table", "questions"}
STUDIES = sorted({path.parent.name for path in (ROOT / "probes").glob("*/plugin.py")} - OF_NO_STUDY)
TRAINED = {ROOT / "adapters" / "reference" / "items.py"}
"""What reference models are asked: imported only where a study is calibrated with one."""
OTHERS = {"subtle": "bistereo-tuples"}
"""A study to plan in the house without another; `subtle-sai` is that for all the rest."""
SCRIPT = """
import json, sys
from click.testing import CliRunner
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import cli

calls = (["--help"], ["list"], ["list", "studies"], ["plan", sys.argv[1], "--model", "simulated-fair"])
done = [CliRunner().invoke(cli, words, catch_exceptions=False) for words in calls]
catalogue = Catalogue.load()
registry, plugins = catalogue.registry, catalogue.plugins
for name, study in registry.studies.items():
    plugins.load("probe", study.probe)
    for metric in study.metrics:
        plugins.load("metric", metric)
    for model in study.roles.values():
        registry.model(model)
simulated = [name for name, model in registry.models.items() if model.adapter == "simulated"]
identities = [catalogue.adapter(name).identity.digest for name in simulated]
print(json.dumps({
    "codes": [one.exit_code for one in done], "said": [one.output for one in done], "problems": plugins.problems,
    "studies": sorted(registry.studies), "identities": identities,
    "offers": {kind: sorted(offers) for kind, offers in plugins.offers.items()},
}))
"""


def house(place: Path, without: str = "") -> Path:
    """Make the package of links to this one's folders, less those of a study."""
    package = link_package(place, *ROOMS)
    for room in ROOMS:
        (package / room).mkdir()
        for inside in (ROOT / room).iterdir():
            if inside.name not in (without, "__pycache__"):
                (package / room / inside.name).symlink_to(inside)
    return place


def lived_in(place: Path, study: str) -> dict:
    """Return what the commands say in a house, and what is on offer there."""
    environment = os.environ | {"PYTHONPATH": str(place), "PREJUDGE_PLUGINS": "none", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, study], capture_output=True, text=True, cwd=place, env=environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict:
    return lived_in(house(tmp_path_factory.mktemp("whole")), "subtle-sai")


@pytest.mark.parametrize("study", STUDIES)
def test_study_goes_with_its_two_folders(study, whole, tmp_path):
    found = lived_in(house(tmp_path, study), OTHERS.get(study, "subtle-sai"))
    assert found["codes"] == [0, 0, 0, 0] and found["problems"] == []
    own = {path.stem for path in (ROOT / "probes" / study).glob("*.toml")}
    assert own and set(whole["studies"]) - set(found["studies"]) == own
    assert not own & set(found["said"][2].split())
    assert found["offers"]["adapter"] == whole["offers"]["adapter"]
    assert found["identities"] == whole["identities"], "the answers of these models are kept under these identities"


@pytest.mark.parametrize("study", STUDIES)
def test_nobody_else_names_the_modules_of_a_study(study):
    texts = [path for room in (*ROOMS, "core", "adapters", "testing") for path in (ROOT / room).rglob("*.py")]
    texts += [ROOT / "registry.toml", *(ROOT / "probes").glob("*/*.toml")]
    others = [path for path in texts if path.relative_to(ROOT).parts[1:2] != (study,) and path not in TRAINED]
    named = [str(path) for path in others for room in ROOMS if f"{room}.{study}" in path.read_text("utf-8")]
    assert not named


def test_core_names_no_plugin():
    catalogue = Catalogue.load()
    plugins = {name for kind in ("adapter", "metric", "probe") for name in catalogue.plugins.offers[kind]}
    plugins |= {*catalogue.registry.models}
    plugins -= {"questions"}  # the key of a study file, too; the registry says which probe reads folders
    core = ROOT / "core"
    named = {
        (str(path.relative_to(core)), node.value)
        for path in core.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and node.value in plugins
    }
    assert not named
