"""`vllm` agrees with `hf-causal` and `hf-vlm` on the same checkpoint, and keeps their rules."""

from __future__ import annotations

import random

import pytest

from prejudge.adapters.hf.vlm.adapter import HFVLM, HFVLMOptions
from prejudge.core.contracts.adapter import Services, abilities_of
from prejudge.core.contracts.errors import ModelLoadError, PermanentError
from prejudge.core.contracts.records import Generate, Generation, Likelihood, Message, Sampling, Text

from .. import llava_files
from ..pool import POOL
from .conftest import engines, make

TEXTS = ("The tall boys", "He didn't know that unbelievable", "Lazy", "Those obese girls are unfriendly, and the tall")


def ask_for(text, **fields):
    top = fields.pop("top_logprobs", 0)
    rest = {name: fields.pop(name) for name in ("sample", "attempt") if name in fields}
    messages = (Message("user", (Text(text),)),)
    return Generate(messages=messages, sampling=Sampling(**fields), top_logprobs=top, **rest)


def greedy(**fields):
    return [ask_for(text, **{"max_tokens": 10, "temperature": 0.0, **fields}) for text in TEXTS]


SCORED = {
    "one token": Likelihood(prompt="The tall boys are", continuations=(" lazy", " not", " the")),
    "many tokens": Likelihood(
        prompt="She was considered", continuations=(" unbelievably friendly", " one of the misunderstandings")
    ),
    "inside a word": Likelihood(prompt="He didn't know that mis", continuations=("understandings", "takes happened")),
    "another border each": Likelihood(prompt="The capital of Italy is ", continuations=("Rome", "x", "and")),
    "blank first": Likelihood(prompt=" She", continuations=(" was", " x", "x")),
    "nothing in front": Likelihood(prompt="", continuations=("The tall", "She", "x")),
    "messages": Likelihood(prompt=(Message("user", (Text("Who is lazy?"),)),), continuations=("The boys", "A")),
}


def values(answer):
    return [value for score in answer.scores for value in score.values]


@pytest.fixture
def by_transformers(tiny_llama, ask_causal):
    return lambda requests, **options: ask_causal(tiny_llama, requests, **options)


@pytest.mark.parametrize("name", SCORED)
def test_likelihoods_are_those_of_hf_causal(name, tiny_llama, ask, by_transformers):
    (found,), (expected,) = ask(tiny_llama, [SCORED[name]]), by_transformers([SCORED[name]])
    assert values(found) == pytest.approx(values(expected), abs=1e-4)
    assert [score.count for score in found.scores] == [score.count for score in expected.scores]
    assert (found.overlap, found.usage) == (expected.overlap, expected.usage)


def test_answers_and_top_log_probabilities_are_those_of_hf_causal(tiny_llama, ask, by_transformers):
    requests = greedy(top_logprobs=5)
    for found, expected in zip(ask(tiny_llama, requests), by_transformers(requests), strict=True):
        assert (found.text, found.finish_reason, found.usage) == (expected.text, expected.finish_reason, expected.usage)
        assert len(found.top_logprobs) == len(expected.top_logprobs) > 0
        for mine, theirs in zip(found.top_logprobs, expected.top_logprobs, strict=True):
            assert [one.log_probability for one in mine] == pytest.approx(
                [one.log_probability for one in theirs], abs=1e-4
            )
            assert {one.token for one in mine} == {one.token for one in theirs}


def test_stop_texts_cut_as_in_hf_causal(tiny_llama, ask, by_transformers):
    whole = by_transformers(greedy())
    stop = next(answer.text[2:4] for answer in whole if len(answer.text.strip()) > 4)
    requests = greedy(stop=(stop,))
    found, expected = ask(tiny_llama, requests), by_transformers(requests)
    assert [(one.text, one.finish_reason) for one in found] == [(one.text, one.finish_reason) for one in expected]
    assert found != ask(tiny_llama, greedy())


def test_answers_do_not_depend_on_the_batch_or_on_what_was_asked_before(tiny_llama, ask):
    requests = [*SCORED.values(), *SCORED.values()]
    random.Random(1).shuffle(requests)
    together = ask(tiny_llama, requests)
    alone = [ask(tiny_llama, [request])[0] for request in requests]
    assert [values(one) for one in together] == [values(one) for one in alone]


def test_batch_invariant_mode_is_in_the_identity_and_set_before_the_import(tiny_llama, ask):
    on, off = make(tiny_llama).identity, make(tiny_llama, batch_invariant=False).identity
    assert on.settings == {**off.settings, "batch_invariant": True}
    requests = [SCORED["one token"], SCORED["many tokens"]]
    unsteady = ask(tiny_llama, requests, batch_invariant=False)
    assert values(unsteady[0]) != values(ask(tiny_llama, requests[:1], batch_invariant=False)[0])
    with pytest.raises(ModelLoadError) as caught:
        ask(tiny_llama, requests)
    assert caught.value.code == "model.process"


def test_prefix_caching_is_off_and_with_it_likelihoods_are_refused(tiny_llama, ask):
    ask(tiny_llama, greedy()[:1])
    assert engines()[0].arguments["enable_prefix_caching"] is False
    adapter = make(tiny_llama, prefix_caching=True)
    assert adapter.identity.settings["prefix_caching"] is True
    assert abilities_of(adapter).reasons.keys() == {
        "likelihood",
        "images",
    }


def test_letters_of_options_share_one_request_without_the_log_probabilities_of_the_prompt(tiny_llama, ask):
    request = Likelihood(prompt="The tall boys", continuations=("A", "B", "C", "D"))
    (answer,) = ask(tiny_llama, [request], chat="plain")
    steps = engines()[0].llm_engine.steps
    assert steps == 1 and all(score.count == 1 for score in answer.scores)


