"""A stored response is what was received; a better reader needs no new answer."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest

from prejudge.core.contracts import Stage, Trial, Unreadable
from prejudge.core.contracts.canonical import encode_response
from prejudge.core.contracts.records import Classification, Drawing, Generate, Generation, Message, Text
from prejudge.core.engine import reading
from prejudge.core.engine.fitness import FitnessGuard
from prejudge.core.engine.reading import as_read, outcomes_of, read_part, read_status

SORRY = "I'm sorry, but I can't assist with that."


@pytest.mark.parametrize(
    ("received", "answer", "reasoning", "status"),
    [
        (Generation(text="<think>Hm.</think>Yes."), "Yes.", "Hm.", "ok"),
        (Generation(text="Hm, and", opened=True), "", "Hm, and", "ok"),
        (Generation(text="Yes.", reasoning="Hm."), "Yes.", "Hm.", "ok"),
        (Generation(text=f"<think>Hm.</think>{SORRY}"), SORRY, "Hm.", "refused"),
        (Generation(text=f"<think>{SORRY}</think>Yes."), "Yes.", SORRY, "ok"),
        (Generation(text="No.", status="refused"), "No.", "", "refused"),
        (Generation(text=SORRY, status="filtered"), SORRY, "", "filtered"),
    ],
)
def test_answer_apart_from_its_reasoning_and_refused_where_it_declines(received, answer, reasoning, status):
    read = as_read(received)
    assert (read.text, read.reasoning, read.status) == (answer, reasoning, status)
    assert as_read(read) == read and not read.opened
    assert read_status(encode_response(received).decode()) == status


def test_other_responses_stay_as_they_are():
    for response in (
        Classification(probabilities={"a": 1.0}, text=SORRY),
        Drawing(image="ab"),
        Generation(text="Yes."),
    ):
        assert as_read(response) is response
    assert as_read(Classification(probabilities={}, text=SORRY)).status == "refused"


def test_trials_are_read_and_unanswered_ones_stay():
    texts = [encode_response(Generation(text=text)).decode() for text in ("Yes.", SORRY, "<think>Hm.</think>No.")]
    part = pl.DataFrame({"response": [*texts, None], "status": ["ok"] * 3 + [None], "trial": list("abcd")})
    read = read_part(part)
    assert read["status"].to_list() == ["ok", "refused", "ok", None]
    assert read["response"].str.json_path_match("$.text").to_list() == ["Yes.", SORRY, "No.", None]
    plain = part.head(1)
    assert read_part(plain) is plain


def test_another_rule_reads_what_is_stored_otherwise(monkeypatch):
    stored = encode_response(Generation(text="That is not for me to say."))
    monkeypatch.setattr(reading, "declines", lambda text: "not for me" in text)
    assert read_status(stored.decode()) == "refused"


def test_outcomes_are_those_of_the_answer_as_read():
    class Stage:
        rules = msgspec.defstruct("Rules", [("prose", bool, False)])()

        def read(self, factors, response):
            return {"said": response.text}

    assert outcomes_of(Stage(), {}, Generation(text="<think>Hm", finish_reason="length")) == {"empty"}
    assert outcomes_of(Stage(), {}, Generation(text=SORRY)) == {"refused"}


class Labels(Stage):
    """A stage that reads (a) or (b)."""

    operation = Generate
    factors = ("group",)
    outcomes = ("label",)

    def trials(self, earlier):
        return iter(())

    def read(self, factors, response):
        return {"label": response.text} if response.text in ("(a)", "(b)") else Unreadable("other words")


def test_answers_in_the_reasoning_field_are_named_where_none_can_be_read():
    guard, stopped = FitnessGuard(Labels()), None
    lost = Generation(text="", reasoning="The answer is (b)", finish_reason="stop")
    for number in range(50):
        request = Generate(messages=(Message("user", (Text(f"{number}"),)),))
        stopped = stopped or guard.see(Trial(f"{number}", {"group": number % 2}, request), request, lost)
    assert stopped is not None and stopped.code == "run.unfit"
    assert "(b)" in str(stopped) and "--reasoning-parser" in str(stopped) and "max_tokens" not in str(stopped)
