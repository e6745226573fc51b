"""The contract kit judges a model in this process by its answers: a setting that it ignores fails the rule."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest

from prejudge.core.contracts import Options
from prejudge.core.contracts.adapter import Identity, ModelAdapter
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Generate, Generation, Image, Message, Sampling, Usage
from prejudge.testing import AdapterContract

WORDS = ("red", "blue", "green", "tall", "small", "old")
PLAIN = Sampling()


class Talker(ModelAdapter):
    """Says words by chance; each chance follows from the request alone."""

    options = Options

    def __init__(self) -> None:
        self.identity = Identity(adapter="talker", version="1", model="words")

    async def generate(self, request: Generate) -> Generation:
        await asyncio.sleep(0)
        return self.say(request.messages, request)

    def say(self, messages: tuple[Message, ...], request: Generate) -> Generation:
        if not messages or not all(message.parts for message in messages):
            raise PermanentError("nothing was said")
        if any(isinstance(part, Image) for message in messages for part in message.parts):
            messages = self.see(messages)
        sampling = self.sampling(request)
        if "" in sampling.stop or (sampling.max_tokens or 1) < 1:
            raise PermanentError("such a limit leaves no word")
        chance = Random(f"{messages} {sampling.seed} {request.sample} {request.attempt}")
        likeliest = Random(f"{messages}")
        hot = bool(sampling.temperature) and (sampling.top_p or 1.0) > 0.01
        count = min(sampling.max_tokens or 9, 9)
        words = [(chance if hot else likeliest).choice(WORDS) for _ in range(count)]
        text = " ".join(words)
        for stop in sampling.stop:
            text = text.partition(stop)[0]
        return Generation(text=text, usage=Usage(output_tokens=count))

    def see(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        raise PermanentError("it sees no images")

    def sampling(self, request: Generate) -> Sampling:
        return request.sampling


def with_setting(**fixed: Any) -> type[Talker]:
    class Fixed(Talker):
        def sampling(self, request: Generate) -> Sampling:
            return msgspec.structs.replace(request.sampling, **fixed)

    return Fixed


class Greedy(Talker):
    def sampling(self, request: Generate) -> Sampling:
        return msgspec.structs.replace(request.sampling, temperature=0.0)


class SamplesAreCopies(Talker):
    async def generate(self, request: Generate) -> Generation:
        return await super().generate(msgspec.structs.replace(request, sample=0))


class SeedlessChance(Talker):
    number = 0

    def sampling(self, request: Generate) -> Sampling:
        self.number += 1
        return msgspec.structs.replace(request.sampling, seed=self.number)


class DropsSystem(Talker):
    async def generate(self, request: Generate) -> Generation:
        return self.say(tuple(each for each in request.messages if each.role != "system"), request)


class BlindToImages(Talker):
    def see(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return tuple(
            Message(each.role, tuple(part for part in each.parts if not isinstance(part, Image))) for each in messages
        )


class Sees(Talker):
    def see(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return messages


class KeepsTalking(Talker):
    said: tuple[Message, ...] = ()

    async def generate(self, request: Generate) -> Generation:
        self.said = (*self.said, *request.messages)
        return self.say(self.said, request)


class SharesRequest(Talker):
    async def generate(self, request: Generate) -> Generation:
        self.current = request
        await asyncio.sleep(0)
        return self.say(self.current.messages, self.current)


class OwnName(Talker):
    def __init__(self) -> None:
        self.identity = Identity(adapter="talker", version="1", model="talker")


def kit(adapter: type[Talker], **fields: Any) -> AdapterContract:
    return type("Kit", (AdapterContract,), {"make": adapter, **fields})()


@pytest.mark.parametrize(
    "rule",
    [
        name
        for name in dir(AdapterContract)
        if name.endswith(("model", "refused", "request", "nothing", "overtake", "single", "kept", "usable"))
    ],
)
def test_sound_model_passes(rule):
    getattr(kit(Talker), rule)()
    getattr(kit(Sees), rule)()


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (with_setting(temperature=1.0), "sampling_reaches_the_model"),
        (Greedy, "sampling_reaches_the_model"),
        (with_setting(seed=3), "sampling_reaches_the_model"),
        (with_setting(top_p=None), "sampling_reaches_the_model"),
        (with_setting(max_tokens=None), "sampling_reaches_the_model"),
        (with_setting(stop=()), "sampling_reaches_the_model"),
        (SamplesAreCopies, "sampling_reaches_the_model"),
        (SeedlessChance, "sampling_reaches_the_model"),
        (DropsSystem, "system_message_reaches_the_model"),
        (BlindToImages, "images_are_seen_or_refused"),
        (KeepsTalking, "nothing_is_kept_from_another_request"),
        (SharesRequest, "concurrent_requests_share_nothing"),
        (OwnName, "identity_names_the_model"),
    ],
)
def test_planted_bug_fails(broken, rule):
    with pytest.raises(AssertionError):
        getattr(kit(broken), f"test_{rule}")()


@pytest.mark.parametrize(
    ("fixed", "name"), [({"seed": 3}, "seed"), ({"top_p": None}, "top_p"), ({"max_tokens": None}, "max_tokens")]
)
def test_setting_that_the_model_lacks_is_named(fixed, name):
    kit(with_setting(**fixed), ignores=(name,)).test_sampling_reaches_the_model()
