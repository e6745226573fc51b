"""The limiter before a real server with a limit: throughput and share of 429s for 5, 50 and 500 requests a second.

    python benchmarks/limiter.py [--seconds 60]

A server in a process of its own holds a token bucket with a burst of one second. Requests go through the adapter
`openai`, the scheduler and a store, as in a run. Then the limit changes, up and down.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from aiohttp import web

from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.contracts.canonical import identity_digest
from prejudge.core.contracts.records import Generate, Message, Text
from prejudge.core.engine.ledger import Ledger
from prejudge.core.engine.limiter import Limiters, describe
from prejudge.core.engine.scheduler import Scheduler
from prejudge.core.store import Store

LATENCY = 0.1


def serve(rate: float, pipe: Connection) -> None:
    """Serve until told to stop; `pipe` takes a new rate and gives the moments of (passed, turned away)."""
    level, seen, allowed = rate, time.monotonic(), rate
    moments: list[tuple[float, bool]] = []

    async def answer(request: web.Request) -> web.Response:
        nonlocal level, seen
        now = time.monotonic()
        level, seen = min(allowed, level + (now - seen) * allowed), now
        moments.append((now, level >= 1))
        if level < 1:
            error = {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}
            return web.json_response(error, status=429, headers={"Retry-After": "1"})
        level -= 1
        await asyncio.sleep(LATENCY)
        choice = {"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})

    async def work() -> None:
        nonlocal allowed
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send(runner.addresses[0][1])
        loop = asyncio.get_running_loop()
        while (told := await loop.run_in_executor(None, pipe.recv)) is not None:
            allowed = told
        pipe.send(moments)

    asyncio.run(work())


async def ask(url: str, seconds: float, changes: list[tuple[float, float]], tell: Any) -> dict[str, Any]:
    """Ask for so many seconds; `changes` are (after, rate)."""
    adapter = OpenAIApi(OpenAIOptions(model="m", base_url=url, api_key_env="", concurrency=128))
    limiter = Limiters().of(adapter)
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s.db") as store:
        run_id = store.begin_run("bench", "bench", b"{}")
        ledger = Ledger(store, run_id)
        scheduler = Scheduler(
            adapter=adapter,
            ledger=ledger,
            model_id=await ledger.ensure_model(adapter.identity),
            identity=identity_digest(adapter.identity),
            limiter=limiter,
        )
        numbers, end = itertools.count(), time.monotonic() + seconds

        async def client() -> None:
            while time.monotonic() < end:
                request = Generate(messages=(Message("user", (Text(f"q {next(numbers)}"),)),))
                await scheduler.settle([scheduler.key(request)])

        async def change() -> None:
            began = time.monotonic()
            for after, rate in changes:
                await asyncio.sleep(began + after - time.monotonic())
                tell(rate)

        clients = [asyncio.create_task(client()) for _ in range(256)]
        await change()
        await asyncio.sleep(end - time.monotonic())
        for task in clients:
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        await scheduler.aclose()
        await ledger.aclose()
    await adapter.aclose()
    return describe(limiter.take())


def measure(rate: float, seconds: float, after: float | None = None) -> None:
    """Print throughput and share of 429s while settled; with `after`, the limit changes half way."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(rate, theirs), daemon=True)
    server.start()
    url, began = f"http://127.0.0.1:{ours.recv()}/v1", time.monotonic()
    changes = [] if after is None else [(seconds / 2, after)]
    pace = asyncio.run(ask(url, seconds, changes, ours.send))
    ours.send(None)
    moments = ours.recv()
    server.join(5)
    begin, limit = (seconds / 3, rate) if after is None else (seconds * 0.8, after)
    settled = [passed for at, passed in moments if begin <= at - began <= seconds]
    every = [passed for at, passed in moments if at - began <= seconds]
    share = sum(settled) / (seconds - begin) / limit
    limited = 1 - sum(settled) / max(1, len(settled))
    whole = 1 - sum(every) / max(1, len(every))
    name = f"{rate:g}" if after is None else f"{rate:g} -> {after:g}"
    print(f"| {name} | {share:.3f} | {limited:.2%} | {whole:.2%} | {json.dumps(pace)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    print("| requests/s allowed | share of it used, settled | answered 429, settled | of all | what the limiter did |")
    print("| --- | --- | --- | --- | --- |")
    for rate in (5, 50, 500):
        measure(rate, seconds)
    for before, after in ((50, 200), (200, 50)):
        measure(before, 2 * seconds, after)


if __name__ == "__main__":
    main()
