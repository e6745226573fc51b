"""Associations planted among noise are discovered, and where nothing is planted hardly anything is."""

from __future__ import annotations

import asyncio
from functools import cache

import polars as pl
import pytest

from prejudge.adapters._simulated_completions import Completions, begun
from prejudge.adapters._simulated_noise import Noise
from prejudge.adapters.simulated import Simulated, SimulatedOptions
from prejudge.core.associations import count_pairs, measure_cells, mentions
from prejudge.core.salience import METHODS
from prejudge.probes.dora_t2t import DoraT2T, DoraT2TOptions

OPTIONS = DoraT2TOptions(per_dimension=2, samples=20, letters="gt", settings=("noun",))


@cache
def trials():
    """Return the stage of completions and its trials."""
    stage = DoraT2T().stages(OPTIONS)[0]
    return stage, list(stage.trials({}))


def sentence_of(trial):
    return trial.request.messages[-1].parts[0].text


def discovered(strength, seed, spread=0.5):
    """Return the measured associations, and those planted among them."""
    stage, asked = trials()
    answers = asyncio.run(Simulated(SimulatedOptions(strength=strength, seed=seed)).answer([t.request for t in asked]))
    cells = zip(asked, answers, strict=True)
    rows = [
        trial.factors | stage.read(trial.factors, answer) | {"key": b"%d" % n}
        for n, (trial, answer) in enumerate(cells)
    ]
    frame = pl.DataFrame(rows).with_columns(status=pl.lit("ok"), stage=pl.lit(stage.name))
    words = Completions(Noise(seed), strength, spread)
    truth = {(t.factors["descriptor"], words.planted(begun(sentence_of(t)))) for t in asked}
    return measure_cells(count_pairs(mentions(frame))), {pair for pair in truth if pair[1] is not None}


def kept(pairs, method):
    return set(pairs.filter(f"salient_{METHODS[method]}").select("descriptor", "word").rows())


@pytest.mark.parametrize("method", ["fisher", "log-odds"])
def test_planted_associations_are_discovered(method):
    found = [(kept(pairs, method), truth) for pairs, truth in (discovered(3.0, seed) for seed in range(3))]
    hits, said, planted = (sum(n) for n in zip(*((len(f & t), len(f), len(t)) for f, t in found), strict=True))
    assert planted > 40 and hits / planted > 0.9 and hits / said > 0.9


def test_discovery_grows_with_what_is_planted():
    found = []
    for strength in (0.5, 1.5, 3.0):
        pairs, truth = discovered(strength, 1)
        found.append(len(kept(pairs, "fisher") & truth))
    assert found[0] < found[1] < found[2]


@pytest.mark.parametrize("method", ["fisher", "log-odds"])
def test_without_planted_associations_hardly_any_is_discovered(method):
    # Every discovery is false here, so the false-discovery rate is the share of models with any: nominal 5 %. Of 40
    # models at most 5 have one with a chance of 97 % if the rate is that high.
    assert sum(bool(kept(discovered(0.0, seed)[0], method)) for seed in range(40)) <= 5
