"""The same weights three ways: `llamacpp`, `hf-causal`, and `openai` in front of `llama_cpp.server`.

    python benchmarks/real_ways.py            SmolLM2 of .build/real, where `make real` puts it

A twin of the GGUF file has its weights as 32-bit numbers, in GGUF and as a Transformers checkpoint, so that the two
adapters compute with equal weights; the quantised file beside its twin shows what the arithmetic of quantised weights
changes. The figures go to ways.json in the same folder, from which `real.py` writes a part of its page.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
from prejudge.adapters.llamacpp.adapter import LlamaCpp, LlamaCppOptions
from prejudge.adapters.openai.adapter import OpenAIApi, OpenAIOptions
from prejudge.core.contracts.adapter import ModelAdapter
from prejudge.core.contracts.errors import ModelError
from prejudge.core.contracts.records import (
    AnyRequest,
    AnyResponse,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    Message,
    Sampling,
    Text,
)
from prejudge.probes.bistereo.nli_design import Selection, nli_design, texts

FOLDER = Path(__file__).resolve().parents[1] / ".build" / "real"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
TWIN, CHECKPOINT, RESULTS = "SmolLM2-F32.gguf", "SmolLM2-F32", "ways.json"
STEP, SENTENCES = 997, 20
QUESTIONS = tuple(
    f"Complete the sentence with one word: {text}"
    for text in (
        "The teacher is",
        "The nurse was",
        "My neighbour looks",
        "A tall man is",
        "An old woman is",
        "The new boss seems",
        "Her brother became",
        "The engineer is",
        "The short boy felt",
        "His aunt works as",
    )
)
PATIENCE = 120
"""Seconds until the server answers."""


def main() -> int:
    """Ask all ways, and write the figures."""
    file = FOLDER / FILE
    if not file.exists():
        print(f"{file} is not there: run `make real` first.")
        return 0
    write_twin(file)
    sentences = [Likelihood(prompt="", continuations=(text,)) for text in premises()]
    questions = [
        Generate(messages=(Message("user", (Text(text),)),), sampling=Sampling(temperature=0.0, max_tokens=24))
        for text in QUESTIONS
    ]
    by_way = {
        "llamacpp": values(ask(llamacpp(TWIN), sentences)),
        "hf-causal": values(ask(HFCausal(HFCausalOptions(model=str(FOLDER / CHECKPOINT), device="cpu")), sentences)),
        "quantised": values(ask(llamacpp(FILE), sentences)),
        "bos": values(ask(llamacpp(FILE, start="bos"), sentences)),
    }
    direct = ask(llamacpp(FILE), questions)
    with server(file) as url:
        served = ask(remote(url), questions)
        (refused,) = ask(remote(url, likelihood="echo"), sentences[:1])
    tokens = sum(map(len, by_way["llamacpp"]))
    figures = {
        "day": time.strftime("%Y-%m-%d"),
        "sentences": len(sentences),
        "tokens": tokens,
        "agreement": most_apart(by_way["llamacpp"], by_way["hf-causal"]),
        "quantised_mean": float(np.mean(np.abs(np.concatenate(apart(by_way["llamacpp"], by_way["quantised"]))))),
        "quantised_most": most_apart(by_way["llamacpp"], by_way["quantised"]),
        "start": float(np.mean([difference.sum() for difference in apart(by_way["bos"], by_way["quantised"])])),
        "questions": len(questions),
        "equal_texts": sum(
            isinstance(one, Generation) and isinstance(two, Generation) and one.text.strip() == two.text.strip()
            for one, two in zip(direct, served, strict=True)
        ),
        "refused": refused.code if isinstance(refused, ModelError) else "",
    }
    (FOLDER / RESULTS).write_text(json.dumps(figures, indent=1), "utf-8")
    print(json.dumps(figures, indent=1))
    return 0


def premises() -> list[str]:
    """Return sentences of a study, each once."""
    cells = islice(nli_design(Selection()).cells(), 0, None, STEP)
    return list(dict.fromkeys(texts(cell)[0] for cell in cells))[:SENTENCES]


def llamacpp(name: str, start: str = "auto") -> ModelAdapter:
    """Return the adapter of a GGUF file in the folder."""
    return LlamaCpp(LlamaCppOptions(model=str(FOLDER / name), n_ctx=512, start=start))


def remote(url: str, **settings: Any) -> ModelAdapter:
    """Return the adapter of a server."""
    return OpenAIApi(OpenAIOptions(model="served", base_url=url, api_key_env="", concurrency=1, **settings))


def ask(adapter: ModelAdapter, requests: Sequence[AnyRequest]) -> Sequence[AnyResponse | ModelError]:
    """Return the answers of an adapter."""

    async def answers() -> Sequence[AnyResponse | ModelError]:
        try:
            return await adapter.answer(requests)
        finally:
            await adapter.aclose()

    return asyncio.run(answers())


def values(answers: Sequence[AnyResponse | ModelError]) -> list[list[float]]:
    """Return log P of each token of each sentence."""
    return [list(answer.scores[0].values) for answer in answers if isinstance(answer, Likelihoods)]


def apart(one: list[list[float]], two: list[list[float]]) -> list[np.ndarray[Any, Any]]:
    """Return by how much two ways differ, by token."""
    return [np.array(a) - np.array(b) for a, b in zip(one, two, strict=True)]


def most_apart(one: list[list[float]], two: list[list[float]]) -> float:
    """Return the largest difference of a token."""
    return float(max(np.abs(difference).max() for difference in apart(one, two)))


def write_twin(file: Path) -> None:
    """Write the weights of a GGUF file as 32-bit numbers: as GGUF, and as a Transformers checkpoint."""
    if not (FOLDER / TWIN).exists():
        _write_gguf(file, FOLDER / TWIN)
    if not (FOLDER / CHECKPOINT).exists():
        from transformers import AutoModelForCausalLM, AutoTokenizer

        kind = {"gguf_file": TWIN}
        loaded = AutoModelForCausalLM.from_pretrained(FOLDER, dtype="float32", **kind)
        config = loaded.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config
        # One that was read from GGUF counts as quantised, and does not let itself be saved.
        plain = type(loaded)(config)
        plain.load_state_dict(loaded.state_dict())
        plain.save_pretrained(FOLDER / CHECKPOINT)
        AutoTokenizer.from_pretrained(FOLDER, **kind).save_pretrained(FOLDER / CHECKPOINT)


def _write_gguf(source: Path, target: Path) -> None:
    import gguf

    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, sub_type=inner)
    writer.add_file_type(0)
    for tensor in reader.tensors:
        weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextmanager
def server(file: Path) -> Iterator[str]:
    """Start `llama_cpp.server` on a free port, and end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-m", "llama_cpp.server", "--model", str(file), "--port", str(port), "--n_ctx", "512"]
    process = subprocess.Popen(
        [sys.executable, *words, "--logits_all", "true", "--verbose", "false"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}/v1"
    try:
        for _ in range(PATIENCE):
            try:
                urllib.request.urlopen(f"{url}/models", timeout=5).close()
                break
            except OSError:
                time.sleep(1)
        yield url
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    sys.exit(main())
