"""Calls that wait go together; what goes wrong reaches whoever waits, and nobody else."""

from __future__ import annotations

import asyncio

import pytest

from prejudge.core.engine.claiming import Grouped


def grouped(unwanted=None):
    """Return the groups that were performed and what performs them: it doubles, and refuses to double a 13."""
    groups = []

    async def perform(items):
        groups.append(items)
        await asyncio.sleep(0.01)
        if 13 in items:
            raise ValueError("13")
        return [2 * item for item in items]

    return groups, Grouped(perform, unwanted)


def test_calls_that_wait_go_together():
    async def work():
        groups, calls = grouped()
        return groups, await asyncio.gather(*(calls.add(item) for item in range(4))), await calls.add(9)

    groups, doubled, last = asyncio.run(work())
    assert (doubled, last) == ([0, 2, 4, 6], 18)
    assert groups == [[0, 1, 2, 3], [9]]


def test_error_reaches_its_own_group():
    async def work():
        groups, calls = grouped()
        first = asyncio.create_task(calls.add(13))
        await asyncio.sleep(0.005)
        second = asyncio.create_task(calls.add(1))
        with pytest.raises(ValueError, match="13"):
            await first
        return await second

    assert asyncio.run(work()) == 2


def test_result_that_nobody_waits_for_is_handed_back():
    async def work():
        left = []
        groups, calls = grouped(left.append)
        gone, kept = asyncio.create_task(calls.add(1)), asyncio.create_task(calls.add(2))
        await asyncio.sleep(0.005)
        gone.cancel()
        await calls.finish()
        return left, await kept

    assert asyncio.run(work()) == ([2], 4)


def test_cancelling_gives_up_what_is_under_way():
    async def work():
        groups, calls = grouped()
        waiting = asyncio.create_task(calls.add(1))
        await asyncio.sleep(0.005)
        await calls.cancel()
        await asyncio.sleep(0.02)
        waiting.cancel()
        return groups, waiting.done()

    assert asyncio.run(work()) == ([[1]], False)
