"""Studies on endpoints that reason before they answer, with nothing but the model's entry."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import prejudge
from prejudge.adapters.simulated.adapter import SimulatedOptions
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Unreadable
from prejudge.core.contracts.adapter import ModelAdapter, Services, answer_one
from prejudge.core.contracts.records import Generate, Generation, Message, Sampling, Text
from prejudge.core.engine.reading import as_read, read_answer
from prejudge.testing import ChaosServer, Reply
from prejudge.testing.chaos.tiny import chat, problem

from .docs_world import Speaker

if any(find_spec(package) is None for package in ("openai", "aiohttp")):
    pytest.skip("the extra 'openai' is not installed", allow_module_level=True)
pytestmark = pytest.mark.usefixtures("no_figures")
THOUGHT = 300
"""Tokens of reasoning before an answer."""
REFUSED = ("temperature", "top_p", "stop")
ENTRIES = {
    "hidden": 'omit = ["temperature", "top_p", "stop"], answer_room = 512, max_tokens_field = "max_completion_tokens"',
    "field": "answer_room = 512",
    "tags": "answer_room = 512, extra_body = { chat_template_kwargs = { enable_thinking = true } }",
    "bare": "",
    "responses": 'omit = ["temperature", "top_p"], answer_room = 512, effort = "low", summary = "auto"',
    "anthropic": 'omit = ["temperature", "top_p"], answer_room = 2048, thinking_tokens = 1024',
    "gemini": "answer_room = 512, thoughts = true",
}
"""How a model is written in a registry, by how its endpoint tells the reasoning; `bare` has no room for it."""
ADAPTERS = {"responses": "openai-responses", "anthropic": "anthropic", "gemini": "gemini"}
"""The dialects other than OpenAI's chat."""
ROLES: dict[str, Any] = {"model": "assistant"}
REFUSED_BY = {"responses": ("temperature", "top_p", "stop", "seed"), "anthropic": ("temperature", "top_p", "seed")}
STUDIES = {
    "subtle-sai": {},
    "dora-t2t": {},
    "bistereo-nli": {},
    "indicasa": {"encoder": "simulated-fair"},
    "attractiveness": {},
}
"""The studies, and the models of roles other than the one that reasons."""
ASKED = 30


class Thinker:
    """The answers of a model that reasons, as one kind of endpoint sends them."""

    def __init__(self, kind: str) -> None:
        self.kind = "hidden" if kind == "bare" else kind
        self._speaker = Speaker(SimulatedOptions(model="thinker"))

    def __call__(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        config = body.get("generationConfig", {})
        names = ("max_completion_tokens", "max_tokens", "max_output_tokens", "maxOutputTokens")
        limit = next((place[name] for place in (body, config) for name in names if name in place), None)
        thought = " ".join(["hm"] * THOUGHT)
        if limit is not None and limit <= THOUGHT:
            return self._told(thought, "", "length", limit)
        return self._told(thought, self._answer(body), "stop", THOUGHT + 9)

    def _told(self, thought: str, answer: str, finish: str, tokens: int) -> dict[str, Any]:
        if self.kind in ADAPTERS:
            return TOLD[self.kind](thought, answer, finish == "stop", tokens)
        made = chat(answer, finish)
        if self.kind == "field":
            made = chat(answer, finish, reasoning_content=thought)
        elif self.kind == "tags":
            made = chat(f"<think>\n{thought}" + (f"\n</think>\n\n{answer}" if finish == "stop" else ""), finish)
        return made | {"usage": {"prompt_tokens": 50, "completion_tokens": tokens}}

    def _answer(self, body: dict[str, Any]) -> str:
        said = body.get("messages") or body.get("input") or body.get("contents") or []
        messages = tuple(
            Message(ROLES.get(one["role"], one["role"]), tuple(_texts(one.get("content") or one["parts"])))
            for one in said
        )
        seed = body.get("seed", body.get("generationConfig", {}).get("seed"))
        asking = Generate(messages=messages, sampling=Sampling(seed=seed))
        # The server answers within its own event loop.
        with ThreadPoolExecutor(1) as pool:
            return str(pool.submit(lambda: asyncio.run(answer_one(self._speaker, asking))).result().text)


def _texts(content: Any) -> Iterator[Text]:
    if isinstance(content, str):
        yield Text(content)
    else:
        yield from (Text(part["text"]) for part in content if "text" in part)


def _responses(thought: str, answer: str, whole: bool, tokens: int) -> dict[str, Any]:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]}
    return {
        "status": "completed" if whole else "incomplete",
        "incomplete_details": None if whole else {"reason": "max_output_tokens"},
        "output": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]}, message],
        "usage": {"input_tokens": 50, "output_tokens": tokens, "output_tokens_details": {"reasoning_tokens": THOUGHT}},
    }


