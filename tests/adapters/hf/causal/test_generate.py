from __future__ import annotations

import asyncio
import json
import math
import shutil
from functools import cache

import pytest

from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Generate, Generation, Image, Message, Sampling, Text

TEXTS = ("The tall boys", "He didn't know that unbelievable", "Lazy", "Those obese girls are unfriendly, and the tall")


def ask_for(text, role="user", **fields):
    sampling = {name: fields.pop(name) for name in Sampling.__struct_fields__ if name in fields}
    return Generate(messages=(Message(role, (Text(text),)),), sampling=Sampling(**sampling), **fields)


def requests(**fields):
    return [ask_for(text, **{"max_tokens": 12, **fields}) for text in TEXTS]


@cache
def load(folder):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()


def by_transformers(folder, text, **settings):
    import torch

    tokenizer, model = load(folder)
    ids = tokenizer(text, return_tensors="pt", add_special_tokens=not text.startswith("<s>"))
    with torch.inference_mode():
        whole = model.generate(**ids, **{"max_new_tokens": 12, "do_sample": False, **settings})
    return tokenizer.decode(whole[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)


def texts(answers):
    assert all(isinstance(answer, Generation) for answer in answers), answers
    return [answer.text for answer in answers]


FAMILIES = {
    "llama": {},
    "gpt2": {"n_positions": 160},
    "opt": {"word_embed_proj_dim": 64, "ffn_dim": 96},
    "bloom": {"n_head": 4, "n_layer": 2},
    "mistral": {"sliding_window": 8, "num_key_value_heads": 2},
    "mamba": {"state_size": 8},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_equals_transformers(family, make_causal, ask_causal):
    folder = make_causal(family, **FAMILIES[family])
    answers = ask_causal(folder, requests(temperature=0), chat="plain")
    assert texts(answers) == [by_transformers(folder, text) for text in TEXTS]


def test_chat_template_is_used(tiny_llama, ask_causal):
    answers = ask_causal(tiny_llama, requests(temperature=0))
    expected = [by_transformers(tiny_llama, f"<s><|user|>{text}</s><|assistant|>") for text in TEXTS]
    assert texts(answers) == expected
    assert texts(ask_causal(tiny_llama, requests(temperature=0), chat="plain")) != expected


def test_system_prompt_comes_first(tiny_llama, ask_causal):
    (answer,) = ask_causal(tiny_llama, requests(temperature=0)[:1], system_prompt="Be kind.")
    prompt = f"<s><|system|>Be kind.</s><|user|>{TEXTS[0]}</s><|assistant|>"
    assert answer.text == by_transformers(tiny_llama, prompt)


def test_answer_begun_by_the_assistant_is_continued(tiny_llama, ask_causal):
    messages = (Message("user", (Text("Who?"),)), Message("assistant", (Text("The tall"),)))
    request = Generate(messages=messages, sampling=Sampling(temperature=0, max_tokens=12))
    (answer,) = ask_causal(tiny_llama, [request])
    assert answer.text == by_transformers(tiny_llama, "<s><|user|>Who?</s><|assistant|>The tall")


@pytest.mark.parametrize(
    "fields", [{"temperature": 0}, {"temperature": 1.0, "seed": 3}, {"temperature": 0.8, "top_p": 0.9}]
)
def test_answer_does_not_depend_on_batch(fields, tiny_llama, ask_causal):
    together = requests(**fields) + [ask_for("Lazy", **{**fields, "max_tokens": n}) for n in (1, 5, 30)]
    answers = ask_causal(tiny_llama, together)
    assert answers == [ask_causal(tiny_llama, [request])[0] for request in together]
    assert answers[::-1] == ask_causal(tiny_llama, together[::-1])


@pytest.mark.parametrize("budget", [1, 50])
def test_budget_changes_no_answer(budget, tiny_llama, ask_causal):
    asked = requests(temperature=1.0, seed=1)
    assert ask_causal(tiny_llama, asked, token_budget=budget) == ask_causal(tiny_llama, asked)


def test_lack_of_memory_is_met_by_smaller_batches(tiny_llama, ask_causal, monkeypatch):
    from prejudge.adapters.hf.causal import model as _causal_model

    asked, run = requests(temperature=1.0, seed=1), _causal_model.Head.run
    expected = ask_causal(tiny_llama, asked)

    def small(self, ids, *arguments, **more):
        if ids.shape[0] > 2:
            raise RuntimeError("out of memory")
        return run(self, ids, *arguments, **more)

    monkeypatch.setattr(_causal_model.Head, "run", small)
    assert ask_causal(tiny_llama, asked) == expected


def test_top_k_and_min_p_limit_the_draws(tiny_llama, ask_causal):
    likeliest = texts(ask_causal(tiny_llama, requests(temperature=0)))
    for limit in ({"top_k": 1}, {"min_p": 1.0}):
        assert texts(ask_causal(tiny_llama, requests(temperature=2.0, seed=1, **limit))) == likeliest
    free = texts(ask_causal(tiny_llama, requests(temperature=2.0, seed=1)))
    assert texts(ask_causal(tiny_llama, requests(temperature=2.0, seed=1, top_k=10**6, min_p=0.0))) == free
    for limit in ({"top_k": 0}, {"min_p": -0.1}):
        (answer,) = ask_causal(tiny_llama, [ask_for("x", **limit)])
        assert isinstance(answer, PermanentError) and answer.code == "request.value"


def test_seed_sample_and_attempt_each_make_another_answer(tiny_llama, ask_causal):
    base = {"temperature": 2.0, "max_tokens": 20}
    fields = (
        {},
        {"seed": 1},
        {"seed": 2},
        {"seed": 1, "sample": 1},
        {"seed": 1, "attempt": 1},
        {"sample": 1},
        {"attempt": 1},
    )
    asked = [ask_for("The", **base, **more) for more in fields]
    found = texts(ask_causal(tiny_llama, asked))
    assert len(set(found)) == len(found)
    assert found == texts(ask_causal(tiny_llama, asked))


def test_unset_temperature_is_the_models_own(tiny_llama, tmp_path, ask_causal):
    folder = shutil.copytree(tiny_llama, tmp_path / "own")
    asked = requests(seed=4)
    assert texts(ask_causal(folder, asked)) == texts(ask_causal(folder, requests(temperature=0)))
    settings = {"do_sample": True, "temperature": 1.5, "eos_token_id": 1}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    assert texts(ask_causal(folder, asked)) == texts(ask_causal(folder, requests(temperature=1.5, seed=4)))


def full_text(folder, ask_causal, **fields):
    (answer,) = ask_causal(folder, [ask_for("The tall", temperature=0, max_tokens=30, **fields)])
    return answer


def test_stop_text_ends_the_answer_before_it(tiny_llama, ask_causal):
    whole = full_text(tiny_llama, ask_causal)
    assert whole.finish_reason == "length" and whole.usage.output_tokens == 30
    stop = whole.text[10:13]
    cut = full_text(tiny_llama, ask_causal, stop=("not there", stop))
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish_reason == "stop" and cut.usage.output_tokens < 30


def test_end_token_ends_the_answer(tiny_llama, tmp_path, ask_causal):
    folder = shutil.copytree(tiny_llama, tmp_path / "ends")
    whole = full_text(folder, ask_causal)
    tokenizer, model = load(tiny_llama)
    ids = tokenizer("<s><|user|>The tall</s><|assistant|>", return_tensors="pt", add_special_tokens=False)
    third = model.generate(**ids, max_new_tokens=3, do_sample=False)[0, -1].item()
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, third]}))
    ended = full_text(folder, ask_causal)
    assert ended.finish_reason == "stop" and ended.usage.output_tokens <= 3
    assert whole.text.startswith(ended.text)


