"""Reasoning and answer, apart."""

from __future__ import annotations

import pytest

from prejudge.adapters.shared.reasoning import Tags, apart, cut_answer, is_opened

CASES = [
    ("Yes.", "", "Yes."),
    ("", "", ""),
    ("  Yes.", "", "  Yes."),
    ("<think>Hm.</think>Yes.", "<think>Hm.</think>", "Yes."),
    ("<think>\nHm.\n</think>\n\nYes.\n", "<think>\nHm.\n</think>\n\n", "Yes.\n"),
    # The template of the prompt has written the opening tag.
    ("Hm.</think> Yes.", "Hm.</think> ", "Yes."),
    # Cut off before it came to an answer.
    ("<think>Hm, and", "<think>Hm, and", ""),
    (" <think>", " <think>", ""),
    # What stands later in an answer is the answer's own.
    ("The tag <think> opens.", "", "The tag <think> opens."),
    ("Write <think>a</think>.", "", "Write <think>a</think>."),
    ("<think>a</think>Write </think>.", "<think>a</think>", "Write </think>."),
    ("<think></think>", "<think></think>", ""),
]


@pytest.mark.parametrize(("text", "reasoning", "answer"), CASES)
def test_both_parts_are_the_text(text, reasoning, answer):
    assert apart(text) == (reasoning, answer)
    assert reasoning + answer == text


def test_tags_of_another_model():
    tags = Tags("[THINK]", "[/THINK]")
    assert apart("[THINK]a[/THINK]b", tags) == ("[THINK]a[/THINK]", "b")
    assert apart("<think>a</think>b", tags) == ("", "<think>a</think>b")


@pytest.mark.parametrize(
    ("text", "place"), [("a.b", 1), ("<think>a.</think>b", None), ("<think>a.</think>b.", 18), ("<think>a.", None)]
)
def test_stop_texts_end_the_answer_and_not_the_reasoning(text, place):
    assert cut_answer(text, (".",)) == place
    assert cut_answer(text, ()) is None


def test_prompt_may_have_opened_it():
    assert is_opened("Who?\n<think>\n") and not is_opened("<think></think>")
    assert apart("Hm.</think>Yes.", opened=True) == ("Hm.</think>", "Yes.")
    assert apart("Hm.", opened=True) == ("Hm.", "")
    assert cut_answer("Hm.", (".",), opened=True) is None and cut_answer("Hm.", (".",)) == 2
