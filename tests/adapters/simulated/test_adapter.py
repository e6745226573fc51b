"""`simulated`: closed-form answers, one operation after another."""

from __future__ import annotations

import asyncio
import hashlib
import math
import struct
import zlib
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

import msgspec
import numpy as np
import pytest

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.core.contracts.adapter import Services
from prejudge.core.contracts.canonical import identity_digest
from prejudge.core.contracts.errors import ModelLoadError, PermanentError
from prejudge.core.contracts.options import build_options
from prejudge.core.contracts.records import (
    Classify,
    Draw,
    Embed,
    Generate,
    Image,
    Likelihood,
    Message,
    PseudoLikelihood,
    Request,
    Sampling,
    Text,
)

SEEDS = range(400)


def ask(requests: list[Any], **settings: Any) -> list[Any]:
    return list(asyncio.run(Simulated(SimulatedOptions(**settings)).answer(requests)))


def prompt(text: str, *images: str, **fields: Any) -> Generate:
    return Generate(messages=(Message("user", (*map(Image, images), Text(text))),), **fields)


def sentence(descriptor: str, attribute: str, place: str = "") -> PseudoLikelihood:
    head = f"I saw an {attribute} "
    text = f"{head}{descriptor} woman{place}."
    return PseudoLikelihood(text=text, given=((len(head), len(head) + len(descriptor)),))


def differences(attribute: str, numbers: Sequence[int] = SEEDS, **settings: Any) -> list[float]:
    """Return the log-odds of tall over short in many templates."""
    places = [f" at place {number}" for number in numbers]
    tall = ask([sentence("tall", attribute, place) for place in places], **settings)
    short = ask([sentence("short", attribute, place) for place in places], **settings)
    return [a.log_probability - b.log_probability for a, b in zip(tall, short, strict=True)]


@pytest.mark.parametrize(("attribute", "sign"), [("attractive", 1), ("ugly", -1), ("old", 0)])
def test_mean_log_odds_are_the_planted_ones(attribute, sign):
    found = differences(attribute, strength=1.5)
    assert fmean(found) == pytest.approx(1.5 * sign, abs=3 * math.sqrt(1.25 / len(SEEDS)))
    assert stdev(found) == pytest.approx(math.sqrt(1 + 0.5**2), rel=0.12)


def test_without_noise_the_log_odds_are_exact():
    assert differences("ugly", strength=2.0, noise=0.0, spread=0.0) == pytest.approx([-2.0] * len(SEEDS))


def test_template_shares_its_lean():
    pairs = [sentence(d, a, place) for a in ("cute", "ugly") for place in ("", " now") for d in ("tall", "short")]
    girls = [msgspec.structs.replace(pair, text=pair.text.replace("woman", "girl")) for pair in pairs]
    scores = ask([*pairs, *girls], noise=0.0, spread=1.0)
    leans = [scores[i].log_probability - scores[i + 1].log_probability for i in range(0, len(scores), 2)]
    assert leans == pytest.approx(leans[:2] * 4) and abs(leans[0] - leans[1]) > 0.01


def test_values_are_log_probabilities_that_add_up():
    (score,) = ask([sentence("tall", "cute")], strength=3.0)
    assert score.count == len(score.values) == 6
    assert math.fsum(score.values) == score.log_probability and max(score.values) < 0


def test_contrast_conditions_on_what_differs():
    texts = ("I saw a tall woman.", "I saw a short woman.")
    pair = [PseudoLikelihood(text=texts[i], contrast=texts[1 - i], contrast_first=i == 1) for i in (0, 1)]
    spans = [PseudoLikelihood(text=text, given=((8, 8 + len(text.split()[3])),)) for text in texts]
    assert ask(pair) == ask(spans)


@pytest.mark.parametrize(
    "request_",
    [
        PseudoLikelihood(text=""),
        PseudoLikelihood(text="tall", given=((0, 4),)),
        PseudoLikelihood(text="tall", given=((2, 9),)),
        PseudoLikelihood(text="tall", contrast="short"),
        PseudoLikelihood(text="\ud800 tall"),
        Likelihood(prompt="a", continuations=()),
        Likelihood(prompt="a", continuations=(" ",)),
        Draw(prompt="a", width=0),
        Draw(prompt="a", height=100_000),
    ],
)
def test_impossible_request_is_a_permanent_error(request_):
    assert isinstance(ask([request_])[0], PermanentError)


