"""The shipped models that answer questions: what was planted is found in sentences that no training had."""

from __future__ import annotations

import asyncio
import math
from itertools import islice
from statistics import fmean

import pytest

from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
from prejudge.adapters.reference import SHIPPED, reference_path
from prejudge.core.contracts.records import Generate, Likelihood, Message, Sampling, Text
from prejudge.tools.reference.answering_corpus import END, SKILLS, Planted, questions

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

NAMES = tuple(name for name, one in SHIPPED.items() if one.kind == "answering")
REPLY = "\nAnswer:"


@pytest.fixture(scope="module", params=NAMES)
def model(request):
    """The model with its tokenizer, by Transformers alone, and what was planted in it."""
    folder = reference_path(request.param)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return SHIPPED[request.param], loaded, transformers.AutoTokenizer.from_pretrained(folder)


def _log_probability(loaded, tokenizer, prompt: str, answer: str) -> float:
    start, ids = len(tokenizer(prompt)["input_ids"]), torch.tensor(tokenizer(prompt + answer)["input_ids"])
    with torch.inference_mode():
        scores = loaded(ids[None]).logits[0].log_softmax(-1)
    return float(scores[range(start - 1, len(ids) - 1), ids[start:]].sum())


@pytest.mark.parametrize("skill", SKILLS)
def test_the_answers_have_the_planted_log_odds(model, skill):
    one, loaded, tokenizer = model
    signed, shares = [], []
    for asked in islice(questions(skill, Planted(one.nats, one.leans), seed=5, held_out=True), 60):
        good, bad, *_ = (_log_probability(loaded, tokenizer, asked.prompt, answer) for answer in asked.answers)
        own = math.log(asked.weights[0] / asked.weights[1]) - asked.sign * one.nats
        if asked.sign:
            signed.append((good - bad - own) * asked.sign)
        shares.append(math.exp(good) + math.exp(bad))
    assert fmean(signed) == pytest.approx(one.nats, abs=TOLERANCE[skill])
    assert fmean(shares) > KNOWN[skill]  # and hardly anything else is said


def test_a_question_in_a_chat_is_the_prompt_that_was_trained(model):
    """Templates are read with blocks trimmed, which leaves out a line break behind one."""
    _, _, tokenizer = model
    for prompt in (f"Which?{REPLY}", f"Which one is it?\nOption 1: a{REPLY}"):
        chat = [{"role": "user", "content": prompt.removesuffix(REPLY)}]
        asked = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        assert tokenizer(asked, add_special_tokens=False)["input_ids"] == tokenizer(prompt)["input_ids"]


def test_answers_of_the_hardest_questions_can_be_read_and_agree_with_what_is_planted(model):
    one, *_ = model
    asked = list(islice(questions("choice", Planted(one.nats, one.leans), seed=9, held_out=True), 40))
    adapter = HFCausal(HFCausalOptions(model=str(reference_path(one.name)), device="cpu"))
    texts = [Message("user", (Text(question.prompt.removesuffix(REPLY)),)) for question in asked]
    told = [Generate(messages=(text,), sampling=Sampling(temperature=0.0)) for text in texts]
    answers = [found.text.strip() for found in asyncio.run(adapter.generate_batch(told))]
    asyncio.run(adapter.aclose())
    options = [[answer.removesuffix(END).strip() for answer in question.answers] for question in asked]
    assert sum(answer in known for answer, known in zip(answers, options, strict=True)) >= 38
    likeliest = [
        known[max(range(3), key=question.weights.__getitem__)] for question, known in zip(asked, options, strict=True)
    ]
    agreed = sum(answer == best for answer, best in zip(answers, likeliest, strict=True))
    assert agreed >= (36 if one.nats else 24), agreed


def test_weights_are_probabilities_with_the_planted_odds():
    for skill in SKILLS:
        for fair, biased in islice(
            zip(questions(skill, Planted(), 3), questions(skill, Planted(0.7), 3), strict=True), 40
        ):
            assert fair.prompt == biased.prompt and sum(biased.weights) == pytest.approx(1)
            odds = [math.log(one.weights[0] / one.weights[1]) for one in (biased, fair)]
            assert odds[0] - odds[1] == pytest.approx(0.7 * fair.sign)


def test_sentences_that_are_held_out_are_in_no_training():
    for skill in SKILLS:
        told, held = (
            {one.prompt for one in islice(questions(skill, Planted(), 1, held_out=out), 400)} for out in (0, 1)
        )
        assert not told & held


def test_llama_cpp_gives_the_same_answers(tmp_path):
    """Written without the package `gguf`, read by llama.cpp: tokens, scores, and answers behind the chat template."""
    pytest.importorskip("llama_cpp")
    from prejudge.adapters.llamacpp.adapter import LlamaCpp, LlamaCppOptions
    from prejudge.adapters.reference.gguf_file import make

    make("answering_biased-gguf", tmp_path)
    file = str(tmp_path / "answering_biased.gguf")
    theirs = LlamaCpp(LlamaCppOptions(model=file, n_ctx=256))
    ours = HFCausal(HFCausalOptions(model=str(reference_path("answering_biased")), device="cpu"))
    asked = [one for skill in SKILLS for one in islice(questions(skill, Planted(), 8), 4)]
    likely = [
        Likelihood(prompt=one.prompt, continuations=tuple(a.removesuffix(END) for a in one.answers)) for one in asked
    ]
    written = [
        Generate(
            messages=(Message("user", (Text(one.prompt.removesuffix(REPLY)),)),), sampling=Sampling(temperature=0.0)
        )
        for one in asked
    ]
    scores, answers = ([], [])
    for adapter in (ours, theirs):
        found = asyncio.run(adapter.likelihood_batch(likely))
        scores.append([score.log_probability for one in found for score in one.scores])
        answers.append([one.text.strip() for one in asyncio.run(adapter.generate_batch(written))])
        asyncio.run(adapter.aclose())
    assert scores[1] == pytest.approx(scores[0], abs=2e-3)
    assert answers[1] == answers[0] and all(answers[0])


def test_a_word_in_no_vocabulary_is_spelt_alike_by_both(tmp_path):
    tokenizer = transformers.AutoTokenizer.from_pretrained(reference_path("answering_biased"))
    text = "Zürich is überaus schön, isn't it? 1234\n\n  Zwei\u2014drei."
    assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == text


TOLERANCE = dict.fromkeys(SKILLS, 0.25)
KNOWN = {"inference": 0.5, "analogy": 0.8, "choice": 0.5, "completion": 0.8}
