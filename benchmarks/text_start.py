"""What stands before a text: the log-probability of sentences under several starts of a GGUF model.

    python benchmarks/text_start.py MODEL.gguf [START ...]

The sentences are those of the premises of `bistereo-nli`, one in every 997.
"""

from __future__ import annotations

import asyncio
import math
import sys
from itertools import islice

from prejudge.adapters.llamacpp.adapter import LlamaCpp, LlamaCppOptions
from prejudge.core.contracts.records import AnyResponse, Likelihood, Likelihoods
from prejudge.probes.bistereo.nli_design import Selection, nli_design, texts

STARTS = ("auto", "bos", "<|endoftext|>", "\n")
STEP, MOST = 997, 100


def sentences() -> list[str]:
    """Return premises, each once."""
    premises = dict.fromkeys(texts(cell)[0] for cell in islice(nli_design(Selection()).cells(), 0, None, STEP))
    return list(premises)[:MOST]


async def ask(model: str, start: str, asked: list[str]) -> tuple[str, list[AnyResponse]]:
    """Return the recorded start, and the answers."""
    adapter = LlamaCpp(LlamaCppOptions(model=model, n_ctx=256, start=start))
    try:
        answers = await adapter.answer([Likelihood(prompt="", continuations=(text,)) for text in asked])
    finally:
        await adapter.aclose()
    return str(adapter.identity.settings["start"]), [one for one in answers if isinstance(one, Likelihoods)]


def main(model: str, starts: tuple[str, ...]) -> None:
    """Print the means per sentence, and of the first token."""
    asked = sentences()
    for start in starts:
        recorded, answers = asyncio.run(ask(model, start, asked))
        scores = [one.scores[0] for one in answers if isinstance(one, Likelihoods)]
        if not scores:
            print(f"{recorded!r}: no likelihood")
            continue
        text = math.fsum(score.log_probability for score in scores) / len(scores)
        first = math.fsum((score.values or (math.nan,))[0] for score in scores) / len(scores)
        print(f"{recorded!r}: {text:.2f} nats per sentence, {first:.2f} of its first token, {len(scores)} sentences")


if __name__ == "__main__":
    main(sys.argv[1], tuple(sys.argv[2:]) or STARTS)
