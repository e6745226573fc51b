"""Measure a run of a million exchanges from outside: first run, second run from the cache, score; and a bare floor.

The floor is what plain sqlite3 and the same scipy tests need on the same answers in the same run: one keyed look-up
per answer, and one pass over all answers. Each step is a process of its own; the figures are its wall time and its
largest resident memory. A broken bound gives exit code 1.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sqlite3
import sys
import tempfile
from pathlib import Path

import numpy as np
from scale_probe import ENDINGS, ORDERS, SCENARIOS, SEEDS, VARIANTS, tests
from study import Measured, measure

REGISTRY = """
[probes.scale]
target = "scale_probe:ScaleProbe"

[metrics.scale]
target = "scale_probe:ScaleMetric"

[models.scale]
adapter = "simulated"

[studies.scale]
probe = "scale"
metrics = { scale = {} }
"""
MEGABYTES, TIMES, SCORE_MEGABYTES = 700, 4, 1536
STORE = "prejudge.db"


def prepare_floor(folder: Path) -> None:
    """Copy the answers into a plain table with columns of its own, as a script written for this study would."""
    with contextlib.closing(sqlite3.connect(folder / "floor.db")) as plain:
        plain.execute(f"ATTACH '{folder / STORE}' AS store")
        columns = "key BLOB PRIMARY KEY, scenario INT, face TEXT, variant TEXT, response TEXT"
        plain.execute(f"CREATE TABLE answer ({columns})")
        plain.execute(
            "INSERT INTO answer SELECT e.key, t.factors ->> 'scenario', t.factors ->> 'face', t.factors ->> 'variant',"
            " e.response FROM store.run_trial t JOIN store.exchange e ON e.id = t.exchange_id WHERE t.run_id = 1"
        )
        plain.commit()


def floor_score(folder: Path) -> None:
    """Score the answers with sqlite3, numpy and scipy alone."""
    sums: dict[tuple[int, str, str], int] = {}
    with contextlib.closing(sqlite3.connect(folder / "floor.db")) as plain:
        for scenario, face, variant, response in plain.execute("SELECT scenario, face, variant, response FROM answer"):
            cell = (scenario, face, variant)
            sums[cell] = sums.get(cell, 0) + (ENDINGS[0] in response)
    faces = sorted({face for _, face, _ in sums})
    matrices = [
        np.array([[sums[s, face, variant] / (ORDERS * SEEDS) for face in faces] for s in range(SCENARIOS)])
        for variant in VARIANTS
    ]
    print(len(tests(*matrices)), "tests", file=sys.stderr)


def floor_lookup(folder: Path) -> None:
    """Look every key up, one at a time."""
    with contextlib.closing(sqlite3.connect(folder / "floor.db")) as plain:
        keys = [key for (key,) in plain.execute("SELECT key FROM answer")]
        query = "SELECT response FROM answer WHERE key = ?"
        found = sum(plain.execute(query, (key,)).fetchone() is not None for key in keys)
    print(found, "found", file=sys.stderr)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faces", type=int, default=462, help="faces, in two variants each; 462 make 1,009,008 trials")
    parser.add_argument("--keep", type=Path, help="a folder to work in, kept afterwards")
    parser.add_argument("--floor", choices=["score", "lookup"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.floor:
        (floor_score if options.floor == "score" else floor_lookup)(Path.cwd())
        return 0
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent)
    with tempfile.TemporaryDirectory() as made:
        folder = (options.keep or Path(made)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "registry.toml").write_text(REGISTRY)
        return report(*steps(folder, options.faces), folder)


def steps(folder: Path, faces: int) -> tuple[list[Measured], list[str]]:
    """Run every step, and say which bound was broken."""
    study = ["run", "scale", "--model", "scale", "--set", f"faces={faces}", "--quiet", "--registry", "registry.toml"]
    first = measure("first run", study, folder)
    print(first, flush=True)
    second = measure("second run, all cached", study, folder)
    print(second, flush=True)
    score = measure("score", ["score", "--registry", "registry.toml"], folder)
    prepare_floor(folder)
    script = [str(Path(__file__).resolve())]
    lookups = measure("floor: bare keyed look-ups", [*script, "--floor", "lookup"], folder, module=None)
    bare = measure("floor: sqlite3 and scipy", [*script, "--floor", "score"], folder, module=None)
    broken = [
        name
        for name, over in {
            f"first run over {MEGABYTES} MiB": first.megabytes > MEGABYTES,
            f"second run over {TIMES} x the look-ups": second.seconds > TIMES * lookups.seconds,
            f"score over {TIMES} x the floor": score.seconds > TIMES * bare.seconds,
            f"score over {SCORE_MEGABYTES} MiB": score.megabytes > SCORE_MEGABYTES,
        }.items()
        if over
    ]
    return [first, second, score, lookups, bare], broken


def report(rows: list[Measured], broken: list[str], folder: Path) -> int:
    """Print what was measured."""
    for row in rows:
        print(f"{row.name:28} {row.seconds:8.2f} s {row.megabytes:8.0f} MiB   {row.note}")
    size = sum(path.stat().st_size for path in folder.glob(f"{STORE}*")) / 2**20
    print(f"{'store, two runs':28} {size:19.0f} MiB")
    print(f"broken: {', '.join(broken)}" if broken else "all within bounds")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
