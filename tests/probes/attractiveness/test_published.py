"""The published tables of the attractiveness study, as the registry has them: consistent with their own tests."""

from __future__ import annotations

from collections import Counter

import pytest
from scipy import stats

from prejudge.core.catalogue.study import Catalogue
from prejudge.probes.attractiveness.scenarios import load_scenarios

STARS = ((0.001, "(***)"), (0.01, "(**)"), (0.05, "(*)"))


@pytest.fixture(scope="module")
def published():
    return Catalogue.load().registry.study("attractiveness").published


def statistics(published):
    return [value for value in published if value.measure == "kruskal_wallis"]


def test_stars_are_those_of_chi_square_with_one_degree_of_freedom(published):
    for value in statistics(published):
        p = stats.chi2.sf(value.value, 1)
        expected = next((mark for limit, mark in STARS if p < limit), "(no star)")
        assert value.source.endswith(expected), value


def test_every_row_of_the_three_tables_is_there(published):
    found = Counter((value.source.partition(" (")[0], value.group["by"]) for value in statistics(published))
    assert found == {("Table 5", "filter"): 32, ("Table 6", "gender"): 19, ("Table 7", "race pair"): 12}


def test_statistics_are_possible_for_so_many_images(published):
    images = {"filter": 924, "gender": 924, "race pair": 200}
    assert all(0 <= value.value <= images[value.group["by"]] - 1 for value in statistics(published))


def test_tolerance_is_two_standard_deviations_of_such_a_statistic(published):
    for value in statistics(published):
        spread = stats.ncx2.std(1, max(value.value - 1, 0)) if value.value > 1 else stats.chi2.std(1)
        assert value.tolerance == pytest.approx(2 * spread, abs=0.051), value


def test_higher_means_lie_where_the_text_says(published):
    means = {}
    for value in published:
        if value.measure == "score":
            (label,) = [v for k, v in value.group.items() if k != "scenario"]
            means[value.group["scenario"], label] = value.value
    directed = {scenario for scenario, label in means if label == "filtered"}
    assert all(means[s, "filtered"] > means[s, "original"] for s in directed)
    gendered = {scenario for scenario, label in means if label == "male"}
    assert all(means[s, "male"] > means[s, "female"] for s in gendered)


def test_share_of_each_category_is_that_of_its_count(published):
    for value in published:
        if value.measure == "share_significant":
            hits, total = map(int, value.source.partition(": ")[2].split("/"))
            assert value.value == pytest.approx(100 * hits / total, abs=0.011)


def test_counts_of_scenarios_sum_to_91(published):
    sums = Counter()
    for value in published:
        if value.measure in ("stronger_bias", "strongest_group") and value.group.get("judged") != "any":
            sums[value.measure, value.group["by"]] += value.value
    assert len(sums) == 5 and set(sums.values()) == {91}


def test_scenarios_are_those_of_the_data(published):
    known = {scenario.id for scenario in load_scenarios()}
    assert {v.group["scenario"] for v in published if "scenario" in v.group} <= known


def test_questions_sum_to_the_papers_number(published):
    assert sum(value.value for value in published if value.measure == "questions") == 1_009_008
