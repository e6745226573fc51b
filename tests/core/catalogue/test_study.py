"""An instrument: made once for a study, its stages once for an instrument."""

from __future__ import annotations

import asyncio

import pytest
from fakes import CountProbe, fake_catalogue

from prejudge.core.catalogue.plugins import Registered
from prejudge.core.contracts.plugin import Plugged
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score


@pytest.fixture
def made(monkeypatch):
    """Count how often the stages of the probe are made."""
    times = []
    stages = CountProbe.stages
    monkeypatch.setattr(CountProbe, "stages", lambda self, options: times.append(options) or stages(self, options))
    return times


def test_stages_are_made_once_for_a_run_and_its_scores(store, made):
    catalogue = fake_catalogue()
    study = catalogue.study("count", {"subject": "fake"}, {})
    name = asyncio.run(execute(catalogue, study, store, RunOptions()))
    assert score(catalogue, store, name).estimates["mean"] and len(made) == 1


def test_other_options_make_another_instrument(made):
    catalogue = fake_catalogue()
    first, second = (catalogue.instrument(catalogue.study("count", {}, {"n": n})) for n in (3, 4))
    assert [len(list(one.stages()[0].trials({}))) for one in (first, second)] == [3, 4] and len(made) == 2


def test_another_probe_of_the_name_makes_another_instrument():
    catalogue = fake_catalogue()
    study = catalogue.study("count", {}, {})
    first = catalogue.instrument(study)
    catalogue.plugins.offers["probe"]["count"] = Registered(Plugged("count", type("Other", (CountProbe,), {})), "tests")
    assert first is not catalogue.instrument(study)
