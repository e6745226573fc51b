"""A part of a study: whole units, equally many of each cell, within a larger part, and it says what it is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fakes import ask, fake_catalogue

from prejudge.core.catalogue.certificate_records import Certificate
from prejudge.core.catalogue.certificates import calibrated
from prejudge.core.catalogue.filed import Filed
from prejudge.core.catalogue.golden import STATED, Head
from prejudge.core.catalogue.limiting import QUICK_TRIALS, Limit, draw_units, limit_stages, split_limit
from prejudge.core.catalogue.registry import Limits, StudyEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import Counting, Options, Trial
from prejudge.core.contracts.errors import UsageError
from prejudge.core.contracts.records import PseudoLikelihood
from prejudge.core.contracts.version import VERSION
from prejudge.core.design import By, Design, DesignedStage, Group, Levels, Sampled
from prejudge.probes.attractiveness import faces
from prejudge.probes.subtle import probe as subtle
from prejudge.probes.subtle.asking import prompt_of
from prejudge.testing import raises_code

from ...command import call

HALVES = StudyEntry(
    probe="count", metrics={"mean": {}}, limit=Limits(unit=("number",), cells=("parity",), quick={"distinct": 500})
)
SINGLE = StudyEntry(probe="count", metrics={"mean": {}}, limit=Limits(unit=("number",)))
OPTION = StudyEntry(probe="count", metrics={"mean": {}}, limit=Limits(unit=("number",), option="n"))


@pytest.fixture
def counts():
    return fake_catalogue(halves=HALVES, single=SINGLE, option=OPTION)


def first(catalogue, study):
    return catalogue.instrument(study).every_stage()[0]


def asked(catalogue, name, **options):
    return [trial.factors["number"] for trial in first(catalogue, catalogue.study(name, {}, options)).trials({})]


def test_cells_have_equally_many_units_in_the_order_of_the_study(counts):
    found = asked(counts, "halves", n=100, limit=15)
    assert found == sorted(found) and Counter(number % 2 for number in found) == {0: 7, 1: 7}
    stage = first(counts, counts.study("halves", {}, {"n": 100, "limit": 15}))
    assert stage.count({}) == sum(times for _, times in stage.alike({})) == 14
    (note,) = stage.notes()
    assert "--limit 15" in note and "14 of 100" in note


def test_smaller_part_lies_within_a_larger_one(counts):
    parts = [set(asked(counts, "halves", n=200, limit=limit)) for limit in (2, 10, 50, 120)]
    assert all(small < large for small, large in zip(parts, parts[1:], strict=False))
    assert parts[1] != set(range(10))  # drawn, not the first


def test_two_items_under_a_limit_of_one(counts):
    assert len(asked(counts, "single", n=2, limit=1)) == 1
    with raises_code(UsageError, "limit.too-small") as caught:
        counts.study("halves", {}, {"n": 2, "limit": 1})
    assert caught.value.fields["least"] == 2


@pytest.mark.parametrize("name", ["halves", "single", "option"])
@pytest.mark.parametrize("limit", [10, 11, 10**9])
def test_limit_that_is_no_smaller_than_the_study_is_the_study(counts, name, limit):
    whole = counts.study(name, {}, {"limit": limit})
    assert whole == counts.study(name, {}, {}) and whole.limit is None


def test_study_without_units_is_refused_and_its_factors_are_named(counts):
    for limit in ({"limit": 3}, {"quick": True}):
        with raises_code(UsageError, "limit.undeclared") as caught:
            counts.study("count", {}, limit)
        assert caught.value.fields["factors"] == ("number", "parity")


def test_study_that_declares_nothing_is_taken_as_those_of_its_probe():
    bare = StudyEntry(probe="count", metrics={"mean": {}})
    known = fake_catalogue(halves=HALVES, own=bare)
    assert asked(known, "own", n=100, limit=15) == asked(known, "halves", n=100, limit=15)
    apart = fake_catalogue(halves=HALVES, single=SINGLE, own=bare)
    with raises_code(UsageError, "limit.undeclared"):
        apart.study("own", {}, {"n": 100, "limit": 15})


def test_part_that_an_option_takes_is_no_whole_study(counts):
    part = counts.study("option", {}, {"n": 50, "limit": 4})
    assert part.options == {"n": 50} and len(asked(counts, "option", n=50, limit=4)) == 4
    assert counts.whole(part) == counts.study("option", {}, {})


@pytest.mark.parametrize(("own", "limit", "left"), [(5, 4, 4), (5, 5, 5), (3, 4, 3), (600, None, QUICK_TRIALS)])
def test_count_that_a_study_file_sets_stays_the_most(own, limit, left):
    entry = StudyEntry(
        probe="count", metrics={"mean": {}}, options={"n": own}, limit=Limits(unit=("number",), option="n")
    )
    catalogue = fake_catalogue(own=entry)
    given = {"quick": True} if limit is None else {"limit": limit}
    part = catalogue.study("own", {}, given)
    assert len(asked(catalogue, "own", **given)) == left and (part.limit is None) == (left == own)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"limit": 0}, "limit.value"),
        ({"limit": True}, "limit.value"),
        ({"limit": "many"}, "limit.value"),
        ({"quick": "yes"}, "limit.value"),
        ({"limit": 5, "quick": True}, "options.conflict"),
    ],
)
def test_limits_that_are_none_are_refused(counts, given, code):
    with raises_code(UsageError, code):
        counts.study("halves", {}, given)


def test_quick_takes_a_few_hundred_trials_and_tells_what_else_it_sets(counts):
    part = counts.study("halves", {}, {"n": 5000, "quick": True})
    stage = first(counts, part)
    assert stage.count({}) == QUICK_TRIALS and part.options["distinct"] == 500
    assert "--quick" in stage.notes()[0] and "--set distinct=500" in stage.notes()[0]
    assert counts.study("halves", {}, {"n": 5000, "distinct": 9, "quick": True}).options["distinct"] == 9


def test_quick_that_asks_every_unit_less_often_is_a_part(counts):
    """A report of it must not say that the whole study was asked."""
    part = counts.study("halves", {}, {"n": 20, "quick": True})
    assert part.limit is not None and part.options["distinct"] == 500 and len(asked(counts, "halves", n=20)) == 20
    assert (
        "all 20 units" in first(counts, part).notes()[0] and "In the whole study" not in first(counts, part).notes()[0]
    )
    whole = counts.study("halves", {}, {"n": 20})
    assert (
        counts.whole(part) == whole
        and counts.study("halves", {}, {"n": 20, "distinct": 9, "quick": True}).limit is None
    )


class Limiting(Options, frozen=True, kw_only=True):
    limit: int = 3


def test_probe_with_an_option_of_that_name_keeps_it():
    assert split_limit(Limiting, {"limit": 7}) == ({"limit": 7}, None)


def pairs(count, sides=("a", "b")):
    """Yield all first sides, then all second ones, so that the trials of a unit do not follow each other."""
    for side in sides:
        for number in range(count):
            factors = {"pair": number, "side": side, "kind": "rare" if number % 50 == 0 else "common"}
            yield Trial(f"{number}/{side}", factors, ask(f"{number} {side}"))


@pytest.mark.parametrize("most", [1, 3, 20, 60])
def test_units_stay_whole_however_their_trials_lie(most):
    drawn = draw_units(pairs(1000), Limit(asked=most, unit=("pair",)))
    sides = Counter(trial.factors["pair"] for trial in drawn.trials)
    assert drawn.units == len(sides) == most and set(sides.values()) == {2}


def test_rare_cell_is_asked_in_full_and_the_others_share_the_rest():
    drawn = draw_units(pairs(1000), Limit(asked=100, unit=("pair",), cells=("kind",)))
    kinds = Counter(trial.factors["kind"] for trial in drawn.trials)
    assert kinds == {"rare": 2 * 20, "common": 2 * 80} and sorted(drawn.sizes) == [20, 980]


def test_every_study_of_the_package_has_a_small_part():
    catalogue = Catalogue.load()
    for name, entry in catalogue.registry.studies.items():
        options = catalogue.plugins.load("probe", entry.probe).options.__struct_fields__
        assert entry.limit.unit and (not entry.limit.option or entry.limit.option in options), name


DRAWN = {
    "bistereo-pairs": ("sentiment", ("axis", "gender", "sentiment"), {"opening": 12}),
    "bistereo-nli": ("sentiment", ("sentiment", "gender", "kind", "category", "direction"), {"attribute": 17}),
    "subtle-asa": ("given", ("domain", "pronoun", "given"), {"order": 6, "neutral": 30}),
    "indicasa": ("category", ("category",), {"source": 4}),
}
"""Side of the contrast, cells, and how many levels the side with the fewest has of some facets, by study."""
NOTHING = "neutral"
"""A side of `bistereo-pairs` that is in no contrast."""


def drawn_part(catalogue, name, **options):
    stage = first(catalogue, catalogue.study(name, {}, options))
    return stage.design, np.arange(stage.design.size) if stage.rows is None else stage.rows


@pytest.mark.parametrize("name", DRAWN)
def test_part_of_a_study_with_an_option_of_its_own_is_nested_whole_and_balanced(name):
    side, cells, facets = DRAWN[name]
    catalogue, smaller = Catalogue.load(), set()
    for limit in (10, 20) if name == "indicasa" else (37, 60, 61, 200):
        design, rows = drawn_part(catalogue, name, limit=limit)
        units = Counter(design.units[rows].tolist())
        places = [place for place, unit in zip(rows.tolist(), design.units[rows].tolist(), strict=True) if units[unit]]
        assert len(units) == limit and all(count == (design.units == unit).sum() for unit, count in units.items())
        assert smaller <= (smaller := set(places))
        heads = np.intersect1d(np.unique(design.units, return_index=True)[1], rows)
        sizes = Counter(zip(*(design.column(cell, heads) for cell in cells), strict=True))
        assert max(sizes.values()) - min(sizes.values()) <= 1
        for facet, levels in facets.items():
            used = Counter(zip(design.column(side, heads), design.column(facet, heads), strict=True))
            per_side = Counter(level for level, _ in used)
            units_of = Counter(design.column(side, heads))
            for level in {*per_side} - {NOTHING}:
                assert per_side[level] >= min(levels, units_of[level] - 3), (facet, limit)


def test_part_is_drawn_from_the_part_that_an_option_takes():
    catalogue = Catalogue.load()
    design, chosen = drawn_part(catalogue, "bistereo-pairs", per_cell=20)
    _, rows = drawn_part(catalogue, "bistereo-pairs", per_cell=20, limit=36)
    assert {*rows.tolist()} < {*chosen.tolist()} and len(rows) == 2 * 36
    assert len({*design.column("opening", rows)}) >= 10


def test_part_of_a_study_is_certified_at_another_size(monkeypatch):
    catalogue = fake_catalogue(halves=HALVES)
    part = catalogue.study("halves", {}, {"n": 100, "limit": 10})
    options = catalogue.instrument(part).every_option
    made = Certificate(
        study="halves",
        prejudge="0",
        made="2026-01-01",
        design={},
        options={"n": 100, "distinct": 1_000_000, "max_attempts": 1, "words": ("q",)},
        requests=100,
        numbers={STATED: "1"},
        gallery={},
        meanings={},
        planted="",
        groups=(),
    )
    head = Head(study="halves", prejudge=VERSION, questions="", cases=made.numbers)
    filed = [Filed(made, Path("halves.golden.xz"), head)]
    monkeypatch.setattr("prejudge.core.catalogue.certificates.find_filed", lambda *_: filed)
    assert calibrated(catalogue, part, options, {}).state == "certified at another size"
    whole = catalogue.study("halves", {}, {"n": 100})
    assert calibrated(catalogue, whole, options, {}).state == "certified"


def test_run_of_a_part_says_so_in_its_manifest_and_can_be_scored(tmp_path):
    done = call(tmp_path, "run", "bistereo-tuples-draft", "--model", "simulated-fair", "--limit", "10", "-q")
    (folder,) = (tmp_path / "runs").iterdir()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["study"]["limit"]["asked"] == 10 and any("--limit 10" in note for note in manifest["notes"])
    assert manifest["stages"]["drafts"]["planned"] == 10
    assert "--limit 10" in (folder / "report.html").read_text()
    again = call(tmp_path, "score", "latest")
    for words in (done, again):
        assert "part of the study" in " ".join((words.stdout + words.stderr).split())


class Sentences(DesignedStage):
    """Twelve words, each of a theme, about she and he; it counts the texts that it makes."""

    operation = PseudoLikelihood
    factors = ("word", "theme", "side")
    outcomes = ("log_probability",)
    counting = Counting(unit="word", trials=2)
    made = 0

    @property
    def design(self):
        words = Levels(
            tuple(f"word {number}" for number in range(12)), {"theme": tuple("xxxxxxxxyyyy"), "verb": tuple("abcd" * 3)}
        )
        return Design(
            (Sampled("word", words, (By("theme"), Sampled("verb"))), Group("side", ("she", "he"))),
            columns={name: name for name in self.factors},
        )

    def request(self, cell):
        self.made += 1
        return PseudoLikelihood(text=f"{cell['side']} is {cell['word']}.")

    def read(self, factors, response):
        return {"log_probability": response.log_probability}


def part(limit, **names):
    names = {"unit": ("word",), "cells": ("theme",)} | names
    (stage,) = limit_stages([Sentences()], Limit(asked=limit, **names))
    return stage, list(stage.trials({}))


@pytest.mark.parametrize("limit", [2, 5, 11])
def test_part_of_a_design_makes_no_other_text(limit):
    stage, trials = part(limit)
    assert stage.made == len(trials) == stage.count({}) == 2 * limit
    themes = Counter(trial.factors["theme"] for trial in trials if trial.factors["side"] == "she")
    assert abs(themes["x"] - themes["y"]) <= 1 or themes["y"] == 4
    assert Counter(trial.factors["word"] for trial in trials) == {trial.factors["word"]: 2 for trial in trials}
    assert f"{limit} of 12 units" in stage.notes()[0]


def test_part_of_a_design_lies_within_a_larger_one_with_all_levels():
    ids = [[trial.id for trial in part(limit)[1]] for limit in range(2, 13)]
    assert all(set(small) < set(large) for small, large in zip(ids, ids[1:], strict=False))
    verbs = {word: verb for word, verb in zip((f"word {n}" for n in range(12)), "abcd" * 3, strict=True)}
    assert len({verbs[trial.factors["word"]] for trial in part(4)[1]}) == 4


def test_units_that_are_not_those_of_the_design_are_drawn_without_its_other_trials():
    stage, trials = part(1, unit=("side",), cells=())
    assert stage.made == 12 and len(trials) == 12 and {trial.factors["side"] for trial in trials} in ({"she"}, {"he"})


@pytest.mark.parametrize("limit", [None, 60])
@pytest.mark.parametrize("name", ["dora-t2i", "dora-i2t"])
def test_units_drawn_by_columns_are_those_drawn_from_trials(name, limit):
    catalogue = Catalogue.load()
    study = catalogue.study(name, {}, {"quick": True} if limit is None else {"limit": limit})
    stage, whole = first(catalogue, study), first(catalogue, msgspec.structs.replace(study, limit=None))
    drawn = draw_units(whole.trials({}), study.limit)
    assert [trial.id for trial in stage.trials({})] == [trial.id for trial in drawn.trials]
    assert (stage.drawn.units, stage.drawn.of, stage.drawn.sizes) == (drawn.units, drawn.of, drawn.sizes)
    assert drawn.units < drawn.of or limit is None


def test_quick_part_of_a_million_questions_draws_only_the_faces_it_asks_about(monkeypatch):
    drawn = []
    monkeypatch.setattr(faces, "draw", lambda face, variant, strength: drawn.append((face.id, variant)) or b"")
    catalogue = Catalogue.load()
    stage = first(catalogue, catalogue.study("attractiveness", {}, {"quick": True}))
    images = {trial.factors["face"] + "/" + trial.factors["variant"] for trial in stage.trials({})}
    assert {"/".join(one) for one in drawn} == images and 0 < len(images) < 924


def test_limit_below_one_unit_of_each_cell_of_a_design_is_refused():
    with raises_code(UsageError, "limit.too-small") as caught:
        part(1)
    assert caught.value.fields["least"] == 2


def test_small_part_of_a_study_makes_its_questions_only(monkeypatch):
    texts = Counter()
    monkeypatch.setattr(subtle, "prompt_of", lambda *given: texts.update(["text"]) or prompt_of(*given))
    catalogue = Catalogue.load()
    stage = first(catalogue, catalogue.study("subtle-sai", {}, {"limit": 30}))
    assert stage.count({}) == 30 and texts["text"] == 0
    assert len(list(stage.trials({}))) == texts["text"] == 30
