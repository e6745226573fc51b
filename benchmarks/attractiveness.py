"""Measure the study `attractiveness` at the paper's size from outside: ask 1,009,008 questions, then score them.

The model is `simulated-halo`, about schematic faces. Scoring runs in one process and makes all tests, tables, figures
and the report; first without the intervals of rank statistics, then with them. A broken bound gives exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from study import Measured, measure

RUN = ["run", "attractiveness", "--model", "simulated-halo", "--quiet"]
SCORE = ["score", "--set"]
SECONDS, MEGABYTES = 40, 2048
"""Of processor time, and of resident memory. Work that shares its cores takes more processor time too: with more than
ten processes on two cores, nearly twice as much as alone (18 s)."""


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="a folder to work in, kept afterwards; a run in it is not repeated")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = (options.keep or Path(made)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        rows = [] if (folder / "prejudge.db").exists() else [measure("run", RUN, folder)]
        plain = measure("score, no rank intervals", [*SCORE, "attractiveness.effect_resamples=0"], folder)
        rows += [plain, measure("score", [*SCORE, "attractiveness.effect_resamples=999"], folder)]
    for row in rows:
        print(f"{row.name:26} {row.cpu:8.2f} CPU s {row.seconds:8.2f} s {row.megabytes:8.0f} MiB")
    return report(plain)


def report(row: Measured) -> int:
    """Say which bound was broken."""
    over = {f"over {SECONDS} CPU s": row.cpu > SECONDS, f"over {MEGABYTES} MiB": row.megabytes > MEGABYTES}
    broken = [name for name, is_over in over.items() if is_over]
    print(f"broken: {', '.join(broken)}" if broken else "all within bounds")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
