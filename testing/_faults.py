"""Rules about failures of an endpoint: asked once, told as what they are, and without the key."""

from __future__ import annotations

import asyncio
import json
import math
import traceback
from collections.abc import Callable, Iterator
from typing import Any
from unittest import SkipTest

from ..core.contracts.adapter import ModelAdapter
from ..core.contracts.canonical import decode_response, encode, encode_response
from ..core.contracts.errors import AuthenticationError, ModelError, PermanentError, RateLimitError, TransientError
from ..core.contracts.records import AnyRequest, Generation
from ._compare import Answer
from ._garbage import RESPONSES
from ._kit import KEY, NOWHERE, AdapterKit, run, settle, variable
from ._standin import asked
from .chaos.http import Call, Reply, Way

PATIENCE_SECONDS = 15.0
"""Time that an adapter has for a failure; one that takes longer waits or retries by itself."""
WAIT_SECONDS = 7
DECISIONS: dict[int, tuple[type[ModelError], ...]] = {
    400: (PermanentError,),
    401: (AuthenticationError,),
    404: (PermanentError,),
    422: (PermanentError,),
    429: (RateLimitError,),
    500: (TransientError,),
    502: (TransientError,),
    503: (TransientError, RateLimitError),
    504: (TransientError,),
}
"""What a status means for the scheduler."""
WAITS = ("9" * 400, "soon", "-1", "1e400", "\u00b2", "Wed, 21 Oct 2015 07:28:00 GMT", "")
"""Values of `Retry-After` that are no number of seconds."""
BROKEN = (b"", b"null", b"[]", b"{}", b"7", b'"text"', b"<html>busy</html>", b"\xff\xfe", b'{"a": ', b"[" * 100_000)
"""Bodies of replies that hold no answer."""
BROKEN_WAYS: tuple[Way, ...] = ("half", "short", "reset", "noise")
"""Ways in which a good answer is broken."""