def _anthropic(thought: str, answer: str, whole: bool, tokens: int) -> dict[str, Any]:
    return {
        "type": "message",
        "content": [{"type": "thinking", "thinking": thought, "signature": "s"}, {"type": "text", "text": answer}],
        "stop_reason": "end_turn" if whole else "max_tokens",
        "usage": {"input_tokens": 50, "output_tokens": tokens},
    }


def _gemini(thought: str, answer: str, whole: bool, tokens: int) -> dict[str, Any]:
    parts = [{"text": thought, "thought": True}, {"text": answer}]
    usage = {"promptTokenCount": 50, "candidatesTokenCount": tokens - THOUGHT, "thoughtsTokenCount": THOUGHT}
    finish = "STOP" if whole else "MAX_TOKENS"
    return {"candidates": [{"content": {"parts": parts}, "finishReason": finish}], "usageMetadata": usage}


TOLD = {"responses": _responses, "anthropic": _anthropic, "gemini": _gemini}


@pytest.fixture(params=ENTRIES)
def thinking(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, prejudge.Settings, ChaosServer]]:
    kind = request.param
    with ChaosServer(Thinker(kind)) as server:
        if kind in ("hidden", "bare"):
            unsupported = Reply(400, problem("unsupported_parameter", "Unsupported parameter: 'temperature'."))
            server.play(unsupported, where=lambda call: any(name in call.body for name in REFUSED))
        elif kind in REFUSED_BY:
            unknown = Reply(400, problem("invalid_request_error", "Unsupported parameter."))
            server.play(unknown, where=lambda call: any(name in call.body for name in REFUSED_BY[kind]))
        address = server.url.removesuffix("/v1") if kind in ADAPTERS else server.url
        entry = f'model = "thinker", base_url = "{address}", api_key_env = ""'
        registry = tmp_path / "mine.toml"
        more = f", {ENTRIES[kind]}" if ENTRIES[kind] else ""
        registry.write_text(
            f'[models.thinker]\nadapter = "{ADAPTERS.get(kind, "openai")}"\nsettings = {{ {entry}{more} }}\n'
        )
        yield (
            kind,
            prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"), registry=str(registry)),
            server,
        )


@pytest.mark.parametrize("study", STUDIES)
def test_answers_are_read_with_nothing_but_the_entry(study, thinking):
    kind, settings, _ = thinking
    catalogue = Catalogue.load(settings.registry)
    stage = catalogue.instrument(catalogue.study(study, {"subject": "thinker", **STUDIES[study]}, {})).stages()[0]
    trials = list(islice(stage.trials({}), ASKED))
    images = {hashlib.sha256(image).hexdigest(): image for image, _ in stage.images()}
    answers = asyncio.run(asked(catalogue.adapter("thinker"), [trial.request for trial in trials], images))
    if kind == "bare":
        assert not any(isinstance(answer, Generation) and as_read(answer).text for answer in answers)
        return
    assert not (errors := [str(one) for one in answers if not isinstance(one, Generation)]), errors[:1]
    assert all(
        answer.finish_reason in ("stop", "completed", "end_turn", "STOP") and answer.usage.output_tokens > THOUGHT
        for answer in answers
    )
    read = [read_answer(stage, trial.factors, answer) for trial, answer in zip(trials, answers, strict=True)]
    assert not [one for one in read if one is None or isinstance(one, Unreadable)]
    assert {bool(as_read(answer).reasoning) for answer in answers} == {kind != "hidden"}


async def asked(adapter: ModelAdapter, requests: list[Any], images: dict[str, bytes]) -> list[Any]:
    adapter.services = Services(blobs=images.__getitem__, keep=None)
    try:
        return list(await adapter.answer(requests))
    finally:
        await adapter.aclose()


def test_run_keeps_the_reasoning_and_reads_the_answer(thinking):
    kind, settings, _ = thinking
    options = {"per_dimension": 1, "samples": 2, "letters": "ab"}
    if kind == "bare":
        with pytest.raises(prejudge.errors.PrejudgeError) as stopped:
            prejudge.run("dora-t2t", "thinker", settings, **options)
        assert stopped.value.code in ("run.all-failing", "run.all-empty")
        return
    run = prejudge.run("dora-t2t", "thinker", settings, **options)
    first = next(iter(prejudge.observe(run.name, settings).stages.values()))
    shown = dict(next(iter(prejudge.exchanges(run.name, first["key"].to_list()[:1], settings).values())))
    assert ("reasoning" in shown) == (kind != "hidden") and "hm" not in shown["answer"].split()
    assert "hm hm" not in str(first.to_dicts())
    spent = next(iter(run.scores.manifest.stages.values()))
    answers = spent.counts["asked"] + spent.counts["canary"]
    assert spent.counts["output_tokens"] == (THOUGHT + 9) * answers
