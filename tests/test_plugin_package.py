"""Packages of third parties, built and installed into an environment of their own, and used there.

The sample package, and what `prejudge new` writes. The environment has prejudge from a wheel of its own; the
dependencies are those of the environment that runs the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest

from prejudge.core.scaffold import KINDS, Names, write_package

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "tests" / "plugin_package"
PARTS = ("core", "adapters", "probes", "metrics", "testing")
FILES = ("pyproject.toml", "registry.toml", "README.md", "LICENSE", "__init__.py", "__init__.pyi", "py.typed")
BROKEN = {
    "import-error": "import no_such_module\n",
    "wrong-hook": "import prejudge\n\n@prejudge.hookimpl\ndef prejudge_probs():\n    return []\n",
    "wrong-record": "import prejudge\n\n@prejudge.hookimpl\ndef prejudge_probes():\n    return ['mine']\n",
    "taken-name": (
        "import prejudge\n\n@prejudge.hookimpl\ndef prejudge_probes():\n"
        "    return [prejudge.Plugged('crows-pairs', 'nowhere:Nothing')]\n"
    ),
    "wrong-contract": (
        "import prejudge\n\n@prejudge.hookimpl\ndef prejudge_metrics():\n"
        "    return [prejudge.Plugged('no-metric', 'wrong_contract:prejudge_metrics')]\n"
    ),
}


def copy_of_the_package(target: Path) -> Path:
    for part in PARTS:
        shutil.copytree(ROOT / part, target / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, target / name)
    return target


def broken_package(folder: Path, name: str) -> Path:
    module = name.replace("-", "_")
    folder.mkdir(parents=True)
    (folder / f"{module}.py").write_text(BROKEN[name])
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        f'[project]\nname = "{name}"\nversion = "1"\n'
        f'[project.entry-points.prejudge]\n{module} = "{module}"\n'
        f'[tool.setuptools]\npy-modules = ["{module}"]\n'
    )
    return folder


class Installed:
    """An environment with the packages in it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._listed: dict[tuple[str, ...], str] = {}
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "env")], check=True)
        site = sysconfig.get_path("purelib", vars={"base": str(place / "env"), "platbase": str(place / "env")})
        # What prejudge and its plugins depend on; a folder that is added so runs no hooks of editable installs.
        (Path(site) / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        self.python = place / "env" / "bin" / "python"

    def install(self, *folders: Path) -> None:
        quiet = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", *quiet, *map(str, folders)]
        done = subprocess.run(pip, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def run(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        # What is installed, and no checkout beside it.
        rest = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment = {**rest, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        command = [str(self.python), *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd or self.place, env=environment)

    def listed(self, *words: str) -> str:
        """Return what `list` says, which is the same for every test."""
        if words not in self._listed:
            self._listed[words] = self.prejudge("list", *words).stdout
        return self._listed[words]

    def prejudge(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "prejudge.core.cli", *words)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    for tool in ("pip", "setuptools"):
        if find_spec(tool) is None:
            pytest.skip(f"needs {tool}, to build and install packages")
    place = tmp_path_factory.mktemp("installed")
    found = Installed(place)
    source = copy_of_the_package(place / "source")
    shutil.copytree(SAMPLE, place / "sample", ignore=shutil.ignore_patterns("__pycache__"))
    for kind in KINDS:
        write_package(Names(kind, f"new-{kind}"), place / f"new-{kind}")
    broken = [broken_package(place / "broken" / name, name) for name in BROKEN]
    found.install(source, place / "sample", *(place / f"new-{kind}" for kind in KINDS), *broken)
    return found


def test_prejudge_is_the_one_that_was_installed(installed):
    done = installed.run("-c", "import prejudge; print(prejudge.__file__)")
    assert done.stdout.startswith(str(installed.place)), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("probes", "sample-greetings"),
        ("metrics", "sample-length"),
        ("adapters", "sample-echo"),
        ("studies", "greetings"),
    ]
    + [(f"{kind}s", f"new-{kind}") for kind in KINDS],
)
def test_things_of_a_plugin_are_listed(installed, kind, name):
    assert name in installed.listed(kind)


def test_study_of_a_plugin_is_planned(installed):
    done = installed.prejudge("plan", "greetings", "--model", "sample-echo:echo")
    assert done.returncode == 0 and "trials" in done.stdout, done.stderr


def test_study_of_a_plugin_runs(installed):
    done = installed.prejudge("run", "greetings", "--model", "sample-echo:echo", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "length" in done.stdout and "second" in done.stdout


def test_sample_command_is_there(installed):
    assert "sample-people" in installed.prejudge("--help").stdout
    assert installed.prejudge("sample-people").stdout.splitlines()[2] == "Christopher (second)"


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "wrong-contract"])
def test_broken_plugin_is_named_and_disables_only_itself(installed, name):
    shown = " ".join(installed.listed("--plugins").split())
    why = {"import-error": "no_such_module", "wrong-hook": "prejudge_probs", "wrong-record": "Plugged"}
    assert f"plugin '{name}:{name.replace('-', '_')}' is disabled" in shown
    assert why.get(name, "already has a probe named 'crows-pairs'") in shown


def test_thing_that_breaks_its_contract_is_named_when_it_is_used(installed):
    study = installed.place / "broken.toml"
    study.write_text('probe = "sample-greetings"\n[metrics.no-metric]\n')
    done = installed.prejudge("run", str(study), "--model", "sample-echo:echo")
    assert done.returncode == 2 and "'wrong-contract:wrong_contract'" in done.stderr and "Metric" in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_new_package_passes_its_own_tests(installed, kind):
    pytest.importorskip("torch", reason="the new packages try the reference models")
    done = installed.run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=installed.place / f"new-{kind}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "skipped" not in done.stdout


def test_study_of_a_new_probe_comes_with_its_package(installed):
    done = installed.prejudge("plan", "new-probe")
    assert done.returncode == 0 and "theme" in done.stdout, done.stderr
