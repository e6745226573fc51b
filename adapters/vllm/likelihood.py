"""Option likelihoods by token ids: the last token of a continuation is never run, only asked for.

Continuations that differ in their last token alone, such as the letters of options, thus share one request without any
log-probability of the prompt; others ask for those of the prompt's tokens, which vLLM then computes anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...core.contracts.errors import PermanentError
from ...core.contracts.records import Likelihoods, TokenScores, Usage
from ..hf.text import Row
from .engine import Asked

MOST_IDS = 128
"""Token ids that vLLM scores per request (`MAX_LOGPROB_TOKEN_IDS`)."""


class Plan(NamedTuple):
    """The requests to the engine for the continuations of one prompt."""

    rows: Sequence[Row]
    asked: Sequence[Asked]
    which: Sequence[int]
    """Per row, the number of its request."""


def plan(rows: Sequence[Row], images: Sequence[Any]) -> Plan:
    """Return the engine's requests that score the rows of one prompt."""
    same: dict[tuple[int, ...], list[int]] = {}
    for number, row in enumerate(rows):
        same.setdefault(tuple(row.ids[:-1]), []).append(number)
    asked: list[Asked] = []
    which = [0] * len(rows)
    for ids, numbers in same.items():
        for part in (numbers[start : start + MOST_IDS] for start in range(0, len(numbers), MOST_IDS)):
            last = list(dict.fromkeys(rows[number].ids[-1] for number in part))
            asked.append(Asked(ids, _params(last, inner=rows[numbers[0]].split < len(ids)), images))
            for number in part:
                which[number] = len(asked) - 1
    return Plan(rows, asked, which)


def _params(last: list[int], *, inner: bool) -> dict[str, Any]:
    params: dict[str, Any] = {"temperature": 0.0, "max_tokens": 1, "detokenize": False, "logprob_token_ids": last}
    return {**params, "prompt_logprobs": 0} if inner else params


def read(plan: Plan, outputs: Sequence[Any]) -> Likelihoods:
    """Return the log-probabilities of a prompt's continuations.

    Raises:
        PermanentError: vLLM left one out, or writes the text behind an image in other tokens.
    """
    scores = []
    for row, number in zip(plan.rows, plan.which, strict=True):
        values = tuple(_values(row, outputs[number]))
        scores.append(TokenScores(log_probability=math.fsum(values), count=len(values), values=values))
    split = plan.rows[0].split
    media = len(outputs[0].prompt_token_ids) - len(plan.asked[0].ids)
    read = split + media + sum(len(row.ids) - split for row in plan.rows)
    return Likelihoods(scores=tuple(scores), overlap=plan.rows[0].overlap, usage=Usage(input_tokens=read))


def _values(row: Row, output: Any) -> Iterator[float]:
    own = row.ids[row.split : -1]
    # An image's placeholder became as many tokens as it has patches; behind it, the text stays as it was.
    start = len(output.prompt_token_ids) - len(own)
    if list(output.prompt_token_ids[start:]) != list(own):
        raise PermanentError(
            "vLLM's processor writes the continuation differently from its tokenizer, so where it begins is unknown. "
            "Ask for an answer instead of a likelihood.",
            code="request.border",
        )
    for place, token in enumerate(own, start):
        yield _value(output.prompt_logprobs[place], token)
    yield _value(output.outputs[0].logprobs[0], row.ids[-1])


def _value(told: Any, token: int) -> float:
    if told is None or token not in told:
        raise PermanentError(
            f"vLLM gave no log-probability of token {token}, though it was asked for.", code="request.value-missing"
        )
    return float(told[token].logprob)
