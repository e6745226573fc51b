"""Wordings: the paper's keep their bytes, samples are divided over the others, and the same people are meant by all."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product

import polars as pl
import pytest

from prejudge.adapters.simulated.completions import begun
from prejudge.core.contracts.records import Generate, Generation, Text
from prejudge.probes.dora.descriptors import T2T_SETTINGS, read_list, stem_of
from prejudge.probes.dora.i2t import DoraI2T, DoraI2TOptions
from prejudge.probes.dora.t2i import DoraT2I, DoraT2IOptions
from prejudge.probes.dora.t2t import DoraT2T, DoraT2TOptions
from prejudge.probes.dora.wordings import DRAWINGS, QUESTIONS, SENTENCES, WORDINGS, filled, question_id


def trials(**options):
    return list(DoraT2T().stages(DoraT2TOptions(**options))[0].trials({}))


def text(trial):
    assert isinstance(trial.request, Generate)
    (part,) = trial.request.messages[0].parts
    assert isinstance(part, Text)
    return part.text


def test_every_setting_has_ten_wordings_and_a_family_of_settings_the_same():
    ids = {setting: {one.id for one in SENTENCES.values() if setting in one.settings} for setting in T2T_SETTINGS}
    assert {len(own) for own in ids.values()} == {WORDINGS}
    assert ids["singular"] == ids["plural"] and ids["adjective"] == ids["noun"] == ids["verb"]
    assert not ids["plural"] & ids["noun"]
    for setting in T2T_SETTINGS:
        assert len({getattr(SENTENCES[one], setting) for one in ids[setting]}) == WORDINGS
    assert {len(set(own)) for own in [*QUESTIONS.values(), list(DRAWINGS.values())]} == {WORDINGS}


def test_the_first_wording_is_the_papers_word_for_word():
    printed = {one.settings: one for one in SENTENCES.values() if one.source}
    assert len(printed) == 2
    for one in printed.values():
        for setting, listed in product(one.settings, read_list(None).values):
            form = listed.plural if setting == "plural" else listed.singular
            assert filled(getattr(one, setting), form) == stem_of(setting, listed)


def test_samples_are_divided_and_the_papers_prompts_keep_their_samples():
    asked = trials(per_dimension=1, letters="a", settings=("noun", "plural"))
    paper = {(t.id, t.request) for t in trials(per_dimension=1, letters="a", settings=("noun", "plural"), wordings=1)}
    same = [t for t in asked if SENTENCES[t.factors["wording"]].source]
    assert len(asked) == len(paper) and len({t.id for t in asked}) == len(asked)
    assert {(t.id, t.request) for t in same} <= paper and {t.factors["sample"] for t in same} == {0}
    assert set(Counter(t.factors["wording"] for t in asked).values()) == {len(asked) // 20}
    groups = [(t.factors["setting"], t.factors["form"], t.factors["wording"]) for t in asked]
    assert len(set(groups)) == 1 + sum(a != b for a, b in pairwise(groups))


def test_more_samples_leave_those_there_are():
    asked = (trials(per_dimension=1, letters="a", samples=samples) for samples in (7, 12))
    few, many = ({(text(t), t.request.sample) for t in some} for some in asked)
    assert few < many


def test_every_wording_is_about_the_same_people_and_ends_in_the_blank():
    for setting in T2T_SETTINGS:
        people = {}
        for trial in trials(settings=(setting,), letters="a", samples=10):
            sentence = begun(text(trial))
            assert sentence is not None and sentence.letter == "a" and (sentence.end == "ing") == (setting == "verb")
            assert str(trial.factors["form"]).lower() in text(trial).lower()
            people.setdefault(trial.factors["form"], set()).add(sentence.people)
        assert {len(one) for one in people.values()} == {1}


@pytest.mark.parametrize("wording", SENTENCES)
def test_a_sentence_that_is_said_again_is_read(wording):
    stage = DoraT2T().stages(DoraT2TOptions())[0]
    asked = [t for t in trials(per_dimension=1, letters="a", instruction="") if t.factors["wording"] == wording]
    assert {t.factors["setting"] for t in asked} == set(SENTENCES[wording].settings)
    for trial in asked:
        said = text(trial).replace("a_____", "absent").replace("a____ing", "asking")
        assert stage.read(trial.factors, Generation(text=said)) in ({"word": "absent"}, {"word": "asking"})


def test_drawings_are_divided_over_wordings():
    first = DoraT2I().stages(DoraT2IOptions(per_dimension=1, numbers=("singular",)))[0]
    asked = list(first.trials({}))
    assert {t.factors["wording"] for t in asked} == set(DRAWINGS)
    assert sum("Generate an image of " in t.request.prompt for t in asked) == len(asked) / WORDINGS


def impressions(**options):
    """Return the questions about drawings that all succeed, with the request's text."""
    drawings, asked, *_ = DoraI2T().stages(DoraI2TOptions(per_dimension=1, dimensions=("age",), **options))
    rows = [{**t.factors, "image": t.id, "status": "ok"} for t in drawings.trials({})]
    return list(asked.trials({"drawings": pl.DataFrame(rows)}))


