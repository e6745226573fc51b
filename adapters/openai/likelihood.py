"""`Likelihood` in the way that an endpoint offers. The way is chosen in the settings; values are never invented.

`prompt_logprobs` (vLLM) and `echo` send prompt and continuation as one text, so that the tokenizer merges them as in
the real text, and score every token that carries a character of the continuation, from the same token on for all
continuations of a request (`border.py`).
`first_token` asks for the likeliest first tokens of an answer and looks the continuations up among them.
If a server ignores an option, the result is an error, never a number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from ...core.contracts.errors import PermanentError, TransientError
from ...core.contracts.records import Likelihood, Likelihoods, Message, TokenScores, Usage
from ..endpoint.call import Caller
from ..endpoint.images import Look
from ..shared.border import check_continuations, common_start
from .align import Found, Tokens, find_continuation, find_start
from .chat import ABSENT, ChatBodies
from .options import LikelihoodWay
from .replies import ChatReply, PromptTokens, TextChoice, TextReply, usage_of

_ENOUGH = 4
"""Number of equal values in one answer from which on they cannot come from a model."""
_OTHERS = "Set likelihood to a way that this endpoint offers (prompt_logprobs, echo, first_token)."


class Scorer:
    """Scores continuations at one endpoint in one way."""

    def __init__(self, caller: Caller, bodies: ChatBodies, way: LikelihoodWay, alternatives: int) -> None:
        self._caller, self._bodies, self._way, self._alternatives = caller, bodies, way, alternatives

    async def score(self, request: Likelihood, look: Look) -> Likelihoods:
        """Score each continuation, in the order asked.

        Raises:
            PermanentError: the endpoint does not give the requested values.
        """
        check_continuations(request.continuations)
        if isinstance(request.prompt, str):
            request = msgspec.structs.replace(request, prompt=self._bodies.text(request.prompt))
        if self._way == "first_token":
            return await self._first_token(request, look)
        # One after another: the server keeps the prompt of the first one for the others.
        asked = [await self._one(request, continuation, look) for continuation in request.continuations]
        found = [one for one, _ in asked]
        start = common_start([one.texts for one in found], [one.first for one in found])
        spelled = "".join(found[0].texts[start:])
        return Likelihoods(
            scores=tuple(self._scores(one.values[start:]) for one in found),
            overlap=max(0, len(spelled) - len(request.continuations[0])),
            usage=_total([used for _, used in asked]),
        )

    async def _one(self, request: Likelihood, continuation: str, look: Look) -> tuple[Found, Usage]:
        if self._way == "echo":
            return await self._echo(request, continuation)
        if isinstance(request.prompt, str):
            body = {"prompt": request.prompt + continuation, "max_tokens": 1, "prompt_logprobs": 0, "temperature": 1.0}
            text = await self._caller.ask("/completions", body, TextReply)
            tokens = self._prompt_tokens(self._choice(text).prompt_logprobs)
            return self._align(tokens, request.prompt, continuation), usage_of(text.usage)
        chat = await self._caller.ask(
            "/chat/completions", self._continued(request.prompt, continuation, look), ChatReply
        )
        return self._align(self._prompt_tokens(chat.prompt_logprobs), None, continuation), usage_of(chat.usage)

    def _continued(self, messages: Sequence[Message], continuation: str, look: Look) -> dict[str, Any]:
        made = self._bodies.messages(messages, look)
        if made and made[-1]["role"] == "assistant" and isinstance(made[-1]["content"], str):
            made[-1]["content"] += continuation
        else:
            made.append({"role": "assistant", "content": continuation})
        return {
            "messages": made,
            "add_generation_prompt": False,
            "continue_final_message": True,
            "prompt_logprobs": 0,
            "temperature": 1.0,
            self._bodies.limit_field: 1,
        }

    def _prompt_tokens(self, entries: PromptTokens | None) -> Tokens:
        if not entries:
            raise PermanentError(
                f"{self._caller.where} gives no log-probabilities of the prompt. {_OTHERS}", code="endpoint.no-logprobs"
            )
        texts: list[str] = []
        values: list[float | None] = []
        for entry in entries:
            one = next(iter(entry.values())) if entry and len(entry) == 1 else None
            if entry and one is None:
                raise PermanentError(
                    f"{self._caller.where} gives several tokens per position of the prompt. {_OTHERS}",
                    code="endpoint.logprobs",
                )
            texts.append("" if one is None else one.decoded_token or "")
            values.append(None if one is None else one.logprob)
        self._refuse_constant(values)
        return Tokens(texts, values)

    async def _echo(self, request: Likelihood, continuation: str) -> tuple[Found, Usage]:
        if not isinstance(request.prompt, str):
            raise PermanentError(
                "'echo' scores plain text, not messages. Use prompt_logprobs (vLLM) or first_token.",
                code="request.chat-likelihood",
            )
        # One token more than wanted: servers read a limit of 0 in three different ways.
        body = {"prompt": request.prompt + continuation, "max_tokens": 1, "echo": True, "logprobs": 1}
        reply = await self._caller.ask("/completions", {**body, "temperature": 1.0}, TextReply)
        logprobs = self._choice(reply).logprobs
        texts, values = (logprobs.tokens, logprobs.token_logprobs) if logprobs is not None else (None, None)
        if logprobs is None or not texts or not values or len(texts) != len(values):
            raise PermanentError(
                f"{self._caller.where} gives no log-probabilities of tokens. {_OTHERS}", code="endpoint.no-logprobs"
            )
        self._refuse_constant(values)
        counted = usage_of(reply.usage)
        tokens = Tokens(texts, values, logprobs.text_offset)
        return find_continuation(tokens, request.prompt, continuation, counted, self._caller.where), counted

    def _align(self, tokens: Tokens, prompt: str | None, continuation: str) -> Found:
        start = find_start(tokens.texts, tokens.values, prompt, continuation)
        if start is None:
            raise PermanentError(
                f"the tokens that {self._caller.where} reports do not spell the continuation {continuation!r}; "
                "so the tokens to score are unknown.",
                code="endpoint.echo",
            )
        return Found(tokens.texts, tokens.values, start)

    async def _first_token(self, request: Likelihood, look: Look) -> Likelihoods:
        if isinstance(request.prompt, str):
            body = {"prompt": request.prompt, "max_tokens": 1, "logprobs": self._alternatives, "temperature": 1.0}
            text = await self._caller.ask("/completions", body, TextReply)
            return self._look_up(_first_of_text(self._choice(text)), request, usage_of(text.usage))
        body = {
            "messages": self._bodies.messages(request.prompt, look),
            "temperature": 1.0,
            self._bodies.limit_field: 1,
        }
        body.update(logprobs=True, top_logprobs=self._alternatives)
        chat = await self._caller.ask("/chat/completions", body, ChatReply)
        if not chat.choices:
            raise TransientError(
                f"{self._caller.where} sent a reply without an answer (no choices).", code="endpoint.no-answer"
            )
        logprobs = chat.choices[0].logprobs
        places = logprobs.content if logprobs is not None else None
        top = [(one.token, one.logprob) for one in places[0].top_logprobs] if places else []
        return self._look_up(top, request, usage_of(chat.usage))

    def _look_up(self, top: Sequence[tuple[str, float]], request: Likelihood, usage: Usage) -> Likelihoods:
        if not top:
            raise PermanentError(
                f"{self._caller.where} gives no log-probabilities of first tokens. {_OTHERS}",
                code="endpoint.no-logprobs",
            )
        known: dict[str, float] = {}
        told = [value for _, value in top if value > ABSENT]
        self._refuse_constant(told)
        if math.fsum(map(math.exp, (min(value, 1.0) for value in told))) > 1.01:
            raise PermanentError(
                f"{self._caller.where} gives first tokens that add up to more than 1: {told[:4]}.",
                code="endpoint.logprobs",
            )
        for token, value in top:
            if value > ABSENT:
                known[token] = max(value, known.get(token, -math.inf))
        if missing := [repr(text) for text in request.continuations if text not in known]:
            raise PermanentError(
                f"{', '.join(missing)} is not among the {len(top)} likeliest first tokens that {self._caller.where} "
                "tells (or is more than one token), so its likelihood is not known.",
                code="endpoint.not-among-first",
            )
        return Likelihoods(scores=tuple(self._scores([known[text]]) for text in request.continuations), usage=usage)

    def _refuse_constant(self, values: Sequence[float | None]) -> None:
        """Refuse one equal number for every token, which servers without log-probabilities return."""
        known = [value for value in values if value is not None]
        if len(known) >= _ENOUGH and len(set(known)) == 1:
            raise PermanentError(
                f"{self._caller.where} gives all {len(known)} tokens the same number ({known[0]:g}), which are no "
                f"log-probabilities. {_OTHERS}",
                code="endpoint.logprobs",
            )

    def _scores(self, values: Sequence[float | None]) -> TokenScores:
        known = tuple(value for value in values if value is not None)
        if len(known) < len(values):
            raise PermanentError(
                f"{self._caller.where} gives the first token of a text no log-probability, and the continuation has a "
                "part in it. Ask with a longer prompt, such as the study's option before, if it has one.",
                code="request.no-context",
            )
        if not all(ABSENT < value <= 1e-6 for value in known):
            raise PermanentError(
                f"{self._caller.where} gives numbers that are not log-probabilities: {known[:4]}.",
                code="endpoint.logprobs",
            )
        return TokenScores(log_probability=math.fsum(known), count=len(known), values=known)

    def _choice(self, reply: TextReply) -> TextChoice:
        if not reply.choices:
            raise TransientError(
                f"{self._caller.where} sent a reply without an answer (no choices).", code="endpoint.no-answer"
            )
        return reply.choices[0]


def _first_of_text(choice: TextChoice) -> list[tuple[str, float]]:
    logprobs = choice.logprobs
    if logprobs is None:
        return []
    if logprobs.content:
        return [(one.token, one.logprob) for one in logprobs.content[0].top_logprobs]
    return list((logprobs.top_logprobs[0] or {}).items()) if logprobs.top_logprobs else []


def _total(parts: Sequence[Usage]) -> Usage:
    return Usage(
        input_tokens=sum(part.input_tokens for part in parts), output_tokens=sum(part.output_tokens for part in parts)
    )
