"""Measure the whole study `bistereo-pairs` from outside: plan, first run, second run, score.

Each command runs in a process of its own; the figures are its wall time and its largest resident memory.
The bounds are those the project promises on two cores; a broken one gives exit code 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

STUDY = ("bistereo-pairs", "--model", "reference-masked-biased", "--set", "texts=paper", "--set", "attributes=paper")


class Measured(NamedTuple):
    """What one command took."""

    name: str
    seconds: float
    megabytes: float
    note: str
    cpu: float
    """Seconds of processor time, all threads together."""


def measure(name: str, words: list[str], folder: Path, module: str | None = "prejudge.core.cli") -> Measured:
    """Run one command (of `module`, or a script if that is None) in `folder` and return what it took."""
    began = time.perf_counter()
    command = [sys.executable, *(["-m", module] if module else []), *words]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{name} failed: {errors}")
    last = errors.strip().splitlines()[-1:] or [""]
    return Measured(name, seconds, usage.ru_maxrss / 1024, last[0], usage.ru_utime + usage.ru_stime)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="a folder to work in, kept afterwards")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [
            measure("help", ["--help"], folder),
            measure("plan", ["plan", *STUDY], folder),
            measure("first run", ["run", *STUDY], folder),
            measure("second run, all cached", ["run", *STUDY], folder),
            measure("score", ["score"], folder),
        ]
        size = sum(path.stat().st_size for path in folder.glob("prejudge.db*")) / 2**20
    for row in rows:
        print(f"{row.name:24} {row.seconds:8.2f} s {row.megabytes:8.0f} MiB   {row.note}")
    print(f"{'store':24} {size:8.0f} MiB")
    bounds = {"help": (0.3, 100), "plan": (5, 500), "second run, all cached": (8, 2000)}
    broken = [r.name for r in rows if r.name in bounds and _over(r, bounds[r.name])]
    print(f"over the bound: {', '.join(broken)}" if broken else "all within bounds")
    return 1 if broken else 0


def _over(row: Measured, bound: tuple[float, float]) -> bool:
    return row.seconds > bound[0] or row.megabytes > bound[1]


if __name__ == "__main__":
    sys.exit(main())
