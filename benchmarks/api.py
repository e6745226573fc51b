"""Compare ways to ask an endpoint 10,000 different questions over 64 connections.

The server is a process of its own on this machine that answers each chat completion at once, or after `--latency`.
The adapter is timed end to end: study, scheduler, request, answer committed to the store. "scheduler and store" is the
same with answers from memory instead of the server. The others only ask. Every
way runs in a process of its own; its memory is its largest resident size. Every answer is checked. lm_eval and
inspect_ai are timed where they are installed; inspect_ai is asked a tenth and its time multiplied.
Ratios are to the first way, by the clock and by the CPU time of its process (for a busy machine).

    python benchmarks/api.py                    all ways
    python benchmarks/api.py --latency 0.05     with 50 ms per answer
    python benchmarks/api.py --ways adapter "openai, aiohttp" --repeats 3
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.catalogue.plugins import Plugged, Plugins, Registered
from prejudge.core.catalogue.registry import ModelEntry, Registry, StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import LargeStage, Options, Probe, Stage, Trial
from prejudge.core.contracts.adapter import Remark, answer_one
from prejudge.core.contracts.records import (
    AnyResponse,
    Generate,
    Generation,
    Message,
    Request,
    Sampling,
    Scalar,
    Text,
    Usage,
)
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.store import Store, statistics

CONNECTIONS = 64
KEY = "none"
USAGE = {"prompt_tokens": 40, "completion_tokens": 12, "total_tokens": 52}


class Server(asyncio.Protocol):
    """Reads chat completions off a connection and answers each with its own question."""

    latency = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._waiting = transport, b""

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self._waiting += data
        while (split := self._waiting.find(b"\r\n\r\n")) >= 0:
            head = self._waiting[:split].lower()
            length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
            if len(self._waiting) < split + 4 + length:
                return
            body = self._waiting[split + 4 : split + 4 + length]
            self._waiting = self._waiting[split + 4 + length :]
            if self.latency:
                asyncio.get_running_loop().call_later(self.latency, self._answer, body)
            else:
                self._answer(body)

    def _answer(self, body: bytes) -> None:
        question = json.loads(body)["messages"][-1]["content"]
        message = {"role": "assistant", "content": f"An answer to {question}", "refusal": None, "annotations": []}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice]}
        sent = json.dumps({**whole, "usage": USAGE, "system_fingerprint": "fp_1"}).encode()
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_1\r\ncontent-length: "
            + str(len(sent)).encode()
            + b"\r\n\r\n"
            + sent
        )


def serve(port: Any, latency: float) -> None:
    async def forever() -> None:
        Server.latency = latency
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=1024)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(forever())


def question(number: int) -> str:
    return f"Question {number}: which of the two people in this short story is described more kindly, and why?"


class AskStage(LargeStage):
    """One question per trial."""

    operation: ClassVar[type[Request]] = Generate
    factors = ("number",)
    outcomes = ("right",)

    def __init__(self, options: AskOptions) -> None:
        self._count = options.count

    def trials(self, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Trial]:
        """Yield the questions."""
        for number in range(self._count):
            message = Message("user", (Text(question(number)),))
            sampling = Sampling(temperature=0.0, max_tokens=64)
            yield Trial(f"t{number}", {"number": number}, Generate(messages=(message,), sampling=sampling))

    def count(self, earlier: Mapping[str, pl.DataFrame]) -> int:
        """Return how many there are."""
        return self._count

    def read(self, factors: Mapping[str, Scalar], response: AnyResponse) -> Mapping[str, Scalar]:
        """Check that the answer is one to this question."""
        assert isinstance(response, Generation)
        return {"right": response.text.endswith(question(int(str(factors["number"]))))}


class AskOptions(Options, frozen=True, kw_only=True):
    """Parameters of the study."""

    count: int = 10_000


class AskProbe(Probe):
    """Asks different questions."""

    options = AskOptions

    def stages(self, options: AskOptions) -> Sequence[Stage]:
        """Return the one stage."""
        return [AskStage(options)]


class Ready(OpenAIApi):
    """Answers from memory, after one turn of the event loop: what is left are scheduler, checks and store."""

    async def generate(self, request: Generate) -> Generation:
        """Answer with the question."""
        await asyncio.sleep(0)
        if self.services.note is not None:
            self.services.note(Remark(model="tiny", fingerprint="fp_1"))
        part = request.messages[-1].parts[0]
        assert isinstance(part, Text)
        usage = Usage(input_tokens=40, output_tokens=12)
        return Generation(text=f"An answer to {part.text}", finish_reason="stop", usage=usage)


def catalogue(url: str, transport: str, adapter: type[OpenAIApi]) -> Catalogue:
    settings = {"model": "tiny", "base_url": url, "api_key_env": "", "concurrency": CONNECTIONS, "transport": transport}
    registry = Registry(
        models={"tiny": ModelEntry(adapter="openai", settings=settings)},
        studies={"ask": StudyEntry(probe="ask", metrics={}, title="Asking")},
    )
    plugins = Plugins(registry, found=[])
    for kind, name, thing in (("adapter", "openai", adapter), ("probe", "ask", AskProbe)):
        plugins.offers[kind][name] = Registered(Plugged(name, thing), "benchmark")
    return Catalogue(registry, plugins)


def end_to_end(transport: str, adapter: type[OpenAIApi] = OpenAIApi) -> Callable[[str, int], Awaitable[float]]:
    async def run(url: str, count: int) -> float:
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.db") as store:
            everything = catalogue(url, transport, adapter)
            study = everything.study("ask", {"subject": "tiny"}, {"count": count})
            began = time.perf_counter()
            await execute(everything, study, store, RunOptions())
            took = time.perf_counter() - began
            if (kept := statistics(store)["Exchange"]) != count:
                raise SystemExit(f"{kept} of {count} answers are in the store")
            return took

    return run


async def adapter_only(url: str, count: int) -> float:
    options = OpenAIOptions(model="tiny", base_url=url, api_key_env="", concurrency=CONNECTIONS)
    adapter = OpenAIApi(options)

    async def ask(number: int) -> str:
        message = Message("user", (Text(question(number)),))
        sampling = Sampling(temperature=0.0, max_tokens=64)
        return (await answer_one(adapter, Generate(messages=(message,), sampling=sampling))).text

    took = await timed(ask, count)
    await adapter.aclose()
    return took


def bare_openai(transport: str) -> Callable[[str, int], Awaitable[float]]:
    async def run(url: str, count: int) -> float:
        import httpx2
        from openai import AsyncOpenAI, DefaultAioHttpClient, DefaultAsyncHttpxClient

        limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        kind = DefaultAioHttpClient if transport == "aiohttp" else DefaultAsyncHttpxClient
        async with AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0, http_client=kind(limits=limits)) as client:

            async def ask(number: int) -> str:
                answer = await client.chat.completions.create(
                    model="tiny",
                    messages=[{"role": "user", "content": question(number)}],
                    temperature=0.0,
                    max_tokens=64,
                )
                return answer.choices[0].message.content or ""

            return await timed(ask, count)

    return run


async def bare_aiohttp(url: str, count: int) -> float:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS)) as session:

        async def ask(number: int) -> str:
            message = {"role": "user", "content": question(number)}
            body = {"model": "tiny", "messages": [message], "temperature": 0.0, "max_tokens": 64}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                return str((await response.json())["choices"][0]["message"]["content"])

        return await timed(ask, count)


async def inspect(url: str, count: int) -> float:
    """Ask through inspect_ai, with the log that it keeps by itself."""
    from inspect_ai import Task, eval_async
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import GenerateConfig, get_model
    from inspect_ai.solver import generate

    os.environ["INSPECT_DISPLAY"] = "none"
    asked = GenerateConfig(max_connections=CONNECTIONS, temperature=0.0, max_tokens=64)
    model = get_model("openai-api/local/tiny", base_url=url, api_key=KEY, config=asked)
    samples = MemoryDataset([Sample(input=question(number), id=number + 1) for number in range(count)])
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        task = Task(dataset=samples, solver=generate())
        (log,) = await eval_async(task, model=model, log_dir=folder, max_samples=CONNECTIONS)
        took = time.perf_counter() - began
        # Read from its log, which is gone when the folder is.
        right = [s.output.completion.endswith(question(int(s.id) - 1)) for s in log.samples or []]
    if len(right) != count or not all(right):
        raise SystemExit(f"{sum(right)} of {count} answers are right")
    return took


async def lm_eval(url: str, count: int) -> float:
    """Ask through the API model of lm-evaluation-harness, which stores nothing by itself."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.api_models import JsonChatStr
    from lm_eval.models.openai_completions import LocalChatCompletion

    os.environ.setdefault("OPENAI_API_KEY", KEY)
    model = LocalChatCompletion(base_url=f"{url}/chat/completions", model="tiny", num_concurrent=CONNECTIONS)
    chats = [JsonChatStr(json.dumps([{"role": "user", "content": question(number)}])) for number in range(count)]
    settings = {"until": [], "max_gen_toks": 64, "temperature": 0.0}
    asked = [Instance("generate_until", {}, (chat, settings), number) for number, chat in enumerate(chats)]
    began = time.perf_counter()
    answers = await asyncio.to_thread(model.generate_until, asked, disable_tqdm=True)
    took = time.perf_counter() - began
    if not all(answer.endswith(question(number)) for number, answer in enumerate(answers)):
        raise SystemExit("lm_eval got other questions' answers")
    return took