def test_top_log_probabilities_are_the_models_own(tiny_llama, ask_causal):
    import torch

    (answer,) = ask_causal(tiny_llama, [ask_for("Lazy", temperature=0, max_tokens=3, top_logprobs=4)], chat="plain")
    tokenizer, model = load(tiny_llama)
    with torch.inference_mode():
        best = model(**tokenizer("Lazy", return_tensors="pt")).logits[0, -1].log_softmax(-1).topk(4)
    assert len(answer.top_logprobs) == 3
    assert [top.log_probability for top in answer.top_logprobs[0]] == pytest.approx(best.values.tolist(), abs=1e-4)
    texts = [tokenizer.decode([token]) for token in best.indices]
    for top, text in zip(answer.top_logprobs[0], texts, strict=True):
        assert top.token == text or (text == "\ufffd" and top.token.startswith("<0x"))


def test_usage_counts_tokens(tiny_llama, ask_causal):
    (answer,) = ask_causal(tiny_llama, requests(temperature=0)[:1], chat="plain")
    assert answer.usage.input_tokens == len(load(tiny_llama)[0](TEXTS[0])["input_ids"])
    assert answer.usage.output_tokens == 12 and answer.status == "ok"


def test_limit_of_the_option_holds_where_the_request_names_none(tiny_llama, ask_causal):
    (answer,) = ask_causal(tiny_llama, [ask_for("Lazy", temperature=0)], max_new_tokens=7)
    assert answer.usage.output_tokens == 7 and answer.finish_reason == "length"