@pytest.mark.parametrize("wordings", [1, 2, 3, 4, 5, 6, 7, 10])
def test_wording_of_the_question_is_a_factor_of_its_own(wordings):
    asked = impressions(wordings=wordings)
    texts = {question_id(setting, n): text for setting, own in QUESTIONS.items() for n, text in enumerate(own)}
    assert all(t.request.messages[0].parts[1].text == texts[t.factors["question"]] for t in asked)
    assert {t.factors["question"] for t in asked if t.factors["setting"] == "implicit"} == {
        question_id("implicit", n) for n in range(wordings)
    }
    together = {
        (t.factors["wording"], t.factors["question"], t.factors["block"])
        for t in asked
        if t.factors["setting"] == "implicit"
    }
    # In a block all wordings of the drawing meet all of the question, and no wording is in two blocks.
    blocks = Counter(block for *_, block in together)
    assert sorted(blocks.values()) == ([1] * wordings if wordings < 4 else [1] * (wordings % 2) + [4] * (wordings // 2))
    assert len({(wording, block) for wording, _, block in together}) == wordings
    assert len({(question, block) for _, question, block in together}) == wordings


def test_every_descriptor_is_asked_the_same():
    drawings, stage, *_ = DoraI2T().stages(DoraI2TOptions(per_dimension=3, dimensions=("age",)))
    rows = [{**t.factors, "image": t.id, "status": "ok"} for t in drawings.trials({})]
    asked: dict[object, Counter[tuple[object, ...]]] = {}
    for t in stage.trials({"drawings": pl.DataFrame(rows)}):
        cell = tuple(t.factors[name] for name in ("setting", "block", "wording", "question"))
        asked.setdefault(t.factors["descriptor"], Counter())[cell] += 1
    assert len(asked) == 3 and len({frozenset(own.items()) for own in asked.values()}) == 1


@pytest.mark.parametrize("wording", ["sketch", "a wording of an earlier version", None])
def test_drawings_in_other_wordings_are_asked_about(wording):
    _, stage, *_ = DoraI2T().stages(DoraI2TOptions(wordings=2))
    row = {"setting": "plural", "dimension": "age", "descriptor": "child", "form": "children", "sample": 13}
    frame = pl.DataFrame([{**row, "wording": wording, "image": "0" * 64, "status": "ok"}])
    asked = list(stage.trials({"drawings": frame}))
    assert len(asked) == len(QUESTIONS) and {t.factors["wording"] for t in asked} == {wording}


def test_declared_designs_are_what_is_asked():
    names = ("setting", "dimension", "descriptor", "form", "block", "wording", "question", "sample")
    options = DoraI2TOptions(per_dimension=1, dimensions=("age",))
    plan = DoraI2T().design(options)
    declared = zip(*(plan.column(name) for name in names), strict=True)
    assert Counter(declared) == Counter(tuple(t.factors[name] for name in names) for t in impressions())
    roles = plan.record()
    assert [f.name for f in roles.facets() if not f.nested_in] == ["block"]
    assert {name for name, role in roles.of().items() if role == "sampled"} == {"wording", "block", "question"}
    sentences = DoraT2T().design(DoraT2TOptions(per_dimension=1)).record()
    assert [(f.name, f.levels) for f in sentences.facets()] == [("wording", 20)]
    assert sentences.of() == {
        "setting": "by", "entry": "fixed", "dimension": "by", "descriptor": "group", "letter": "fixed",
        "sample": "repeat", "wording": "sampled",
    }  # fmt: skip
