"""`llamacpp`: drawn answers, compared with Transformers on the same weights."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from prejudge.adapters.llamacpp.sampling import draw, log_softmax
from prejudge.core.contracts.adapter import answer_one
from prejudge.core.contracts.records import Generate, Generation, Sampling

from ..gguf_files import write_pair
from .asking import Pair, ask, say

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("gguf", reason="gguf, which writes the tiny model, is not installed")


def test_generation_does_not_depend_on_order(pair: Pair) -> None:
    requests = [say(text, seed=3, temperature=1.0) for text in ("one", "two " * 70, "two " * 71, "three")]
    assert ask(pair[0], requests) == ask(pair[0], requests[::-1])[::-1]


def test_greedy_equals_transformers(pair: Pair) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (answer,) = ask(pair[0], [say("one two", temperature=0.0)])
    tokenizer = AutoTokenizer.from_pretrained(pair[1])
    model = AutoModelForCausalLM.from_pretrained(pair[1]).eval()
    chat = [{"role": "user", "content": "one two"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, add_special_tokens=False).input_ids
    with torch.no_grad():
        for _ in range(12):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    # A character that the end cuts in two is left out.
    assert answer.text.rstrip("\ufffd") == tokenizer.decode(ids[-12:]).rstrip("\ufffd")
    assert answer.usage.input_tokens == len(ids) - 12


def test_seed_is_honoured(pair: Pair) -> None:
    same = [say("one", seed=1, temperature=1.0)] * 2
    other = say("one", seed=2, temperature=1.0)
    one, again, two = ask(pair[0], [*same, other])
    assert one == again
    assert one.text != two.text


@pytest.mark.parametrize("change", [{"sample": 1}, {"attempt": 1}])
@pytest.mark.parametrize("seed", [None, 5])
def test_repeats_are_draws_of_their_own(pair: Pair, change: dict[str, int], seed: int | None) -> None:
    import msgspec

    first = say("one", seed=seed, temperature=1.0)
    one, two = ask(pair[0], [first, msgspec.structs.replace(first, **change)])
    assert one.text != two.text


def test_draws_follow_the_distribution(pair: Pair) -> None:
    one = say("one", max_tokens=1)
    requests = [Generate(messages=one.messages, sampling=one.sampling, sample=n, top_logprobs=90) for n in range(400)]
    draws: list[Generation] = ask(pair[0], requests)
    # A token that is part of a character has no text of its own to be counted by.
    top = next(top for top in draws[0].top_logprobs[0] if top.token.isascii())
    share = sum(answer.text == top.token for answer in draws) / len(draws)
    chance = math.exp(top.log_probability)
    assert share == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / len(draws)))


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.75), (0.5, 0.9), (2.0, 0.634)])
def test_temperature_sharpens_the_draw(temperature: float, share: float) -> None:
    row = log_softmax(np.log(np.array([0.25, 0.75])))
    sampling = Sampling(temperature=temperature)
    assert [draw(row, sampling, share - 0.01), draw(row, sampling, share + 0.01)] == [1, 0]


def test_top_p_keeps_the_likeliest() -> None:
    row = log_softmax(np.log(np.array([0.2, 0.5, 0.3])))
    assert {draw(row, Sampling(top_p=0.6), point / 100) for point in range(100)} == {1, 2}


def test_small_top_p_is_greedy(pair: Pair) -> None:
    narrow, greedy = ask(pair[0], [say("one", top_p=1e-9, temperature=1.0), say("one", temperature=0.0)])
    assert narrow.text == greedy.text


def test_stop_cuts_the_text(pair: Pair) -> None:
    (whole,) = ask(pair[0], [say("one two", temperature=0.0)])
    stop = whole.text[3:5]
    (cut,) = ask(pair[0], [say("one two", temperature=0.0, stop=(stop, "never"))])
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish_reason == "stop"


def test_length_is_reported(pair: Pair) -> None:
    (answer,) = ask(pair[0], [say("one two", temperature=0.0, max_tokens=4)])
    assert (answer.finish_reason, answer.usage.output_tokens) == ("length", 4)


@pytest.mark.parametrize("kind", ["pair", "spm"])
def test_alternatives_are_told_apart_and_equal_those_of_transformers(kind: str, request: pytest.FixtureRequest) -> None:
    from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions

    file, checkpoint = request.getfixturevalue(kind)
    wish = Sampling(max_tokens=1, temperature=0.0)
    every = Generate(messages=say("one").messages, sampling=wish, top_logprobs=1000)
    (ours,) = ask(file, [every], chat_format="plain")

    async def theirs() -> Generation:
        adapter = HFCausal(HFCausalOptions(model=str(checkpoint), device="cpu", chat="plain"))
        try:
            return await answer_one(adapter, every)
        finally:
            await adapter.aclose()

    ((tops,), (others,)) = (ours.top_logprobs, asyncio.run(theirs()).top_logprobs)
    texts = [top.token for top in tops]
    # A byte that is a letter has a token of its own beside the letter's: only those share their text.
    assert len(set(texts)) >= len(texts) - 128 and any(text.startswith(" ") for text in texts)
    if kind == "pair":
        assert len(set(texts)) == len(texts)
    known = {top.token: top.log_probability for top in others}
    assert set(known) == set(texts)
    if kind == "pair":
        assert all(known[top.token] == pytest.approx(top.log_probability, abs=1e-3) for top in tops)


def test_top_logprobs_are_sorted(pair: Pair) -> None:
    request = Generate(messages=say("one").messages, sampling=Sampling(max_tokens=3, temperature=0.0), top_logprobs=4)
    (answer,) = ask(pair[0], [request])
    assert [len(row) for row in answer.top_logprobs] == [4, 4, 4]
    for row in answer.top_logprobs:
        assert sorted(row, key=lambda top: -top.log_probability) == list(row)


def test_prompt_that_opens_a_thought_says_so_and_no_stop_text_ends_it(pair: Pair) -> None:
    wish = say("one two <think>", temperature=0.0)
    (plain,) = ask(pair[0], [wish], chat_format="plain")
    assert plain.opened and plain.text and not plain.reasoning
    stop = plain.text[2:4]
    (stopped,) = ask(pair[0], [say("one two <think>", temperature=0.0, stop=(stop,))], chat_format="plain")
    assert stopped == plain


def test_marks_that_are_special_tokens_are_seen(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    wish = [msgspec.structs.replace(say("one", temperature=3.0, max_tokens=60), sample=number) for number in range(30)]
    plain = ask(pair[0], wish, chat_format="plain")
    monkeypatch.setattr("prejudge.adapters.llamacpp.answers._SHOWN", frozenset({b"<|im_start|>"}))
    marked = ask(pair[0], wish, chat_format="plain")
    assert any("<|im_start|>" in answer.text for answer in marked)
    assert not any("<|im_start|>" in answer.text for answer in plain)


def test_room_and_arguments_of_the_template(tmp_path: Path) -> None:
    file, _ = write_pair(tmp_path, template="{{ messages[0].content }}{% if enable_thinking %} two three{% endif %}")
    (short,) = ask(file, [say("one", temperature=0.0, max_tokens=3)])
    (longer,) = ask(
        file,
        [say("one", temperature=0.0, max_tokens=3)],
        answer_room=4,
        chat_template_kwargs={"enable_thinking": True},
    )
    assert longer.usage.output_tokens == short.usage.output_tokens + 4
    assert longer.usage.input_tokens > short.usage.input_tokens
