"""The script of docs/calibration-adversaries.md: what it records, and what the page says of it."""

from __future__ import annotations

import re
import time

import pytest
from scipy import stats

from prejudge.core.catalogue.certificate_records import Group, Rate
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.lab.calibration.certify import Recipe
from prejudge.core.lab.calibration.gallery import is_preferring

from ....benchmark_scripts import benchmark_script

SCRIPT = benchmark_script("adversaries")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adversaries")
    SCRIPT.Opponents("bistereo-tuples", folder).make(3, time.time() + 600)
    return folder


def rows(page):
    part = page.partition("## `bistereo-tuples`")[2]
    return [re.split(r" \| ", line.strip("| ")) for line in part.splitlines() if line.startswith("| ")][2:]


def test_page_counts_recorded_studies_with_their_interval(recorded):
    opponents = SCRIPT.Opponents("bistereo-tuples", recorded)
    found = rows(SCRIPT.page(3, recorded))
    assert [row[0] for row in found][:4] == ["nothing", "test", "people", "meaning"]
    assert {row[0] for row in found} >= {"people and meaning", "people with meaning", "people times meaning"}
    for row, null in zip(found, opponents.campaign.gallery, strict=True):
        studies = [opponents.journal.done[null, 0.0, seed] for seed in range(3)]
        shown = sum(any(number.shown for number in one.numbers) for one in studies)
        share, low, high = (float(number) for number in re.findall(r"[\d.]+", row[2]))
        assert row[1] == "3" and 100 * share / 100 <= 100 * shown / 3 + 0.1
        count = round(3 * share / 100)
        wanted = stats.binomtest(count, 3).proportion_ci(0.95, "exact")
        assert (low, high) == pytest.approx((100 * wanted.low, 100 * wanted.high), abs=0.06)


def test_time_that_is_over_makes_nothing_more_and_the_page_says_what_was_not_run(recorded):
    opponents = SCRIPT.Opponents("bistereo-tuples", recorded)
    before = len(opponents.journal.done)
    opponents.make(50, time.time() - 1)
    assert len(opponents.journal.done) == before
    page = SCRIPT.page(50, recorded)
    assert "Stopped before the 50 that were planned" in page
    assert (
        "`bistereo-pairs`" in page.rpartition("Not run: ")[2]
        and "`bistereo-tuples`" not in page.rpartition("Not run")[2]
    )


def test_every_built_in_study_has_a_place_on_the_page():
    catalogue = Catalogue.load(None)
    calibrated = {name for name, entry in catalogue.registry.studies.items() if not entry.calibration.none}
    needs_a_file = {"crows-pairs"}
    preferring = {name for name in calibrated - needs_a_file if any(map(is_preferring, Recipe.load(name, {}).gallery))}
    assert preferring | needs_a_file == {*SCRIPT.STUDIES}
    assert calibrated - needs_a_file - preferring == {*SCRIPT.SILENT}


def test_a_preference_for_what_a_question_asks_apart_is_not_counted_as_a_false_finding():
    rates = [Rate(measure="halo", studies=9, shown=0, low=0.0, high=0.3)]
    rates += [Rate(measure="share_significant", studies=9, shown=9, low=0.7, high=1.0, holds=False)]
    asked = ["share_significant"], ["scenario"]
    scenario, face = (
        Group(null=f"prefers:{of}", studies=9, answers=tuple(rates)) for of in ("face and scenario", "face")
    )
    assert (
        SCRIPT._row(scenario, asked)[2].startswith("0.0 %") and "share_significant" in SCRIPT._row(scenario, asked)[4]
    )
    assert SCRIPT._row(face, asked)[2].startswith("**100.0 %")
