"""Fair models that prefer levels of what a declared study samples, in its calibration."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from prejudge.core.catalogue.certificate_records import Certificate, Group
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.design import Facet
from prejudge.core.lab.calibration.adversaries import choices, expanded
from prejudge.core.lab.calibration.campaign import Campaign, Cell, Journal
from prejudge.core.lab.calibration.certify import Recipe, Size, conduct, plan_of
from prejudge.core.lab.calibration.gallery import FAIR, is_preferring, load_gallery
from prejudge.core.lab.calibration.rates import group_of
from prejudge.core.lab.calibration.summary import holds_for, verdict

from ....strangers import STUDY, offer
from .test_calibration import certificate, done, number


def facet(name: str, *nested: str) -> Facet:
    return Facet(name, 8, "", nested)


def test_each_facet_part_and_pair_is_preferred_and_two_pairs_do_not_add_up() -> None:
    facets = (facet("template", "place"), facet("place"), facet("word"))
    found = dict(choices(facets))
    assert [name for name in found if " " not in name] == ["template", "place", "word"]
    assert [name for name in found if " and " in name] == [
        "template and place",
        "template and word",
        "place and word",
    ]
    assert {one.of for one in found["place and word"]} == {("place",), ("word",)}
    together, product = found["place with word"], found["place times word"]
    assert [one.of for one in (*together, *product)] == [("place", "word")] * 2
    assert [one.product for one in (*together, *product)] == [False, True]
    assert all(one.by_context and not one.shared for given in found.values() for one in given)


def test_a_study_whose_file_is_not_there_has_none_and_a_declared_one_has_all() -> None:
    catalogue = Catalogue.load()
    none = expanded(load_gallery(catalogue, "crows-pairs"), catalogue, "crows-pairs", {})
    assert not any(map(is_preferring, none)) and "prefers" not in none
    pairs = expanded(load_gallery(catalogue, "bistereo-pairs"), catalogue, "bistereo-pairs", {})
    sampled = {name.partition(":")[2] for name in pairs if is_preferring(name) and " " not in name}
    assert {"template", "opening", "place", "attribute"} <= sampled
    assert sum(map(is_preferring, pairs)) == len(sampled) + len(sampled) * (len(sampled) - 1) // 2 + 2


@pytest.mark.parametrize("study", ["indicasa", "dora-t2t", "dora-t2i"])
def test_answers_in_free_words_or_pictures_show_no_preference(study: str) -> None:
    """Such a model answered nothing that could be read, and the study seemed to hold for its preferences."""
    catalogue = Catalogue.load()
    found = expanded(load_gallery(catalogue, study), catalogue, study, {})
    assert not any(map(is_preferring, found)) and FAIR in found


def test_the_study_of_a_stranger_has_a_positive_control_and_fair_models_that_prefer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offer(monkeypatch)
    recipe = Recipe.load(STUDY, {})
    wanted = (FAIR, "prefers:eigenschaft")
    recipe = replace(recipe, gallery={name: recipe.gallery[name] for name in wanted})
    campaign = recipe.campaign()
    journal = Journal(tmp_path / "record.jsonl", campaign.opening({}))
    plan = plan_of(campaign, journal, Size(studies=4, planted=4, preferring=6))
    assert Cell("prefers:eigenschaft", 0.0, 6) in plan.cells and Cell(FAIR, 0.0, 4) in plan.cells
    list(conduct(recipe, campaign, journal, plan, 1))
    strongest = max(plan.cells, key=lambda cell: cell.strength)
    shown = {str(rate.group): rate.shown for rate in group_of(strongest, journal.of(strongest)).rates}
    assert shown["{'wertung': 'gut'}"] == shown["{'wertung': 'schlecht'}"] == 4
    assert settings_of(campaign, "prefers:eigenschaft")["preferences"]


def settings_of(campaign: Campaign, null: str) -> dict[str, object]:
    return campaign.settings(campaign.subject(campaign.gallery[null]), 0)


def test_a_study_that_names_its_words_is_planted_by_them_still() -> None:
    recipe = Recipe.load("bistereo-tuples", {})
    assert "planted_by" not in settings_of(recipe.campaign(), FAIR)
    assert settings_of(recipe.campaign(), "prefers:people")["planted_by"] == "cells"


def group(null: str, shown: int, studies: int = 400) -> Group:
    numbers = [number(1.0 + seed, shown=seed < shown) for seed in range(studies)]
    made = [done(one, null=null, seed=seed) for seed, one in enumerate(numbers)]
    return group_of(Cell(null, 0.0, studies), made)


def test_the_verdict_lists_what_it_holds_for_and_what_it_does_not() -> None:
    groups = (group(FAIR, 20), group("prefers:place", 19), group("prefers:opening", 252))
    told: Certificate = certificate(groups=groups)
    sentences = holds_for(told)
    kept, _, lost = sentences.partition(" not ")
    assert "place" in kept and "opening" not in kept
    assert "opening (63.0 %)" in lost and "place" not in lost
    assert verdict(told).endswith(sentences)
    assert holds_for(certificate(groups=(group(FAIR, 20),))) == ""


def test_a_model_without_a_verdict_is_none_that_the_study_holds_for() -> None:
    silent = Group(null="prefers:word", studies=200, missing=1.0)
    told = holds_for(certificate(groups=(silent, group("prefers:place", 19))))
    assert "place" in told and "word" not in told