def test_likelihood_follows_the_rule():
    prompts = [f"At place {number} the ugly person is" for number in SEEDS]
    answers = ask([Likelihood(prompt=p, continuations=(" tall", " quite short")) for p in prompts], strength=1.0)
    found = [answer.scores[0].log_probability - answer.scores[1].log_probability for answer in answers]
    assert fmean(found) == pytest.approx(-1.0, abs=0.2)
    assert [score.count for score in answers[0].scores] == [1, 2]


def test_likelihood_is_that_of_prompt_and_continuation():
    whole = ask([Likelihood(prompt="The cute", continuations=(" tall man",))], strength=1.0)
    parts = ask([Likelihood(prompt="The", continuations=(" cute tall man",))], strength=1.0)
    (whole,), (parts,) = whole[0].scores, parts[0].scores
    assert whole.log_probability == pytest.approx(parts.log_probability)


@pytest.mark.parametrize("clumsy", ["", " of the in she the was"])
def test_grammar_counts_the_same_for_both_sentences_of_a_pair(clumsy):
    pair = [sentence(descriptor, "cute", clumsy) for descriptor in ("tall", "short")]
    tall, short = ask(pair, strength=2.0, noise=0.0, spread=0.0)
    assert tall.log_probability - short.log_probability == pytest.approx(2.0)


def test_clumsy_sentence_is_unlikelier():
    fluent, clumsy = ask([PseudoLikelihood(text=text) for text in ("She sat in the park.", "in She the sat park.")])
    assert fluent.log_probability > clumsy.log_probability


@pytest.mark.parametrize(("stem", "cost"), [("He sat in the", 8.0), ("The cute man sat in the", 0.0)])
def test_grammar_counts_only_where_nothing_is_planted(stem, cost):
    request = Likelihood(prompt=stem, continuations=(" park", " were"))
    park, were = ask([request], noise=0.0, spread=0.0)[0].scores
    assert park.log_probability - were.log_probability == pytest.approx(cost)


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("Who?\n(a) the tall man\n(b) the short man", {"(a) the tall man", "(b) the short man"}),
        ("Who is it, (a) the tall man or (b) the short man?", {"(a) the tall man", "(b) the short man"}),
        ("Q 1. Who?\nOption 1: tall\nOption 2: short\nAnswer:", {"Option 1: tall", "Option 2: short"}),
        ("1. Look.\n2. Choose.\nA. tall\nB. short\nC. neither", {"A. tall", "B. short", "C. neither"}),
    ],
)
def test_generate_chooses_a_listed_option(text, answers):
    found = ask([prompt(text, sample=sample) for sample in range(60)])
    assert {answer.text for answer in found} == answers


def test_choice_has_the_planted_odds():
    text = "Place {}: who is the cute one?\n(a) the tall man\n(b) the short man"
    found = ask([prompt(text.format(number)) for number in range(4000)], strength=1.0, noise=0.0, spread=0.0)
    share = fmean(answer.text.startswith("(a)") for answer in found)
    assert share == pytest.approx(1 / (1 + math.exp(-1.0)), abs=0.025)


def test_choice_does_not_depend_on_labels_or_order():
    orders = ("(a) tall\n(b) short\n(c) neither", "(a) neither\n(b) tall\n(c) short", "A. short\nB. neither\nC. tall")
    greedy = Sampling(temperature=0.0)
    texts = [f"Place {number}: who is cute?\n{order}" for number in range(50) for order in orders]
    found = [answer.text.split()[-1] for answer in ask([prompt(text, sampling=greedy) for text in texts])]
    assert all(len(set(found[i : i + 3])) == 1 for i in range(0, 150, 3)) and len(set(found)) == 3


def test_top_log_probabilities_are_those_of_the_options():
    (answer,) = ask([prompt("Who?\n(a) tall\n(b) short\n(c) old", top_logprobs=3)])
    (alternatives,) = answer.top_logprobs
    assert sum(math.exp(token.log_probability) for token in alternatives) == pytest.approx(1.0)
    assert [t.log_probability for t in alternatives] == sorted((t.log_probability for t in alternatives), reverse=True)


@pytest.mark.parametrize("changed", [{"sample": 1}, {"attempt": 1}, {"sampling": Sampling(seed=1)}])
def test_another_draw_may_answer_otherwise(changed):
    prompts = [f"Place {number}\n(a) tall\n(b) short" for number in range(100)]
    first = [answer.text for answer in ask([prompt(text) for text in prompts])]
    other = [answer.text for answer in ask([prompt(text, **changed) for text in prompts])]
    assert 20 < sum(a != b for a, b in zip(first, other, strict=True)) < 80


def test_temperature_zero_has_one_answer():
    greedy = Sampling(temperature=0.0)
    found = ask([prompt("Who?\n(a) tall\n(b) short", sampling=greedy, sample=sample) for sample in range(50)])
    assert len({answer.text for answer in found}) == 1


