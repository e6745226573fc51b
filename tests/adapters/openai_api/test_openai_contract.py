"""`openai`: the rules that every adapter must keep."""

from __future__ import annotations

from functools import partial

import pytest

from prejudge import testing
from prejudge.adapters.openai_api import OpenAIApi, OpenAIOptions
from prejudge.core.records import Classify, Embed, Generate, Likelihood, Message, Text


def say(text: str) -> Generate:
    return Generate(messages=(Message("user", (Text(text),)),))


def make(**settings) -> OpenAIApi:
    return OpenAIApi(OpenAIOptions(**settings))


class TestOpenAIContract(testing.AdapterContract):
    requests = (
        *(say(text) for text in ("a", "a longer question", "the longest question of all three")),
        *(Likelihood(prompt=text, continuations=(" blue", " deeply green")) for text in ("The sky is", "It", "A b c")),
        *(Classify(text=text) for text in ("good", "rather bad", "so so")),
        *(Embed(text=text) for text in ("a", "b c", "d e f")),
    )
    secrets = ("OPENAI_API_KEY",)

    @pytest.fixture(autouse=True)
    def _server(self, server):
        settings = {
            "model": "tiny",
            "base_url": server.url,
            "likelihood": "echo",
            "classify": "likelihood",
            "labels": (" good", " bad"),
        }
        type(self).make = staticmethod(partial(make, **settings))
        type(self).others = [partial(make, **{**settings, "system_prompt": "Be brief."})]
        type(self).same = [
            partial(make, **{**settings, **more})
            for more in ({"concurrency": 3}, {"timeout_seconds": 9.0}, {"transport": "sdk"}, {"api_key_env": ""})
        ]
        type(self).recipe = (
            "from prejudge.adapters.openai_api import OpenAIApi, OpenAIOptions\n"
            f"adapter = OpenAIApi(OpenAIOptions(**{settings!r}))"
        )
