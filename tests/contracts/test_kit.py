"""The contract kit notices each breach: an adapter that breaks one rule fails that rule's test."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Sequence
from typing import Any
from unittest import SkipTest

import pytest

from prejudge.core.contracts import Options
from prejudge.core.contracts.adapter import Identity, ModelAdapter
from prejudge.core.contracts.errors import DataError, ModelError, PermanentError
from prejudge.core.contracts.records import Embedding, PseudoLikelihood, TokenScores
from prejudge.testing import AdapterContract, raises_code

KEY = "not-a-real-key-0123456789"


class Good(ModelAdapter):
    """Scores the characters of a text."""

    options = Options

    def __init__(self) -> None:
        self.identity = Identity(adapter="good", version="1", model="m")

    async def pseudo_likelihood_batch(self, requests: Sequence[PseudoLikelihood]) -> Sequence[TokenScores | ModelError]:
        await asyncio.sleep(0.005)
        return [self._score(request) for request in requests]

    def _score(self, request: PseudoLikelihood) -> TokenScores | ModelError:
        if not request.text:
            return PermanentError("nothing to score")
        values = tuple(-ord(letter) / 10 for letter in request.text)
        return TokenScores(log_probability=sum(values), count=len(values), values=values)


class Undeclared(Good):
    class options(Options, frozen=True, kw_only=True):
        key: str = ""


class Misspelt(Good):
    class options(Options, frozen=True, kw_only=True):
        option_effects = {"key": "secret", "keyy": "none"}
        key: str = ""


class HidesItsSecret(Good):
    class options(Options, frozen=True, kw_only=True):
        option_effects = {"key": "secret"}
        key: str = ""

        def list_effects(self) -> Any:
            return ()


class DependsOnBatch(Good):
    async def pseudo_likelihood_batch(self, requests: Sequence[PseudoLikelihood]) -> Sequence[TokenScores | ModelError]:
        longest = max(len(request.text) for request in requests)
        return [TokenScores(log_probability=-float(longest), count=1) for _ in requests]


class Sorts(Good):
    async def pseudo_likelihood_batch(self, requests: Sequence[PseudoLikelihood]) -> Sequence[TokenScores | ModelError]:
        return await super().pseudo_likelihood_batch(sorted(requests, key=lambda request: request.text))


class InventsAnswers(Good):
    async def answer(self, requests: Sequence[Any]) -> Sequence[Any]:
        return await super().answer(requests) if requests else [PermanentError("why ask?")]


class WrongKind(Good):
    def _score(self, request: PseudoLikelihood) -> Any:
        return Embedding(vector=(1.0,))


class WrongSum(Good):
    def _score(self, request: PseudoLikelihood) -> TokenScores | ModelError:
        return TokenScores(log_probability=-1.0, count=2, values=(-1.0, -1.0))


class NotFinite(Good):
    def _score(self, request: PseudoLikelihood) -> TokenScores | ModelError:
        return TokenScores(log_probability=float("-inf"), count=1)


class DoesAll(Good):
    async def answer(self, requests: Sequence[Any]) -> Sequence[Any]:
        return await super().answer([r if isinstance(r, PseudoLikelihood) else REQUESTS[0] for r in requests])


class Crashes(Good):
    def _score(self, request: PseudoLikelihood) -> TokenScores | ModelError:
        return TokenScores(log_probability=-1.0 / len(request.text), count=1)


class BreaksWhenCancelled(Good):
    broken = False

    async def pseudo_likelihood_batch(self, requests: Sequence[PseudoLikelihood]) -> Sequence[TokenScores | ModelError]:
        try:
            answers = await super().pseudo_likelihood_batch(requests)
        except asyncio.CancelledError:
            self.broken = True
            raise
        return [PermanentError("broken")] * len(requests) if self.broken else answers


class LeavesThread(Good):
    def __init__(self) -> None:
        super().__init__()
        threading.Thread(target=time.sleep, args=(6,), daemon=True).start()


class ClosesOnce(Good):
    closed = False

    async def aclose(self) -> None:
        assert not self.closed
        self.closed = True


class Blocks(Good):
    def _score(self, request: PseudoLikelihood) -> TokenScores | ModelError:
        time.sleep(0.15)
        return super()._score(request)


class Counts(Good):
    number = itertools.count()

    def __init__(self) -> None:
        self.identity = Identity(adapter="counts", version="1", model=f"m{next(self.number)}")


class TellsKey(Good):
    def __init__(self) -> None:
        self.identity = Identity(adapter="tells", version="1", model="m", settings={"header": f"Bearer {KEY}"})


REQUESTS = [PseudoLikelihood(text=text) for text in ("one", "three", "seventeen")]


def kit(make: type[Good], **fields: Any) -> AdapterContract:
    return type("Kit", (AdapterContract,), {"make": make, "requests": REQUESTS, **fields})()


RULES = [name for name in dir(AdapterContract) if name.startswith("test_")]


@pytest.mark.parametrize("rule", RULES)
def test_good_adapter_passes(rule):
    recipe = "from prejudge.core.contracts.adapter import *\nclass A(ModelAdapter): pass\nadapter = A()\n"
    recipe += "adapter.identity = Identity(adapter='good', version='1', model='m')"
    getattr(kit(Good, recipe=recipe, others=[Counts], same=[Good]), rule)()


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("every_option_declares_its_effect", Undeclared),
        ("every_option_declares_its_effect", Misspelt),
        ("option_that_is_set_shows_its_effect", HidesItsSecret),
        ("batch_equals_single", DependsOnBatch),
        ("order_is_kept", Sorts),
        ("nothing_asked_gives_nothing", InventsAnswers),
        ("responses_are_of_their_kind", WrongKind),
        ("responses_are_of_their_kind", WrongSum),
        ("unsupported_operations_are_refused", DoesAll),
        ("cancellation_leaves_it_usable", BreaksWhenCancelled),
        ("closing_ends_its_threads", LeavesThread),
        ("closing_ends_its_threads", ClosesOnce),
        ("event_loop_is_not_blocked", Blocks),
        ("identity_is_stable", Counts),
        ("identity_holds_no_secret", TellsKey),
    ],
)
def test_breach_is_noticed(rule, broken, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", KEY)
    with pytest.raises(AssertionError) as caught:
        getattr(kit(broken), f"test_{rule}")()
    assert KEY not in str(caught.value)


def test_crash_on_garbage_is_noticed():
    with pytest.raises(ZeroDivisionError):
        kit(Crashes).test_garbage_is_answered_or_refused()


def test_response_that_cannot_be_stored_is_noticed():
    with raises_code(DataError, "data.response"):
        kit(NotFinite).test_responses_read_back_exactly()


def test_other_identity_in_another_process_is_noticed():
    recipe = "from prejudge.adapters.simulated.adapter import Simulated\nadapter = Simulated()"
    with pytest.raises(AssertionError, match="differs between processes"):
        kit(Good, recipe=recipe).test_identity_is_stable_across_processes()


def test_equal_identity_of_another_model_is_noticed():
    with pytest.raises(AssertionError):
        kit(Good, others=[WrongSum]).test_identity_changes_with_the_answers()


def test_other_identity_of_the_same_model_is_noticed():
    with pytest.raises(AssertionError):
        kit(Good, same=[Counts]).test_identity_keeps_through_the_rest()


def test_rule_that_needs_more_is_skipped():
    with pytest.raises(SkipTest, match="set `recipe`"):
        kit(Good).test_identity_is_stable_across_processes()
    with pytest.raises(SkipTest, match="set `others`"):
        kit(Good).test_identity_changes_with_the_answers()
    with pytest.raises(SkipTest, match="set `same`"):
        kit(Good).test_identity_keeps_through_the_rest()
