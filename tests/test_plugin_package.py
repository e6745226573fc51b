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

from .package_parts import FILES, PARTS, ROOT

SAMPLE = ROOT / "tests" / "plugin_package"
BUILT_WITH = ("pyproject.toml", "README.md", "LICENSE")
"""What a build of the package reads besides it."""
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

ENDED = "ended with "
OWN_TESTS = f"""
import os, sys, pytest
print()
for folder in sys.argv[1:]:
    os.chdir(folder)
    code = pytest.main(["-q", "-p", "no:cacheprovider"])
    print("{ENDED}" + str(int(code)), flush=True)
"""
"""Runs pytest in each of some folders."""


def copy_of_the_package(target: Path) -> Path:
    for part in PARTS:
        shutil.copytree(ROOT / part, target / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (*FILES, *BUILT_WITH):
        shutil.copy(ROOT / name, target / name)
    return target


def write_broken_package(site: Path, name: str) -> None:
    """Write what pip would leave of a package; that packages are built and installed, the others show."""
    module = name.replace("-", "_")
    (site / f"{module}.py").write_text(BROKEN[name])
    about = site / f"{module}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[prejudge]\n{module} = {module}\n")


class Installed:
    """An environment with the packages in it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._listed: dict[tuple[str, ...], str] = {}
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "env")], check=True)
        site = sysconfig.get_path("purelib", vars={"base": str(place / "env"), "platbase": str(place / "env")})
        self.site = Path(site)
        # What prejudge and its plugins depend on; a folder that is added so runs no hooks of editable installs.
        (self.site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
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
    for name in BROKEN:
        write_broken_package(found.site, name)
    found.install(source, place / "sample", *(place / f"new-{kind}" for kind in KINDS))
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
    assert "greeted at equal length" in done.stdout and "2 dis" in " ".join(done.stdout.split())


def test_sample_command_is_there(installed):
    assert "sample-people" in installed.prejudge("study", "--help").stdout
    assert installed.prejudge("study", "sample-people").stdout.splitlines()[2] == "Christopher (second)"


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


@pytest.fixture(scope="module")
def own_tests(installed) -> dict[str, tuple[int, str]]:
    """Return, by kind, how the tests of a new package end and what they say; one process imports torch for all."""
    pytest.importorskip("torch", reason="the new packages try the reference models")
    done = installed.run("-c", OWN_TESTS, *(str(installed.place / f"new-{kind}") for kind in KINDS))
    assert done.returncode == 0, done.stdout + done.stderr
    said = [part.partition("\n") for part in done.stdout.split(ENDED)]
    return {kind: (int(said[i + 1][0]), said[i][2]) for i, kind in enumerate(KINDS)}


@pytest.mark.parametrize("kind", KINDS)
def test_new_package_passes_its_own_tests(own_tests, kind):
    code, said = own_tests[kind]
    assert code == 0, said
    assert " passed" in said and "skipped" not in said


def test_study_of_a_new_probe_comes_with_its_package(installed):
    done = installed.prejudge("plan", "new-probe")
    assert done.returncode == 0 and "theme" in done.stdout, done.stderr