def test_answer_ends_where_the_model_does(tiny_llama, ask_causal):
    (answer,) = ask_causal(tiny_llama, [ask_for("lazy " * 70, temperature=0, max_tokens=500)], chat="plain")
    assert answer.usage.input_tokens + answer.usage.output_tokens == 160 and answer.finish_reason == "length"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (ask_for("lazy " * 300), "request.too-long"),
        (Generate(messages=(Message("user", (Image("0" * 64),)),)), "request.image-unsupported"),
        (Generate(messages=()), "request.empty"),
        (ask_for("x", max_tokens=0), "request.value"),
        (ask_for("x", temperature=-1), "request.value"),
        (ask_for("x", temperature=math.nan), "request.value"),
        (ask_for("x", top_p=0), "request.value"),
        (ask_for("x", stop=("",)), "request.value"),
    ],
    ids=["long", "image", "none", "max", "cold", "nan", "top_p", "stop"],
)
def test_request_that_cannot_be_answered_fails_alone(request_, code, tiny_llama, ask_causal):
    refused, answered = ask_causal(tiny_llama, [request_, requests(temperature=0)[0]])
    assert isinstance(refused, PermanentError) and refused.code == code
    assert isinstance(answered, Generation)


def test_refusal_of_the_template_is_an_error(make_causal, ask_causal):
    folder = make_causal(template="{{ raise_exception('Only users may speak') }}")
    (answer,) = ask_causal(folder, [ask_for("x")])
    assert isinstance(answer, PermanentError) and answer.code == "request.template"
    assert "Only users may speak" in str(answer)


def test_template_is_told_one_day_only(make_causal, ask_causal):
    folder = make_causal(template="<s>{{ strftime_now('%d %b %Y') }}")
    (answer,) = ask_causal(folder, [ask_for("x", temperature=0, max_tokens=12)])
    assert isinstance(answer, Generation), answer
    assert answer.text == by_transformers(folder, "<s>26 Jul 2024")


def test_padding_token_of_the_model_is_not_needed(make_causal, ask_causal):
    folder = make_causal(pad_token_id=None)
    answers = ask_causal(folder, requests(temperature=0), chat="plain")
    assert texts(answers) == [by_transformers(folder, text) for text in TEXTS]


def test_space_before_the_answer_is_kept(tiny_llama, ask_causal):
    (answer,) = ask_causal(tiny_llama, [ask_for("The tall", temperature=0, max_tokens=40)], chat="plain")
    assert answer.text == by_transformers(tiny_llama, "The tall", max_new_tokens=40)


