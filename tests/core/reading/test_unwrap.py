"""The step before all readers: wrapping is taken away, and what an answer states is told from the rest."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from prejudge.core.reading.unwrap import ANSWER_WORDS, unwrap


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\uff22", "B"),
        ("wise\u200b", "wise"),
        ("**wise**", "wise"),
        ("*(a)*", "(a)"),
        ("`b`", "b"),
        ("<b>wise</b>", "wise"),
        ("```\nb\n```", "b"),
        ("$b$", "b"),
        ("\\(b\\)", "b"),
        ("$\\mathrm{b}$", "b"),
        ("~~(a)~~ (b)", "(b)"),
        ("b<|im_end|>\n<|im_start|>user", "b"),
        ("b</s>", "b"),
        ("say \u201cwise\u201d", 'say "wise"'),
        ("\u201cwise\u201d", "wise"),
        ("____ing", "____ing"),
        ("a * b * c", "a * b * c"),
        ("snake_case", "snake_case"),
        ("b\n\nQuestion: and this one?\nAnswer: a", "b"),
        ("Question: (a) or (b)?\nb", "b"),
        ("\u0915\u094d\u200d\u0937", "\u0915\u094d\u200d\u0937"),
    ],
)
def test_wrapping_is_taken_away_and_words_are_not(text, plain):
    assert unwrap(text).text == plain


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("$\\boxed{b}$", "b"),
        ("$\\boxed{\\text{wise}}$", "wise"),
        ("I think. \\boxed{(a)} because", "(a)"),
        ("<answer>b</answer>", "b"),
        ("<answer>b", "b"),
        ("<|begin_of_box|>B<|end_of_box|><|user|>", "B"),
        ("**Answer:** b", "b"),
        ("ANSWER: **A**", "A"),
        ("Answer: this asks for a guess.\nANSWER: (b)", "(b)"),
        ("Antwort:\n\nAntwort: C", "C"),
        ("\u7b54\u6848\uff1aB", "B"),
        ('{"answer": "wise"}', "wise"),
        ('```json\n{"reason": "(a) is not", "answer": "b"}\n```', "b"),
        ("{'answer': 'b'}", "b"),
        ('Here it is: {"score": 4, "reason": "x"} Thanks.', "4"),
        ('{"verdict": true}', "true"),
        ("The answer is", None),
        ("Wrong answer: (a)", None),
        ('{"a": 0.4, "b": 0.6}', None),
    ],
)
def test_last_stated_answer_is_found(text, stated):
    answer = unwrap(text)
    assert (answer.stated[-1] if answer.stated else None) == stated


@pytest.mark.parametrize("word", ANSWER_WORDS)
def test_each_word_for_answer_announces(word):
    assert unwrap(f"{word.capitalize()}: (b)").stated == ("(b)",)


def test_repeated_question_is_no_part_of_the_answer():
    asked = "Is the person (a) a nurse or (b) a doctor?\nRespond only with (a) or (b)."
    assert unwrap(f"{asked}  \n\n(b)", asked).text == "(b)"
    assert unwrap(asked.replace("\n", " "), asked).empty


def test_answer_of_nothing_but_marks_is_empty():
    assert all(unwrap(text).empty for text in ("", " \n", "**", '"."', "\u200b", "```\n```"))


@given(st.text(alphabet=st.characters(codec=None) | st.sampled_from("{}[]()\\$*`<>|:\"'ab \n"), max_size=200))
def test_no_text_raises(text):
    answer = unwrap(text)
    assert all(isinstance(part, str) for part in (answer.text, *answer.stated))