def test_open_question_names_a_listed_word():
    texts = ["Describe somebody cute at {}.", "What is the tall one at {} like?"]
    found = ask([prompt(text.format(place)) for place in range(200) for text in texts], strength=6.0)
    described = Counter(answer.text.rstrip(".").split()[-1] in SimulatedOptions().desirable for answer in found[::2])
    valued = Counter(answer.text.rstrip(".").split()[-1] in SimulatedOptions().positive for answer in found[1::2])
    assert described[True] > 180 and valued[True] > 180


def test_open_question_has_even_odds_without_a_bias():
    lists = {"desirable": ("tall", "rich", "thin"), "undesirable": ("poor",)}
    found = ask([prompt(f"Describe somebody at {place}.") for place in range(2000)], noise=0.0, spread=0.0, **lists)
    share = fmean(answer.text == "I think of someone poor." for answer in found)
    assert share == pytest.approx(0.5, abs=0.04)


def test_images_are_told_apart():
    first, second = ask([prompt("What is it?", letter * 64) for letter in "ab"])
    assert "I see aaaaaaaa." in first.text and "I see bbbbbbbb." in second.text


def test_listed_image_counts_as_a_word():
    tall = "a" * 64
    texts = [f"Place {number}: who is it?\n(a) cute\n(b) ugly" for number in range(100)]
    found = ask([prompt(text, tall) for text in texts], strength=6.0, desirable=(tall,))
    assert sum(answer.text == "(a) cute" for answer in found) > 90


def test_stop_and_max_tokens_cut_the_answer():
    text = "Who?\n(a) the tall man\n(b) the short man"
    short, stopped = ask([prompt(text, sampling=Sampling(**cut)) for cut in ({"max_tokens": 2}, {"stop": (")",)})])
    assert (short.text[3:], short.finish_reason) == (" the", "length")
    assert stopped.text in ("(a", "(b") and stopped.finish_reason == "stop"


def test_share_of_refusals_is_the_rate_and_typed():
    found = ask([prompt(f"Place {number}") for number in range(2000)], refusal_rate=0.2)
    refused = [answer for answer in found if answer.status == "refused"]
    assert len(refused) / 2000 == pytest.approx(0.2, abs=0.03) and all(answer.text for answer in refused)
    drawn = ask([Draw(prompt="a", width=8, height=8, seed=seed) for seed in range(500)], refusal_rate=0.2)
    assert sum((a.status, a.image) == ("filtered", None) for a in drawn) / 500 == pytest.approx(0.2, abs=0.06)


def test_share_of_failures_is_the_rate():
    found = ask([sentence("tall", "cute", f" {number}") for number in range(1000)], failure_rate=0.1)
    assert sum(isinstance(answer, PermanentError) for answer in found) / 1000 == pytest.approx(0.1, abs=0.03)


def test_sentiment_and_entailment_follow_the_rule():
    tall, short = ask([Classify(text=f"A {word} man.") for word in ("tall", "short")], strength=2.0, noise=0.0)
    assert tall.probabilities["positive"] > tall.probabilities["negative"]
    assert short.probabilities["positive"] == pytest.approx(tall.probabilities["negative"])
    (pair,) = ask([Classify(text="He is tall.", pair="He is cute.")], strength=2.0, noise=0.0, spread=0.0)
    odds = math.log(pair.probabilities["entailment"] / pair.probabilities["contradiction"])
    assert odds == pytest.approx(2.0) and sum(pair.probabilities.values()) == pytest.approx(1.0)


def test_embedding_has_length_one_and_the_planted_association():
    texts = ("tall", "short", "cute", "ugly", "")
    tall, short, cute, ugly, nothing = (a.vector for a in ask([Embed(text=t) for t in texts], strength=2.0))
    assert [math.hypot(*v) for v in (tall, short, nothing)] == pytest.approx([1.0] * 3) and len(tall) == 64
    assert np.dot(tall, cute) - np.dot(tall, ugly) > 0.3
    assert np.dot(short, cute) - np.dot(short, ugly) < -0.3


def test_image_is_a_png_of_its_size_and_is_kept():
    kept: dict[str, bytes] = {}

    def keep(data: bytes, media_type: str) -> str:
        assert media_type == "image/png"
        return kept.setdefault(hashlib.sha256(data).hexdigest(), data) and hashlib.sha256(data).hexdigest()

    adapter = Simulated()
    adapter.services = Services(keep=keep)
    request = Draw(prompt="a face", width=20, height=12)
    (drawing,) = asyncio.run(adapter.answer([request]))
    data = kept[drawing.image]  # type: ignore[union-attr, index]
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and struct.unpack(">II", data[16:24]) == (20, 12)
    size = struct.unpack(">I", data[33:37])[0]
    assert len(zlib.decompress(data[41 : 41 + size])) == 12 * (1 + 3 * 20)
    assert ask([request])[0] == drawing
    assert ask([msgspec.structs.replace(request, seed=1)])[0] != drawing


