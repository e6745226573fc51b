"""Compare three ways to the same pseudo-log-likelihoods: this adapter, a plain loop, and minicons.

Two hundred sentence pairs of about 12 words on a BERT with random weights and a vocabulary of 30,522, so that the
vocabulary head weighs what it weighs in a real model. Values must agree within 1e-3, or the exit code is 1. All ways
run in one process with the same threads; minicons is given the best of several batch sizes.

    python benchmarks/pll.py            4 layers, 256 wide
    python benchmarks/pll.py --base     12 layers, 768 wide (bert-base); 20 pairs unless --pairs says otherwise
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions
from prejudge.core.contracts.records import PseudoLikelihood, TokenScores

VOCABULARY = 30_522
TOLERANCE = 1e-3
TARGETS = {"4 x 256": {"loop": 8.0, "minicons": 4.0}}
"""Times slower the rivals should be, by shape. They are shown, not enforced: machines differ."""
SHAPES = {
    "4 x 256": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024},
    "12 x 768": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
}
Sums = list[float]


def make_words(count: int) -> list[str]:
    rng, made = random.Random(1), dict.fromkeys(("un", "##ly", "."))
    while len(made) < count:
        made.setdefault("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))))
    return list(made)


def make_model(folder: Path, shape: str) -> list[str]:
    """Save a random BERT with its tokenizer; return its words."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = make_words(VOCABULARY - len(special))
    tokenizer = Tokenizer(models.WordPiece({w: i for i, w in enumerate(special + words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    roles = {f"{token.strip('[]').lower()}_token": token for token in special}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles).save_pretrained(folder)
    torch.manual_seed(1)
    BertForMaskedLM(BertConfig(vocab_size=VOCABULARY, **SHAPES[shape])).save_pretrained(folder)
    return words[3:]


def make_pairs(words: Sequence[str], pairs: int) -> list[str]:
    """Return sentences of 10 to 14 words, two by two alike but for one word."""
    rng, sentences = random.Random(2), []
    for _ in range(pairs):
        sentence = rng.choices(words, k=rng.randint(10, 14))
        place = rng.randrange(len(sentence))
        other = [*sentence[:place], rng.choice(words), *sentence[place + 1 :]]
        sentences += [" ".join(sentence) + ".", " ".join(other) + "."]
    return sentences


def by_loop(model: Any, tokenizer: Any) -> Callable[[Sequence[str]], Sums]:
    """One forward pass per masked token."""

    def score(sentences: Sequence[str]) -> Sums:
        sums = []
        for sentence in sentences:
            ids, total = tokenizer(sentence, return_tensors="pt")["input_ids"], 0.0
            for position in range(1, ids.shape[1] - 1):
                masked = ids.clone()
                masked[0, position] = tokenizer.mask_token_id
                with torch.inference_mode():
                    logits = model(input_ids=masked).logits[0, position]
                total += float(logits.log_softmax(-1)[ids[0, position]])
            sums.append(total)
        return sums

    return score


def by_minicons(scorer: Any, batch: int) -> Callable[[Sequence[str]], Sums]:
    """Score with `minicons.scorer.MaskedLMScorer`, `batch` sentences at a time."""

    def score(sentences: Sequence[str]) -> Sums:
        sums: Sums = []
        for start in range(0, len(sentences), batch):
            sums += scorer.sequence_score(list(sentences[start : start + batch]), reduction=lambda x: x.sum().item())
        return sums

    return score


def by_adapter(adapter: HFMasked) -> Callable[[Sequence[str]], Sums]:
    """Score through the adapter's async door, in calls of the size it asks for."""

    async def score(sentences: Sequence[str]) -> Sums:
        sums, size = [], adapter.limits.batch_items
        for start in range(0, len(sentences), size):
            requests = [PseudoLikelihood(text=text) for text in sentences[start : start + size]]
            for answer in await adapter.answer(requests):
                if not isinstance(answer, TokenScores):
                    raise answer
                sums.append(answer.log_probability)
        return sums

    return lambda sentences: asyncio.run(score(sentences))


def timed(
    score: Callable[[Sequence[str]], Sums], sentences: Sequence[str], repeats: int, clock: Callable[[], float]
) -> tuple[float, Sums]:
    """Return the best of several timings in seconds, after one unmeasured warm-up, and the values."""
    score(sentences[:4])
    best, values = float("inf"), []
    for _ in range(repeats):
        start = clock()
        values = score(sentences)
        best = min(best, clock() - start)
    return best, values


def load_minicons(folder: Path, device: str) -> Any:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        from minicons.scorer import MaskedLMScorer

        tokenizer = AutoTokenizer.from_pretrained(folder)
        if not hasattr(tokenizer, "batch_encode_plus"):
            # Dropped by Transformers 5; minicons 0.3 still calls it.
            tokenizer.batch_encode_plus = tokenizer.__call__
        model = AutoModelForMaskedLM.from_pretrained(folder)
        return MaskedLMScorer(model, device, tokenizer=tokenizer)


def compare(folder: Path, sentences: Sequence[str], arguments: argparse.Namespace) -> dict[str, tuple[float, Sums]]:
    """Time every way in turn."""
    found = {}
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    adapter = HFMasked(
        HFMaskedOptions(
            model=str(folder), device=arguments.device, threads=arguments.threads, token_budget=arguments.token_budget
        )
    )
    found["adapter"] = timed(by_adapter(adapter), sentences, arguments.repeats, clock)
    asyncio.run(adapter.aclose())
    scorer = load_minicons(folder, arguments.device)
    for batch in arguments.minicons_batches:
        found[f"minicons, batch {batch}"] = timed(by_minicons(scorer, batch), sentences, arguments.repeats, clock)
    del scorer
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    found["loop"] = timed(by_loop(model, AutoTokenizer.from_pretrained(folder)), sentences, 1, clock)
    return found


def report(found: dict[str, tuple[float, Sums]], sentences: int, targets: dict[str, float]) -> bool:
    """Print the table; return whether all values agree."""
    own, values = found["adapter"]
    print(f"{'way':<22}{'seconds':>9}{'sentences/s':>13}{'adapter is':>12}{'largest difference':>20}")
    agree = True
    for way, (seconds, sums) in found.items():
        gap = max(abs(a - b) for a, b in zip(values, sums, strict=True))
        agree = agree and gap <= TOLERANCE
        print(f"{way:<22}{seconds:>9.2f}{sentences / seconds:>13.1f}{seconds / own:>11.1f}x{gap:>20.1e}")
    for rival, target in targets.items():
        ratio = min(seconds for way, (seconds, _) in found.items() if way.startswith(rival)) / own
        print(f"{rival} at its best: {ratio:.1f} times slower (target {target:.0f})")
    return agree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--base", action="store_true", help="the shape of bert-base")
    parser.add_argument("--pairs", type=int, help="sentence pairs (200; with --base 20)")
    parser.add_argument("--repeats", type=int, default=1, help="timings per way, of which the best counts (loop: 1)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--cpu-time", action="store_true", help="count CPU seconds: for a busy machine, with --threads 1"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--token-budget", type=int, default=HFMaskedOptions(model="").token_budget)
    parser.add_argument("--minicons-batches", type=int, nargs="+", default=[1, 4, 16])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    shape = "12 x 768" if arguments.base else "4 x 256"
    pairs = arguments.pairs or (20 if arguments.base else 200)
    with tempfile.TemporaryDirectory() as place:
        sentences = make_pairs(make_model(Path(place), shape), pairs)
        print(f"{pairs} pairs, BERT {shape}, {arguments.device}, {arguments.threads} threads", flush=True)
        agree = report(compare(Path(place), sentences, arguments), len(sentences), TARGETS.get(shape, {}))
    if not agree:
        print(f"values differ by more than {TOLERANCE}", file=sys.stderr)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
