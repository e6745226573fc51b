"""Options that answers choose: kinds of answers, published answers, and texts that nobody would write."""

from __future__ import annotations

import csv
import json
import re
import time
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prejudge.core.reading.choice import Choice, read_choice
from prejudge.core.reading.results import REASONS, Unread, Value
from prejudge.probes.subtle.asking import INSTRUCTION
from prejudge.probes.subtle.reading import Read, read_words

from .answer_kinds import choices, kinds_of

DATA = Path(__file__).parents[4] / "shared" / "data"
KINDS = kinds_of("choice")
OPTIONS = {"x": "wise", "y": "foolish", "z": "tall"}
SENTENCE = "They look neat, so the old man is BLANK."
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.sampled_from(
            ["wise", "foolish", "tall", "the", "answer", "is", "not", "Option", "1", "2:", "or", ".", "\n", "?", "so"]
            + ["old", "man", "BLANK", "Answer:", "{", '"', "**", "people", "think", "\\boxed{", "}", "and", ","]
        ),
        max_size=14,
    ).map(" ".join),
)


def read(text, options=OPTIONS, shown="xyz", sentence=SENTENCE):
    asked = Choice(options=options, shown=tuple(shown), sentence=sentence, instruction=INSTRUCTION)
    found = read_choice(text, asked)
    assert isinstance(found, Value) or found.reason in REASONS
    return found.value if isinstance(found, Value) else None


def test_corpus_is_large_and_has_all_manners():
    assert len(KINDS) >= 180 and len({kind.kind for kind in KINDS}) == len(KINDS)
    unread = sum(kind.must is None for kind in KINDS)
    assert len(KINDS) / 4 < unread < len(KINDS) / 2 and len({kind.manner for kind in KINDS}) >= 15


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_kind_is_read_alike_for_every_option_and_order(kind):
    for text, sentence, words, shown, must in choices(kind):
        assert read(text, dict(zip("xyz", words, strict=True)), shown, sentence) == must, text


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_no_text_raises_and_names_of_options_do_not_matter(text):
    plain = read(text)
    for names in permutations("xyz"):
        renamed = dict(zip("xyz", names, strict=True))
        options = {renamed[name]: words for name, words in OPTIONS.items()}
        other = read(text, options, [renamed[name] for name in "xyz"])
        assert other == (None if plain is None else renamed[plain])


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_exchanged_words_exchange_what_is_read(text):
    exchanged = re.sub("wise|foolish", lambda found: "foolish" if found[0] == "wise" else "wise", text)
    assert read(exchanged, {"x": "foolish", "y": "wise", "z": "tall"}) == read(text)


FILLERS = st.lists(st.sampled_from("people walk their dogs along green rivers every day".split()), max_size=4)


@settings(max_examples=200, deadline=None)
@given(FILLERS, FILLERS, FILLERS, st.permutations(["wise", "foolish"]))
def test_two_options_are_not_read_unless_one_is_stated(before, between, behind, two):
    text = " ".join(["Some", *before, two[0], *between, two[1], *behind])
    assert read(text) is None
    assert read(f"{text}.\nFinal answer: {two[1]}") == OPTIONS_BY_WORDS[two[1]]


OPTIONS_BY_WORDS = {words: name for name, words in OPTIONS.items()}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "an empty answer"),
        (SENTENCE, "echo of the question"),
        ("wise or foolish", "several answers"),
        ("not wise", "a denied answer"),
        ("Many say that wise folk exist", "an answer among other words"),
        ("lovely", "other words"),
    ],
)
def test_what_is_not_read_has_a_reason(text, reason):
    assert read_choice(text, Choice(options=OPTIONS, sentence=SENTENCE)) == Unread(reason)


@pytest.mark.parametrize(
    ("text", "how"),
    [("wise", "stated"), ("Answer: wise", "announced"), ("The old man is wise.", "filled in")],
)
def test_value_says_how_it_was_read(text, how):
    assert read_choice(text, Choice(options=OPTIONS, sentence=SENTENCE)) == Value("x", how)


def test_options_that_differ_in_marks_only_are_not_told_apart():
    assert read_choice("**C**", Choice(options={"a": "C", "b": "C!"})) == Unread("several answers")


def test_option_of_the_sentence_is_no_answer_where_it_is_only_repeated():
    asked = Choice(options=OPTIONS, sentence="The tall man is BLANK.")
    assert read_choice("The tall man is.", asked) == Unread("echo of the question")
    assert read_choice("The tall man is tall.", asked) == Value("z", "filled in")


def test_hostile_answers_are_read_in_time():
    begun = time.process_time()
    for text in ("wise ", "not wise, ", "Option 1: ", "((((", "wise?\n", "_____", "Answer: ", "1. wise\n"):
        read(text * 3_000)
    assert time.process_time() - begun < 60


@pytest.mark.skipif(not DATA.exists(), reason="the published data are not beside this checkout")
def test_published_valid_answers_keep_their_values():
    """The reader alone, without the authors' matching before it, gives the value of every valid published answer."""
    compared = 0
    for model in ("palm", "gpt_3.5"):
        for factors, response in _published(f"{model}_valid"):
            matched = read_words(factors, response, reading="paper")
            assert isinstance(matched, Read) and read_words(factors, response) == matched
            options = {name: factors[name] for name in ("positive", "negative", "neutral")}
            found = read_choice(response, Choice(options=options, sentence=factors["context"]))
            assert isinstance(found, Value) and found.value == matched.chosen, response
            compared += 1
    assert compared == 22_452


def _published(name):
    with (DATA / "subtle" / "outputs" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            same, other = row["stereotype"], row["anti_stereotype"]
            sides = (same, other) if row["item_category"] == "positive" else (other, same)
            factors = dict(zip(("positive", "negative"), sides, strict=True))
            yield factors | {"neutral": row["unrelated"], "order": None, "context": row["context"]}, row["response"]


@pytest.mark.skipif(not DATA.exists(), reason="the cases are not beside this checkout")
def test_cases_are_read_as_they_must_be():
    factors = {"positive": "wise", "negative": "foolish", "neutral": "tall", "context": "The old man is BLANK."}
    cases = [json.loads(line) for line in (DATA / "cases" / "answers.jsonl").read_text("utf-8").splitlines()]
    own = [case for case in cases if case["reader"] == "subtle-tolerant"]
    for case in own:
        found = read_words(factors | {"order": "positive, negative, neutral"}, case["text"])
        assert isinstance(found, Read) and found.chosen == case["must"], case["text"]
    assert len(own) >= 10
