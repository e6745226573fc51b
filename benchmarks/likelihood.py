"""Compare three ways to the same likelihoods: this adapter, lm-evaluation-harness and a plain padded batch.

A thousand stems of about 25 tokens with three options each, on a Llama of 4 layers, 256 wide, with random weights and a
vocabulary of 32,000. Values must agree within 1e-3, or the exit code is 1. All ways run in one process with the same
threads; the rivals are given the best of several batch sizes, and their time counts no loading.

lm-evaluation-harness is left out where it is not installed: pip install 'lm-eval[hf]==0.4.*'

    python benchmarks/likelihood.py
    python benchmarks/likelihood.py --device cuda --rival-batches 64 256 1024
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import logging
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging as chatter

from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
from prejudge.core.contracts.records import Likelihood, Likelihoods

VOCABULARY = 32_000
OPTIONS = 3
TOLERANCE = 1e-3
TARGET = 5.0
"""Times slower lm-evaluation-harness should be. It is shown, not enforced: machines differ."""
Sums = list[float]
Questions = list[tuple[str, tuple[str, ...]]]
Way = Callable[[Questions], Sums]


def make_words(count: int) -> list[str]:
    rng, made = random.Random(1), dict[str, None]()
    while len(made) < count:
        made.setdefault("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))))
    return list(made)


def make_model(folder: Path) -> list[str]:
    """Save a random Llama with its tokenizer, one token per word; return the words."""
    special = ["<unk>", "<s>", "</s>"]
    words = make_words(VOCABULARY - len(special))
    numbers = {word: number for number, word in enumerate([*special, *("\u2581" + word for word in words)])}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    roles = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles).save_pretrained(folder)
    torch.manual_seed(1)
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4}
    shape = {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4, **heads}
    LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, **shape)).save_pretrained(folder)
    return words


def make_questions(words: Sequence[str], stems: int) -> Questions:
    """Return stems of 20 to 30 words, each with three options of 1 to 3 words."""
    rng = random.Random(2)

    def text(least: int, most: int) -> str:
        return " ".join(rng.choices(words, k=rng.randint(least, most)))

    return [(text(20, 30), tuple(" " + text(1, 3) for _ in range(OPTIONS))) for _ in range(stems)]


def by_adapter(adapter: HFCausal) -> Way:
    """Score through the adapter's async door, in calls of the size it asks for."""

    async def score(questions: Questions) -> Sums:
        sums, size = [], adapter.limits.batch_items
        for start in range(0, len(questions), size):
            requests = [Likelihood(prompt=stem, continuations=texts) for stem, texts in questions[start : start + size]]
            for answer in await adapter.answer(requests):
                if not isinstance(answer, Likelihoods):
                    raise answer if isinstance(answer, Exception) else TypeError(answer)
                sums += [part.log_probability for part in answer.scores]
        return sums

    return lambda questions: asyncio.run(score(questions))


