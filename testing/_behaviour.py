"""Checks by behaviour, for a model in this process: a setting that it heeds changes its answers as it should."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from ..core.contracts.adapter import ModelAdapter
from ..core.contracts.errors import ModelError, PermanentError
from ..core.contracts.records import Generate, Generation, Image, Message, Text
from ._kit import IMAGES, settle

DRAWS = 8
HOT = 2.0
"""A temperature at which a model that draws does not say the same eight times."""
LONG = 24
FREE: dict[str, Any] = {"temperature": 0.0, "max_tokens": LONG, "seed": 1}
UNSEEDED: dict[str, Any] = {"temperature": HOT, "max_tokens": LONG}
SEEDS: list[dict[str, Any]] = [{"temperature": HOT, "max_tokens": LONG, "seed": seed} for seed in range(DRAWS)]


async def check_sampling(adapter: ModelAdapter, asked: Sequence[Generate], ignores: Collection[str]) -> None:
    """Check that each setting that is not ignored is heeded.

    Raises:
        AssertionError: one is not; the message names it.
    """
    greedy = await texts(adapter, asked, [FREE])
    hot = await texts(adapter, asked, SEEDS)
    if "temperature" not in ignores:
        cold = await texts(adapter, asked, [{**FREE, "seed": seed} for seed in range(DRAWS)])
        assert cold == greedy * DRAWS, "answers at temperature 0 depend on the seed"
        assert hot != greedy * DRAWS, f"answers at temperature {HOT:g} are those of temperature 0"
    if "seed" not in ignores:
        samples = await texts(adapter, asked, SEEDS[:1], samples=range(DRAWS))
        unseeded = await texts(adapter, asked, [UNSEEDED], samples=range(DRAWS))
        for drawn, what in ((hot, "seed"), (samples, "sample"), (unseeded, "sample of a request without a seed")):
            various = any(len(set(drawn[place :: len(asked)])) > 1 for place in range(len(asked)))
            assert various, f"answers at temperature {HOT:g} do not depend on the {what}"
        assert hot == await texts(adapter, asked, SEEDS), "a seed does not draw the same again"
    if "top_p" not in ignores:
        sharp = await texts(adapter, asked, [{**each, "top_p": 1e-6} for each in SEEDS])
        assert sharp == greedy * DRAWS, "top_p = 0.000001 still draws other answers than the likeliest"
    if "max_tokens" not in ignores:
        await _check_length(adapter, asked)
    if "stop" not in ignores:
        for request, text in zip(asked, greedy, strict=True):
            stop = text[len(text) // 3 :][:3]
            if len(stop) == 3:
                (cut,) = await texts(adapter, [request], [{**FREE, "stop": (stop,)}])
                assert stop not in cut, f"the answer {cut!r} goes on after the stop text {stop!r}"


async def check_system(adapter: ModelAdapter, asked: Sequence[Generate]) -> None:
    """Check that a system message changes an answer, or is refused."""
    system = Message("system", (Text("You are a pirate of few words."),))
    told = [msgspec.structs.replace(each, messages=(system, *each.messages)) for each in asked]
    if isinstance(await settle(adapter, _with(told[0], SEEDS[0])), PermanentError):
        return
    without = await texts(adapter, asked, SEEDS)
    assert without != await texts(adapter, told, SEEDS), "a system message changes no answer"


async def check_images(adapter: ModelAdapter, asked: Sequence[Generate]) -> None:
    """Check that an image changes an answer, or is refused: one of the questions, or else one of the kit."""
    pictured = [each for each in asked if any(isinstance(part, Image) for part in _parts(each))]
    compared = [pictured, [_blind(each) for each in pictured]]
    if not pictured:
        what = Text("What is this?")
        compared = [[Generate(messages=(Message("user", (what, Image(name))),))] for name in IMAGES]
    for questions in compared:
        if isinstance(await settle(adapter, _with(questions[0], SEEDS[0])), ModelError):
            return
    first, second = [await texts(adapter, questions, SEEDS) for questions in compared]
    assert first != second, "an image changes no answer: raise PermanentError if the model takes none"


async def texts(
    adapter: ModelAdapter,
    asked: Sequence[Generate],
    settings: Iterable[dict[str, Any]],
    samples: Iterable[int] = (0,),
) -> list[str]:
    """Return the answers to the questions with each of the settings, the questions running fastest."""
    return [
        (await _answer(adapter, msgspec.structs.replace(_with(request, each), sample=sample))).text
        for each in settings
        for sample in samples
        for request in asked
    ]


async def _check_length(adapter: ModelAdapter, asked: Sequence[Generate]) -> None:
    for request in asked:
        one = await _answer(adapter, _with(request, {**FREE, "max_tokens": 1}))
        many = await _answer(adapter, _with(request, FREE))
        short = one.usage.output_tokens <= 1 and len(one.text) <= len(many.text)
        assert short, f"an answer of at most 1 token is {one!r}"
        longer = many.usage.output_tokens > 1 or (not many.usage.output_tokens and len(many.text.split()) > 1)
        assert not longer or one.text != many.text, f"max_tokens = 1 and {LONG} give the same answer {many.text!r}"


async def _answer(adapter: ModelAdapter, request: Generate) -> Generation:
    answer = await settle(adapter, request)
    assert isinstance(answer, Generation), f"{request!r} is answered by {answer!r}"
    return answer


def _with(request: Generate, sampling: dict[str, Any]) -> Generate:
    return msgspec.structs.replace(request, sampling=msgspec.structs.replace(request.sampling, **sampling))


def _parts(request: Generate) -> list[Text | Image]:
    return [part for message in request.messages for part in message.parts]


def _blind(request: Generate) -> Generate:
    """Return a request without its images."""
    messages = tuple(
        Message(message.role, tuple(part for part in message.parts if not isinstance(part, Image)))
        for message in request.messages
    )
    return msgspec.structs.replace(request, messages=messages)
