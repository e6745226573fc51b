"""What runs of a part forecast of the whole study, against what whole runs of the same models find."""

from __future__ import annotations

import asyncio
from functools import cache

import msgspec
import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats

import prejudge
from prejudge.adapters.simulated.adapter import Simulated
from prejudge.core.answer.answer import answer_of
from prejudge.core.answer.needed import need_of
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import DESIGN_COLUMNS, UNIT_COLUMNS
from prejudge.core.gate.judge import judge
from prejudge.core.gate.policy import parse_policy
from prejudge.core.gate.words import junit
from prejudge.core.lab.calibration.bench import Bench
from prejudge.core.statistics.smallest_effect import SmallestEffectOptions, smallest_effects_of

pytestmark = pytest.mark.usefixtures("no_figures")
PILOTS = 20
KNOWN = {*UNIT_COLUMNS, *DESIGN_COLUMNS, "role"}
SHIFT = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)


class Words(msgspec.Struct, frozen=True):
    """A fair simulated model with preferences of single words."""

    spread: float


@cache
def catalogue():
    return Catalogue.load()


def asked(study, metric, name, model_seed, **options):
    """Return the metric's units of everything together, and its estimates, of a simulated model of this seed."""
    spread = name.spread if isinstance(name, Words) else 0.0
    name = "simulated-fair" if isinstance(name, Words) else name
    bench = Bench(
        Catalogue(catalogue().registry, catalogue().plugins), catalogue().study(study, {"subject": name}, options)
    )
    settings = msgspec.structs.replace(catalogue().options_of(name), seed=model_seed, word_spread=spread)
    (frame,) = asyncio.run(bench.observe({"subject": Simulated(settings)})).values()
    measured, chosen = bench.instrument.metrics[metric]
    units = measured.designs(frame, chosen)
    factors = [column for column in units.columns if column not in KNOWN]
    units = units.filter(pl.all_horizontal(pl.col(factors).is_null()) if factors else True)
    return units, {e.metric: e for e in measured.compute(frame, chosen) if not e.group}


SUBTLE, NLI = ("subtle", ("delta_PL", "delta_NL")), ("bistereo-nli", ("halo", "horn"))
CASES = [
    ("subtle-sai", *SUBTLE, "simulated-fair", {"per_cell": 90}),
    ("subtle-sai", *SUBTLE, "simulated-biased", {"per_cell": 90}),
    ("subtle-asa", *SUBTLE, "simulated-fair", {"per_cell": 90}),
    ("bistereo-nli", *NLI, "simulated-fair", {"per_cell": 600}),
    ("bistereo-nli", *NLI, "simulated-biased", {"per_cell": 600}),
]
"""Parts that forecast; docs/statistics.md has more of them."""
FIRST_MODEL = 900
"""Seed of the first model. Seeds say how single words, templates and people are answered about, so that one model
differs from another by up to a half: each pilot of a small study is of a model of its own."""
OF_LARGE_STUDIES = 3
"""Models of a study whose whole run takes long."""


@pytest.mark.parametrize(("study", "metric", "measures", "name", "part"), CASES)
def test_forecasts_of_twenty_pilots_are_near_what_whole_runs_of_their_models_find(study, metric, measures, name, part):
    quick = {f"{metric}.resamples": 99}
    models = range(FIRST_MODEL, FIRST_MODEL + (OF_LARGE_STUDIES if metric == "bistereo-nli" else PILOTS))
    whole = {seed: asked(study, metric, name, seed, **quick) for seed in models}
    ratios = {measure: [] for measure in measures}
    inside = 0
    for pilot_seed in range(PILOTS):
        model_seed = models[pilot_seed % len(models)]
        planned, finds = whole[model_seed]
        pilot, _ = asked(study, metric, name, model_seed, seed=2000 + pilot_seed, **quick, **part)
        effects = forecast_by(pilot, planned)
        for measure in measures:
            truth = found_by(finds[measure])
            ratios[measure].append(effects[measure].value / truth)
            inside += effects[measure].low <= truth <= effects[measure].high
    for found in ratios.values():
        assert 1 / 1.15 <= np.median(found) <= 1.15
        assert np.mean([1 / 1.5 <= ratio <= 1.5 for ratio in found]) >= 0.8
    # Of `subtle-sai` the range holds too little: docs/statistics.md says so.
    assert inside >= (0.6 if study == "subtle-sai" else 0.8) * PILOTS * len(measures)


def forecast_by(pilot, planned):
    """Return by measure what a plan with this pilot finds."""
    blank = planned.with_columns(value=pl.lit(None, dtype=pl.Float64), status=pl.lit("planned"), role=pl.lit("planned"))
    units = pl.concat([blank, pilot.with_columns(role=pl.lit("pilot"))], how="diagonal_relaxed")
    return {e.metric: e for e in reversed(smallest_effects_of(units, SmallestEffectOptions()))}


