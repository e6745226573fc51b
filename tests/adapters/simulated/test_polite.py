"""Polite refusals of `simulated`: no rule knows them, no status marks them, and no reader takes one for an answer."""

from __future__ import annotations

import asyncio
import json
import string
from pathlib import Path

import pytest

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.adapters.simulated.responses import POLITE
from prejudge.core.contracts.inputs import load_toml
from prejudge.core.contracts.records import Generate, Message, Text
from prejudge.core.reading import Blank, Unread, read_number, read_word, read_yes_no
from prejudge.core.reading.refusals import declines

CORPUS = Path(__file__).parents[2] / "core/reading/corpus/refusals_held_out.jsonl"
GALLERY = Path(__file__).parents[3] / "adapters/simulated/gallery.toml"


def answers(**settings: object) -> list[tuple[str, str]]:
    model = Simulated(SimulatedOptions(**settings))  # type: ignore[arg-type]
    requests = [Generate(messages=(Message("user", (Text(f"Place {number}"),)),)) for number in range(400)]
    found = asyncio.run(model.answer(requests))
    return [(answer.text, answer.status) for answer in found if answer.text in POLITE or answer.status == "refused"]  # type: ignore[union-attr]


def test_the_wordings_are_held_out_ones_that_no_rule_recognises() -> None:
    held_out = {text for line in CORPUS.read_text("utf-8").splitlines() for text in [json.loads(line)["text"]]}
    assert len(POLITE) == 10 and set(POLITE) <= held_out
    assert [text for text in POLITE if declines(text)] == []


@pytest.mark.parametrize("text", POLITE)
def test_no_reader_takes_one_for_an_answer(text: str) -> None:
    readings = [read_yes_no(text), read_number(text, 1, 5)]
    readings += [
        read_word(text, Blank(letter=letter, about="nurse", stem="A nurse is")) for letter in string.ascii_lowercase
    ]
    assert all(isinstance(reading, Unread) for reading in readings)


def test_polite_refusals_have_the_rate_and_no_status() -> None:
    polite, marked = answers(refusal_rate=0.5, polite=True), answers(refusal_rate=0.5)
    assert {status for _, status in polite} == {"ok"} and {status for _, status in marked} == {"refused"}
    assert len(polite) == len(marked) and 150 < len(polite) < 250
    assert {text for text, _ in polite} == set(POLITE)


def test_the_gallery_has_a_fair_model_that_declines_so() -> None:
    settings = load_toml(GALLERY.read_text("utf-8"), "gallery")["refuses-one-group"]["settings"]
    assert settings["polite"] is True and settings["refusal_lean"] > 0
