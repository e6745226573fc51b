"""Every built-in probe and metric keeps its contract, by the kits that third parties run."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import words
from prejudge.core.contracts.options import build_options
from prejudge.testing import MetricContract, ProbeContract, guesses, observe

from .instruments import INSTRUMENTS, Instrument

CATALOGUE = Catalogue.load()
PROBE_RULES = [name for name in dir(ProbeContract) if name.startswith("test_")]
METRIC_RULES = [name for name in dir(MetricContract) if name.startswith("test_")]
ANSWERS = {"bistereo-nli-prompts": ("unreadable",)}
"""An answer without a label is a wrong one."""
_SEEN: dict[str, dict[str, pl.DataFrame]] = {}
_CASES: dict[tuple[str, str], type[MetricContract]] = {}
"""One class per metric, so that its rules share what they read."""


def answers(instrument: Instrument) -> Any:
    return guesses(words=instrument.words) if instrument.words else guesses()


def probe_case(instrument: Instrument) -> ProbeContract:
    kind = CATALOGUE.plugins.load("probe", instrument.probe)
    members = {"make": kind, "options": instrument.options, "answer": staticmethod(answers(instrument)), "most": 60}
    return type("Case", (ProbeContract,), members)()


def observed(instrument: Instrument) -> dict[str, pl.DataFrame]:
    if instrument.id not in _SEEN:
        probe = CATALOGUE.plugins.load("probe", instrument.probe)()
        options = build_options(instrument.probe, probe.options, instrument.options)
        _SEEN[instrument.id] = observe(probe, options, answers(instrument))
    return _SEEN[instrument.id]


def metric_case(instrument: Instrument, name: str) -> MetricContract:
    if (instrument.id, name) not in _CASES:
        _CASES[instrument.id, name] = new_case(instrument, name)
    return _CASES[instrument.id, name]()


def new_case(instrument: Instrument, name: str) -> type[MetricContract]:
    kind = CATALOGUE.plugins.load("metric", name)
    probe = CATALOGUE.plugins.load("probe", instrument.probe)()
    stages = probe.stages(build_options(instrument.probe, probe.options, instrument.options))
    frames = observed(instrument)
    last = stages[-1]
    outcomes = [o for stage in stages for o in stage.outcomes] if kind.every_stage else last.outcomes
    members = {
        "make": kind,
        "options": instrument.metrics[name],
        "observations": staticmethod(lambda: frames[last.name]),
        "outcomes": tuple(outcomes),
        "answers": ANSWERS.get(name, ()),
    }
    return type("Case", (MetricContract,), members)


METRICS = [(instrument, name) for instrument in INSTRUMENTS for name in instrument.metrics]


@pytest.mark.parametrize("rule", PROBE_RULES)
@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda i: i.id)
def test_probe(instrument, rule):
    getattr(probe_case(instrument), rule)()


@pytest.mark.parametrize("rule", METRIC_RULES)
@pytest.mark.parametrize(("instrument", "name"), METRICS, ids=[f"{i.id}-{name}" for i, name in METRICS])
def test_metric(instrument, name, rule):
    getattr(metric_case(instrument, name), rule)()


@pytest.mark.parametrize(("instrument", "name"), METRICS, ids=[f"{i.id}-{name}" for i, name in METRICS])
def test_no_conclusion_reads_the_words_of_a_caveat(instrument, name, monkeypatch):
    case = metric_case(instrument, name)
    metric, options = case._chosen()
    few = type(case).observations().head(24)
    found = [metric.compute(frame, options) for frame in (few, type(case).observations())]
    before = [metric.conclude(own) for own in found]
    monkeypatch.setattr(words, "_CAVEATS", dict.fromkeys(words._CAVEATS, "other words"))
    assert [metric.conclude(own) for own in found] == before


def test_every_probe_of_the_catalogue_is_tested():
    # `own-table` asks nothing: its rows are imported, which tests/probes/own_table covers.
    assert {i.probe for i in INSTRUMENTS} == set(CATALOGUE.plugins.offers["probe"]) - {"own-table"}
