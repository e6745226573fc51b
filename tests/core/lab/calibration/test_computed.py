"""Models in closed form: their studies of the default size are computed, and are those that would be asked."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from polars.testing import assert_frame_equal

from prejudge.core.lab.calibration.by_command import differing
from prejudge.core.lab.calibration.campaign import Campaign, Journal, amounts_of
from prejudge.core.lab.calibration.certify import Recipe
from prejudge.core.lab.calibration.gallery import FAIR

SIZES = {
    "bistereo-pairs": {"axes": ["height"], "per_cell": 12},
    "bistereo-nli": {"per_cell": 6},
    "subtle-asa": {"per_cell": 6},
}
PLACE = {"bistereo-pairs": "place", "bistereo-nli": "place", "subtle-asa": "term"}


def campaign_of(study: str, options: dict[str, object], *others: str) -> Campaign:
    recipe = Recipe.load(study, options)
    wanted = (FAIR, f"prefers:{PLACE[study]}", *others)
    return msgspec.structs.replace(recipe, gallery={name: recipe.gallery[name] for name in wanted}).campaign()


@pytest.mark.parametrize("study", SIZES)
def test_what_is_computed_is_what_is_asked(study: str) -> None:
    campaign = campaign_of(study, SIZES[study])
    null = f"prefers:{PLACE[study]}"
    campaign.observe(null, 0)
    requests = campaign.bench.requests
    for seed in (1, 2, 3):
        computed, asked = campaign.observe(null, seed), campaign_of(study, SIZES[study]).observe(null, seed)
        for stage, frame in asked.items():
            assert_frame_equal(computed[stage], frame, rel_tol=1e-12, abs_tol=0.0)
    assert campaign.bench.requests == requests > 0


def test_a_model_whose_calls_fail_or_that_is_planted_by_words_is_asked() -> None:
    campaign = campaign_of("bistereo-pairs", SIZES["bistereo-pairs"])
    null = campaign.gallery["prefers:place"]
    assert campaign.bench.is_computed(campaign.model(null, 0))
    assert not campaign.bench.is_computed(campaign.model(campaign.gallery[FAIR], 0))
    assert not campaign.bench.is_computed(campaign.model(null.with_settings({"failure_rate": 0.5}), 0))


def test_models_that_prefer_levels_have_the_default_size_and_others_the_stated_one() -> None:
    campaign = campaign_of("bistereo-nli", {})
    entire = campaign.of("prefers:place")
    assert entire is not campaign and campaign.of(FAIR) is campaign and entire.of("prefers:place") is entire
    assert {"per_cell"} == amounts_of(campaign.entry.calibration)
    assert len(entire.bench.first) == 58224 > 50 * len(campaign.bench.first)
    assert campaign.opening({}).entire == entire.study.options and "per_cell" not in entire.study.options


def test_a_size_that_is_given_counts_for_all() -> None:
    campaign = campaign_of("bistereo-nli", {"per_cell": 3})
    assert campaign.of("prefers:place") is campaign and not campaign.opening({}).entire


def test_models_are_compared_with_the_fair_one_of_their_size(tmp_path: Path) -> None:
    campaign = campaign_of("subtle-asa", {})
    journal = Journal(tmp_path / "record.jsonl", campaign.opening({}))
    assert journal.touches(campaign, "prefers:term")
    # Studies of `fair` at the default size are not recorded: their numbers are others than those of the stated size.
    assert {null for null, _, _ in journal.done} == {"prefers:term"}


@pytest.mark.soak
@pytest.mark.parametrize("study", ["bistereo-pairs", "bistereo-nli", "subtle-asa"])
def test_two_of_each_kind_agree_with_the_command_line_at_the_default_size(study: str) -> None:
    recipe = Recipe.load(study, {})
    campaign = recipe.campaign()
    nulls = [name for name in recipe.gallery if name.startswith("prefers:") and " and " not in name]
    assert differing(campaign, study, [(null, seed) for null in nulls for seed in (0, 1)]) == {}


def test_a_study_of_the_default_size_agrees_with_the_command_line() -> None:
    campaign = campaign_of("subtle-asa", {})
    campaign.one("prefers:term", 1)
    assert differing(campaign, "subtle-asa", [("prefers:term", 0), ("prefers:term", 2)]) == {}
