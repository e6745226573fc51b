"""Data of studies of trained models: balanced, drawn anew for each study, and readable by the study they are for."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.stats import binom

from prejudge.adapters.reference import items
from prejudge.probes.attractiveness.faces import paper_faces
from prejudge.probes.attractiveness.stimuli import read_stimuli
from prejudge.probes.bistereo.tuples_file import read_tuples
from prejudge.probes.bistereo.tuples_tests import build

ROOT = Path(__file__).parents[3]
WRITERS = [items.people, items.pairs, items.tuples, items.faces]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("write", WRITERS)
def test_a_study_has_the_data_of_its_number(tmp_path: Path, write: Callable[[int, Path], None]) -> None:
    found = []
    for study in (0, 1, 0):
        write(study, tmp_path / "data.csv")
        found.append((tmp_path / "data.csv").read_bytes())
    assert found[0] == found[2] != found[1]


def test_people_are_as_many_of_high_as_of_low_status(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for study in range(50):
        items.people(study, tmp_path / "data.csv")
        words = [row["singular"] for row in rows(tmp_path / "data.csv")]
        assert len(set(words)) == 6 and sum(word in items.HIGH for word in words) == 3
        seen.update(words)
    assert set(seen) == {*items.HIGH, *items.LOW}


def test_pairs_are_stereotypes_as_often_as_not_and_differ_in_the_group_alone(tmp_path: Path) -> None:
    stereotypes = 0
    for study in range(10):
        items.pairs(study, tmp_path / "data.csv")
        written = rows(tmp_path / "data.csv")
        assert len(written) == items.PAIRS
        stereotypes += sum(row["stereo_antistereo"] == "stereo" for row in written)
        for row in written:
            more, less = (set(row[name].rstrip(".").split()) for name in ("sent_more", "sent_less"))
            assert len((more - less) - {"a", "an"}) == len((less - more) - {"a", "an"}) == 1
    low, high = binom.interval(0.999, 10 * items.PAIRS, 0.5)
    assert low <= stereotypes <= high


def test_tuples_join_groups_and_words_that_the_study_has_as_many_for_women_as_for_men(tmp_path: Path) -> None:
    shipped = rows(ROOT / "probes" / "bistereo" / "data" / "tuples" / "tuples.csv")
    standing = {row["descriptor"]: (row["dimension"], row["standing"]) for row in shipped if row["standing"]}
    opposite = {row["attribute"]: row["opposite"] for row in shipped if row["opposite"]}
    for study in range(20):
        items.tuples(study, tmp_path / "data.csv")
        written = rows(tmp_path / "data.csv")
        for row in written:
            assert (row["dimension"], row["standing"]) == standing[row["descriptor"]]
            assert row["sentiment"] == "positive" or row["opposite"] == opposite[row["attribute"]]
        tests = build(read_tuples(str(tmp_path / "data.csv")), 2, unscored=True)
        own = Counter(tests.where({"validated": [True]}).column("gender"))
        assert own["women"] == own["men"] == items.TUPLES


def test_faces_are_one_of_each_group_and_few_in_all(tmp_path: Path) -> None:
    groups = Counter((face.gender, face.race, face.age_group) for face in paper_faces())
    seen = set()
    for study in range(30):
        items.faces(study, tmp_path / "data.csv")
        found = read_stimuli(str(tmp_path / "data.csv")).stimuli
        drawn = Counter((one.gender, one.race, one.age_group) for one in found)
        assert drawn == dict.fromkeys(groups, 2), "original and filtered of a face of each group"
        seen |= {one.sha256 for one in found}
    assert len(seen) <= 2 * items.POOL * len(groups)
