"""`openai`: vectors and images."""

from __future__ import annotations

import base64
import hashlib

import pytest

from prejudge.core.contracts.errors import PermanentError, TransientError
from prejudge.core.contracts.records import Draw, Drawing, Embed, Embedding, Usage
from prejudge.testing import Reply
from prejudge.testing.chaos.tiny import picture, problem


def keep(data: bytes, media_type: str) -> str:
    assert media_type == "image/png"
    return hashlib.sha256(data).hexdigest()


def test_embed_gives_the_vector(ask, transport):
    (answer,) = ask(Embed(text="a"), transport=transport)
    vector = tuple(value / 255 for value in hashlib.sha256(b"a").digest()[:8])
    assert answer == Embedding(vector=vector, usage=Usage(input_tokens=4))


@pytest.mark.parametrize("vector", [[], [1.0, 1e400]])
def test_vector_that_is_none_is_an_error(ask, server, vector):
    server.plan = [Reply(body=f'{{"data": [{{"embedding": {str(vector).replace("inf", "1e400")}}}]}}')]
    assert isinstance(ask(Embed(text="a"))[0], PermanentError | TransientError)


def test_image_is_kept_by_its_bytes(ask, server):
    (answer,) = ask(Draw(prompt="a house", width=64, height=32), keep=keep)
    sent = server.model("/images/generations", {"prompt": "a house"})["data"][0]["b64_json"]
    assert answer == Drawing(image=hashlib.sha256(base64.b64decode(sent)).hexdigest())
    assert server.seen[0].body == {
        "model": "tiny",
        "prompt": "a house",
        "size": "64x32",
        "response_format": "b64_json",
    }


def test_gpt_image_models_are_not_told_a_format(ask, server):
    ask(Draw(prompt="a house"), keep=keep, model="gpt-image-1")
    assert "response_format" not in server.seen[0].body


def test_seed_is_sent_by_setting_only(ask, server):
    ask(Draw(prompt="a", seed=3), keep=keep, send_draw_seed=True)
    assert server.seen[0].body["seed"] == 3


@pytest.mark.parametrize("field", ["steps", "guidance"])
def test_setting_without_a_place_is_an_error(ask, server, field):
    assert isinstance(ask(Draw(prompt="a", **{field: 5}), keep=keep)[0], PermanentError)
    assert not server.seen


def test_filtered_image_is_no_image(ask, server):
    server.plan = [Reply(400, problem("content_policy_violation"))]
    assert ask(Draw(prompt="a"), keep=keep)[0] == Drawing(image=None, status="filtered")


def test_image_needs_a_place(ask):
    (answer,) = ask(Draw(prompt="a"))
    assert isinstance(answer, PermanentError)
    assert answer.code == "request.no-image-store"


@pytest.mark.parametrize(
    "image",
    [
        {"url": "https://example.org/a.png"},
        {"b64_json": "not base64!"},
        {"b64_json": base64.b64encode(b"text").decode()},
        {"b64_json": base64.b64encode(picture()[:4]).decode()},
    ],
)
def test_image_that_is_none_is_an_error(ask, server, image):
    server.plan = [Reply(body={"data": [image]})]
    assert isinstance(ask(Draw(prompt="a"), keep=keep)[0], PermanentError)


@pytest.mark.parametrize("question", [Draw(prompt="a"), Embed(text="a")])
def test_empty_answer_is_transient(ask, server, question):
    server.plan = [Reply(body={"data": []})]
    assert isinstance(ask(question, keep=keep)[0], TransientError)
