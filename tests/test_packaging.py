"""The wheel has every file of the package, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from .package_parts import FILES, PARTS, ROOT


def tracked() -> set[str]:
    """Return the files of the package that git tracks, as paths in the wheel."""
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [name for name in out.splitlines() if (ROOT / name).is_file()]
    inside = [name for name in files if name.split("/")[0] in PARTS]
    return {f"prejudge/{name}" for name in [*inside, *FILES]}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build sdist and wheel from a copy of the tracked files, and return their folder."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a git checkout, to know which files belong to the package")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in out.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(source)]
    subprocess.run(command, capture_output=True, check=True)
    return target


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(built.glob("*.whl")))


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Unpack the wheel, and return the environment in which it is the package that is imported."""
    folder = tmp_path_factory.mktemp("installed")
    wheel.extractall(folder)
    names = {"PYTHONPATH": str(folder), "PREJUDGE_PLUGINS": "none", "PREJUDGE_CACHE": str(folder / "cache")}
    return {**os.environ, **names}


def command(environment: dict[str, str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the unpacked wheel."""
    python = [sys.executable, "-P", "-m", "prejudge.core.cli"]
    return subprocess.run([*python, *words], cwd=folder, env=environment, capture_output=True, text=True)


def test_wheel_has_every_tracked_file(wheel):
    inside = {name for name in wheel.namelist() if name.startswith("prejudge/")}
    assert inside == tracked()


def test_wheel_names_the_licence_and_the_command(wheel):
    names = wheel.namelist()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    (entry,) = (name for name in names if name.endswith("entry_points.txt"))
    assert "prejudge = prejudge.core.cli:main" in wheel.read(entry).decode()


def test_base_install_is_light(wheel):
    (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    lines = wheel.read(metadata).decode().splitlines()
    base = [line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert base and not any(heavy in line for line in base for heavy in ("torch", "transformers", "openai", "llama"))


def test_trainers_are_in_the_source_only(built, wheel):
    assert not [name for name in wheel.namelist() if "/tools/" in name or "train_masked" in name or "_corpus" in name]
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "tools").rglob("*.py")} <= names


def test_wheel_calibrates_with_a_reference_model_that_it_has(installed, tmp_path):
    pytest.importorskip("transformers", reason="needs the extra hf")
    sizes = ["--studies", "2", "--planted", "0", "--by-command", "0", "--real", "2", "--null", "no-noise"]
    options = ["--set", "per_cell=1", "--set", "trisentbias.resamples=99"]
    done = command(installed, tmp_path, "lab", "calibrate", "bistereo-pairs", *sizes, *options)
    assert done.returncode == 0, done.stderr
    groups = json.loads((tmp_path / "calibration" / "bistereo-pairs.json").read_text("utf-8"))["real"]
    assert {group["null"]: group["studies"] for group in groups} == {
        "reference-masked-fair": 2,
        "reference-masked-fair-leans": 2,
        "reference-masked-biased": 2,
    }


def test_wheel_says_where_a_reference_model_is_trained(installed, tmp_path):
    pytest.importorskip("transformers", reason="needs the extra hf")
    words = ["run", "bistereo-pairs", "--model", "reference-masked-biased-0.5", "--limit", "18"]
    done = command(installed, tmp_path, *words)
    assert done.returncode == 2 and "prejudge.tools.reference.train masked_biased-0.5" in done.stderr
