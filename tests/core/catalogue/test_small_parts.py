"""What a part of a study is too small for is said before it is asked, and `--quick` asks enough units where it can."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import pytest

from prejudge.core.catalogue.limiting import QUICK_MOST, Limit, draw_rows
from prejudge.core.catalogue.small_parts import few_units, small_words
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts.records import PseudoLikelihood
from prejudge.core.contracts.sizes import FEWEST_UNITS
from prejudge.core.design import By, Design, DesignedStage, Group, Repeat, Sampled

from ...command import call


def design_of(cells, words=60):
    topics, sampled = (tuple(f"{letter}{n}" for n in range(count)) for letter, count in (("t", cells), ("w", words)))
    return Design((By("topic", topics), Sampled("word", sampled), Group("side", ("a", "b"))))


@pytest.mark.parametrize(("cells", "each"), [(2, 60), (20, 10), (40, 8), (60, 8), (100, 5), (400, 2)])
def test_quick_asks_eight_units_of_each_cell_where_a_thousand_trials_allow(cells, each):
    drawn = draw_rows(design_of(cells), Limit(unit=("topic", "word"), cells=("topic",)))
    assert drawn.each == each and drawn.units == each * cells
    assert len(drawn.trials) == 2 * each * cells <= max(QUICK_MOST, 4 * cells)


class Words(DesignedStage):
    operation, factors, outcomes = PseudoLikelihood, ("topic", "word", "side"), ("value",)

    def __init__(self, design, rows=None):
        self._design, self._rows = design, rows

    @cached_property
    def design(self):
        return self._design

    @property
    def rows(self):
        return self._rows

    def request(self, cell):
        return PseudoLikelihood(text=f"{cell['topic']} {cell['word']} {cell['side']}")

    def read(self, factors, response):
        return {"value": 0.0}


def test_factors_with_a_small_group_are_named_with_its_units():
    design = design_of(4)
    drawn = draw_rows(design, Limit(unit=("topic", "word"), cells=("topic",), asked=24))
    assert few_units(Words(design, drawn.trials)) == {"topic": 6}
    assert few_units(Words(design)) == {}
    assert few_units(Words(design, drawn.trials), ("word", "nothing")) == {"topic": 6, "word": 1}


def test_repeats_are_no_units_unless_there_are_few_prompts():
    many = Design((*design_of(1, 5).factors, Repeat("sample", tuple(range(20)))))
    assert few_units(Words(many)) == {}  # five prompts in all: the study is about repeats
    several = Design((*design_of(1, 30).factors, Repeat("sample", tuple(range(20)))))
    drawn = draw_rows(several, Limit(unit=("topic", "word"), cells=("topic",), asked=4))
    assert few_units(Words(several, drawn.trials)) == {"side": 4, "topic": 4}


@pytest.fixture(scope="module")
def catalogue():
    return Catalogue.load()


def test_count_is_that_of_the_distinct_prompts_of_each_side(catalogue):
    """Counted again from the trials, without the design."""
    study = catalogue.study("subtle-sai", {}, {"limit": 60})
    stage = catalogue.instrument(study).every_stage()[0]
    prompts = defaultdict(set)
    for trial in stage.trials({}):
        prompts[trial.factors["domain"], trial.factors["given"]].add(trial.request.messages[-1].parts[0].text)
    fewest = min(map(len, prompts.values()))
    assert fewest < FEWEST_UNITS and few_units(stage)["domain"] == fewest
    assert f"by domain ({fewest})" in small_words(catalogue, study)


@pytest.mark.parametrize("name", ["subtle-sai", "subtle-asa", "bistereo-nli", "bistereo-pairs", "dora-t2t"])
def test_quick_of_these_studies_is_large_enough(catalogue, name):
    assert small_words(catalogue, catalogue.study(name, {}, {"quick": True})) == ""
    assert small_words(catalogue, catalogue.study(name, {}, {})) == ""


def test_plan_and_run_say_it_before_anything_is_asked(tmp_path):
    plan = call(tmp_path, "plan", "dora-t2i", "--quick")
    assert "Too small to compare by descriptor (4)" in " ".join(plan.stdout.split())
    run = call(tmp_path, "run", "subtle-sai", "--limit", "60", "--model", "simulated-fair")
    lines = run.stderr.splitlines()
    said = next(place for place, line in enumerate(lines) if "Too small to compare by domain" in line)
    assert said < next(place for place, line in enumerate(lines) if line.startswith("main (subject)"))
