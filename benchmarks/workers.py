"""Workers of both engines: how many times as fast they are, and what an exchange costs the driver.

    python benchmarks/workers.py [--engines local ray] [--parts masked] [--calls 96] [--seconds 0.25] [--workers 2 4 8]

Three parts, all through the scheduler and a store, as in a run; starting the workers is timed apart.

- A device that sleeps as long for every call, so that the best possible is the number of workers.
- A reference masked model, one thread per process. Where other work keeps the processors busy, wall time says nothing:
  beside it stands how many times as fast two free processors would be, from processor time alone, which is that of one
  process over that of the busiest process (driver included) of the run with workers.
- A device that does not sleep: the driver's processor time for each exchange.

A broken bound gives exit code 1. Wall times under load are printed, and the load beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.adapter import ModelAdapter
from prejudge.core.contracts.canonical import identity_digest
from prejudge.core.contracts.records import AnyRequest, Embed, PseudoLikelihood
from prejudge.core.engine.ledger import Ledger
from prejudge.core.engine.limiter import Limiters
from prejudge.core.engine.scheduler import Scheduler
from prejudge.core.store import Store
from prejudge.core.workers.options import ENGINES, LOCAL, RAY, WorkerOptions
from prejudge.core.workers.remote import Remote, open_adapters

BATCH, FIRST = 10, 64
BOUNDS = {2: 1.9, 4: 3.7, 8: 7.2}
"""How many times as fast so many workers are at least."""
MASKED, MASKED_TEXTS, MASKED_BOUND = "reference-masked-fair", 3000, 1.7
MOST_MICROSECONDS = 100.0
FAST, FAST_BATCH = 20_000, 250
REGISTRY = """
[models.device]
adapter = "simulated"
settings = {{ latency_seconds = {seconds}, batch_items = {batch}, concurrency = 1, dimension = 8 }}
"""
WORDS = "the tall nurse and a short doctor were kind to every young person in this old house near our town".split()


class Timed(NamedTuple):
    """What a number of requests took."""

    started: float
    """Seconds until the model could be asked."""
    seconds: float
    processor: float
    """Seconds of processor time of this process."""
    busiest: float
    """Of the busiest worker; 0 without workers."""


async def ask(registry: Path, workers: WorkerOptions | None, model: str, asked: Sequence[AnyRequest]) -> Timed:
    """Ask requests, of this process or of workers; the last `FIRST` of them come first and start what answers."""
    began = time.monotonic()
    catalogue = Catalogue.load(str(registry))
    adapter = (await open_adapters(catalogue, [model], workers))[model]
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s.db") as store:
        ledger, limiters = Ledger(store, store.begin_run("bench", "bench", b"{}")), Limiters()
        adapter.services = limiters.services(adapter, store)
        scheduler = Scheduler(
            adapter=adapter,
            ledger=ledger,
            model_id=await ledger.ensure_model(adapter.identity),
            identity=identity_digest(adapter.identity),
            limiter=limiters.of(adapter),
        )
        requests = [scheduler.key(one) for one in asked]
        # Each worker gets some of these, and loads what it needs.
        await scheduler.settle([requests.pop() for _ in range(FIRST)])
        now, used, theirs = time.monotonic(), time.process_time(), processor_times(adapter)
        found = await scheduler.settle(requests)
        after = processor_times(adapter)
        busiest = max((after[pid] - theirs[pid] for pid in after.keys() & theirs.keys()), default=0.0)
        taken = Timed(now - began, time.monotonic() - now, time.process_time() - used, busiest)
        await scheduler.aclose()
        await ledger.aclose()
    await adapter.aclose()
    if len(found) != len(requests):
        raise SystemExit(f"{len(found)} of {len(requests)} requests were answered")
    return taken


def processor_times(adapter: ModelAdapter) -> dict[int, float]:
    """Return the seconds of processor time of each worker of this machine."""
    members = adapter._pool.members if isinstance(adapter, Remote) else []
    found = {}
    for member in members:
        pid = re.search(r"process (\d+)", member.link.name if member.link is not None else "")
        if pid is not None and (stat := Path(f"/proc/{pid[1]}/stat")).exists():
            fields = stat.read_text().rpartition(")")[2].split()
            found[int(pid[1])] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def texts(number: int) -> list[str]:
    """Return so many different texts of about twelve words."""
    return [
        " ".join(WORDS[(one * step + step) % len(WORDS)] for step in range(1, 12)) + f" {one}" for one in range(number)
    ]


def sleeping(registry: Path, chosen: argparse.Namespace) -> int:
    """Print a row per number of workers; return the number of broken bounds."""
    registry.write_text(REGISTRY.format(seconds=chosen.seconds, batch=BATCH))
    number = chosen.calls * BATCH
    asked = [Embed(text=f"text {one}") for one in range(number + FIRST)]
    one, broken = asyncio.run(ask(registry, None, "device", asked)), 0
    print(f"A device that sleeps {chosen.seconds} s per call of {BATCH}, {chosen.calls} calls")
    print(f"{'engine':>8} {'workers':>8} {'start s':>8} {'asked s':>8} {'times':>6} {'bound':>6} {'load':>6}")
    print(f"{'none':>8} {'none':>8} {one.started:8.2f} {one.seconds:8.2f} {1:6.2f} {'':>6} {os.getloadavg()[0]:6.1f}")
    for engine in chosen.engines:
        for workers in chosen.workers:
            some = asyncio.run(ask(registry, WorkerOptions(engine=engine, number=workers), "device", asked))
            times, bound = one.seconds / some.seconds, BOUNDS.get(workers, 0.0)
            broken += times < bound
            row = f"{engine:>8} {workers:>8} {some.started:8.2f} {some.seconds:8.2f} {times:6.2f} {bound:6.2f}"
            print(f"{row} {os.getloadavg()[0]:6.1f}", flush=True)
    return broken


def masked(registry: Path, chosen: argparse.Namespace) -> int:
    """Print how many times as fast two workers are on a model that computes; return the number of broken bounds."""
    asked = [PseudoLikelihood(text=text) for text in texts(MASKED_TEXTS + FIRST)]
    one, broken = asyncio.run(ask(registry, None, MASKED, asked)), 0
    print(
        f"{MASKED}, {MASKED_TEXTS:,} texts: {one.processor:.1f} s of processor time, {one.seconds:.1f} s in one process"
    )
    for engine in chosen.engines:
        two = asyncio.run(ask(registry, WorkerOptions(engine=engine, number=2), MASKED, asked))
        times = one.processor / max(two.processor, two.busiest)
        broken += times < MASKED_BOUND
        print(
            f"{engine:>8} 2 workers: {two.seconds:.1f} s; processor time {two.busiest:.1f} s of the busiest worker and "
            f"{two.processor:.1f} s of the driver: {times:.2f} times as fast on free processors (bound {MASKED_BOUND})",
            flush=True,
        )
    return broken


def driving(registry: Path, chosen: argparse.Namespace) -> int:
    """Print the driver's processor time for each exchange; return the number of broken bounds."""
    registry.write_text(REGISTRY.format(seconds=0, batch=FAST_BATCH))
    asked, broken = [Embed(text=f"text {one}") for one in range(FAST + FIRST)], 0
    for engine in (None, *chosen.engines):
        options = None if engine is None else WorkerOptions(engine=engine, number=2)
        fast = asyncio.run(ask(registry, options, "device", asked))
        cost = fast.processor / FAST * 1e6
        broken += engine is not None and cost > MOST_MICROSECONDS
        who = "one process, which also answers" if engine is None else f"the driver of 2 workers of {engine}"
        print(f"{cost:6.1f} µs of processor time per exchange: {who}; {FAST:,} exchanges in {fast.seconds:.1f} s")
    return broken


PARTS = {"sleeping": sleeping, "masked": masked, "driving": driving}


def main() -> int:
    """Print the three parts; return 1 if a bound is broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=[LOCAL, RAY])
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--calls", type=int, default=96)
    parser.add_argument("--seconds", type=float, default=0.25)
    parser.add_argument("--workers", type=int, nargs="*", default=sorted(BOUNDS))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        registry = Path(folder) / "registry.toml"
        registry.write_text("")
        broken = sum(PARTS[part](registry, chosen) for part in chosen.parts)
    return min(1, broken)


if __name__ == "__main__":
    sys.exit(main())
