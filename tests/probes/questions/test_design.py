"""The design of a folder: prompts, orders, twins and sides, recomputed by loops."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import msgspec

from prejudge.core.contracts.options import build_options
from prejudge.probes.questions.declared import QuestionsOptions
from prejudge.probes.questions.folder import folder_study
from prejudge.probes.questions.probe import Questions, QuestionStage

from .folders import FACTORS, JOBS, MEN, TEXT, WOMEN, write

CHOICE = {"form": "choice", "options": ["Invite", "Wait", "Reject"]}


def options_at(folder: Any, **further: Any) -> QuestionsOptions:
    return build_options("test", QuestionsOptions, folder_study(str(folder))["options"] | further)


def stage_at(folder: Any, **further: Any) -> QuestionStage:
    (stage, *_) = Questions().stages(options_at(folder, **further))
    assert isinstance(stage, QuestionStage)
    return stage


def text_of(trial: Any) -> str:
    return str(trial.request.messages[-1].parts[-1].text)


def test_prompts_are_every_name_with_every_job(tmp_path):
    texts = [text_of(trial) for trial in stage_at(write(tmp_path / "x")).trials({})]
    named = [TEXT.replace("{name}", name).replace("{job}", job) for name, job in product((*MEN, *WOMEN), JOBS)]
    assert sorted(texts) == sorted(named)


def test_attributes_are_columns_and_numbers(tmp_path):
    factors = next(iter(stage_at(write(tmp_path / "x")).trials({}))).factors
    assert factors == {"gender": "male", "name": "James", "year": 60, "job": "nurse"}


def test_each_order_of_options_is_as_frequent_for_either_group(tmp_path):
    trials = list(stage_at(write(tmp_path / "x", None, CHOICE)).trials({}))
    orders = Counter((trial.factors["gender"], trial.factors["order"]) for trial in trials)
    assert len(orders) == 12
    assert set(orders.values()) == {len(trials) // 12}
    for trial in trials:
        lines = [line for line in text_of(trial).splitlines() if line[1:2] == ")"]
        assert [line[3:] for line in lines] == str(trial.factors["order"]).split(", ")


def test_names_of_one_rank_have_one_order_with_each_job(tmp_path):
    trials = list(stage_at(write(tmp_path / "x", None, CHOICE)).trials({}))
    order = {(t.factors["name"], t.factors["job"]): t.factors["order"] for t in trials}
    assert all(order[man, job] == order[woman, job] for man, woman in zip(MEN, WOMEN, strict=True) for job in JOBS)


def test_twins_differ_in_a_group_without_nested_levels_alone(tmp_path):
    factors = {"person": {"role": "group", "levels": ["woman", "man"]}, "job": FACTORS["job"]}
    design = stage_at(write(tmp_path / "x", {"text": "A {person}: {job}", "factors": factors})).design
    people, jobs = design.column("person"), design.column("job")
    for row in design.twins("person").tolist():
        assert [people[at] for at in row] == ["woman", "man"]
        assert len({jobs[at] for at in row}) == 1
    assert "person" not in design.unit_factors


def test_group_with_names_is_a_side_and_a_sample_has_both(tmp_path):
    design = stage_at(write(tmp_path / "x")).design
    drawn = design.sample(limit=24)
    sides = Counter(design.column("gender", drawn))
    assert sides == {"male": 12, "female": 12}
    assert {len(set(design.column("name", drawn)))} == {12}


def test_wording_has_slots_of_other_factors_and_braces_stay(tmp_path):
    words = ["Rate {name}.", 'How good is {name}? Reply {"rating": 1}.', "{unknown} {name}"]
    factors = FACTORS | {"wording": {"role": "sampled", "levels": words}}
    texts = {
        text_of(trial)
        for trial in stage_at(write(tmp_path / "x", {"text": "{wording}", "factors": factors})).trials({})
    }
    assert {"Rate James.", 'How good is James? Reply {"rating": 1}.', "{unknown} James"} <= texts


def test_value_with_braces_is_not_filled_again(tmp_path):
    factors = FACTORS | {
        "town": {"role": "fixed", "levels": [{"text": "a", "note": "{job}"}, {"text": "b", "note": "n"}]}
    }
    text = text_of(next(iter(stage_at(write(tmp_path / "x", {"text": "{note}", "factors": factors})).trials({}))))
    assert text == "{job}"


def test_long_texts_have_short_names(tmp_path):
    long = ["word " * 40 + str(at) for at in range(3)]
    factors = FACTORS | {"opening": {"role": "sampled", "levels": long}}
    trial = next(iter(stage_at(write(tmp_path / "x", {"text": "{opening} {name}", "factors": factors})).trials({})))
    assert trial.factors["opening"] == "opening 1"
    assert text_of(trial) == f"{long[0]} James"


def test_system_turns_and_samples_are_sent(tmp_path):
    turns = [{"role": "user", "text": "I hire as {job}."}, {"role": "assistant", "text": "Good."}]
    folder = write(tmp_path / "x", {"system": "You know {job}.", "turns": turns})
    trials = list(stage_at(folder, samples=2, temperature=1.0).trials({}))
    assert [turn.role for turn in trials[0].request.messages] == ["system", "user", "assistant", "user"]
    assert trials[0].request.messages[0].parts[0].text == "You know nurse."
    assert [trial.request.sample for trial in trials[:2]] == [0, 1]
    assert len({trial.id for trial in trials}) == len(trials) == 144


def test_options_of_a_run_hold_the_tables(tmp_path):
    folder = write(tmp_path / "x")
    options = options_at(folder)
    for file in folder.iterdir():
        file.unlink()
    again = msgspec.convert(msgspec.to_builtins(options), QuestionsOptions)
    assert len(list(Questions().stages(again)[0].trials({}))) == 72
