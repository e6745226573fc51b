"""The wheel has every file of the package, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile

import pytest

from .package_parts import FILES, PARTS, ROOT


def tracked() -> set[str]:
    """Return the files of the package that git tracks, as paths in the wheel."""
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [name for name in out.splitlines() if (ROOT / name).is_file()]
    inside = [name for name in files if name.split("/")[0] in PARTS]
    return {f"prejudge/{name}" for name in [*inside, *FILES]}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Build a wheel from a copy of the tracked files."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a git checkout, to know which files belong to the package")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in out.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(source)]
    subprocess.run(command, capture_output=True, check=True)
    return zipfile.ZipFile(next(target.glob("*.whl")))


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
