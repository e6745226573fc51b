"""`Classify` in three ways: the likelihood of label words, or an API made for it (`/decisions`, `/systemone`)."""

from __future__ import annotations

import math
import re
from typing import Any

from ..core.errors import PermanentError, TransientError
from ..core.records import Classification, Classify, Likelihood, Message, Prompt, Text
from ._openai_call import Caller
from ._openai_likelihood import Scorer
from ._openai_options import OpenAIOptions
from ._openai_replies import DecisionReply, usage_of

_FIELD = re.compile(r"\{(text|pair)\}")
_NAME = "label"


class Classifier:
    """Gives a probability per label of the settings; labels are named without their blanks."""

    def __init__(self, caller: Caller, options: OpenAIOptions, scorer: Scorer | None) -> None:
        self._caller, self._options, self._scorer = caller, options, scorer
        self._names = [label.strip() for label in options.labels]

    async def classify(self, request: Classify) -> Classification:
        """Classify one text or pair.

        Raises:
            PermanentError: the endpoint does not tell the probability of every label.
        """
        question = self._question(request)
        if self._scorer is not None and self._options.classify == "likelihood":
            return await self._by_likelihood(question, self._scorer)
        if self._options.classify == "decisions":
            return await self._ask("/decisions", {"input": question, "questions": [self._choice_list()]})
        return await self._ask("/systemone", {"state": question, "questions": {_NAME: self._choice_dict()}})

    def _question(self, request: Classify) -> str:
        template = self._options.classify_prompt
        if (request.pair is not None) != ("{pair}" in template):
            has = "a pair" if request.pair is not None else "no pair"
            raise PermanentError(f"the request has {has}; classify_prompt must have {{pair}} just then: {template!r}.")
        # In one pass, so that a text with braces in it stays a text.
        return _FIELD.sub(lambda found: request.text if found[1] == "text" else request.pair or "", template)

    async def _by_likelihood(self, question: str, scorer: Scorer) -> Classification:
        chat = self._options.likelihood == "first_token"
        prompt: Prompt = (Message("user", (Text(question),)),) if chat else question
        found = await scorer.score(Likelihood(prompt=prompt, continuations=self._options.labels), str)
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
            raise TransientError(f"{self._caller.where} sent no answer to the question.")
        if answers[0].type == "refusal":
            return Classification(probabilities={}, status="refused", usage=usage_of(reply.usage))
        shares = answers[0].probabilities or {}
        told = shares if isinstance(shares, dict) else {str(share.value): share.probability for share in shares}
        if set(told) != set(self._names) or not all(0 <= value <= 1 for value in told.values()):
            raise PermanentError(f"{self._caller.where} does not tell a probability for each label: {told}.")
        return Classification(probabilities={name: told[name] for name in self._names}, usage=usage_of(reply.usage))