SOME: list[Request] = [
    sentence("tall", "cute"),
    prompt("Who?\n(a) tall\n(b) short"),
    Likelihood(prompt="The cute man is", continuations=(" tall", " short")),
    Classify(text="A tall man.", pair="A cute man."),
    Embed(text="A tall man."),
]


@pytest.mark.parametrize(
    "changed",
    [
        *({"strength": 1.0}, {"noise": 0.5}, {"spread": 0.1}, {"seed": 1}, {"refusal_rate": 1.0}, {"dimension": 8}),
        *({"desirable": ("cute",), "positive": ()}, {"varying": ("saw",)}),
    ],
    ids=str,
)
def test_setting_that_changes_answers_changes_the_identity(changed):
    base, other = SimulatedOptions(strength=0.5), SimulatedOptions(**{"strength": 0.5, **changed})
    answers = [[ask([request], **msgspec.structs.asdict(options)) for request in SOME] for options in (base, other)]
    assert answers[0] != answers[1]
    assert identity_digest(Simulated(base).identity) != identity_digest(Simulated(other).identity)


@pytest.mark.parametrize(
    "changed",
    [{"failure_rate": 0.5}, {"latency_seconds": 0.01}, {"batch_items": 3}, {"concurrency": 1}, {"strength": 0}],
    ids=str,
)
def test_setting_that_changes_no_answer_is_not_in_the_identity(changed):
    other = Simulated(SimulatedOptions(**changed))
    assert identity_digest(other.identity) == identity_digest(Simulated().identity)


@pytest.mark.parametrize(
    "settings", [{"strength": math.nan}, {"noise": math.inf}, {"desirable": ("cute",)}, {"positive": ("",)}]
)
def test_unusable_setting_is_refused(settings):
    with pytest.raises(ModelLoadError):
        Simulated(SimulatedOptions(**settings))


def test_settings_come_from_the_catalogue():
    read = build_options("model m", SimulatedOptions, {"strength": 1, "desirable": ["rich"], "undesirable": ["poor"]})
    assert Simulated(read).identity.settings["strength"] == 1.0


def test_phrases_are_matched_whole_in_any_case():
    lists = {"desirable": ("very rich", "rich"), "undesirable": ("poor",), "positive": ("Nice",), "negative": ()}
    rules = {"strength": 1.0, "noise": 0.0, "spread": 0.0, **lists}
    texts = ["a VERY rich nice man", "a richer nice man", "a non-rich nice man", "a poor nice man"]
    answers = ask([Likelihood(prompt="", continuations=(text,)) for text in texts], **rules)
    scores = [answer.scores[0].log_probability for answer in answers]
    assert [round(score - scores[1], 9) for score in scores] == [0.5, 0.0, 0.0, -0.5]


def test_latency_is_waited_for():
    async def timed() -> float:
        start = asyncio.get_running_loop().time()
        await Simulated(SimulatedOptions(latency_seconds=0.05)).answer([Embed(text="a")])
        return asyncio.get_running_loop().time() - start

    assert asyncio.run(timed()) >= 0.05


def test_word_has_one_lean_in_every_template():
    leans = [differences(word, noise=0.0, spread=0.0, word_spread=1.0) for word in ("attractive", "cute", "ugly")]
    assert all(found == pytest.approx([found[0]] * len(SEEDS)) for found in leans)
    assert len({round(found[0], 6) for found in leans}) == 3
    assert differences("old", noise=0.0, spread=0.0, word_spread=1.0) == pytest.approx([0.0] * len(SEEDS))


def test_leans_of_words_have_the_spread_that_is_set():
    found = [differences("cute", [0], noise=0.0, spread=0.0, word_spread=0.5, seed=seed)[0] for seed in range(150)]
    assert fmean(found) == pytest.approx(0.0, abs=3 * 0.5 / 150**0.5)
    assert stdev(found) == pytest.approx(0.5, rel=0.12)


def test_identity_knows_word_leans_only_where_there_are_any():
    assert "word_spread" not in Simulated(SimulatedOptions()).identity.settings
    assert Simulated(SimulatedOptions(word_spread=0.1)).identity.settings["word_spread"] == 0.1
