"""Observations: one row per trial, in order; missing is missing."""

from __future__ import annotations

import json

import polars as pl
import pytest
from fakes import CountOptions, CountStage

from prejudge.core.contracts.canonical import encode_response
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.observations import build_observations, gather_observations, reasoning_in
from prejudge.core.engine.reading import as_read
from prejudge.probes.indicasa.probe import IndiCASA, IndiCASAOptions

STAGE = CountStage(CountOptions())


def trials(*answers):
    """Return stored trials with these (status, text) answers."""
    responses = [None if text is None else encode_response(Generation(text=text)).decode() for _, text in answers]
    return pl.DataFrame(
        {
            "trial": [f"t{i}" for i in range(len(answers))],
            "factors": [json.dumps({"number": i, "parity": "even"}) for i in range(len(answers))],
            "key": [bytes([i]) for i in range(len(answers))],
            "status": [status for status, _ in answers],
            "response": responses,
        },
        schema_overrides={"status": pl.String, "response": pl.String},
    )


def test_each_status_has_its_row():
    frame = build_observations(
        STAGE, trials(("ok", "abc"), (None, None), ("refused", "no"), ("ok", ""), ("filtered", "")), {b"\1": "too long"}
    )
    assert frame["status"].to_list() == ["ok", "failed", "refused", "unreadable", "filtered"]
    assert frame["reason"].to_list() == [None, "too long", None, "empty", None]
    assert frame["length"].to_list() == [3, None, None, None, None]
    assert frame["number"].to_list() == [0, 1, 2, 3, 4]


def test_answer_after_a_failed_call_has_no_reason():
    frame = build_observations(STAGE, trials(("ok", "abc"), ("refused", "no")), {b"\0": "503", b"\1": "cut"})
    assert frame["reason"].to_list() == [None, None]


def test_no_trials_give_an_empty_frame():
    frame = build_observations(STAGE, trials(), {})
    assert frame.is_empty() and set(STAGE.factors) <= set(frame.columns)


def test_nothing_readable_gives_no_value():
    frame = build_observations(STAGE, trials(("refused", "no"), ("ok", "")), {})
    assert frame["length"].null_count() == 2


def test_quick_reading_equals_reading_one_by_one():
    class Quick(CountStage):
        def read_frame(self, frame):
            texts = frame["response"].str.json_path_match("$.text")
            return pl.DataFrame({"length": texts.str.len_chars().cast(pl.Int64)})

    answers = trials(("ok", "abc"), ("refused", "no"), ("ok", "de"))
    one, other = (build_observations(stage, answers, {}) for stage in (STAGE, Quick(CountOptions())))
    assert one.select("trial", "status", "length").equals(other.select("trial", "status", "length"))


def test_text_with_line_breaks_stays_one_row():
    frame = build_observations(STAGE, trials(("ok", "a\nb\u2028c\u0085d")), {})
    assert frame["length"].to_list() == [7]


def test_refused_answer_that_the_stage_can_read_is_an_answer():
    (stage, *_) = IndiCASA().stages(IndiCASAOptions())
    sorry, answer = "I'm sorry, but I can't assist with that.", '{"predicted_sentence": "The Dalit family left."}'
    given = trials(("refused", sorry), ("refused", f"{sorry} {answer}"), ("ok", answer), ("filtered", answer))
    frame = build_observations(stage, given, {})
    assert frame["status"].to_list() == ["refused", "ok", "ok", "filtered"]
    assert frame["reading"].to_list() == [None, "lenient", "strict", None]


def test_samples_of_one_prompt_share_its_key():
    given = trials(("ok", "abc"), ("ok", "ab"), ("refused", "no"), ("ok", "c"))
    told = gather_observations(STAGE, [given], {}, prompts={b"\2": b"\0", b"\1": b"\7"})
    assert told["prompt_key"].to_list() == ["00", "07", "00", "03"]
    assert "prompt_key" not in gather_observations(STAGE, [given], {}, prompts={b"\1": b"\7"}).columns


def test_first_status_stands_where_a_stage_asks_again():
    given = trials(("ok", "abc"), ("refused", "no"), ("ok", ""))
    again = CountStage(CountOptions(max_attempts=3))
    frame = gather_observations(again, [given], {}, earlier={bytes([0]): "refused"})
    assert frame["first"].to_list() == ["refused", "refused", "unreadable"]
    assert "first" not in gather_observations(STAGE, [given], {}).columns


@pytest.mark.parametrize(
    ("reasoning", "found"),
    [
        ("Hm.", True),
        ("<think>Hm.</think>\n\n", True),
        ("<think>Hm.", True),
        ("\n<think>\n\n</think>\n\n", False),
        ("\n</think>\n\n", False),
        ("[THINK][/THINK]", False),
        ("", False),
    ],
)
def test_marks_around_nothing_are_no_reasoning(reasoning, found):
    answer = encode_response(as_read(Generation(text="B", reasoning=reasoning))).decode()
    assert reasoning_in(pl.Series([answer, None])).to_list() == ["Hm." if found else None, None]
