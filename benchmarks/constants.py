"""Print what an exchange takes: bytes in the store, bytes written, and processor time of writing, scoring and checking.

The answers are written without a scheduler (`filled.py`), the rest are commands; see docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from filled import PER_FACE
from scale import REGISTRY, STORE
from study import measure


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faces", type=int, default=46, help=f"of {PER_FACE:,} exchanges each")
    options = parser.parse_args()
    here = Path(__file__).resolve().parent
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(here), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "registry.toml").write_text(REGISTRY)
        number = options.faces * PER_FACE
        steps = {
            "writing, with a small run before": ([str(here / "filled.py"), str(options.faces)], None),
            "score": (["score", "--registry", "registry.toml"], "prejudge.core.cli"),
            "cache verify, one process": (["cache", "verify", "--processes", "1"], "prejudge.core.cli"),
            "cache verify, one per processor": (["cache", "verify"], "prejudge.core.cli"),
            **_copies("one", "one process", "--processes", "1"),
            **_copies("all", "one per processor"),
        }
        for name, (words, module) in steps.items():
            done = measure(name, words, folder, module=module)
            each = 1e6 * done.cpu / number
            spent = f"{each:6.0f} microseconds of CPU per exchange {done.seconds:8.1f} s"
            print(f"{name:34} {spent} {done.megabytes:8.0f} MiB at most")
        size = sum(path.stat().st_size for path in folder.glob(f"{STORE}*"))
        print(f"{'store':34} {size / number:6.0f} bytes per exchange, of {number:,}")
    return 0


def _copies(file: str, by: str, *words: str) -> dict[str, tuple[list[str], str]]:
    """Return the commands that merge the store into a new one, and copy the run into another by a bundle."""
    commands = {
        "merge": [STORE, "--store", f"{file}-merged.db"],
        "export": ["latest", "--out", f"{file}.db.gz"],
        "import": [f"{file}.db.gz", "--store", f"{file}.db"],
    }
    return {
        f"cache {name}, {by}": (["cache", name, *own, *words], "prejudge.core.cli") for name, own in commands.items()
    }


if __name__ == "__main__":
    sys.exit(main())
