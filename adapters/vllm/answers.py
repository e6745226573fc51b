"""Answers: what is asked of vLLM, and what its tokens say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...core.contracts.errors import PermanentError, TransientError
from ...core.contracts.records import Generate, Generation, TopToken, Usage
from ...core.reading.reasoning import find_stop
from ..hf.text import Encoder
from ..shared.sampling import Choice
from .engine import Asked

LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 2.0
"""Between 0 and the first, vLLM would sample at the first; above the second it refuses."""


class Plan(NamedTuple):
    """One answer to be written."""

    asked: Asked
    stops: tuple[str, ...]
    opened: bool
    """Whether the prompt ends with the opening mark of reasoning."""
    top: int

    def without_stops(self) -> Plan:
        """Return the same request, in which vLLM does not look for stop texts."""
        params = {name: value for name, value in self.asked.params.items() if name != "stop"}
        return self._replace(asked=self.asked._replace(params={**params, "detokenize": False}))


def parameters(request: Generate, choice: Choice, most: int, ends: frozenset[int], *, stops: bool) -> Mapping[str, Any]:
    """Return the fields of `SamplingParams` for one answer.

    The seed is the request's own: it follows from prompt, seed, sample and attempt, as the draws of `hf-causal` do.

    Raises:
        PermanentError: a temperature at which vLLM would sample at another one, or that it refuses.
    """
    if 0 < choice.temperature < LEAST_TEMPERATURE or choice.temperature > MOST_TEMPERATURE:
        raise PermanentError(
            f"temperature is {choice.temperature}: vLLM samples between {LEAST_TEMPERATURE} and {MOST_TEMPERATURE}. "
            "Give one of these, or 0 (the likeliest token).",
            code="request.value",
        )
    params: dict[str, Any] = {
        "temperature": choice.temperature,
        "top_p": choice.top_p,
        "top_k": choice.top_k,
        "seed": choice.key >> 1,  # 63 bits: it takes signed numbers.
        "max_tokens": most,
        "stop_token_ids": sorted(ends),
        "detokenize": stops,
    }
    if stops:
        params["stop"] = list(request.sampling.stop)
    if choice.min_p:
        params["min_p"] = choice.min_p
    if request.top_logprobs > 0:
        params["logprobs"] = request.top_logprobs
    if form := _form(request):
        params["form"] = form
    return params


def _form(request: Generate) -> dict[str, Any]:
    """Return the form that an answer must have, as vLLM's `StructuredOutputsParams` names it.

    Raises:
        PermanentError: two forms at once.
    """
    if request.json_schema and request.choices:
        raise PermanentError("an answer cannot fit both a JSON schema and choices.", code="request.value")
    if request.json_schema:
        return {"json": request.json_schema}
    return {"choice": list(request.choices)} if request.choices else {}


def stopped_in_reasoning(plan: Plan, output: Any, encoder: Encoder) -> bool:
    """Return whether vLLM ended an answer at a stop text that stands in the model's reasoning, which is never cut."""
    made = output.outputs[0]
    if "stop" not in plan.asked.params or made.finish_reason != "stop" or made.stop_reason not in plan.stops:
        return False
    return find_stop(encoder.text(plan.asked.ids, made.token_ids), plan.stops, opened=plan.opened) is None


def read(plan: Plan, output: Any, encoder: Encoder) -> Generation:
    """Return what vLLM wrote.

    Raises:
        TransientError: it gave the request up.
    """
    made = output.outputs[0]
    if made.finish_reason not in {"stop", "length"}:
        raise TransientError(f"vLLM gave a request up ({made.finish_reason}).", code="engine.given-up")
    tokens: Sequence[int] = list(made.token_ids)
    text = encoder.text(plan.asked.ids, tokens)
    end = find_stop(text, plan.stops, opened=plan.opened)
    return Generation(
        text=text[:end],
        opened=plan.opened,
        finish_reason=made.finish_reason if end is None else "stop",
        top_logprobs=tuple(_tops(told, plan.top, encoder) for told in made.logprobs or ()),
        usage=Usage(input_tokens=len(output.prompt_token_ids), output_tokens=len(tokens)),
    )


def _tops(told: Mapping[int, Any], count: int, encoder: Encoder) -> tuple[TopToken, ...]:
    # The token that was drawn is among them even where it is none of the likeliest.
    best = sorted(told.items(), key=lambda pair: (-pair[1].logprob, pair[0]))[:count]
    return tuple(TopToken(encoder.token(token), float(one.logprob)) for token, one in best)