def test_cancelled_call_stops_early(tiny_llama):
    async def go():
        adapter = HFCausal(HFCausalOptions(model=str(tiny_llama), device="cpu", threads=1))
        await adapter.answer(requests(temperature=0)[:1])
        steps, run = [], adapter._engine.loaded.head.run
        adapter._engine.loaded.head.run = lambda *a, **k: steps.append(1) or run(*a, **k)
        long = [ask_for("Lazy", temperature=5.0, max_tokens=150, sample=sample) for sample in range(60)]
        task = asyncio.create_task(adapter.generate_batch(long))
        while not steps:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await adapter.aclose()
        return len(steps)

    assert asyncio.run(go()) < 100


def test_each_distinct_prompt_is_run_once(tiny_llama, ask_causal, monkeypatch):
    from prejudge.adapters.hf.causal import model as _causal_model

    shapes, run = [], _causal_model.Head.run
    monkeypatch.setattr(
        _causal_model.Head, "run", lambda self, ids, *a, **k: shapes.append(tuple(ids.shape)) or run(self, ids, *a, **k)
    )
    ask_causal(tiny_llama, [ask_for("Lazy", temperature=1.0, max_tokens=3, sample=sample) for sample in range(5)])
    assert [rows for rows, _ in shapes[-3:]] == [1, 5, 5]


def test_one_seed_draws_otherwise_for_each_prompt(tiny_llama, ask_causal, monkeypatch):
    from prejudge.adapters.hf import refill

    seen, original = [], refill.pick
    monkeypatch.setattr(refill, "pick", lambda x, c, step: seen.extend(o.key for o in c) or original(x, c, step))
    ask_causal(tiny_llama, requests(temperature=1.0, seed=3, max_tokens=1))
    assert len(set(seen)) == len(seen) == len(TEXTS)


def test_prompt_that_opens_a_thought_says_so_and_no_stop_text_ends_it(tiny_llama, ask_causal):
    wish = {"temperature": 0, "max_tokens": 12}
    (plain,) = ask_causal(tiny_llama, [ask_for("Lazy <think>", **wish)], chat="plain")
    assert plain.opened and plain.text and not plain.reasoning
    stop = plain.text[2:4]
    (stopped,) = ask_causal(tiny_llama, [ask_for("Lazy <think>", stop=(stop,), **wish)], chat="plain")
    assert stopped == plain
    (cut,) = ask_causal(tiny_llama, [ask_for("Lazy", stop=(stop,), **wish)], chat="plain")
    assert not cut.opened and stop not in cut.text


def test_arguments_reach_the_template_and_the_identity(make_causal, ask_causal, tmp_path):
    folder = tmp_path / "thinking"
    shutil.copytree(make_causal(), folder)
    template = "{% if enable_thinking is defined and not enable_thinking %}Lazy {% endif %}{{ messages[0].content }}"
    (folder / "chat_template.jinja").write_text(template)
    (thinking,) = ask_causal(folder, [ask_for("boys", temperature=0, max_tokens=4)])
    (off,) = ask_causal(
        folder, [ask_for("boys", temperature=0, max_tokens=4)], chat_template_kwargs={"enable_thinking": False}
    )
    assert off.usage.input_tokens > thinking.usage.input_tokens
    options = HFCausalOptions(model=str(folder), chat_template_kwargs={"enable_thinking": False}, answer_room=5)
    settings = HFCausal(options).identity.settings
    assert settings["chat_template_kwargs"] == '{"enable_thinking":false}' and settings["answer_room"] == 5
    assert (
        not {"chat_template_kwargs", "answer_room"}
        & HFCausal(HFCausalOptions(model=str(folder))).identity.settings.keys()
    )


def test_room_for_reasoning_is_added_to_the_limit(tiny_llama, ask_causal):
    (answer,) = ask_causal(tiny_llama, [ask_for("Lazy", temperature=0, max_tokens=3)], answer_room=4)
    assert answer.usage.output_tokens == 7
