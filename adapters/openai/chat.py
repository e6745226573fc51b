"""`Generate` as a chat completion, and the answer read back with every signal of a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.contracts.canonical import wire_seed
from ...core.contracts.errors import PermanentError, TransientError
from ...core.contracts.records import Generate, Generation, Image, Message, ResponseStatus, TopToken
from ...core.reading.reasoning import find_stop
from ..endpoint.answers import with_reply
from ..endpoint.filters import FINISHES, is_filtered
from ..endpoint.images import Look
from ..endpoint.wishes import JOINT, schema_of
from ..shared.sampling import check_answer
from .options import OPENAI_URL, OpenAIOptions
from .replies import ChatChoice, ChatReply, usage_of

ABSENT = -9999.0
"""OpenAI's value for a log-probability that it does not give."""
_BROKEN = frozenset({"error", "abort", "insufficient_system_resource"})
"""Finish reasons of an answer that the server broke off: OpenRouter's; vLLM's and SGLang's; DeepSeek's."""
KNOWN = FINISHES | {"stop", "length", "refusal", "tool_calls", "function_call"}
"""Finish reasons that need no raw reply to be understood."""


class ChatBodies:
    """Makes the bodies of chat completions."""

    def __init__(self, options: OpenAIOptions, address: str) -> None:
        self._options = options
        own = "max_completion_tokens" if address == OPENAI_URL else "max_tokens"
        self.limit_field = options.max_tokens_field or own

    def generate(self, request: Generate, look: Look, generation: int = 0) -> dict[str, Any]:
        """Return the body of a request; fields that it does not set are not sent, but repeats have a seed.

        Raises:
            PermanentError: settings under which no answer can be given.
        """
        sampling = request.sampling
        check_answer(sampling)
        body: dict[str, Any] = {"messages": self.messages(request.messages, look)}
        limit = sampling.max_tokens or self._options.max_tokens
        limit = None if limit is None else limit + self._options.answer_room
        choices = {"temperature": sampling.temperature, "top_p": sampling.top_p, self.limit_field: limit}
        body.update((name, value) for name, value in choices.items() if value is not None)
        if sampling.stop:
            body["stop"] = sampling.stop
        if (seed := wire_seed(request, generation)) is not None:
            body["seed"] = seed
        named = {"top_k": sampling.top_k, "min_p": sampling.min_p}
        body.update((name, value) for name, value in named.items() if value is not None)
        if request.json_schema:
            form = {"name": "answer", "schema": schema_of(request), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if request.choices:
            body["structured_outputs"] = {"choice": request.choices}
        if self._options.effort is not None:
            body["reasoning_effort"] = self._options.effort
        if request.top_logprobs:
            body.update(logprobs=True, top_logprobs=request.top_logprobs)
        return {name: value for name, value in body.items() if name not in self._options.omit}

    def read(self, reply: ChatReply, raw: bytes, request: Generate, where: str) -> Generation:
        """Return the answer of a reply to a request, with its raw reply where the settings keep it.

        Raises:
            ModelError: it has none.
        """
        options = self._options
        answer = read_generation(
            reply,
            request,
            where,
            opened=options.think_opened,
            cut="stop" in options.omit,
        )
        return with_reply(answer, raw, options.keep_replies, KNOWN)

    def messages(self, messages: Sequence[Message], look: Look) -> list[dict[str, Any]]:
        """Return messages as the API writes them, behind the system prompt of the settings."""
        made = [{"role": message.role, "content": self._content(message, look)} for message in messages]
        system = self._options.system_prompt
        if system is None:
            return made
        if made and made[0]["role"] == "system" and isinstance(own := made[0]["content"], str):
            # Templates know one system message at most.
            return [{"role": "system", "content": system + JOINT + own}, *made[1:]]
        return [{"role": "system", "content": system}, *made]

    def text(self, prompt: str) -> str:
        """Return a plain prompt behind the system prompt of the settings."""
        system = self._options.system_prompt
        return prompt if system is None else system + JOINT + prompt

    def _content(self, message: Message, look: Look) -> str | list[dict[str, Any]]:
        # One text goes as plain text: not every server knows parts.
        if len(message.parts) == 1 and not isinstance(part := message.parts[0], Image):
            return part.text
        return [
            self._image(look(part.sha256).url) if isinstance(part, Image) else {"type": "text", "text": part.text}
            for part in message.parts
        ]

    def _image(self, url: str) -> dict[str, Any]:
        image = {"url": url}
        if self._options.image_detail is not None:
            image["detail"] = self._options.image_detail
        return {"type": "image_url", "image_url": image}


def read_generation(
    reply: ChatReply, request: Generate, where: str, *, opened: bool = False, cut: bool = False
) -> Generation:
    """Return the answer of a reply; with `cut`, up to the first of the stop texts.

    `opened`: the chat template writes the opening mark of reasoning, which the endpoint leaves in the text.

    Raises:
        TransientError: it has no answer, or the answer ended with an error.
        PermanentError: it lacks the log-probabilities that were asked for.
    """
    if not reply.choices:
        raise TransientError(f"{where} sent a reply without an answer (no choices).", code="endpoint.no-answer")
    choice = reply.choices[0]
    if choice.message is None:
        raise TransientError(f"{where} sent a choice without a message.", code="endpoint.no-answer")
    finish = _finish(choice)
    if finish.lower() in _BROKEN:
        raise TransientError(f"{where} broke an answer off ({finish}).", code="endpoint.broken-off")
    reasoning, text = choice.message.thoughts(), choice.message.words()
    opened = opened and not reasoning
    end = find_stop(text, request.sampling.stop, opened=opened) if cut else None
    return Generation(
        text=text[:end],
        reasoning=reasoning,
        opened=opened,
        status=_status(finish, choice.message.refused()),
        finish_reason=finish,
        usage=usage_of(reply.usage),
        top_logprobs=_alternatives(choice, text, where) if request.top_logprobs else (),
    )


def _finish(choice: ChatChoice) -> str:
    """Return the finish reason; the own word of a provider behind a router, where that is a refusal or a filter."""
    native = choice.native_finish_reason
    if isinstance(native, str) and native.lower() in FINISHES | {"refusal"}:
        return native
    return choice.finish_reason or ""


def _status(finish: str, refused: str) -> ResponseStatus:
    if is_filtered(finish):
        return "filtered"
    return "refused" if refused or finish.lower() == "refusal" else "ok"


def _alternatives(choice: ChatChoice, text: str, where: str) -> tuple[tuple[TopToken, ...], ...]:
    places = choice.logprobs.content if choice.logprobs is not None else None
    if not places or not any(place.top_logprobs for place in places):
        if text and not is_filtered(_finish(choice)):
            raise PermanentError(
                f"{where} gives no log-probabilities of tokens; ask without top_logprobs.", code="endpoint.no-logprobs"
            )
        return ()
    return tuple(
        tuple(TopToken(one.token, one.logprob) for one in place.top_logprobs if one.logprob > ABSENT)
        for place in places
    )