def test_draws_follow_from_the_request_alone(tiny_llama, ask):
    draws = [ask_for("The tall", temperature=1.0, max_tokens=8, seed=1, sample=n) for n in range(6)]
    first = ask(tiny_llama, draws)
    assert first == ask(tiny_llama, draws[::-1])[::-1]
    assert len({answer.text for answer in first}) > 3
    other = ask(tiny_llama, [ask_for("The tall", temperature=1.0, max_tokens=8, seed=2)])
    assert other[0].text != first[0].text


def test_draws_follow_the_distribution_of_the_model(tiny_llama, ask, by_transformers):
    draws = [ask_for("Lazy", temperature=0.7, max_tokens=1, sample=n, top_logprobs=3) for n in range(150)]
    answers = ask(tiny_llama, draws, chat="plain")
    expected = by_transformers([ask_for("Lazy", temperature=0.7, max_tokens=1, top_logprobs=3)], chat="plain")[0]
    assert [one.log_probability for one in answers[0].top_logprobs[0]] == pytest.approx(
        [one.log_probability for one in expected.top_logprobs[0]], abs=1e-4
    )
    assert 3 < len({answer.text for answer in answers})


def test_forms_and_further_limits_reach_vllm(tiny_llama, ask):
    shaped = [
        Generate(messages=ask_for("Who?").messages, choices=("lazy", "not lazy")),
        Generate(messages=ask_for("Who?").messages, json_schema='{"type": "object", "properties": {"who": {}}}'),
    ]
    assert [answer.text for answer in ask(tiny_llama, shaped)] == ["not lazy", '{"who": "x"}']
    both = Generate(messages=shaped[0].messages, choices=("a",), json_schema="{}")
    assert ask(tiny_llama, [both])[0].code == "request.value"
    likeliest = ask(tiny_llama, greedy())
    assert ask(tiny_llama, greedy(temperature=2.0, top_k=1)) == likeliest
    for limit in ({"top_k": 0}, {"min_p": 1.5}):
        assert ask(tiny_llama, [ask_for("x", **limit)])[0].code == "request.value"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (ask_for("x", max_tokens=0), "request.value"),
        (ask_for("x", stop=("",)), "request.value"),
        (ask_for("x", temperature=0.005), "request.value"),
        (ask_for("x", temperature=2.5), "request.value"),
        (ask_for("x", top_p=0.0), "request.value"),
        (ask_for("lazy " * 300), "request.too-long"),
        (Likelihood(prompt="lazy " * 300, continuations=("x",)), "request.too-long"),
        (Likelihood(prompt="x", continuations=()), "request.empty"),
        (Likelihood(prompt="x", continuations=("",)), "request.empty"),
        (llava_files.greedy(llava_files.QUESTIONS[:1])[0], "request.image-unsupported"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals_are_those_of_the_other_adapters(request_, code, tiny_llama, ask, by_transformers):
    found, good = ask(tiny_llama, [request_, greedy()[0]])
    assert isinstance(found, PermanentError) and found.code == code
    assert isinstance(good, Generation)
    if "temperature" not in str(found):
        (theirs,) = by_transformers([request_])
        assert theirs.code == code


def test_reasoning_stands_apart_and_is_not_cut_at_stop_texts(make_causal, ask, ask_causal):
    folder = make_causal("llama", template="{% for m in messages %}{{ m.content }}{% endfor %}<think>")
    whole = ask_causal(folder, greedy())
    assert all(answer.opened and answer.text for answer in whole)
    requests = greedy(stop=(whole[0].text[2:4],))
    assert ask(folder, requests) == ask_causal(folder, requests) == whole


@pytest.fixture(scope="module")
def tiny_llava(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llava") / "tiny-llava"
    llava_files.make_llava(folder)
    return folder


def ask_vlm(folder, requests):
    options = HFVLMOptions(model=str(folder), device="cpu", threads=1)
    services = Services(blobs=llava_files.look_up)
    return [POOL.ask(HFVLM, options, [request], services)[0] for request in requests]


def test_answers_about_images_are_those_of_hf_vlm(tiny_llava, ask):
    requests = [
        *llava_files.greedy(llava_files.QUESTIONS),
        *(
            Likelihood(prompt=llava_files.about(question), continuations=(" yes", " no person", "A"))
            for question in llava_files.QUESTIONS
        ),
    ]
    found = ask(tiny_llava, requests, blobs=llava_files.look_up)
    for mine, theirs in zip(found, ask_vlm(tiny_llava, requests), strict=True):
        if isinstance(mine, Generation):
            assert (mine.text, mine.finish_reason) == (theirs.text, theirs.finish_reason)
        else:
            assert values(mine) == pytest.approx(values(theirs), abs=1e-4)
            assert mine.overlap == theirs.overlap


def test_images_that_cannot_be_had_or_are_too_many_are_errors_of_their_request(tiny_llava, ask):
    one = llava_files.greedy(llava_files.QUESTIONS[:1])[0]
    twice = (Message("user", one.messages[0].parts[:1] * 2 + one.messages[0].parts[1:]),)
    many = Generate(messages=twice, sampling=one.sampling)
    marked = ask_for("What is <image>?")
    found = ask(tiny_llava, [many, marked, one], blobs=llava_files.look_up, max_images=1)
    assert [getattr(answer, "code", "") for answer in found] == ["request.images", "request.placeholder", ""]
    assert ask(tiny_llava, [one])[0].code == "request.no-image-store"
