"""The limiter: close to what a server allows, few requests turned away, and no slot held while it waits."""

from __future__ import annotations

import asyncio
import random

import pytest
from fakes import FakeModel, FakeOptions
from virtual import Bucket, run_virtual, whole_seconds

from prejudge.core.contracts.adapter import Limits, RemoteEndpoint, Room
from prejudge.core.contracts.errors import PermanentError, RateLimitError
from prejudge.core.engine.limiter import Clock, Limiter, Limiters, describe
from prejudge.core.store import Store


def silent(exact):
    return None


def limiter(concurrency=64, **fields):
    return Limiter(
        Limits(concurrency=concurrency, **fields), clock=Clock(asyncio.get_running_loop().time, asyncio.sleep)
    )


def simulate(bucket, seconds, changes=(), concurrency=64, latency=0.1):
    """Ask a bucket as fast as the limiter lets; `changes` are (time, requests per second)."""

    async def work():
        loop, gate, jitter = asyncio.get_running_loop(), limiter(concurrency), random.Random(1)

        async def client():
            while loop.time() < seconds:
                ticket = await gate.enter(1)
                await asyncio.sleep(0.004)
                error = bucket.ask(loop.time())
                if error is None:
                    await asyncio.sleep(latency * jitter.uniform(0.5, 1.5))
                gate.leave(ticket, [error])
                if error is not None:
                    await asyncio.sleep(error.retry_after or 0.5)

        async def change():
            for at, rate in changes:
                await asyncio.sleep(at - loop.time())
                bucket.rate = bucket.burst = rate

        await asyncio.gather(change(), *(client() for _ in range(2 * concurrency)))
        return gate

    return run_virtual(work)


@pytest.mark.parametrize("named", [silent, whole_seconds], ids=["no-retry-after", "retry-after"])
@pytest.mark.parametrize("burst", [0.2, 1.0])
@pytest.mark.parametrize("rate", [5, 50, 500])
def test_rate_settles_close_to_the_limit(rate, burst, named):
    bucket = Bucket(rate, rate * burst, named)
    simulate(bucket, 55, concurrency=128)
    passed, limited = bucket.share(30, 55)
    assert passed > 0.9 * rate
    assert limited < 0.02


@pytest.mark.parametrize(("before", "after"), [(5, 50), (50, 5), (50, 500), (500, 50), (50, 75), (50, 40)])
def test_rate_follows_a_limit_that_changes(before, after):
    bucket = Bucket(before, before, whole_seconds)
    simulate(bucket, 120, [(45, after)])
    passed, limited = bucket.share(95, 120)
    assert passed > 0.9 * after
    assert limited < 0.02


def test_first_minute_turns_few_away():
    bucket = Bucket(50, 50, silent)
    simulate(bucket, 60)
    assert bucket.share(0, 60)[1] < 0.02


def test_known_limit_is_never_overrun():
    bucket = Bucket(10, 2, silent)

    async def work():
        gate = limiter(requests_per_minute=600)
        for _ in range(100):
            ticket = await gate.enter(1)
            gate.leave(ticket, [bucket.ask(asyncio.get_running_loop().time())])
        return asyncio.get_running_loop().time()

    assert run_virtual(work) == pytest.approx(10, abs=0.5)
    assert bucket.limited == []


def test_endpoint_without_a_limit_is_held_to_its_concurrency_only():
    async def work():
        gate, left = limiter(64), iter(range(10_000))

        async def client():
            for _ in left:
                ticket = await gate.enter(1)
                await asyncio.sleep(0.1)
                gate.leave(ticket, [None])

        await asyncio.gather(*(client() for _ in range(100)))
        return asyncio.get_running_loop().time(), gate.take()

    seconds, paced = run_virtual(work)
    assert seconds < 10_000 / 64 * 0.1 + 1
    assert (paced.most_in_flight, paced.shrunk, paced.rate) == (64, 0, None)


def test_window_grows_from_a_few_while_answers_are_clean():
    async def work():
        gate = limiter(64)
        first = [await gate.enter(1) for _ in range(8)]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(gate.enter(1), 1)
        for ticket in first:
            gate.leave(ticket, [PermanentError("no such model")])
        failed = [await gate.enter(1) for _ in range(8)]
        gate.leave(failed[-1], [None])
        return [await asyncio.wait_for(gate.enter(1), 1) for _ in range(2)]

    assert len(run_virtual(work)) == 2


