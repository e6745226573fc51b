"""The first run of a study on PostgreSQL and on SQLite: wall and processor time.

    python benchmarks/postgres.py [--per-cell 500] [--times 3]

A server of its own is started, with PostgreSQL's usual settings (durable, as SQLite is), on this machine. The study is
`bistereo-pairs` with the simulated model, which answers at once: all the time is the framework's and the store's. The
runs take turns, and the shortest of each counts. A broken bound gives exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import Store, statistics

MOST = 1.3
"""How many times as long as on SQLite a first run may take on PostgreSQL."""
SERVERS = Path(__file__).parents[1] / "tests" / "core" / "postgres.py"


class Timed(NamedTuple):
    """What a run took."""

    seconds: float
    processor: float
    """Seconds of processor time of this process."""


def run(place: str, per_cell: int) -> Timed:
    """Run the study on a new store."""
    catalogue = Catalogue.load()
    study = catalogue.study("bistereo-pairs", {"subject": "simulated-biased"}, {"per_cell": per_cell})
    began, used = time.monotonic(), time.process_time()
    with Store(place) as store:
        asyncio.run(execute(catalogue, study, store, RunOptions()))
        taken = Timed(time.monotonic() - began, time.process_time() - used)
        print(f"{store.url.get_backend_name():>12} {taken.seconds:8.2f} {taken.processor:11.2f}", flush=True)
        run.exchanges = statistics(store)["Exchange"]  # type: ignore[attr-defined]
    return taken


def server_seconds(folder: Path) -> float:
    """Return the processor time of a server so far; that of sessions which ended counts at its first process."""
    first = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if first in (int(stat.parent.name), int(fields[1])):
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Print the times; return 1 if the bound is broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--per-cell", type=int, default=500)
    parser.add_argument("--times", type=int, default=3)
    chosen = parser.parse_args()
    spec = importlib.util.spec_from_file_location("postgres_of_tests", SERVERS)
    assert spec is not None and spec.loader is not None
    servers: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(servers)
    if (reason := servers.missing()) is not None:
        raise SystemExit(f"PostgreSQL cannot be measured here: {reason}")
    files, tables, server = list[Timed](), list[Timed](), list[float]()
    print(f"{'store':>12} {'wall s':>8} {'processor s':>11}")
    with tempfile.TemporaryDirectory() as folder, servers.cluster(durable=True) as cluster:
        run(f"{folder}/warm.db", 4)
        for number in range(chosen.times):
            files.append(run(f"{folder}/{number}.db", chosen.per_cell))
            before = server_seconds(cluster.folder)
            tables.append(run(cluster.new_database(), chosen.per_cell))
            server.append(server_seconds(cluster.folder) - before)
    count = run.exchanges  # type: ignore[attr-defined]
    ratio = min(tables).seconds / min(files).seconds
    own = min(one.processor for one in tables) / min(one.processor for one in files)
    print(f"{count:,} exchanges: {ratio:.2f} times SQLite's wall time (at most {MOST}), {own:.2f} times its processor")
    print(f"time in this process, and {min(server) / count * 1e6:.0f} µs of the server's per exchange")
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
