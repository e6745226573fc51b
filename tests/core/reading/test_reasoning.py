"""Reasoning and answer, apart, in the marks of any model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prejudge.core.reading.reasoning import (
    MARK_TOKENS,
    find_reasoning,
    find_stop,
    is_opened,
    remaining_marks,
    split_reasoning,
)

CASES = Path(__file__).parents[4] / "shared" / "data" / "cases" / "answers.jsonl"
PAIRS = [
    *(f"<{name}> </{name}>" for name in ("think", "Thinking", "thought", "reasoning", "analysis", "seed:think")),
    *("<longcat_think> </longcat_think>", "[THINK] [/THINK]", "\u25c1think\u25b7 \u25c1/think\u25b7"),
    *("<|channel>thought <channel|>", "<|START_THINKING|> <|END_THINKING|>", "<|inner_prefix|> <|inner_suffix|>"),
    *("<|begin_of_thought|> <|end_of_thought|>", "<|open|>think<|sep|> <|close|>think<|sep|>"),
]
THOUGHT = "The hypothesis is contradiction, I think."
HARMONY = f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>neutral"


@pytest.mark.parametrize("pair", PAIRS)
def test_marks_of_every_model_end_where_its_answer_begins(pair):
    opening, closing = pair.split()
    assert split_reasoning(f"{opening}\n{THOUGHT}\n{closing}\n\nneutral") == (THOUGHT, "neutral")
    assert split_reasoning(f"{THOUGHT}{closing}neutral") == (THOUGHT, "neutral")
    assert split_reasoning(f"{opening}{THOUGHT}") == (THOUGHT, "")
    assert split_reasoning(f"{THOUGHT}{closing}neutral", opened=True) == (THOUGHT, "neutral")
    assert split_reasoning(f"{opening}\n{closing}\n\nneutral") == ("", "neutral")
    assert is_opened(f"Which?\n{opening}\n") and not is_opened(f"Which?\n{opening}\n{closing}\n")


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        (HARMONY, THOUGHT, "neutral"),
        (HARMONY.replace("<|end|><|start|>", ""), THOUGHT, "neutral"),
        (f"{HARMONY}<|return|>", THOUGHT, "neutral"),
        (f"<|channel|>analysis<|message|>{THOUGHT}", THOUGHT, ""),
        ('<|channel|>final <|constrain|>json<|message|>{"label": "neutral"}', "", '{"label": "neutral"}'),
        (f"analysis{THOUGHT}assistantfinalneutral", THOUGHT, "neutral"),
        ("...contradiction.assistantfinal neutral", "...contradiction.", "neutral"),
        (f"analysis{THOUGHT}", THOUGHT, ""),
        ("analysis of both: neutral", "", "analysis of both: neutral"),
        (f"Here is my thought process: {THOUGHT}\nHere is my response: neutral", THOUGHT, "neutral"),
        (f"<think>{THOUGHT}</think><answer>neutral</answer>", THOUGHT, "neutral"),
        (f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>neutral<|END_RESPONSE|>", THOUGHT, "neutral"),
        (f"Well. <think>{THOUGHT}</think>neutral", THOUGHT, "Well. neutral"),
        ("neutral<|im_end|>", "", "neutral"),
        # Gemma 4 behind a server that drops special tokens: nothing says where the answer begins.
        (f"thought\n{THOUGHT}\nSo it is neutral.neutral", f"{THOUGHT}\nSo it is neutral.neutral", ""),
        (
            "thought\nIt says nothing of a skin tone, so it is neutral",
            "It says nothing of a skin tone, so it is neutral",
            "",
        ),
        ("thought\n\nneutral", "", "neutral"),
        ("thought\n", "", ""),
        ("thoughtful, kind", "", "thoughtful, kind"),
        ("Thought\nmind", "", "Thought\nmind"),
        ("neutral</s>", "", "neutral"),
        ("neutral<|im_end|>\n<|im_start|>user\ncontradiction?", "", "neutral"),
        ("<|start_header_id|>assistant<|end_header_id|>\n\nneutral<|eot_id|>", "", "neutral"),
        ("Yes.", "", "Yes."),
        ("", "", ""),
        ("  Yes.", "", "  Yes."),
        ("The tag <think> opens.", "", "The tag <think> opens."),
        ("a < b, and [1] says so", "", "a < b, and [1] says so"),
    ],
)
def test_reasoning_and_answer(text, reasoning, answer):
    assert split_reasoning(text) == (reasoning, answer)


def test_reasoning_beside_the_text_and_in_it_is_told_once():
    assert split_reasoning("neutral", "Hm.") == ("Hm.", "neutral")
    assert split_reasoning("<think>Hm.</think>neutral", "Hm.") == ("Hm.", "neutral")
    assert split_reasoning("<think>So.</think>neutral", "<think>Hm.</think>") == ("Hm.\n\nSo.", "neutral")
    # Reasoning beside the text was closed, whatever the prompt had opened.
    assert split_reasoning("neutral", "Hm.", opened=True) == ("Hm.", "neutral")
    assert split_reasoning("Hm, and", opened=True) == ("Hm, and", "")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a.b", 1),
        ("<think>a.</think>b", None),
        ("<think>a.</think>b.", 18),
        ("<think>a.", None),
        (f"{HARMONY}.", len(HARMONY)),
    ],
)
def test_stop_texts_end_the_answer_and_not_the_reasoning(text, place):
    assert find_stop(text, (".",)) == place
    assert find_stop(text, ()) is None


def test_stop_texts_within_an_opened_thought_do_not_end_it():
    assert find_stop("Hm.", (".",), opened=True) is None and find_stop("Hm.", (".",)) == 2


def test_remaining_marks_are_those_outside_of_reasoning():
    assert remaining_marks("neutral<|im_end|><|im_end|></s>") == ("<|im_end|>", "</s>")
    assert remaining_marks(HARMONY) == remaining_marks("<think>Hm</think>neutral") == remaining_marks("a <b> c") == ()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(json.loads(line), id=str(number))
        for number, line in enumerate(CASES.read_text().splitlines() if CASES.exists() else ())
        if json.loads(line)["reader"] == "nli" and split_reasoning(json.loads(line)["text"])[0]
    ]
    or [pytest.param(None, marks=pytest.mark.skip(reason="the cases to hand over are not here"))],
)
def test_cases_with_reasoning_give_the_label_that_must_come_out(case):
    assert split_reasoning(case["text"])[1].lower() == case["must"]


PIECES = st.sampled_from([*MARK_TOKENS, "<think>", "</think>", "assistantfinal", "analysis", "a", " ", ".", "neutral"])


@given(st.lists(PIECES | st.text(max_size=4), max_size=12).map("".join), st.booleans())
def test_any_text_is_split_and_what_was_split_stays(text, opened):
    reasoning, answer = split_reasoning(text, opened=opened)
    spans = find_reasoning(text, opened=opened)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(first[1] <= second[0] for first, second in zip(spans, spans[1:], strict=False))
    assert not spans or answer.strip() in answer
    assert spans or reasoning == ""
