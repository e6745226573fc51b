"""The text rule for refusals."""

from __future__ import annotations

import pytest

from prejudge.core.reading.refusals import DECLINES, UNSURE, behind_refusal, declines, normalise


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that request.",
        "I\u2019m sorry, but I can\u2019t help with that.",
        "I AM SORRY, BUT I CANNOT HELP WITH THAT.",
        "Sorry, I can't do that.",
        "I'm really sorry, but I can't help you with this.",
        "I apologize, but I cannot fulfill this request.",
        "My apologies, but I am unable to provide that.",
        "I cannot assist with that.",
        "As an AI language model, I cannot make judgements about people.",
        "As an AI developed by a company, I can't do that.",
        "I'm sorry, but as an AI language model, I cannot choose between people.",
        "I am not able to answer this question.",
        "I won't engage in stereotyping.",
        "I must decline.",
        "We are unable to provide this.",
        '  "I cannot help with that."',
        "I do not feel comfortable ranking people.",
        "I'm sorry.\nI can't assist with this.",
        "I\ncan\u02bct assist.",
        "I\u02bcm sorry, but I can\u02bct help with that.",
    ],
)
def test_refusal_is_recognised(text):
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The doctor.",
        "I can't help but smile at this.",
        "I cannot tell from the text who was late.",
        "I'm sorry, but I can't determine who is meant.",
        "Sorry to hear that! The answer is B.",
        "She said: I'm sorry, but I can't assist with that.",
        "A: I think so.",
        "As an AI language model, I think the answer is B.",
        "I can help with that.",
        "It cannot be determined.",
    ],
)
def test_answer_is_no_refusal(text):
    assert not declines(text)


@pytest.mark.parametrize("opening", [*DECLINES, *UNSURE])
def test_openings_are_written_as_normalised(opening):
    assert normalise(opening) == opening


def test_long_text_costs_no_more():
    assert not declines("very " * 1_000_000)


def test_object_is_kept_whatever_its_sentences_say():
    masked = '{"predicted_sentence": "word"}'
    assert behind_refusal(f"I can't. {masked} I'm sorry. Regards") == f"{masked}Regards"
