"""A whole study about images in batches: files below the provider's limit, and the estimates of single calls."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import json
from importlib.util import find_spec

import msgspec
import numpy as np
import pytest

import prejudge
from prejudge.adapters.anthropic.batches import AnthropicBatches as AnthropicApi
from prejudge.adapters.openai.batches import OpenAIBatches as OpenAIApi
from prejudge.core.contracts.errors import HaltedError
from prejudge.core.store import Store
from prejudge.core.store.checks import Checks
from prejudge.testing import raises_code
from prejudge.testing.chaos import AnthropicBatches, OpenAIBatches
from prejudge.testing.chaos.tiny import chat

Image = pytest.importorskip("PIL.Image")
if find_spec("openai") is None:
    pytest.skip("the extra 'openai' is not installed", allow_module_level=True)
pytestmark = pytest.mark.usefixtures("no_figures")
STUDY = "attractiveness"
SMALL = {"categories": ["conditions"], "seeds": [0]}
SMALL |= {"attractiveness.resamples": 99, "attractiveness.effect_resamples": 0}
MOST = 120_000
"""Bytes of a batch here, so that a study of some megabytes needs several."""


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    """Return a folder of two people before and after a filter: noise, which no compression makes small."""
    folder, rng, rows = tmp_path_factory.mktemp("faces"), np.random.default_rng(0), []
    for number in range(2):
        for variant in ("original", "filtered"):
            name = f"{number}-{variant}.png"
            Image.fromarray(rng.integers(0, 255, (24 + number, 24, 3), dtype=np.uint8)).save(folder / name)
            person = {"gender": "female" if number else "male", "age_group": "", "race": "", "source": "own"}
            rows.append({"face_id": f"p{number}", "file": name, "variant": variant, **person})
    with (folder / "metadata.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return folder


def choose(body):
    """Answer by image and words together: whoever loses an image, or takes another's, answers otherwise."""
    said = json.dumps(body["messages"], sort_keys=True).encode()
    return "(a)" if hashlib.sha256(said).digest()[0] % 2 else "(b)"


def speak_openai(path, body):
    parts = body["messages"][-1]["content"]
    assert [part["type"] for part in parts] == ["image_url", "text"]
    assert parts[0]["image_url"]["url"].startswith("data:image/png;base64,")
    return chat(choose(body))


def speak_anthropic(path, body):
    parts = body["messages"][-1]["content"]
    assert [part["type"] for part in parts] == ["image", "text"] and parts[0]["source"]["media_type"] == "image/png"
    usage = {"input_tokens": 7, "output_tokens": 3}
    text = [{"type": "text", "text": choose(body)}]
    return {"content": text, "stop_reason": "end_turn", "usage": usage, "model": "tiny", "role": "assistant"}


DIALECTS = {
    "openai": (OpenAIBatches, OpenAIApi, speak_openai, "/v1"),
    "anthropic": (AnthropicBatches, AnthropicApi, speak_anthropic, ""),
}


@pytest.fixture
def quick(monkeypatch):
    """Cut every wait short."""
    sleep = asyncio.sleep
    monkeypatch.setattr("asyncio.sleep", lambda seconds, *more: sleep(min(seconds, 0.02), *more))


@pytest.fixture(params=DIALECTS)
def provider(request, server, tmp_path, monkeypatch):
    """Return the imitation of a provider, its adapter's batches, and the settings of runs."""
    imitation, api, speaks, root = DIALECTS[request.param]
    monkeypatch.setenv("THEIR_KEY", "sk-test-0123456789abcdefghij")
    server.model = speaks
    url = server.url.removesuffix("/v1") + root
    entry = f'model = "tiny", base_url = "{url}", api_key_env = "THEIR_KEY", batches = true'
    (tmp_path / "own.toml").write_text(f'[models.theirs]\nadapter = "{request.param}"\nsettings = {{ {entry} }}\n')

    def settings(name, **more):
        place = {"store": str(tmp_path / f"{name}.db"), "runs": str(tmp_path / name)}
        return prejudge.Settings(**place, registry=str(tmp_path / "own.toml"), **more)

    return imitation(server), api, settings


def limit(monkeypatch, api, most):
    monkeypatch.setattr(api, "limits", msgspec.structs.replace(api.limits, bytes=most))


def test_images_fill_several_batches_below_the_limit(provider, faces, quick, monkeypatch):
    desk, api, settings = provider
    # What the adapter allows itself is within what the provider documents, with what stands around the lines.
    assert desk.most_bytes - 2_000_000 < api.limits.bytes <= desk.most_bytes
    limit(monkeypatch, api, MOST)
    desk.most_bytes = MOST + 100
    batched = prejudge.run(
        STUDY, "theirs", settings("batched", batch=True, batch_only=True, sentinel=3), data=str(faces), **SMALL
    )
    trials = batched.observations.height
    lines = [line for batch in desk.batches.values() for line in batch.lines]
    assert len(lines) == len(desk.paid) == trials and set(desk.paid.values()) == {1}
    largest = max(len(json.dumps(line)) for line in lines)
    assert len(desk.sizes) > 2 and all(size > MOST - largest for size in desk.sizes[:-1])
    (stage,) = batched.manifest.stages.values()
    assert stage.batch.answers == trials and stage.batch.sentinel.equal_texts == 3 and not stage.batch.notes
    alone = prejudge.run(STUDY, "theirs", settings("alone"), data=str(faces), **SMALL)
    assert batched.estimates.equals(alone.estimates) and batched.observations["score"].n_unique() == 2
    assert len(desk.paid) == trials
    with Store(settings("batched").store, writable=False) as store:
        assert list(Checks(store).problems()) == []


def test_image_that_no_batch_can_hold_is_named_before_anything_is_paid(provider, faces, quick, monkeypatch):
    desk, api, settings = provider
    limit(monkeypatch, api, 2_000)
    with raises_code(HaltedError, "batch.large", "2,000"):
        prejudge.run(
            STUDY, "theirs", settings("large", batch=True, batch_only=True, sentinel=0), data=str(faces), **SMALL
        )
    assert not desk.paid and not desk.sizes