class FaultRules(AdapterKit):
    """Rules about what an endpoint does wrong."""

    def test_failures_are_not_retried(self) -> None:
        """A request that fails is sent once: the scheduler decides whether to ask again."""
        failures = {"status 429": self._error(429, wait="0"), "status 500": self._error(500)}
        failures |= {"a cut connection": Reply(way="cut"), "a broken reply": Reply(body="{")}
        for name, reply in failures.items():
            for group in self._groups():
                # A request may need several calls, but no two that ask the same.
                calls = [asked(one) for one in self._sent(lambda _, reply=reply: reply, group[0])]  # type: ignore[misc]
                assert len(calls) == len(set(calls)), f"after {name} it asks again by itself ({len(calls)} calls)"

    def test_errors_say_what_to_do(self) -> None:
        """An error is of the class that tells the scheduler to wait, to ask again, to give up or to stop the run."""
        for status, kinds in DECISIONS.items():
            wanted = " or ".join(kind.__name__ for kind in kinds)
            for group in self._groups():
                error = self._ask_once(self._error(status, wait=str(WAIT_SECONDS)), group[0])
                assert isinstance(error, kinds), f"status {status} is told as {error!r}, not as {wanted}"
                if status == 429:
                    wait = getattr(error, "retry_after", None)
                    assert wait == WAIT_SECONDS, f"`Retry-After: {WAIT_SECONDS}` is told as a wait of {wait}"
        with variable(self.key_env, KEY):
            dead = run(lambda: self._at(NOWHERE), lambda adapter: _in_time(adapter, self.requests[0]))
        for what, told in (
            ("a cut connection", self._ask_once(Reply(way="cut"), self.requests[0])),
            ("a server that is down", dead),
        ):
            assert isinstance(told, TransientError), f"{what} is told as {told!r}, not as TransientError"

    def test_odd_replies_are_model_errors(self) -> None:
        """A reply that is no answer, or a wrong one, ends in a `ModelError`, not in an exception of another kind."""
        whole = json.dumps(self.speaks.answer("A short answer."))
        replies = [Reply(body=body) for body in BROKEN]
        replies += [Reply(500, body) for body in BROKEN]
        replies += [Reply(body=whole, way=way) for way in BROKEN_WAYS]
        replies += [self._error(429, wait=wait) for wait in WAITS]
        replies += [Reply(body=json.dumps(value)) for value in _twisted(self.speaks.answer("A short answer."))]
        for group in self._groups():
            for reply, answer in self._ask_all(replies, group[0]):
                if isinstance(answer, RateLimitError) and answer.retry_after is not None:
                    fit = math.isfinite(answer.retry_after) and answer.retry_after >= 0
                    assert fit, f"{reply.headers!s:.80} is told as a wait of {answer.retry_after}"
                if isinstance(answer, ModelError):
                    continue
                assert isinstance(answer, RESPONSES[type(group[0])]), f"{reply.raw[:200]!r} ends in {answer!r}"
                assert reply.status == 200, f"status {reply.status} is read as the answer {answer!r}"
                if isinstance(answer, Generation):
                    assert decode_response(encode_response(answer)) == answer

    def test_refusals_are_told(self) -> None:
        """A refusal is an answer with the status `refused`, one that a filter stopped has `filtered`; others are ok."""
        request = self._generates()[0]
        good = self._ask_once(Reply(body=json.dumps(self.speaks.answer("A short answer."))), request)
        told = isinstance(good, Generation) and good.status == "ok" and "A short answer." in good.text
        assert told, f"an answer is told as {good!r}; is `speaks` how the endpoint writes?"
        if self.speaks.refusal is None and self.speaks.filtered is None:
            raise SkipTest("set `refusal` or `filtered` of `speaks` if the endpoint marks answers so")
        if self.speaks.refusal is not None:
            refusal = self._ask_once(Reply(body=json.dumps(self.speaks.refusal("Not this one."))), request)
            refused = isinstance(refusal, Generation) and refusal.status != "ok"
            assert refused, f"a refusal is told as {refusal!r}, not as an answer with the status 'refused'"
        if self.speaks.filtered is not None:
            stopped = self._ask_once(Reply(body=json.dumps(self.speaks.filtered())), request)
            filtered = isinstance(stopped, Generation) and stopped.status != "ok"
            assert filtered, f"a filtered answer is told as {stopped!r}, not with the status 'filtered'"

    def test_errors_hold_no_key(self) -> None:
        """No error holds the key, nor does what led to it, even if the endpoint repeats it; nor does the adapter."""
        if type(self).at is not None and self.key_env is None:
            raise SkipTest("set `key_env` if the endpoint wants a key")
        sent = self._sent(self.speaks.echo, self.requests[0])
        used = any(KEY in f"{one.target} {one.headers.items()} {one.raw!r}" for one in sent)
        assert used, f"the key of {self.key_env} does not reach the endpoint"
        spoken = f"the key {KEY} is wrong"
        headers = {"X-Request": spoken, "Location": f"{NOWHERE}/?key={KEY}"}
        statuses = (302, 400, 401, 403, 404, 429, 500, 503)
        replies = [Reply(status, json.dumps(self.speaks.error(spoken)), headers, phrase=spoken) for status in statuses]
        replies += [Reply(status, spoken, headers, phrase=spoken) for status in (200, *statuses)]
        replies += [Reply(body=json.dumps(self.speaks.answer([spoken]))), Reply(way="cut")]  # type: ignore[arg-type]
        for reply, answer in self._ask_all(replies, self.requests[0]):
            if not isinstance(answer, ModelError):
                continue
            # What is shown must not hold the key either.
            held = KEY in _all_of(answer)
            assert not held, f"the key is in the {type(answer).__name__} of a reply with status {reply.status}"

        async def rule(adapter: ModelAdapter) -> str:
            return f"{encode(adapter.identity).decode()} {adapter!r} {adapter} {adapter.endpoint}"

        with variable(self.key_env, KEY):
            shown = run(lambda: self._at(NOWHERE), rule)
        held = KEY in shown
        assert not held, "the key is in the identity, in the name of the endpoint or in repr()"

    def _error(self, status: int, wait: str = "") -> Reply:
        headers = {"Retry-After": wait} if wait else {}
        return Reply(status, json.dumps(self.speaks.error(f"status {status}")), headers)

    def _sent(self, reply: Callable[[Call], Reply], request: AnyRequest) -> list[Call]:
        """Return what is sent for one request."""
        with self._endpoint(reply) as (server, make):
            run(make, lambda adapter: _in_time(adapter, request))
            assert server.calls, "nothing was sent to the url of `at`"
            return server.calls

    def _ask_once(self, reply: Reply, request: AnyRequest) -> Answer:
        return self._ask_all([reply], request)[0][1]

    def _ask_all(self, replies: list[Reply], request: AnyRequest) -> list[tuple[Reply, Answer]]:
        """Return the outcome of one request with each of some replies."""
        current: list[Reply] = []

        async def rule(adapter: ModelAdapter) -> list[tuple[Reply, Answer]]:
            outcomes = []
            for reply in replies:
                current[:] = [reply]
                try:
                    outcomes.append((reply, await _in_time(adapter, request)))
                except Exception as error:
                    error.add_note(f"The endpoint had replied with status {reply.status}, {reply.raw[:200]!r}.")
                    raise
            return outcomes

        with self._endpoint(lambda _: current[0]) as (_, make):
            return run(make, rule)


async def _in_time(adapter: ModelAdapter, request: AnyRequest) -> Answer:
    """Return the answer to a request, or its error."""
    try:
        return await asyncio.wait_for(settle(adapter, request), PATIENCE_SECONDS)
    except TimeoutError:
        problem = f"no answer within {PATIENCE_SECONDS:g} s. Does it wait or ask again by itself? Raise the error."
        raise AssertionError(problem) from None


def _all_of(error: BaseException) -> str:
    """Return all that a log or a debugger would show of an error."""
    chain, shown = [error], []
    for link in chain:
        chain += [one for one in (link.__cause__, link.__context__) if one is not None and one not in chain]
        shown.append(f"{link} {link!r} {link.args} {vars(link)}")
    return "\n".join((*shown, *traceback.format_exception(error)))


def _twisted(value: Any) -> Iterator[Any]:
    """Return copies of a reply in each of which one part is missing or of another kind."""
    yield from (None, 7, [], {}, "text")
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {other: part for other, part in value.items() if other != name}
            yield from ({**value, name: twisted} for twisted in _twisted(inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from ([*value[:place], twisted, *value[place + 1 :]] for twisted in _twisted(inner))
