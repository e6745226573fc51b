"""A device that sleeps, on 1, 2, 4 and 8 workers: how many times as fast, and what an exchange costs the driver.

    python benchmarks/workers.py [--calls 96] [--seconds 0.25] [--workers 2 4 8]

The device needs the same time for every call, so the best possible is the number of workers. Requests go through the
scheduler and a store, as in a run. Starting the workers is timed apart. Then the device does not sleep, which gives
the driver's processor time for each exchange. A broken bound gives exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.adapter import ModelAdapter
from prejudge.core.contracts.canonical import identity_digest
from prejudge.core.contracts.records import Embed
from prejudge.core.engine.ledger import Ledger
from prejudge.core.engine.limiter import Limiters
from prejudge.core.engine.scheduler import Scheduler
from prejudge.core.store import Store
from prejudge.core.workers.options import WorkerOptions
from prejudge.core.workers.remote import open_adapters

BATCH = 10
BOUNDS = {2: 1.9, 4: 3.7, 8: 7.2}
"""How many times as fast so many workers are at least."""
MOST_MICROSECONDS = 100.0
FAST, FAST_BATCH = 20_000, 250
REGISTRY = """
[models.device]
adapter = "simulated"
settings = {{ latency_seconds = {seconds}, batch_items = {batch}, concurrency = 1, dimension = 8 }}
"""


class Timed(NamedTuple):
    """What a number of requests took."""

    started: float
    """Seconds until the model could be asked."""
    seconds: float
    processor: float
    """Seconds of processor time of this process."""


async def ask(registry: Path, workers: int | None, number: int) -> Timed:
    """Ask so many requests, of this process or of so many workers."""
    began = time.monotonic()
    catalogue = Catalogue.load(str(registry))
    options = None if workers is None else WorkerOptions(number=workers)
    adapter: ModelAdapter = (await open_adapters(catalogue, ["device"], options))["device"]
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s.db") as store:
        ledger, limiters = Ledger(store, store.begin_run("bench", "bench", b"{}")), Limiters()
        adapter.bind(limiters.services(adapter, store))
        scheduler = Scheduler(
            adapter=adapter,
            ledger=ledger,
            model_id=await ledger.ensure_model(adapter.identity),
            identity=identity_digest(adapter.identity),
            limiter=limiters.of(adapter),
        )
        requests = [scheduler.key(Embed(text=f"text {one}")) for one in range(number)]
        await scheduler.settle([scheduler.key(Embed(text="the first call starts the workers"))])
        now, used = time.monotonic(), time.process_time()
        found = await scheduler.settle(requests)
        taken = Timed(now - began, time.monotonic() - now, time.process_time() - used)
        await scheduler.aclose()
        await ledger.aclose()
    await adapter.aclose()
    if len(found) != number:
        raise SystemExit(f"{len(found)} of {number} requests were answered")
    return taken


def main() -> int:
    """Print a row per number of workers; return 1 if a bound is broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=96)
    parser.add_argument("--seconds", type=float, default=0.25)
    parser.add_argument("--workers", type=int, nargs="*", default=sorted(BOUNDS))
    chosen = parser.parse_args()
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        registry = Path(folder) / "registry.toml"
        registry.write_text(REGISTRY.format(seconds=chosen.seconds, batch=BATCH))
        number = chosen.calls * BATCH
        one = asyncio.run(ask(registry, None, number))
        print(f"{'workers':>8} {'start s':>8} {'asked s':>8} {'times':>6} {'bound':>6} {'driver µs/exchange':>19}")
        print(
            f"{'none':>8} {one.started:8.2f} {one.seconds:8.2f} {1:6.2f} {'':>6} {one.processor / number * 1e6:19.1f}"
        )
        for workers in chosen.workers:
            some = asyncio.run(ask(registry, workers, number))
            times, bound = one.seconds / some.seconds, BOUNDS.get(workers, 0.0)
            broken += times < bound
            cost = some.processor / number * 1e6
            print(f"{workers:>8} {some.started:8.2f} {some.seconds:8.2f} {times:6.2f} {bound:6.2f} {cost:19.1f}")
        registry.write_text(REGISTRY.format(seconds=0, batch=FAST_BATCH))
        for workers in (None, 2):
            fast = asyncio.run(ask(registry, workers, FAST))
            cost = fast.processor / FAST * 1e6
            broken += workers is not None and cost > MOST_MICROSECONDS
            who = "one process, which also answers" if workers is None else f"the driver of {workers} workers"
            print(f"{cost:6.1f} µs of processor time per exchange: {who}; {FAST:,} exchanges in {fast.seconds:.1f} s")
    return min(1, broken)


if __name__ == "__main__":
    sys.exit(main())
