"""`Classify` in four ways: the likelihood of labels, an answer in words, an API for it (`/decisions`, `/systemone`)."""

from __future__ import annotations

import math
import re
from typing import Any

from ...core.contracts.errors import PermanentError, TransientError
from ...core.contracts.records import (
    Classification,
    Classify,
    Generate,
    Generation,
    Likelihood,
    Message,
    Prompt,
    Sampling,
    Text,
)
from ...core.reading.reasoning import split_reasoning
from ..endpoint.call import Caller
from ..endpoint.errors import FilteredError
from ..endpoint.images import no_picture
from .chat import ChatBodies, read_generation
from .labels import one_hot, read_label
from .likelihood import Scorer
from .options import OpenAIOptions, prompt_of
from .replies import ChatReply, DecisionReply, usage_of

_FIELD = re.compile(r"\{(text|pair|labels)\}")
_NAME = "label"
_ROOM = 64
"""Default number of tokens for a label in words."""
_SHOWN = 80


class Classifier:
    """Gives a probability per label of the settings; labels are named without their blanks."""

    def __init__(self, caller: Caller, options: OpenAIOptions, bodies: ChatBodies, scorer: Scorer | None) -> None:
        self._caller, self._options, self._bodies, self._scorer = caller, options, bodies, scorer
        self._names = [label.strip() for label in options.labels]
        self._prompt = prompt_of(options)

    async def classify(self, request: Classify) -> Classification:
        """Classify one text or pair; a filtered request has the status `filtered` and no probabilities.

        Raises:
            PermanentError: the endpoint does not give the probability of every label, or its answer is not a label.
        """
        question = self._question(request)
        try:
            if self._scorer is not None and self._options.classify == "likelihood":
                return await self._by_likelihood(question, self._scorer)
            if self._options.classify == "generate":
                return await self._by_words(question)
            if self._options.classify == "decisions":
                return await self._ask("/decisions", {"input": question, "questions": [self._choice_list()]})
            return await self._ask("/systemone", {"state": question, "questions": {_NAME: self._choice_dict()}})
        except FilteredError:
            return Classification(probabilities={}, status="filtered")

    def _question(self, request: Classify) -> str:
        if (request.pair is not None) != ("{pair}" in self._prompt):
            has = "a pair" if request.pair is not None else "no pair"
            raise PermanentError(
                f"the request has {has}; classify_prompt must have {{pair}} just then: {self._prompt!r}.",
                code="request.text-pair",
            )
        fields = {"text": request.text, "pair": request.pair or "", "labels": ", ".join(self._names)}
        # In one pass, so that a text with braces in it stays a text.
        return _FIELD.sub(lambda found: fields[found[1]], self._prompt)

    async def _by_words(self, question: str) -> Classification:
        room = None if self._options.max_tokens else _ROOM
        message = Message("user", (Text(question),))
        request = Generate(messages=(message,), sampling=Sampling(temperature=0.0, max_tokens=room))
        reply = await self._caller.ask("/chat/completions", self._bodies.generate(request, no_picture), ChatReply)
        answer = read_generation(reply, request, self._caller.where, opened=self._options.think_opened)
        if answer.status != "ok":
            return Classification(probabilities={}, status=answer.status, text=answer.text, usage=answer.usage)
        if answer.finish_reason == "length":
            raise PermanentError(
                f"an answer was cut off, so no label is read. {self._shown(answer)}",
                code="endpoint.label",
            )
        _, said = split_reasoning(answer.text, answer.reasoning, opened=answer.opened)
        if (label := read_label(said, self._names)) is not None:
            return Classification(probabilities=one_hot(label, self._names), text=answer.text, usage=answer.usage)
        return Classification(probabilities={}, text=said, usage=answer.usage)

    def _shown(self, answer: Generation) -> str:
        text = answer.text if len(answer.text) <= _SHOWN else f"{answer.text[: _SHOWN - 3]}..."
        return f"{self._caller.where} answered {text!r}."

    async def _by_likelihood(self, question: str, scorer: Scorer) -> Classification:
        chat = self._options.likelihood == "first_token"
        prompt: Prompt = (Message("user", (Text(question),)),) if chat else question
        found = await scorer.score(Likelihood(prompt=prompt, continuations=self._options.labels), no_picture)
        values = [score.log_probability for score in found.scores]
        top = max(values)
        weights = [math.exp(value - top) for value in values]
        shares = (weight / math.fsum(weights) for weight in weights)
        return Classification(probabilities=dict(zip(self._names, shares, strict=True)), usage=found.usage)

    def _choice_list(self) -> dict[str, Any]:
        choices = [{"value": name} for name in self._names]
        return {"type": "choice", "name": _NAME, "instructions": self._options.classify_question, "choices": choices}

    def _choice_dict(self) -> dict[str, Any]:
        criteria = dict.fromkeys(self._names)
        return {"type": "choice", "instructions": self._options.classify_question, "criteria": criteria}

    async def _ask(self, path: str, body: dict[str, Any]) -> Classification:
        reply = await self._caller.ask(path, body, DecisionReply)
        answers = list(reply.answers.values()) if isinstance(reply.answers, dict) else reply.answers
        if not answers:
            raise TransientError(f"{self._caller.where} sent no answer to the question.", code="endpoint.no-answer")
        if answers[0].type == "refusal":
            return Classification(probabilities={}, status="refused", usage=usage_of(reply.usage))
        shares = answers[0].probabilities or {}
        told = shares if isinstance(shares, dict) else {str(share.value): share.probability for share in shares}
        if set(told) != set(self._names) or not all(0 <= value <= 1 for value in told.values()):
            raise PermanentError(
                f"{self._caller.where} does not give a probability for each label: {told}.", code="endpoint.label"
            )
        return Classification(probabilities={name: told[name] for name in self._names}, usage=usage_of(reply.usage))
