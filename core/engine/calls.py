"""`Calls`: requests to an adapter, at the pace of its endpoint's limiter. Whatever goes wrong is a `ModelError`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ..contracts.adapter import ModelAdapter
from ..contracts.errors import ModelError, PermanentError, PrejudgeError, TransientError
from ..contracts.records import AnyRequest, AnyResponse, Generation, Response
from .asking import Keyed
from .limiter import Limiter, Ticket

LOG = logging.getLogger(__name__)
Answers = list[AnyResponse | ModelError]


class Calls:
    """The calls of one stage."""

    def __init__(self, adapter: ModelAdapter, limiter: Limiter) -> None:
        self._adapter, self._limiter = adapter, limiter
        self._doubted: set[bytes] = set()

    async def ask(self, asked: Sequence[Keyed], ticket: Ticket) -> tuple[Answers, float]:
        """Ask once, and free the limiter's slot; return an answer or error per request, and the seconds they took."""
        answers: Answers = []
        try:
            answers = await self._call([keyed.request for keyed in asked])
        finally:
            latency = self._limiter.leave(ticket, answers)
        if self._adapter.endpoint is not None:
            for place, keyed in enumerate(asked):
                answers[place] = self._doubt(keyed, answers[place])
        return answers, latency

    def _doubt(self, keyed: Keyed, answer: AnyResponse | ModelError) -> AnyResponse | ModelError:
        """Take an endpoint's first empty answer for a failure of the endpoint."""
        if not is_blank(answer) or keyed.key in self._doubted:
            return answer
        self._doubted.add(keyed.key)
        return blank()

    async def _call(self, requests: list[AnyRequest]) -> Answers:
        try:
            answers = list(await self._adapter.answer(requests))
        except ModelError as error:
            return [error] * len(requests)
        except PrejudgeError:
            raise
        except Exception as error:
            # A defect of an adapter, or of an answer that it cannot read, is a failure of its request.
            if len(requests) > 1:
                return [(await self._call([request]))[0] for request in requests]
            LOG.debug("the adapter raised", exc_info=error)
            return [self._defect(f"raised {type(error).__name__}: {error}")]
        if len(answers) != len(requests):
            return [self._defect(f"gave {len(answers)} answers to {len(requests)} requests")] * len(requests)
        return [
            answer if isinstance(answer, (Response, ModelError)) else self._defect(f"gave {type(answer).__name__}")
            for answer in answers
        ]

    def _defect(self, what: str) -> PermanentError:
        message = " ".join(what.split())[:300]
        return PermanentError(f"the adapter {self._adapter.identity.adapter!r} {message}.", code="model.exception")


def is_blank(answer: AnyResponse | ModelError) -> bool:
    """Return whether an answer has no text and no output token, though the request was read."""
    if not isinstance(answer, Generation) or answer.text or answer.status != "ok":
        return False
    return not answer.usage.output_tokens and bool(answer.usage.input_tokens)


def blank() -> TransientError:
    """Return the failure that such an answer is taken for, the first time."""
    return TransientError("the endpoint sent an empty answer of 0 tokens.", code="endpoint.empty")
