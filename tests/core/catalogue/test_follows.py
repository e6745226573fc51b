"""Options that follow from what a model can do, where nobody sets them."""

from __future__ import annotations

import msgspec
import pytest
from fakes import CountOptions, CountProbe, FakeModel, fake_catalogue

from prejudge.core.catalogue.plugins import Registered
from prejudge.core.catalogue.registry import StudyEntry
from prejudge.core.catalogue.study import Study
from prejudge.core.contracts import Follows
from prejudge.core.contracts.abilities import Abilities
from prejudge.core.contracts.plugin import Plugged
from prejudge.core.contracts.records import Embed, Generate, PseudoLikelihood
from prejudge.core.engine.plan import plan


class WayOptions(CountOptions, frozen=True, kw_only=True):
    way: str = "masked"


class WayProbe(CountProbe):
    options = WayOptions
    follows = (Follows("way", (("masked", PseudoLikelihood), ("vector", Embed), ("said", Generate))),)


@pytest.fixture
def catalogue():
    found = fake_catalogue(way=StudyEntry(probe="way", metrics={"mean": {}}))
    found.plugins.offers["probe"]["way"] = Registered(Plugged("way", WayProbe), "tests")
    return found


def test_option_follows_from_the_model_and_says_why(catalogue):
    study = catalogue.study("way", {"subject": "fake"}, {})
    assert study.options == {"way": "said"} and set(study.followed) == {"way"}
    (note,) = study.notes
    assert "way = said" in note and "'pseudo_likelihood'" in note and "'generate'" in note and "'fake'" in note
    assert note in plan(catalogue, study)[0].notes


def test_option_that_is_set_stays_as_it_is(catalogue):
    study = catalogue.study("way", {"subject": "fake"}, {"way": "vector"})
    assert study.options == {"way": "vector"} and not study.followed and not study.notes


@pytest.mark.parametrize("able", [Abilities(), Abilities(operations=frozenset({"pseudo_likelihood", "generate"}))])
def test_default_stays_where_the_model_can_do_it_or_none_of_them(catalogue, able, monkeypatch):
    monkeypatch.setattr(FakeModel, "abilities", classmethod(lambda _, options: able))
    assert catalogue.study("way", {"subject": "fake"}, {}).options == {}


def test_settings_of_a_model_count(catalogue, monkeypatch):
    able = Abilities(operations=frozenset({"pseudo_likelihood", "embed", "generate"}))
    able = able.without({"pseudo_likelihood": "Set a mask."})
    monkeypatch.setattr(FakeModel, "abilities", classmethod(lambda _, options: able))
    assert catalogue.study("way", {"subject": "fake"}, {}).options == {"way": "vector"}


def test_option_follows_from_no_model_where_there_is_none(catalogue):
    assert catalogue.study("way", {}, {}).options == {}


def test_study_of_an_older_manifest_has_nothing_that_follows(catalogue):
    told = msgspec.to_builtins(catalogue.study("way", {"subject": "fake"}, {}))
    told.pop("followed")
    assert msgspec.convert(told, Study).notes == []
