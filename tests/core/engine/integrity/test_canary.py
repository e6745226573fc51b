"""The rule of the canary: whom it stops, and whom it does not."""

from __future__ import annotations

import asyncio
import random
from fractions import Fraction
from math import comb

import pytest

from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Generate, Generation, Likelihood, Message, Sampling, Text
from prejudge.core.engine.integrity.canary import ALIKE, DRAWS, QUESTIONS, ask_canary, beginning, judge, samples

WORDS = "apple river stone cloud tiger lamp green seven mountain copper violin desk harbour pepper moon".split()


def said(*texts, **fields):
    return [Generation(text=text, **fields) for text in texts]


def like(**sampling):
    return Generate(messages=(Message("user", (Text("a or b?"),)),), sampling=Sampling(**sampling))


def text_of(request):
    return request.messages[0].parts[0].text


def draw(number, count=20):
    return " ".join(random.Random(number).choices(WORDS, k=count))


def test_equal_draws_are_alike_and_others_are_not():
    assert judge(said(*[draw(1)] * DRAWS), 0.7).verdict == "alike"
    assert judge(said(*map(draw, range(DRAWS))), 0.7).verdict == "varied"


@pytest.mark.parametrize(("same", "verdict"), [(ALIKE, "alike"), (ALIKE - 1, "varied")])
def test_the_limit_is_exact(same, verdict):
    found = judge(said(*[draw(0)] * same, *(draw(n) for n in range(1, DRAWS - same + 1))), 1.0)
    assert (found.verdict, found.most) == (verdict, same)


def test_near_duplicates_are_alike():
    """Rounding in a GPU parts the likeliest answer from itself late in the text; layout is no difference."""
    texts = [f"{draw(3)} {n}" for n in range(4)] + [draw(3).upper().replace(" ", ",\n") for _ in range(4)]
    found = judge(said(*texts), 0.7)
    assert (found.verdict, found.distinct) == ("alike", 5)


def test_short_equal_answers_are_unclear_and_short_different_ones_are_draws():
    assert judge(said(*["no"] * DRAWS), 1.0).verdict == "unclear"
    assert judge(said(*"abcdabcd"), 1.0).verdict == "varied"
    assert judge(said(*"abcabcab"), 1.0).verdict == "unclear"


def test_reasons_of_an_unclear_canary_are_counted():
    answers = [*said("", "no"), *said("I cannot.", status="refused"), *[PermanentError("no", code="endpoint.seed")] * 5]
    found = judge(answers, None)
    assert (found.verdict, found.draws, found.usable) == ("unclear", DRAWS, 0)
    assert found.reason == "1 refused, 5 failed (endpoint.seed), 1 empty, 1 of fewer than 10 words" or all(
        part in found.reason for part in ("1 refused", "5 failed (endpoint.seed)", "1 empty", "1 of fewer")
    )


def test_only_what_is_drawn_needs_a_canary():
    assert samples(like(temperature=0.7)) and not samples(like(temperature=0.0)) and not samples(like())
    assert samples(Generate(messages=(), sample=1)) and samples(like(seed=3))
    assert not samples(Generate(messages=(), sampling=Sampling(temperature=0.0), sample=1))
    assert not samples(Likelihood(prompt="a", continuations=("b",)))


def asked(answer, **sampling):
    """Return the canary of a model, and the requests that it got."""
    seen = []

    async def ask(requests):
        seen.append(requests)
        return [answer(request) for request in requests]

    return asyncio.run(ask_canary(like(**sampling), ask)), seen


def test_draws_have_the_settings_of_the_stage_and_numbers_of_their_own():
    _, (first,) = asked(
        lambda r: Generation(text=draw(r.sample)), temperature=0.3, top_p=0.9, max_tokens=1, stop=("x",)
    )
    assert {(r.sampling.temperature, r.sampling.top_p, r.sampling.max_tokens, r.sampling.stop) for r in first} == {
        (0.3, 0.9, 64, ())
    }
    assert len({r.sample for r in first}) == DRAWS and 0 not in {r.sample for r in first}
    _, (again,) = asked(lambda r: Generation(text=draw(r.sample)), temperature=0.3)
    assert not {r.sample for r in first} & {r.sample for r in again}
    _, (seeded,) = asked(lambda r: Generation(text=draw(r.sampling.seed)), seed=5)
    assert len({r.sampling.seed for r in seeded}) == DRAWS and {r.sample for r in seeded} == {0}


def test_second_question_is_asked_warm_and_without_other_limits():
    canary, (_, second) = asked(lambda r: Generation(text=draw(text_of(r))), temperature=0.1, top_p=0.05)
    assert canary.verdict == "alike" and canary.second is not None
    assert {(r.sampling.temperature, r.sampling.top_p) for r in second} == {(1.0, None)}
    narrow, _ = asked(lambda r: Generation(text=draw(1 if r.sampling.top_p else r.sample)), temperature=0.1, top_p=0.05)
    assert narrow.verdict == "narrow"


def test_model_that_says_one_thing_to_everything_is_unclear():
    said_always = "I am the assistant of a shop and can help with questions about its products only."
    canary, rounds = asked(lambda r: Generation(text=said_always), temperature=0.7)
    assert (canary.verdict, len(rounds)) == ("unclear", 2) and "both questions" in canary.first.reason


LONG = "Of course! I would be happy to help you with that. Here are the {what} that you asked for: "
PREAMBLES = (
    "Here are {what} separated by blanks:\n\n",
    "Certainly! Here is a list of {what}:\n",
    "**{what}:**\n1. ",
    LONG,
)


@pytest.mark.parametrize("preamble", PREAMBLES)
@pytest.mark.parametrize("greedy", [False, True])
def test_model_that_repeats_the_question_first_is_judged_by_what_follows(preamble, greedy):
    """A preamble that is one text says nothing of draws; one longer than what is compared leaves nothing to judge."""

    async def answer(requests):
        numbers = [0] * len(requests) if greedy else range(len(requests))
        what = text_of(requests[0]).removeprefix("Write ").split(",")[0]
        return said(*(preamble.format(what=what) + draw(f"{what} {n}") for n in numbers))

    verdict = asyncio.run(ask_canary(like(temperature=0.7), answer)).verdict
    assert verdict == ("unclear" if preamble is LONG else "alike" if greedy else "varied")


def test_false_alarm_of_one_round_is_the_documented_one():
    """Exact, and by simulation of a model whose likeliest beginning has probability p."""
    p = Fraction(1, 5)
    exact = sum(comb(DRAWS, k) * p**k * (1 - p) ** (DRAWS - k) for k in range(ALIKE, DRAWS + 1))
    assert float(exact) == pytest.approx(0.00123136)
    numbers, alarms, rounds = random.Random(5), 0, 4000
    for _ in range(rounds):
        texts = [draw(-1) if numbers.random() < 0.5 else draw(numbers.random()) for _ in range(DRAWS)]
        alarms += judge(said(*texts), 1.0).verdict == "alike"
    assert alarms / rounds == pytest.approx(0.1445, abs=0.02)


def test_beginning_is_letters_and_digits_of_any_script():
    assert beginning("  A, b!\n3 Ä 語") == "ab3ä語" and len(beginning("x" * 99)) == 40
    assert [beginning(question) for question in QUESTIONS] == ["", ""]
