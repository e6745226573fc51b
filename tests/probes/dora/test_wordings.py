"""Wordings: the paper's keep their bytes, samples are divided over the others, and the same people are meant by all."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from prejudge.adapters.simulated.completions import begun
from prejudge.core.contracts.records import Generate, Generation, Text
from prejudge.probes.dora.descriptors import T2T_SETTINGS
from prejudge.probes.dora.t2i import DoraT2I, DoraT2IOptions
from prejudge.probes.dora.t2t import DoraT2T, DoraT2TOptions
from prejudge.probes.dora.wordings import DRAWN, SUBJECTIVE, T2T, WORDINGS


def trials(**options):
    return list(DoraT2T().stages(DoraT2TOptions(**options))[0].trials({}))


def text(trial):
    assert isinstance(trial.request, Generate)
    (part,) = trial.request.messages[0].parts
    assert isinstance(part, Text)
    return part.text


def test_every_setting_has_six_different_wordings():
    assert set(T2T) == set(T2T_SETTINGS) and {len(set(own)) for own in T2T.values()} == {WORDINGS - 1}
    assert {len(set(own)) for own in [*SUBJECTIVE.values(), DRAWN]} == {WORDINGS}


def test_samples_are_divided_and_the_papers_prompts_keep_their_samples():
    asked = trials(per_dimension=1, letters="a", settings=("noun", "plural"))
    paper = {(t.id, t.request) for t in trials(per_dimension=1, letters="a", settings=("noun", "plural"), wordings=1)}
    same = [t for t in asked if t.factors["wording"] == 0]
    assert len(asked) == len(paper) and len({t.id for t in asked}) == len(asked)
    assert {(t.id, t.request) for t in same} <= paper and {t.factors["sample"] for t in same} == {0, 5}
    assert Counter(t.factors["wording"] for t in asked) == dict.fromkeys(range(5), len(asked) // 5)
    groups = [(t.factors["setting"], t.factors["form"], t.factors["wording"]) for t in asked]
    assert len(set(groups)) == 1 + sum(a != b for a, b in pairwise(groups))


def test_more_samples_leave_those_there_are():
    asked = (trials(per_dimension=1, letters="a", samples=samples) for samples in (7, 12))
    few, many = ({(text(t), t.request.sample) for t in some} for some in asked)
    assert few < many


def test_every_wording_is_about_the_same_people_and_ends_in_the_blank():
    for setting in T2T_SETTINGS:
        people = {}
        for trial in trials(settings=(setting,), letters="a", samples=6, wordings=6):
            sentence = begun(text(trial))
            assert sentence is not None and sentence.letter == "a" and (sentence.end == "ing") == (setting == "verb")
            assert str(trial.factors["form"]).lower() in text(trial).lower()
            people.setdefault(trial.factors["form"], set()).add(sentence.people)
        assert {len(one) for one in people.values()} == {1}


@pytest.mark.parametrize("wording", range(WORDINGS))
def test_a_sentence_that_is_said_again_is_read(wording):
    stage = DoraT2T().stages(DoraT2TOptions(wordings=6))[0]
    for trial in trials(per_dimension=1, letters="a", samples=6, wordings=6, instruction=""):
        if trial.factors["wording"] == wording:
            said = text(trial).replace("a_____", "absent").replace("a____ing", "asking")
            assert stage.read(trial.factors, Generation(text=said)) in ({"word": "absent"}, {"word": "asking"})


def test_drawings_are_divided_over_wordings():
    first = DoraT2I().stages(DoraT2IOptions(per_dimension=1, samples=5, numbers=("singular",)))[0]
    asked = list(first.trials({}))
    assert {t.factors["wording"] for t in asked} == set(range(5))
    assert sum("Generate an image of " in t.request.prompt for t in asked) == len(asked) / 5
