"""The whole study that a run asked a part of."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.scoring import planned_units
from prejudge.core.scoring.planned_units import planned_design
from prejudge.core.scoring.whole_study import whole_study


@pytest.mark.parametrize("name", ["bistereo-nli", "attractiveness", "subtle-sai", "dora-t2t"])
def test_whole_study_has_no_limit_and_nothing_that_a_limit_sets(name):
    catalogue = Catalogue.load()
    whole = catalogue.study(name, {}, {})
    assert catalogue.whole(whole) == whole
    for part in ({"limit": 100}, {"quick": True}):
        limited = catalogue.study(name, {}, part)
        assert limited != whole and catalogue.whole(limited) == whole
    if name == "attractiveness":
        assert len(catalogue.whole(catalogue.study(name, {}, {"seeds": [0]})).options) == len(whole.options) + 1


@pytest.mark.parametrize(("planned", "recorded", "is_part"), [(12, 12, False), (12, 7, True), (30, 12, True)])
def test_run_is_of_the_whole_study_where_every_trial_of_it_is_recorded(planned, recorded, is_part):
    stage = SimpleNamespace(name="main", trials=lambda _: iter(range(planned)))
    instrument = SimpleNamespace(stages=lambda: [stage])
    catalogue = SimpleNamespace(whole=lambda study: study, instrument=lambda study, design: instrument)
    record = SimpleNamespace(planned=recorded)
    manifest = SimpleNamespace(stages={"main": record}, design=None)
    scores = SimpleNamespace(
        made=SimpleNamespace(limit=None), stages=[stage], recorded=lambda _: recorded, manifest=manifest
    )
    found = whole_study(catalogue, scores)
    assert (found is not None) is is_part
    if is_part:
        assert found.questions == planned


def test_factors_of_many_trials_are_gathered_by_chunks(monkeypatch):
    monkeypatch.setattr(planned_units, "ROWS", 3)
    trials = [SimpleNamespace(id=str(i), factors={"number": i, "word": None if i < 4 else "w"}) for i in range(8)]
    stage = SimpleNamespace(trials=lambda _: iter(trials), name="main", outcomes=())
    frame = planned_design([stage], None).factors
    assert frame["number"].to_list() == list(range(8)) and frame["word"].to_list() == [None] * 4 + ["w"] * 4
