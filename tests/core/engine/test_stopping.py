"""When a model that answers nothing stops a stage, and how long a request waits whose parts name different waits."""

from __future__ import annotations

import asyncio

import pytest
from virtual import run_virtual

from prejudge.core.contracts.adapter import Limits
from prejudge.core.contracts.errors import HaltedError, RateLimitError, TransientError
from prejudge.core.engine.asking import Keyed
from prejudge.core.engine.limiter import Clock, Limiter
from prejudge.core.engine.retry import RetryPolicy
from prejudge.core.engine.stopping import Stopping
from prejudge.testing import raises_code

UNAVAILABLE = 10
"""Failed requests after which the page about progress says that a model which never answered is unavailable."""


class Gate:
    """A limiter that has no reason to stop."""

    halt = None


class Detector(Gate):
    """A detector of failures that finds none."""

    def failed(self, request, error):
        return None

    def answered(self, key, request, answer):
        return None


@pytest.fixture
def stopping():
    return Stopping(Gate(), Detector())


def fail(stopping, times, error=None):
    for _ in range(times):
        stopping.failed([(None, error or TransientError("503"))])


def test_model_without_an_answer_is_unavailable_after_ten_requests(stopping):
    fail(stopping, UNAVAILABLE - 1)
    assert stopping.reason is None
    fail(stopping, 1)
    assert isinstance(stopping.reason, HaltedError) and stopping.reason.code == "model.silent"


def test_model_that_answered_once_is_not_unavailable(stopping):
    stopping.answered([(Keyed(b"key", None, b""), "answer")])
    fail(stopping, 3 * UNAVAILABLE)
    assert stopping.reason is None


def test_reason_is_raised_where_no_call_is_open(stopping):
    fail(stopping, UNAVAILABLE)
    with raises_code(HaltedError, "model.silent"):
        asyncio.run(stopping.raise_reason())


@pytest.mark.parametrize("seconds", [(3.0, 20.0, 7.0), (20.0, 3.0), (3.0, 20.0)])
def test_request_waits_for_the_longest_wait_that_was_named(seconds):
    errors = [RateLimitError("429", wait) for wait in seconds] + [TransientError("503")]
    assert RetryPolicy().wait(errors, 0) == 20.0


@pytest.mark.parametrize("seconds", [(3.0, 20.0, 7.0), (20.0, 3.0), (3.0, 20.0)])
def test_endpoint_that_is_down_is_left_alone_for_the_longest_wait_that_was_named(seconds):
    async def work():
        loop = asyncio.get_running_loop()
        gate = Limiter(Limits(concurrency=64), clock=Clock(loop.time, asyncio.sleep), longest_seconds=300.0)
        for _ in range(8):
            gate.leave(await gate.enter(1), [TransientError("503", wait) for wait in seconds])
        began = loop.time()
        gate.leave(await gate.enter(1), [None])
        return loop.time() - began

    assert run_virtual(work) >= 20.0
