"""Labelled pairs by every prompt."""

from __future__ import annotations

import pytest

from prejudge.core.contracts.errors import DataError, UnknownNameError, UsageError
from prejudge.core.contracts.records import Generation
from prejudge.probes.bistereo.nli_prompts import NLIPrompts, NLIPromptsOptions
from prejudge.testing import raises_code

ROWS = ["It rains.,The street is wet.,entailment", "It rains.,It is dry.,contradiction", "A {b}.,C.,-", "D.,E.,neutral"]


@pytest.fixture
def labelled(tmp_path):
    path = tmp_path / "snli.csv"
    path.write_text("\n".join(["premise,hypothesis,label", *ROWS]) + "\n")
    return str(path)


def stage(**options):
    (found,) = NLIPrompts().stages(NLIPromptsOptions(**options))
    return found


def test_every_row_is_asked_by_every_prompt_but_those_without_a_label(labelled):
    found = list(stage(data=labelled).trials({}))
    assert len(found) == 3 * 5 and {t.factors["item"] for t in found} == {"2", "3", "5"}
    assert "Premise: It rains.\nHypothesis: The street is wet." in found[0].request.messages[0].parts[0].text


def test_rows_per_label_are_limited(labelled):
    assert len(list(stage(data=labelled, per_label=1, prompts=(1, "4")).trials({}))) == 6


def test_number_is_read_by_the_prompts_that_have_numbers(labelled):
    asked = stage(data=labelled)
    assert asked.read({"prompt": "1"}, Generation(text="3"))["label"] == "neutral"
    assert not isinstance(asked.read({"prompt": "4"}, Generation(text="3")), dict)


def test_file_is_needed():
    with raises_code(UsageError, "data.missing", "--data"):
        list(stage().trials({}))


def test_unknown_label_is_named_with_its_line(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("premise,hypothesis,label\nA.,B.,entails\n")
    with raises_code(DataError, "data.unknown-value", "line 2"):
        list(stage(data=str(path)).trials({}))


def test_unknown_prompt_is_refused():
    with pytest.raises(UnknownNameError):
        stage(prompts=("5",))