async def timed(ask: Callable[[int], Awaitable[str]], count: int) -> float:
    """Ask every question with as many workers as connections; return the seconds it took."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            if not (await ask(number)).endswith(question(number)):
                raise SystemExit(f"question {number} got another question's answer")

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    return time.perf_counter() - began


WAYS: dict[str, Callable[[str, int], Awaitable[float]]] = {
    "adapter": end_to_end("lean"),
    "adapter, httpx": end_to_end("httpx"),
    "adapter without store": adapter_only,
    "scheduler and store": end_to_end("lean", Ready),
    "openai, default": bare_openai("default"),
    "openai, aiohttp": bare_openai("aiohttp"),
    "aiohttp": bare_aiohttp,
    "lm_eval": lm_eval,
    "inspect_ai": inspect,
}
OPTIONAL = {"lm_eval": ("lm_eval", "tenacity", "aiohttp"), "inspect_ai": ("inspect_ai",)}
"""Ways that are taken where these packages are installed."""
TENTH = {"inspect_ai"}
"""Ways that are asked a tenth of the questions, for the sake of the reader's time."""


def measure(way: str, url: str, count: int, found: Any) -> None:
    asyncio.run(WAYS[way](url, CONNECTIONS))
    cpu = time.process_time()
    seconds = asyncio.run(WAYS[way](url, count))
    found.put((seconds, time.process_time() - cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def in_process(context: Any, way: str, url: str, count: int) -> tuple[float, float, float]:
    """Return seconds, CPU seconds and MiB of one way, in a fresh process, after a short warm-up."""
    found = context.Queue()
    process = context.Process(target=measure, args=(way, url, count, found))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{way}: exit code {process.exitcode}")
    seconds, cpu, memory = found.get()
    return float(seconds), float(cpu), float(memory)


def compare(url: str, arguments: argparse.Namespace) -> None:
    context = multiprocessing.get_context("spawn")
    own: tuple[float, float] | None = None
    print(f"{'way':<26}{'seconds':>9}{'requests/s':>12}{'CPU s':>8}{'MiB':>6}{'adapter is':>13}{'by CPU':>9}")
    for way in arguments.ways:
        part = 10 if way in TENTH else 1
        runs = [in_process(context, way, url, arguments.count // part) for _ in range(arguments.repeats)]
        seconds, cpu, memory = (min(values) for values in zip(*runs, strict=True))
        seconds, cpu = seconds * part, cpu * part
        own = own or (seconds, cpu)
        figures = f"{seconds:>9.2f}{arguments.count / seconds:>12.0f}{cpu:>8.2f}{memory:>6.0f}"
        print(f"{way:<26}{figures}{seconds / own[0]:>12.2f}x{cpu / own[1]:>8.2f}x", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds the server waits before each answer")
    parser.add_argument("--repeats", type=int, default=1, help="runs per way, of which the best counts")
    there = [way for way in WAYS if all(find_spec(package) for package in OPTIONAL.get(way, ()))]
    parser.add_argument("--ways", nargs="+", default=there, choices=list(WAYS), metavar="WAY", help=", ".join(WAYS))
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    port = context.Queue()
    server = context.Process(target=serve, args=(port, arguments.latency), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{port.get(timeout=60)}/v1"
        compare(url, arguments)
    finally:
        server.terminate()
        server.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