def found_by(e):
    """Return what a test with the quantile and the freedom of this interval finds with 80 % power.

    The freedom is that at which the width of the interval and p agree.
    """
    half, away = (e.high - e.low) / 2, abs(e.value - e.neutral)

    def apart(freedom):
        return 2 * stats.t.sf(away / half * stats.t.isf(0.025, freedom), freedom) - e.p

    ends = apart(3), apart(1e5)
    freedom = optimize.brentq(apart, 3, 1e5) if ends[0] * ends[1] < 0 else np.inf
    shift = optimize.brentq(
        lambda far: stats.nct.sf(stats.t.isf(0.025, min(freedom, 1e5)), min(freedom, 1e5), far) - 0.8, 0, 20
    )
    return half / stats.t.isf(0.025, freedom) * shift


def test_run_of_all_questions_makes_no_forecast(quick):
    """What --quick leaves of a small study is all of it."""
    scores = quick("bistereo-tuples", "simulated-copying")
    assert scores.whole is None
    told = " ".join(more for reply in answer_of(scores).replies for more in reply.more)
    assert "is expected to find" not in told


@pytest.fixture
def quick(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda study, model: prejudge.run(study, model, quick=True).scores


SILENT = [
    ("subtle-sai", "simulated-fair", "5,466 questions"),
    ("subtle-asa", "simulated-fair", "5,370 questions"),
    ("bistereo-nli", "simulated-fair", "58,224 questions"),
    ("bistereo-pairs", "simulated-fair", "92,400 questions"),
    ("attractiveness", "simulated-halo", "1,009,008 questions"),
]


@pytest.mark.parametrize(("study", "model", "questions"), SILENT)
def test_part_that_cannot_know_the_whole_study_forecasts_no_number(quick, study, model, questions):
    replies = answer_of(quick(study, model)).replies
    told = " ".join(more for reply in replies for more in reply.more)
    assert "do not tell" in told and questions in told
    assert not any(words in told for words in ("cannot decide", "is expected to", "may be enough", " 0 scenarios"))


def test_whether_a_pilot_forecasts_follows_from_its_questions_alone():
    """Pilots chosen by their answers would be those with large shares, and forecast too much."""
    planned, _ = asked("subtle-sai", "subtle", "simulated-fair", 900, **{"subtle.resamples": 99})
    for per_cell, speaks in ((13, False), (90, True)):
        pilot, _ = asked("subtle-sai", "subtle", "simulated-fair", 900, **{"subtle.resamples": 99}, per_cell=per_cell)
        rng = np.random.default_rng(0)
        for spread in (0.0, 100.0):
            templates = dict(
                zip(pilot["over.template"].unique(maintain_order=True), rng.normal(0, spread, 10_000), strict=False)
            )
            moved = pilot.with_columns(
                value=pl.col("value") + pl.col("over.template").replace_strict(templates) * pl.col("sign")
            )
            effects = forecast_by(moved, planned)
            assert all((e.value is not None) is speaks for e in effects.values()), (per_cell, spread)


@pytest.fixture
def part_of_sai(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return prejudge.run("subtle-sai", "simulated-fair", per_cell=90).scores


def test_large_part_gives_the_range_of_the_whole_study(part_of_sai):
    scores = part_of_sai
    for reply in answer_of(scores).replies:
        told = " ".join(reply.more)
        assert "is expected to find" in told and "5,466 questions" in told and "cannot decide" not in told
    estimates = [e for e in scores.estimates["subtle"] if e.metric == "delta_PL" and not e.group]
    forecast = need_of(scores, estimates, 5.0).forecast
    # The whole run has an interval of 3.3 points on either side.
    assert forecast.low <= 3.3 / stats.norm.ppf(0.975) * SHIFT <= forecast.high < 12
    # Two runs that are compared, and a group that the units do not distinguish, have an interval alone.
    assert need_of(scores, estimates, 5.0, paired=True).forecast.low is None
    (group,) = (e for e in scores.estimates["subtle"] if e.metric == "delta_PL" and e.group == {"pronoun": "feminine"})
    assert need_of(scores, [group], 5.0).forecast.low is None


def test_gate_and_junit_say_the_same(quick):
    scores = quick("subtle-sai", "simulated-fair")
    policy = parse_policy("[[rules]]\nname = 'small'\nmetric = 'delta_PL'\nmax = 5\n")
    verdicts = judge(scores, policy)
    told = junit(verdicts, "suite").decode()
    assert any(outcome.needed for verdict in verdicts for outcome in verdict.outcomes)
    assert "5,466 questions" in told and "do not tell" in told and "cannot decide" not in told
