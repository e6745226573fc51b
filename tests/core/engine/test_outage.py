"""An endpoint that is down, or asks for long waits: few requests are spent on it, and no wait is unbounded."""

from __future__ import annotations

import asyncio

import pytest
from virtual import run_virtual

from prejudge.core.contracts.adapter import Limits, Room
from prejudge.core.contracts.errors import RateLimitError, TransientError
from prejudge.core.engine.limiter import SILENT_SECONDS, Clock, Limiter
from prejudge.core.engine.retry import RetryPolicy


def limiter(longest=900.0, concurrency=64):
    clock = Clock(asyncio.get_running_loop().time, asyncio.sleep)
    return Limiter(Limits(concurrency=concurrency), clock=clock, longest_seconds=longest)


def spend(answer, seconds, *, longest=900.0, warm=True):
    """Let 128 clients ask until `seconds`; return the failures, the limiter, and when it stopped."""

    async def work():
        loop, gate, failed, halted = asyncio.get_running_loop(), limiter(longest), 0, None

        async def client():
            nonlocal failed, halted
            policy, retries = RetryPolicy(longest_seconds=longest), 0
            while loop.time() < seconds and gate.halt is None:
                ticket = await gate.enter(1)
                await asyncio.sleep(0.05)
                error = answer(loop.time())
                gate.leave(ticket, [error])
                failed += error is not None
                halted = loop.time() if gate.halt is not None and halted is None else halted
                retries = retries + 1 if error is not None else 0
                if error is not None:
                    await asyncio.sleep(policy.wait([error], retries))

        if warm:
            for _ in range(64):
                gate.leave(await gate.enter(1), [None])
        await asyncio.gather(*(client() for _ in range(128)))
        return failed, gate, halted

    return run_virtual(work)


def test_outage_costs_the_calls_in_flight_and_a_few_probes():
    failed, gate, _ = spend(lambda now: TransientError("503") if 2 <= now < 7 else None, 12)
    assert 8 <= failed <= 64 + 6
    assert gate.halt is None and not gate.down


def test_endpoint_recovers_its_concurrency_after_an_outage():
    async def work():
        gate = limiter(concurrency=16)
        for _ in range(40):
            gate.leave(await gate.enter(1), [None])
        for _ in range(8):
            gate.leave(await gate.enter(1), [TransientError("503")])
        assert gate.down
        gate.leave(await gate.enter(1), [None])
        return [await asyncio.wait_for(gate.enter(1), 1) for _ in range(8)]

    assert len(run_virtual(work)) == 8


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_random_failures_are_no_outage(share):
    from random import Random

    draw = Random(1)
    failed, gate, _ = spend(lambda now: TransientError("500") if draw.random() < share else None, 15)
    assert gate.halt is None and failed > 100


def test_outage_of_more_than_the_longest_wait_stops_the_run():
    _, gate, now = spend(lambda now: TransientError("503") if now > 2 else None, 10_000, longest=120.0)
    assert gate.halt is not None and gate.halt.code == "endpoint.down"
    assert 122 <= now < 122 + 4 * 60


def test_endpoint_that_never_answers_stops_the_run_sooner():
    _, gate, now = spend(lambda now: TransientError("503"), 10_000, warm=False)
    assert gate.halt is not None and gate.halt.code == "model.silent"
    assert SILENT_SECONDS <= now < 4 * SILENT_SECONDS


@pytest.mark.parametrize("named", [1e9, 99_999_999.0, float(2**62)])
def test_long_wait_is_capped_and_then_stops_the_run(named):
    _, gate, now = spend(lambda now: RateLimitError("slow down", named) if now > 1 else None, 10_000, longest=300.0)
    assert gate.halt is not None and gate.halt.code == "endpoint.wait"
    assert 300 <= now < 1 + 3 * 300


def test_long_wait_that_was_enough_stops_nothing():
    _, gate, _ = spend(lambda now: RateLimitError("slow down", 1e9) if 1 < now < 200 else None, 312, longest=300.0)
    assert gate.halt is None


def test_wait_that_an_endpoint_names_while_it_is_down_holds_for_all():
    async def work():
        gate, loop = limiter(300.0), asyncio.get_running_loop()
        for _ in range(8):
            gate.leave(await gate.enter(1), [TransientError("503", 20.0)])
        began = loop.time()
        gate.leave(await gate.enter(1), [None])
        return loop.time() - began

    assert run_virtual(work) >= 20.0


def test_wait_of_one_failure_among_answers_is_its_own():
    async def work():
        gate = limiter(300.0)
        gate.leave(await gate.enter(1), [TransientError("503", 20.0)])
        return gate.waits

    assert run_virtual(work) == 0.0
    assert RetryPolicy().wait([TransientError("503", 20.0)], 0) == 20.0


@pytest.mark.parametrize("reset", [99_999_999.0, 1e300])
def test_announced_reset_is_capped_and_then_stops_the_run(reset):
    async def work():
        gate, loop = limiter(300.0), asyncio.get_running_loop()
        while gate.halt is None and loop.time() < 5_000:
            gate.leave(await gate.enter(1), [None])
            gate.hear(Room(remaining=0, reset_seconds=reset, limit=1))
        return gate.halt, loop.time()

    halt, now = run_virtual(work)
    assert halt.code == "endpoint.wait" and now <= 600


def test_policy_never_waits_longer_than_the_limit():
    policy = RetryPolicy(longest_seconds=7.0)
    assert policy.wait([RateLimitError("slow down", 1e12)], 0) == 7.0


@pytest.mark.parametrize(("longest", "seconds"), [(10.0, 10.0), (900.0, 900.0)])
def test_endpoint_that_answers_nothing_but_429_stops_the_run(longest, seconds):
    failed, gate, halted = spend(lambda now: RateLimitError("429"), 4000, longest=longest)
    assert gate.halt is not None and gate.halt.code == "endpoint.limited"
    assert seconds <= halted <= seconds + 2 * min(60.0, longest) and failed < 200


def test_429s_between_answers_stop_no_run():
    calls = iter(range(10**6))
    _, gate, _ = spend(lambda now: None if next(calls) % 3 == 0 else RateLimitError("429"), 4000)
    assert gate.halt is None


@pytest.mark.parametrize("retries", range(12))
def test_back_off_keeps_to_the_longest_wait(retries):
    assert RetryPolicy(longest_seconds=2.0).wait([TransientError("503")], retries) <= 2.0
