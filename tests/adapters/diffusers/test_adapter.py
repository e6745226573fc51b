"""`diffusers`: options, identity, cancelling and closing."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from prejudge.core.contracts.adapter import Services, answer_one
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Drawing
from prejudge.testing import raises_code

from ...installed import need
from .asking import ASK, build, differ, pixels

need("diffusers", "torch", "PIL")


@pytest.mark.parametrize(
    "options",
    [
        {"prompt_suffix": ", oil painting"},
        {"negative_prompt": "blurry"},
        {"scheduler": "EulerAncestralDiscreteScheduler"},
        {"dtype": "bfloat16"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_option_changes_image_and_identity(tiny, options):
    assert not np.array_equal(pixels(tiny, ASK, **options), pixels(tiny, ASK))
    assert build(tiny, **options).identity != build(tiny).identity


def test_nowhere_to_keep_is_permanent_error(tiny):
    with raises_code(PermanentError, "request.no-image-store"):
        asyncio.run(answer_one(build(tiny), ASK))


@pytest.mark.parametrize("options", [{"steps": 9}, {"guidance": 3.0}])
def test_defaults_stand_in_identity(tiny, options):
    assert build(tiny, **options).identity != build(tiny).identity


def test_identity_tells_whether_checker_is_used(make_pipeline):
    assert build(make_pipeline(True)).identity.settings["safety_checker"] is True
    assert build(make_pipeline()).identity.settings["safety_checker"] is False


def test_cancelled_drawing_stops_between_steps(tiny):
    async def once():
        adapter = build(tiny)
        adapter.services = Services(keep=lambda data, media_type: "kept")
        await answer_one(adapter, ASK)
        long = asyncio.create_task(answer_one(adapter, differ(steps=900, width=64, height=64)))
        await asyncio.sleep(0.2)
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
        started = asyncio.get_running_loop().time()
        assert await answer_one(adapter, ASK) == Drawing(image="kept")
        await adapter.aclose()
        return asyncio.get_running_loop().time() - started

    assert asyncio.run(once()) < 5


def test_closed_adapter_refuses(tiny):
    async def once():
        adapter = build(tiny)
        adapter.services = Services(keep=lambda data, media_type: "kept")
        await adapter.aclose()
        await answer_one(adapter, ASK)

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(once())
