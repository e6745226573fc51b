"""Measure the adapters on one GPU against Transformers' `generate`, lm-evaluation-harness and vLLM.

Four jobs: answers of a causal model (tokens/s), likelihoods of options (options/s), pseudo-log-likelihoods of a masked
model (sentences/s) and questions about images (questions/s). The last one is projected onto the 1,009,008 questions of
`attractiveness`; the aim is one hour on one H200. Models have random weights in the shapes of Llama 3 8B, BERT large
and LLaVA 1.5 13B; `--causal`, `--masked` and `--vlm` name others. A peer that is not installed is left out with a line.

    python benchmarks/gpu.py                         on a GPU: needs 60 GiB of disk and about 40 GiB of memory
    python benchmarks/gpu.py --size toy --device cpu
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import io
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import gpu_models
import torch
from PIL import Image as Pictures
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoModelForMaskedLM, AutoTokenizer
from transformers import AutoProcessor as Processors
from transformers.utils import logging as chatter

from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions
from prejudge.adapters.hf.vlm.adapter import HFVLM, HFVLMOptions
from prejudge.adapters.vllm.adapter import VLLM
from prejudge.adapters.vllm.options import VLLMOptions
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.records import Generate, Image, Likelihood, Message, PseudoLikelihood, Sampling, Text

QUESTIONS = 1_009_008
AIM_HOURS = 1.0
OPTIONS = (" yes", " no", " perhaps not")
WORDS = "a person in this picture is kind and would lend their car to the tall woman at work or in a park".split()


class Row(NamedTuple):
    """One timing."""

    job: str
    way: str
    seconds: float
    amount: float
    unit: str

    @property
    def rate(self) -> float:
        """Amount per second."""
        return self.amount / self.seconds


class Load(NamedTuple):
    """What is asked."""

    prompts: list[str]
    tokens: int
    sentences: list[str]
    images: dict[str, bytes]
    questions: list[tuple[str, str]]
    """Name of an image, and the question."""


def make_load(scale: int, tokens: int) -> Load:
    """Return prompts of about sixty words, sentences of twelve, and questions about images, as many as `scale` says."""
    phrase = [" ".join(WORDS[(row + step) % len(WORDS)] for step in range(12)) for row in range(16 * scale)]
    prompts = [
        " ".join(phrase[(row + step) % len(phrase)] for step in range(5)) + f" {row}?" for row in range(4 * scale)
    ]
    images = {}
    for shade in range(max(1, scale // 32)):
        made = io.BytesIO()
        Pictures.new("RGB", (64, 64), (shade * 7 % 256, 99, 150)).save(made, "PNG")
        images[hashlib.sha256(made.getvalue()).hexdigest()] = made.getvalue()
    questions = [(name, f"{text} Answer A, B or C.") for name in images for text in phrase[: 12 * scale]]
    return Load(prompts, tokens, phrase, images, questions)


class Bench:
    """Times ways to do a job, each after a warm-up."""

    def __init__(self, arguments: argparse.Namespace, load: Load) -> None:
        self.arguments, self.load, self.rows = arguments, load, list[Row]()
        self.clock = time.process_time if arguments.cpu_time else time.perf_counter

    def time(self, job: str, way: str, unit: str, call: Callable[[bool], float]) -> None:
        """Time `call(warm)`, which returns the amount of work it did."""
        call(True)
        self._wait()
        start = self.clock()
        amount = call(False)
        self._wait()
        self.rows.append(Row(job, way, self.clock() - start, amount, unit))
        print(f"{job:<12}{way:<28}{self.rows[-1].rate:>12.1f} {unit}/s", flush=True)
        gc.collect()

    def _wait(self) -> None:
        if self.arguments.device.startswith("cuda"):
            torch.cuda.synchronize()

    def adapter(
        self, job: str, way: str, unit: str, adapter: Any, asked: Sequence[Any], count: Callable[[Any], float]
    ) -> None:
        """Time an adapter over all requests, in calls as large as it takes."""
        adapter.services = Services(blobs=self.load.images.__getitem__)

        async def ask(requests: Sequence[Any]) -> float:
            done, amount = 0, 0.0
            while done < len(requests):
                part = requests[done : done + adapter.limits.batch_items]
                for answer in await adapter.answer(part):
                    if isinstance(answer, Exception):
                        raise answer
                    amount += count(answer)
                done += len(part)
            return amount

        with asyncio.Runner() as runner:
            self.time(job, way, unit, lambda warm: runner.run(ask(asked[:8] if warm else asked)))
            runner.run(adapter.aclose())

    # Each job: the adapter, then its peers.

    def causal(self, model: str) -> None:
        """Write answers, and score options."""
        load, device = self.load, self.arguments.device
        how = Sampling(temperature=0.0, max_tokens=load.tokens)
        answers = [Generate(messages=(Message("user", (Text(text),)),), sampling=how) for text in load.prompts]
        options = [Likelihood(prompt=text, continuations=OPTIONS) for text in load.prompts]
        jobs = (
            ("answers", "token", answers, lambda one: one.usage.output_tokens),
            ("options", "option", options, _scores),
        )
        for job, unit, asked, count in jobs:
            made = HFCausal(HFCausalOptions(model=model, dtype="auto", device=device))
            self.adapter(job, "hf-causal", unit, made, asked, count)
        plain = AutoModelForCausalLM.from_pretrained(model, dtype="auto").eval().to(device)
        tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
        for batch in self.arguments.rival_batches:
            self.time(
                "answers",
                f"generate, batch {batch}",
                "token",
                lambda warm, b=batch: _generate(plain, tokenizer, load, b, warm),
            )
        plain = None
        if self._there("lm_eval", "lm-evaluation-harness"):
            for batch in self.arguments.rival_batches:
                harness = _harness(model, device, batch)
                self.time(
                    "options", f"lm-eval, batch {batch}", "option", lambda warm, h=harness: _by_harness(h, load, warm)
                )
        if self._there("vllm", "vLLM"):
            for job, unit, asked, count in jobs:
                self.adapter(job, "vllm", unit, VLLM(self._vllm(model)), asked, count)
            alone = _start_vllm(model)
            self.time("answers", "vLLM alone", "token", lambda warm: _by_vllm(alone, tokenizer, load, warm))
            alone.llm_engine.engine_core.shutdown()

    def _vllm(self, model: str, **more: Any) -> VLLMOptions:
        return VLLMOptions(model=model, batch_invariant=not self.arguments.vllm_fast, **more)

    def masked(self, model: str) -> None:
        """Score sentences, one masked token at a time."""
        asked = [PseudoLikelihood(text=text) for text in self.load.sentences]
        made = HFMasked(HFMaskedOptions(model=model, dtype="auto", device=self.arguments.device))
        self.adapter("PLL", "hf-masked", "sentence", made, asked, lambda one: 1)
        plain = AutoModelForMaskedLM.from_pretrained(model, dtype="auto").eval().to(self.arguments.device)
        tokenizer = AutoTokenizer.from_pretrained(model)
        self.time("PLL", "a batch per sentence", "sentence", lambda warm: _pll(plain, tokenizer, self.load, warm))

    def vlm(self, model: str) -> None:
        """Ask about images."""
        load, device = self.load, self.arguments.device
        how = Sampling(temperature=0.0, max_tokens=8)
        asked = [
            Generate(messages=(Message("user", (Image(name), Text(text))),), sampling=how)
            for name, text in load.questions
        ]
        made = HFVLM(HFVLMOptions(model=model, dtype="auto", device=device))
        self.adapter("images", "hf-vlm", "question", made, asked, lambda one: 1)
        plain = AutoModelForImageTextToText.from_pretrained(model, dtype="auto").eval().to(device)
        processor = Processors.from_pretrained(model, backend="pil")
        self.time("images", "generate, one by one", "question", lambda warm: _look(plain, processor, load, warm))
        plain = None
        if self._there("vllm", "vLLM"):
            self.adapter(
                "images", "vllm", "question", VLLM(self._vllm(model, prefix_caching=True)), asked, lambda one: 1
            )

    def _there(self, package: str, name: str) -> bool:
        there = find_spec(package) is not None and (package != "vllm" or self.arguments.device.startswith("cuda"))
        if not there:
            print(f"{name} is not installed here, or has no GPU: left out")
        return there


def _scores(answer: Any) -> float:
    return float(len(answer.scores))


def _generate(model: Any, tokenizer: Any, load: Load, batch: int, warm: bool) -> float:
    turns = [[{"role": "user", "content": text}] for text in load.prompts[: batch if warm else None]]
    made = 0
    for start in range(0, len(turns), batch):
        texts = tokenizer.apply_chat_template(turns[start : start + batch], tokenize=False)
        inputs = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False).to(model.device)
        inputs.pop("token_type_ids", None)
        with torch.inference_mode():
            ids = model.generate(**inputs, max_new_tokens=load.tokens, do_sample=False)
        made += int((ids[:, inputs["input_ids"].shape[1] :] != tokenizer.pad_token_id).sum())
    return float(made)


def _harness(model: str, device: str, batch: int) -> Any:
    logging.disable(logging.WARNING)
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=model, device=device, batch_size=batch, dtype="auto", add_bos_token=True)


def _by_harness(harness: Any, load: Load, warm: bool) -> float:
    from lm_eval.api.instance import Instance

    asked = [(text, option) for text in load.prompts[: 8 if warm else None] for option in OPTIONS]
    instances = [Instance("loglikelihood", {}, pair, number) for number, pair in enumerate(asked)]
    return float(len(harness.loglikelihood(instances, disable_tqdm=True)))


def _start_vllm(model: str) -> Any:
    import vllm

    return vllm.LLM(model=model, enable_prefix_caching=False, generation_config="vllm")


def _by_vllm(llm: Any, tokenizer: Any, load: Load, warm: bool) -> float:
    import vllm

    turns = [[{"role": "user", "content": text}] for text in load.prompts[: 8 if warm else None]]
    prompts = [
        {"prompt_token_ids": tokenizer(text, add_special_tokens=False)["input_ids"]}
        for text in (tokenizer.apply_chat_template(turns, tokenize=False))
    ]
    how = vllm.SamplingParams(temperature=0.0, max_tokens=load.tokens, detokenize=False)
    return float(sum(len(made.outputs[0].token_ids) for made in llm.generate(prompts, how, use_tqdm=False)))


def _pll(model: Any, tokenizer: Any, load: Load, warm: bool) -> float:
    sentences = load.sentences[: 8 if warm else None]
    for text in sentences:
        ids = tokenizer(text, return_tensors="pt")["input_ids"].to(model.device)
        places = torch.arange(ids.shape[1], device=ids.device)
        rows = ids.repeat(len(places), 1)
        rows[places, places] = tokenizer.mask_token_id
        with torch.inference_mode():
            scores = model(input_ids=rows).logits[places, places].float().log_softmax(-1)
        scores.gather(1, ids.T).sum().item()
    return float(len(sentences))


def _look(model: Any, processor: Any, load: Load, warm: bool) -> float:
    # One by one it is slow enough that a part of the questions tells.
    asked = load.questions[: 2 if warm else max(8, len(load.questions) // 20)]
    for name, question in asked:
        turns = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": question}]}]
        text = processor.apply_chat_template(turns, add_generation_prompt=True)
        picture = Pictures.open(io.BytesIO(load.images[name])).convert("RGB")
        inputs = processor(text=text, images=picture, return_tensors="pt", add_special_tokens=False).to(model.device)
        inputs["pixel_values"] = inputs["pixel_values"].to(model.dtype)
        with torch.inference_mode():
            model.generate(**inputs, max_new_tokens=8, do_sample=False)
    return float(len(asked))


def report(rows: Sequence[Row], device: str) -> dict[str, Any]:
    """Print the table as it goes into docs/benchmarks.md, and the projection; return them as data."""
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    print(f"\n| job on {name} | method | per second | adapter is |\n| --- | --- | --- | --- |")
    own: dict[str, float] = {}
    for row in rows:
        first = own.setdefault(row.job, row.rate)
        ratio = "" if row.rate == first else f"{first / row.rate:.1f} times as fast"
        print(f"| {row.job} | {row.way} | {row.rate:,.1f} {row.unit}s | {ratio} |")
    hours = {row.way: QUESTIONS / row.rate / 3600 for row in rows if row.job == "images"}
    for way, needed in hours.items():
        print(f"{QUESTIONS:,} questions with {way}: {needed:,.2f} h (aim on one H200: {AIM_HOURS:.0f} h)")
    return {"device": name, "rows": [{**row._asdict(), "rate": row.rate} for row in rows], "hours": hours}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", choices=list(gpu_models.SIZES), default="full", help="of the random models")
    for role in ("causal", "masked", "vlm"):
        parser.add_argument(f"--{role}", help="a folder or a name on the hub instead of a random model")
    parser.add_argument("--jobs", nargs="+", choices=["causal", "masked", "vlm"], default=["causal", "masked", "vlm"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scale", type=int, help="size of the load; 128 at full size, 1 for toys")
    parser.add_argument("--rival-batches", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--vllm-fast", action="store_true", help="vLLM without its batch-invariant mode")
    parser.add_argument("--cpu-time", action="store_true", help="count CPU seconds: for a busy machine")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args(words)
    if arguments.device.startswith("cuda") and not torch.cuda.is_available():
        print("no GPU: run it on a machine with one, or with --size toy --device cpu", file=sys.stderr)
        return 2
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    toy = arguments.size == "toy"
    bench = Bench(arguments, make_load(arguments.scale or (1 if toy else 128), 6 if toy else 64))
    for job in arguments.jobs:
        with tempfile.TemporaryDirectory() as place:
            write = getattr(gpu_models, f"write_{job}")
            model = getattr(arguments, job) or str(
                write(Path(place) / job, arguments.size, WORDS * 9, arguments.device)
            )
            getattr(bench, job)(model)
        gc.collect()
    made = report(bench.rows, arguments.device)
    if arguments.json:
        arguments.json.write_text(json.dumps(made, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
