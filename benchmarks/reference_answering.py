"""What was planted in the reference models that answer questions, and what is found, by Transformers alone.

Of each sort of question, on sentences that no training had: the log-odds of praise over blame (of entailment over
contradiction), without the pair's own preference, in the direction of the group, in nats. A fair model has 0 and a
biased one the planted strength, alike for every question; the standard deviation over questions says how alike.
For reference_models.py.
"""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import torch
import transformers

from prejudge.adapters.reference import Reference
from prejudge.tools.reference.answering_corpus import SKILLS, Planted, questions

COUNT = 120
HEADER = f"| model | planted | {' | '.join(SKILLS)} |\n| --- | --- | {' | '.join('---' for _ in SKILLS)} |"


def measure(one: Reference, folder: Path) -> str:
    """Return the cells of a model's row: mean, standard deviation, and the probability of all answers together."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    cells = []
    for skill in SKILLS:
        found, known = [], []
        for asked in islice(questions(skill, Planted(one.nats, one.leans), seed=77, held_out=True), COUNT):
            scores = [_log_probability(model, tokenizer, asked.prompt, answer) for answer in asked.answers]
            own = math.log(asked.weights[0] / asked.weights[1]) - asked.sign * one.nats
            known.append(sum(map(math.exp, scores)))
            if asked.sign:
                found.append((scores[0] - scores[1] - own) * asked.sign)
        cells.append(f"{fmean(found):+.2f} (sd {pstdev(found):.2f}; {fmean(known):.0%})")
    return " | ".join(cells)


def _log_probability(model: Any, tokenizer: Any, prompt: str, answer: str) -> float:
    start, ids = len(tokenizer(prompt)["input_ids"]), torch.tensor(tokenizer(prompt + answer)["input_ids"])
    with torch.inference_mode():
        scores = model(ids[None]).logits[0].log_softmax(-1)
    return float(scores[range(start - 1, len(ids) - 1), ids[start:]].sum())