def test_local_model_has_all_its_slots_at_once():
    async def work():
        gate = Limiter(Limits(concurrency=20), remote=False)
        return [await asyncio.wait_for(gate.enter(1), 1) for _ in range(20)]

    assert len(asyncio.run(work())) == 20


def test_calls_in_flight_shrink_the_rate_once():
    async def work():
        gate = limiter()
        tickets = [await gate.enter(1) for _ in range(8)]
        await asyncio.sleep(1)
        for ticket in tickets:
            gate.leave(ticket, [RateLimitError("slow down")])
        return gate.take()

    paced = run_virtual(work)
    assert (paced.limited, paced.shrunk) == (8, 1)


def test_retry_after_is_waited_out_without_a_slot():
    async def work():
        loop, gate = asyncio.get_running_loop(), limiter()
        gate.leave(await gate.enter(4), [RateLimitError("slow down", retry_after=7.0)] * 4)
        waiting = asyncio.create_task(gate.enter(1))
        await asyncio.sleep(1)
        busy = gate._busy
        await waiting
        return busy, loop.time(), gate.take().waited_seconds

    busy, now, waited = run_virtual(work)
    assert busy == 0
    assert now == pytest.approx(7.0) and waited == pytest.approx(7.0)


def test_few_429s_that_have_nothing_to_do_with_the_rate_slow_nothing_down():
    class Ill(Bucket):
        def ask(self, now):
            error = super().ask(now)
            if error is None and len(self.passed) % 40 == 0:
                self.limited.append(self.passed[-1])
                return RateLimitError("slow down", retry_after=1.0)
            return error

    bucket = Ill(100_000, 100_000)
    simulate(bucket, 30)
    assert bucket.share(10, 30)[0] > 0.8 * 64 / 0.1


@pytest.mark.parametrize("share", [0.03, 0.05, 0.1])
def test_429s_at_random_do_not_take_the_pace_down_for_long(share):
    class Ill(Bucket):
        chance = random.Random(2)

        def ask(self, now):
            error = super().ask(now)
            return RateLimitError("slow down") if error is None and self.chance.random() < share else error

    bucket = Ill(100_000, 100_000)
    simulate(bucket, 90)
    assert bucket.share(30, 90)[0] > 0.8 * (1 - share) * 64 / 0.1


def test_room_of_none_is_waited_for_before_it_costs_a_429():
    async def work():
        gate = limiter()
        gate.hear(Room(remaining=0, reset_seconds=60.0, limit=30))
        await gate.enter(1)
        return asyncio.get_running_loop().time()

    assert run_virtual(work) == pytest.approx(2.0)


def test_whoever_gives_up_waiting_lets_the_next_one_in():
    async def work():
        gate = limiter(1)
        held = await gate.enter(1)
        first, second = asyncio.create_task(gate.enter(1)), asyncio.create_task(gate.enter(1))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        gate.leave(held, [None])
        return await asyncio.wait_for(second, 1)

    assert run_virtual(work).requests == 1


def test_adapters_of_one_endpoint_share_a_limiter(catalogue):
    limiters = Limiters()
    one, two, other = (catalogue.adapter(name) for name in ("fake", "fake", "other"))
    assert limiters.of(one) is not limiters.of(two)
    one.endpoint = two.endpoint = RemoteEndpoint(name="api.example.org small")
    other.endpoint = RemoteEndpoint(name="api.example.org large")
    assert limiters.of(one) is limiters.of(two) is not limiters.of(other)


def test_description_has_plain_numbers():
    async def work():
        gate = limiter()
        gate.leave(await gate.enter(4), [RateLimitError("slow down", retry_after=1.0)] * 4)
        return describe(gate.take())

    described = run_virtual(work)
    assert described["limited"] == 4 and described["rate"] > 0


def test_looking_up_a_limiter_leaves_the_adapter_as_it_is():
    adapter = FakeModel(FakeOptions())
    before = dict(vars(adapter))
    assert Limiters().of(adapter).rate is None and vars(adapter) == before


def test_room_that_an_adapter_hears_of_reaches_the_gate_of_its_endpoint(tmp_path):
    async def work():
        limiters, adapter = Limiters(), FakeModel(FakeOptions())
        with Store(tmp_path / "s.db") as store:
            adapter.services = limiters.services(adapter, store)
        adapter.services.hear(Room(remaining=0, reset_seconds=0.2))
        await limiters.of(adapter).enter(1)
        return limiters.of(adapter).take().waited_seconds

    assert asyncio.run(work()) > 0.15
