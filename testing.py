"""`AdapterContract`: the tests that every model adapter must pass. Third parties run them with a class of their own.

    from prejudge.testing import AdapterContract

    class TestMine(AdapterContract):
        make = staticmethod(lambda: MyAdapter(MyOptions(model="tiny")))
        requests = [Generate(messages=...), Generate(messages=...)]

pytest finds the class and runs each rule as a test. The requests should have one answer (temperature 0, or a seed),
differ in length, and cover what the adapter can do; three or more per operation show most. Each rule makes an adapter
anew and closes it, so `make` should give a small model.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, ClassVar, TypeVar
from unittest import SkipTest

import msgspec

from .core.adapter import OPERATIONS, Identity, ModelAdapter
from .core.canonical import decode_response, encode, encode_response, identity_digest
from .core.errors import ModelError, UnsupportedOperationError
from .core.records import (
    AnyRequest,
    AnyResponse,
    Classification,
    Classify,
    Draw,
    Drawing,
    Embed,
    Embedding,
    Generate,
    Generation,
    Image,
    Likelihood,
    Likelihoods,
    Message,
    PseudoLikelihood,
    Request,
    Sampling,
    Text,
    TokenScores,
)

__all__ = ["GARBAGE", "AdapterContract"]

T = TypeVar("T")
Answer = AnyResponse | ModelError
SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
SHORTEST_SECRET = 8
BEAT = 0.01

_RESPONSES: dict[type[Request], type[Any]] = {
    Generate: Generation,
    Likelihood: Likelihoods,
    PseudoLikelihood: TokenScores,
    Classify: Classification,
    Embed: Embedding,
    Draw: Drawing,
}


def _user(*parts: Text | Image) -> tuple[Message, ...]:
    return (Message("user", parts),)


GARBAGE: dict[type[Request], tuple[Any, ...]] = {
    Generate: (
        Generate(messages=()),
        Generate(messages=_user()),
        Generate(messages=_user(Image("no such image"))),
        Generate(messages=_user(Text("a")), sampling=Sampling(max_tokens=-1, temperature=-1.0)),
    ),
    Likelihood: (
        Likelihood(prompt="", continuations=()),
        Likelihood(prompt=(), continuations=(" a",)),
        Likelihood(prompt="a", continuations=("",)),
    ),
    PseudoLikelihood: (
        PseudoLikelihood(text=""),
        PseudoLikelihood(text="a", given=((0, 1),)),
        PseudoLikelihood(text="a", given=((5, 3),)),
        PseudoLikelihood(text="a", contrast=""),
    ),
    Classify: (Classify(text=""), Classify(text="\0", pair="")),
    Embed: (Embed(text=""), Embed(text="\0")),
    Draw: (Draw(prompt="", width=0, height=-1), Draw(prompt="a", steps=0, width=1)),
}
"""Requests by kind that no model need answer; each must get an answer or a `ModelError`, and harm no other."""


class AdapterContract:
    """The rules, one test each. Set `make` and `requests`; the rest is there for unusual adapters."""

    make: ClassVar[Callable[[], ModelAdapter]]
    """Make the adapter, the same one at each call."""
    requests: ClassVar[Sequence[AnyRequest]]
    """Requests that it answers, of any operations."""
    tolerance: ClassVar[float] = 1e-6
    """How far numbers of one answer may lie apart, absolutely or relatively, alone and in a batch."""
    recipe: ClassVar[str | None] = None
    """Python code that binds `adapter` to the same adapter, to make it in another process."""
    others: ClassVar[Sequence[Callable[[], ModelAdapter]]] = ()
    """Makers of adapters that answer otherwise: another dtype, template, prompt. Each needs an identity of its own."""
    secrets: ClassVar[Sequence[str]] = ()
    """Environment variables that the adapter takes keys from, besides those that are named like one."""
    blocked_seconds: ClassVar[float] = 0.25
    """How long a call may keep the event loop from running anything else."""

    def test_batch_equals_single(self) -> None:
        """An answer does not depend on the other requests of its batch."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                together = await adapter.answer(group)
                for request, answer in zip(group, together, strict=True):
                    (alone,) = await adapter.answer([request])
                    self._same(alone, answer, request)

        self._with(rule)

    def test_order_is_kept(self) -> None:
        """Answers stand in the order of the requests, however these are ordered or repeated."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                answers = await adapter.answer(group)
                places = [*range(len(group)), 0]
                Random(0).shuffle(places)
                again = await adapter.answer([group[place] for place in places])
                assert len(again) == len(places), f"{len(again)} answers to {len(places)} requests"
                for place, answer in zip(places, again, strict=True):
                    self._same(answers[place], answer, group[place])

        self._with(rule)

    def test_nothing_asked_gives_nothing(self) -> None:
        """No request, no answer, no error."""

        async def rule(adapter: ModelAdapter) -> None:
            assert list(await adapter.answer([])) == []

        self._with(rule)

    def test_responses_are_of_their_kind(self) -> None:
        """Each request is answered by its own kind of record, whose numbers agree with each other."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                for request, answer in zip(group, await adapter.answer(group), strict=True):
                    wanted = _RESPONSES[type(request)]
                    assert isinstance(answer, wanted), f"{request!r} is answered by {answer!r}, not {wanted.__name__}"
                    self._check_scores(request, answer)

        self._with(rule)

    def test_responses_read_back_exactly(self) -> None:
        """A response can be stored, and reads back as it was."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                for answer in await adapter.answer(group):
                    assert not isinstance(answer, ModelError), repr(answer)
                    assert decode_response(encode_response(answer)) == answer

        self._with(rule)

    def test_unsupported_operations_are_refused(self) -> None:
        """What the class cannot do is refused by name, before any work."""

        async def rule(adapter: ModelAdapter) -> None:
            for operation in OPERATIONS.keys() - adapter.capabilities():
                request = GARBAGE[operation][0]
                for form, asked in ((adapter.answer, [request]), (getattr(adapter, OPERATIONS[operation]), request)):
                    try:
                        given = await form(asked)
                    except UnsupportedOperationError:
                        continue
                    raise AssertionError(f"{OPERATIONS[operation]!r} is not refused; it gives {given!r}")

        self._with(rule)

    def test_garbage_is_answered_or_refused(self) -> None:
        """A request that makes no sense gets a `ModelError` in its place (or an answer), and harms no other."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                garbage = GARBAGE[type(group[0])]
                answers = await adapter.answer([*garbage, group[0]])
                for request, answer in zip(garbage, answers, strict=False):
                    fit = isinstance(answer, (_RESPONSES[type(request)], ModelError))
                    assert fit, f"{request!r} is answered by {answer!r}"
                (alone,) = await adapter.answer([group[0]])
                self._same(alone, answers[-1], group[0])

        self._with(rule)

    def test_cancellation_leaves_it_usable(self) -> None:
        """A call that is cancelled, early or late, costs no later call anything."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                before = await adapter.answer(group)
                for delay in (0.0, 0.001, 0.02):
                    call = asyncio.ensure_future(adapter.answer(group))
                    await asyncio.sleep(delay)
                    call.cancel()
                    await asyncio.gather(call, return_exceptions=True)
                after = await adapter.answer(group)
                for request, first, second in zip(group, before, after, strict=True):
                    self._same(first, second, request)

        self._with(rule)

    def test_closing_ends_its_threads(self) -> None:
        """`aclose` may be called twice, also on an adapter that was never asked, and leaves no thread behind."""

        async def used() -> None:
            idle, adapter = type(self).make(), type(self).make()
            try:
                await adapter.answer(self._groups()[0])
            finally:
                for each in (adapter, adapter, idle):
                    await each.aclose()

        asyncio.run(used())  # The first use may start threads that a library keeps for good.
        before = set(threading.enumerate())
        asyncio.run(used())
        assert _in_time(lambda: not _threads_since(before)), f"threads go on: {_threads_since(before)}"

    def test_event_loop_is_not_blocked(self) -> None:
        """A slow model does not keep the event loop from other work."""

        async def rule(adapter: ModelAdapter) -> None:
            for group in self._groups():
                await adapter.answer(group[:1])  # Loading weights may import a library, which nothing can make async.
                # On a busy machine any single gap may be long; a call that blocks has one at each try.
                gaps = [await _longest_gap(adapter.answer([*group])) for _ in range(3)]
                assert min(gaps) < self.blocked_seconds, f"the event loop stood still for {min(gaps):.2f} s"

        self._with(rule)

    def test_identity_is_stable(self) -> None:
        """The same settings give the same identity, before and after it answers."""
        first = self._identity(type(self).make)
        assert isinstance(first, Identity) and first.adapter and first.model and first.version

        async def rule(adapter: ModelAdapter) -> None:
            await adapter.answer(self._groups()[0][:1])
            assert encode(adapter.identity) == encode(first), f"{adapter.identity} is not {first}"

        self._with(rule)

    def test_identity_is_stable_across_processes(self) -> None:
        """Another process, with another hash seed, gives the same identity."""
        if self.recipe is None:
            raise SkipTest("set `recipe` to make the adapter in another process")
        code = (
            f"{self.recipe}\nimport asyncio, sys\nfrom prejudge.core.canonical import identity_digest\n"
            "sys.stdout.write('identity ' + identity_digest(adapter.identity).hex())\nasyncio.run(adapter.aclose())\n"
        )
        own = identity_digest(self._identity(type(self).make)).hex()
        for seed in ("1", "2"):
            environment = {**os.environ, "PYTHONHASHSEED": seed}
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
            assert done.returncode == 0, done.stderr
            assert done.stdout.rpartition("identity ")[2].strip() == own, "the identity differs between processes"

    def test_identity_changes_with_the_answers(self) -> None:
        """Adapters that answer otherwise have identities of their own."""
        if not self.others:
            raise SkipTest("set `others` to makers of adapters that answer otherwise")
        identities = [self._identity(make) for make in (type(self).make, *self.others)]
        assert len({identity_digest(identity) for identity in identities}) == len(identities), identities

    def test_identity_holds_no_secret(self) -> None:
        """No key of the environment stands in the identity or in what the adapter prints."""
        names = [name for name in os.environ if name.upper().endswith(SECRET_NAMES) or name in self.secrets]
        secrets = {name: os.environ[name] for name in names if len(os.environ[name]) >= SHORTEST_SECRET}

        async def rule(adapter: ModelAdapter) -> None:
            shown = f"{encode(adapter.identity).decode()} {adapter!r} {adapter}"
            # The message names the variable and not its value, which must not reach a log either.
            told = [name for name, secret in secrets.items() if secret in shown]
            assert not told, f"the value of {told} stands in the identity or in repr()"

        self._with(rule)

    def _groups(self) -> list[list[AnyRequest]]:
        """Return the requests by kind, as they are asked."""
        assert self.requests, "set `requests`"
        by_kind: dict[type, list[AnyRequest]] = {}
        for request in self.requests:
            by_kind.setdefault(type(request), []).append(request)
        return list(by_kind.values())

    def _with(self, rule: Callable[[ModelAdapter], Awaitable[T]]) -> T:
        """Run a rule on an adapter that is made for it, and close it."""

        async def run() -> T:
            adapter = type(self).make()
            try:
                return await rule(adapter)
            finally:
                await adapter.aclose()

        return asyncio.run(run())

    def _identity(self, make: Callable[[], ModelAdapter]) -> Identity:
        async def run() -> Identity:
            adapter = make()
            await adapter.aclose()
            return adapter.identity

        return asyncio.run(run())

    def _same(self, first: Answer, second: Answer, request: AnyRequest) -> None:
        same = _close(_plain(first), _plain(second), self.tolerance)
        assert same, f"two answers to {request!r} differ:\n{first!r}\n{second!r}"

    def _check_scores(self, request: AnyRequest, answer: AnyResponse) -> None:
        scores = [answer] if isinstance(answer, TokenScores) else []
        if isinstance(answer, Likelihoods) and isinstance(request, Likelihood) and answer.status == "ok":
            scores = list(answer.scores)
            assert len(scores) == len(request.continuations), f"{len(scores)} scores for {request!r}"
        for score in scores:
            if score.values:
                assert len(score.values) == score.count, f"{len(score.values)} values, but a count of {score.count}"
                assert _close(sum(score.values), score.log_probability, max(self.tolerance, 1e-9)), repr(score)
        if isinstance(answer, Classification) and answer.status == "ok":
            assert all(0 <= share <= 1 for share in answer.probabilities.values()), repr(answer)


async def _longest_gap(call: Awaitable[Any]) -> float:
    """Wait for a call, and return the longest time in seconds that a heartbeat was late."""
    longest, beating = 0.0, True

    async def beat() -> None:
        nonlocal longest
        while beating:
            began = time.perf_counter()
            await asyncio.sleep(BEAT)
            longest = max(longest, time.perf_counter() - began - BEAT)

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0)
    try:
        await call
    finally:
        beating = False
        await heart
    return longest


def _threads_since(before: set[threading.Thread]) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread not in before]


def _in_time(settled: Callable[[], bool], seconds: float = 3.0) -> bool:
    """Wait until something is so, and say whether it is."""
    end = time.monotonic() + seconds
    while not settled():
        if time.monotonic() > end:
            return False
        time.sleep(BEAT)
    return True


def _plain(answer: Answer) -> Any:
    return type(answer).__name__ if isinstance(answer, ModelError) else msgspec.to_builtins(answer)


def _close(first: Any, second: Any, tolerance: float) -> bool:
    """Compare two plain structures: numbers with a fraction within the tolerance, all else exactly."""
    if isinstance(first, float) and isinstance(second, (float, int)):
        return first == second or abs(first - second) <= tolerance * max(1.0, abs(first), abs(second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_close(first[name], second[name], tolerance) for name in first)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(_close(a, b, tolerance) for a, b in zip(first, second, strict=True))
    return bool(first == second)