def by_padded_batch(model: Any, tokenizer: Any, batch: int) -> Way:
    """Run every stem with every option whole, sorted by length and padded."""

    def score(questions: Questions) -> Sums:
        stems = [len(ids) for ids in tokenizer([stem for stem, _ in questions])["input_ids"]]
        rows = tokenizer([stem + text for stem, texts in questions for text in texts])["input_ids"]
        order, sums = sorted(range(len(rows)), key=lambda row: -len(rows[row])), [0.0] * len(rows)
        for start in range(0, len(rows), batch):
            part = order[start : start + batch]
            ids = torch.zeros(len(part), len(rows[part[0]]), dtype=torch.long)
            for place, row in enumerate(part):
                ids[place, : len(rows[row])] = torch.tensor(rows[row])
            with torch.inference_mode():
                scores = model(input_ids=ids.to(model.device)).logits.float().log_softmax(-1)
            for place, row in enumerate(part):
                first, end = stems[row // OPTIONS], len(rows[row])
                found = scores[place, first - 1 : end - 1].gather(1, ids[place, first:end, None].to(model.device))
                sums[row] = float(found.sum())
        return sums

    return score


def by_harness(model: Any) -> Way:
    """Score with lm-evaluation-harness' `HFLM.loglikelihood`."""
    from lm_eval.api.instance import Instance

    def score(questions: Questions) -> Sums:
        asked = [(stem, text) for stem, texts in questions for text in texts]
        instances = [Instance("loglikelihood", {}, pair, number) for number, pair in enumerate(asked)]
        return [value for value, _ in model.loglikelihood(instances, disable_tqdm=True)]

    return score


def load_harness(folder: Path, device: str, batch: int) -> Any:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        logging.disable(logging.WARNING)
        from lm_eval.models.huggingface import HFLM

        # Our text begins with the same token.
        return HFLM(pretrained=str(folder), device=device, batch_size=batch, dtype="float32", add_bos_token=True)


def timed(score: Way, questions: Questions, arguments: argparse.Namespace) -> tuple[float, Sums]:
    """Return the best of several timings in seconds, after one unmeasured warm-up, and the values."""
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    score(questions[:20])
    best, values = float("inf"), []
    for _ in range(arguments.repeats):
        start = clock()
        values = score(questions)
        if arguments.device.startswith("cuda"):
            torch.cuda.synchronize()
        best = min(best, clock() - start)
    return best, values


def compare(folder: Path, questions: Questions, arguments: argparse.Namespace) -> dict[str, tuple[float, Sums]]:
    """Time every way in turn."""
    device, found = arguments.device, {}

    def measure(name: str, way: Way) -> None:
        found[name] = timed(way, questions, arguments)

    adapter = HFCausal(HFCausalOptions(model=str(folder), device=device, threads=arguments.threads))
    measure("adapter", by_adapter(adapter))
    asyncio.run(adapter.aclose())
    model = AutoModelForCausalLM.from_pretrained(folder).eval().to(device)
    for batch in arguments.rival_batches:
        measure(f"padded, batch {batch}", by_padded_batch(model, AutoTokenizer.from_pretrained(folder), batch))
    del model
    for batch in arguments.rival_batches:
        try:
            harness = load_harness(folder, device, batch)
        except ImportError:
            print("lm-evaluation-harness is not installed, so it is left out")
            break
        measure(f"harness, batch {batch}", by_harness(harness))
    return found


def report(found: dict[str, tuple[float, Sums]], stems: int) -> bool:
    """Print the table; return whether all values agree."""
    own, values = found["adapter"]
    print(f"{'way':<22}{'seconds':>9}{'stems/s':>10}{'adapter is':>12}{'largest difference':>20}")
    agree = True
    for way, (seconds, sums) in found.items():
        gap = max(abs(a - b) for a, b in zip(values, sums, strict=True))
        agree = agree and gap <= TOLERANCE
        print(f"{way:<22}{seconds:>9.2f}{stems / seconds:>10.1f}{seconds / own:>11.1f}x{gap:>20.1e}")
    rivals = [seconds for way, (seconds, _) in found.items() if way.startswith("harness")]
    if rivals:
        print(f"lm-evaluation-harness at its best: {min(rivals) / own:.1f} times slower (target {TARGET:.0f})")
    return agree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--stems", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=1, help="timings per way, of which the best counts")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--cpu-time", action="store_true", help="count CPU seconds: for a busy machine, with --threads 1"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rival-batches", type=int, nargs="+", default=[1, 8, 32])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    with tempfile.TemporaryDirectory() as place:
        questions = make_questions(make_model(Path(place)), arguments.stems)
        shown = f"{arguments.device}, {arguments.threads} threads, vocabulary {VOCABULARY:,}"
        print(f"{len(questions)} stems with {OPTIONS} options, Llama 4 x 256, {shown}", flush=True)
        agree = report(compare(Path(place), questions, arguments), len(questions))
    if not agree:
        print(f"values differ by more than {TOLERANCE}", file=sys.stderr)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
