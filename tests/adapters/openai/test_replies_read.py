"""Replies of real servers, from the wire to what a stage reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prejudge.core.contracts.adapter import RemoteEndpoint
from prejudge.core.contracts.errors import RateLimitError
from prejudge.core.contracts.records import Generate, Generation, Message, Text
from prejudge.core.engine.integrity.replies import Inspector
from prejudge.core.engine.reading import as_read
from prejudge.testing.chaos.http import Reply

FILE = Path(__file__).parents[4] / "shared" / "data" / "cases" / "replies.json"
CASES = json.loads(FILE.read_text("utf-8")) if FILE.exists() else []
QUESTION = Generate(messages=(Message("user", (Text("Which? (a) or (b)"),)),))
ABSENT = [pytest.param(None, marks=pytest.mark.skip(reason="the cases to hand over are not here"))]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES] or ABSENT)
def test_reply_gives_what_must_come_out(ask, server, case):
    server.plan = [Reply(case["status"], json.dumps(case["body"]), case["headers"])] * 3
    (answer,) = ask(QUESTION)
    if case["must"] == "F":
        assert isinstance(answer, Generation) and answer.status == "filtered"
    elif case["must"].startswith("E wait "):
        assert isinstance(answer, RateLimitError)
        assert answer.retry_after == pytest.approx(float(case["must"].removeprefix("E wait ")))
    else:
        read = as_read(answer)
        assert (read.text, read.status) == (case["must"], "ok")
        said = case["body"]["choices"][0]["message"]
        assert (answer.text, answer.reasoning) == (said["content"] or "", said.get("reasoning_content", ""))


def found(*answers: Generation) -> dict[str, int]:
    inspector = Inspector("m", RemoteEndpoint(name="m"))
    for number, answer in enumerate(answers):
        inspector.look(bytes([number]), QUESTION, answer)
    return {finding.name: finding.count for finding in inspector.result().findings}


def test_answer_in_the_reasoning_field_is_a_finding():
    lost = Generation(text="", reasoning="(b)", finish_reason="stop")
    assert found(lost, lost) == {"answer-in-reasoning": 2}
    assert found(Generation(text="", reasoning="Hm", finish_reason="length")) == {}
    assert found(Generation(text="(b)", reasoning="Hm", finish_reason="stop")) == {}


def test_special_tokens_that_are_left_are_a_finding():
    assert found(Generation(text="(b)<|im_end|>"), Generation(text="(b)")) == {"marks": 1}
    assert found(Generation(text="<think>Hm</think>(b)"), Generation(text="a <b> c")) == {}
