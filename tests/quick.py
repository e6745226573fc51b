"""`make quick`: the tests of the folders that changed, or of those that are named, until its time is over.

`python -m tests.quick FOLDER...` runs the tests of these folders, of the package or of `tests`. Without a folder it
takes those that differ from `main`, and, where none does, the tests of the contracts and of the engine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 70
"""When the last test begins; what is asked for then takes at most 90 s with what runs until its end."""
UNTIL = "PREJUDGE_QUICK_UNTIL"
BASE = ("tests/core/contracts", "tests/core/engine")


def changed(root: Path = ROOT) -> list[str]:
    """Return the files that differ from where this branch left `main`, those not yet committed included."""
    left = _git(root, "merge-base", "HEAD", "main") or ["HEAD"]
    new = _git(root, "ls-files", "--others", "--exclude-standard")
    return sorted({*_git(root, "diff", "--name-only", *left), *new})


def modules_of(paths: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the folders and modules of tests that belong to these files or folders; `docs` and others have none."""
    found = {place for path in paths for place in _places(PurePosixPath(path.strip("/")), root)}
    return sorted(place for place in found if not any(above.as_posix() in found for above in Path(place).parents))


def _places(path: PurePosixPath, root: Path) -> list[str]:
    parts = path.parts[1:] if path.parts[:1] == ("tests",) else path.parts
    if not parts or parts[0] not in {"adapters", "core", "metrics", "probes"} | _folders(root / "tests"):
        return [path.as_posix()] if path.name.startswith("test_") and (root / path).is_file() else []
    place = Path("tests", *parts)
    if (root / place).is_file():
        place = place if place.name.startswith("test_") else place.parent
    while not (root / place).exists():
        place = place.parent
    if (root / path).is_dir() or not any((root / place).glob("*/test_*.py")):
        return [place.as_posix()]
    # A file beside the rooms, such as `core/__init__.py`: the tests beside the rooms.
    return sorted(module.relative_to(root).as_posix() for module in (root / place).glob("test_*.py"))


def _folders(path: Path) -> set[str]:
    return {folder.name for folder in path.iterdir() if folder.is_dir() and not folder.name.startswith(("_", "."))}


def _git(root: Path, *words: str) -> list[str]:
    ran = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return ran.stdout.splitlines() if ran.returncode == 0 else []


def main(words: list[str]) -> None:
    """Become pytest, with the options of the command line and the folders of the tests."""
    options, folders = [w for w in words if w.startswith("-")], [w for w in words if not w.startswith("-")]
    places = modules_of(folders or changed()) or list(BASE)
    print("make quick:", *places, flush=True)
    os.environ[UNTIL] = str(time.time() + SECONDS)
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *options, *places])


if __name__ == "__main__":
    main(sys.argv[1:])
