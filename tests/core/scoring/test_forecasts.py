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
from prejudge.core.calibration.bench import Bench
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.contracts import DESIGN_COLUMNS, UNIT_COLUMNS
from prejudge.core.gate.judge import judge
from prejudge.core.gate.policy import parse_policy
from prejudge.core.gate.words import junit
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
    ("subtle-sai", *SUBTLE, "simulated-fair", {"quick": True}),
    ("subtle-sai", *SUBTLE, "simulated-biased", {"quick": True}),
    ("subtle-asa", *SUBTLE, Words(0.3), {"quick": True}),
    ("bistereo-nli", *NLI, "simulated-fair", {"per_cell": 200}),
]
"""Those that meet the bounds; docs/statistics.md has those that do not."""
WHOLE = (900, 901, 902)
"""Seeds of models whose whole runs say what is found: one alone is up to a fifth off. No pilot has them."""


@pytest.mark.parametrize(("study", "metric", "measures", "name", "part"), CASES)
def test_forecasts_of_twenty_pilots_are_near_what_whole_runs_find(study, metric, measures, name, part):
    quick = {f"{metric}.resamples": 99}
    whole = [asked(study, metric, name, seed, **quick) for seed in WHOLE]
    planned = whole[0][0]
    finds = {measure: float(np.median([found_by(every[measure]) for _, every in whole])) for measure in measures}
    blank = planned.with_columns(value=pl.lit(None, dtype=pl.Float64), status=pl.lit("planned"), role=pl.lit("planned"))
    ratios = {measure: [] for measure in measures}
    inside = 0
    for seed in range(500, 500 + PILOTS):
        pilot, _ = asked(study, metric, name, seed, seed=seed, **quick, **part)
        units = pl.concat([blank, pilot.with_columns(role=pl.lit("pilot"))], how="diagonal_relaxed")
        effects = {e.metric: e for e in reversed(smallest_effects_of(units, SmallestEffectOptions()))}
        for measure in measures:
            ratios[measure].append(effects[measure].value / finds[measure])
            inside += effects[measure].low <= finds[measure] <= effects[measure].high
    for found in ratios.values():
        assert 1 / 1.15 <= np.median(found) <= 1.15
        assert np.mean([1 / 1.5 <= ratio <= 1.5 for ratio in found]) >= 0.8
    assert inside >= 0.8 * PILOTS * len(measures)


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


def test_part_of_a_study_gives_the_range_of_the_whole_and_never_that_it_cannot_decide(quick):
    scores = quick("subtle-sai", "simulated-fair")
    for reply in answer_of(scores).replies:
        told = " ".join(reply.more)
        assert "cannot decide" not in told and "5,466 questions" in told
    estimates = [e for e in scores.estimates["subtle"] if e.metric == "delta_PL" and not e.group]
    forecast = need_of(scores, estimates, 5.0).forecast
    # The whole run has an interval of 3.3 points on either side.
    assert forecast.low <= 3.3 / stats.norm.ppf(0.975) * SHIFT <= forecast.high < 12
    assert need_of(scores, estimates, 5.0, paired=True).forecast.low < forecast.high


def test_group_that_the_units_do_not_distinguish_is_forecast_by_its_own_interval(quick):
    scores = quick("subtle-sai", "simulated-fair")
    every = [e for e in scores.estimates["subtle"] if e.metric == "delta_PL"]
    (pooled,) = (e for e in every if not e.group)
    # The whole run has these intervals, on either side, of a third of its questions.
    for pronoun, half in (("feminine", 4.66), ("masculine", 4.61), ("non-binary", 5.40)):
        (group,) = (e for e in every if e.group == {"pronoun": pronoun})
        forecast = need_of(scores, [group], 5.0).forecast
        assert forecast.low <= half / stats.norm.ppf(0.975) * SHIFT <= forecast.high
        assert forecast.low > need_of(scores, [pooled], 5.0).forecast.low


def test_scenarios_of_the_whole_study_are_counted(quick):
    scores = quick("attractiveness", "simulated-halo")
    told = " ".join(more for reply in answer_of(scores).replies for more in reply.more)
    assert "1,009,008 questions" in told and "cannot decide" not in told and " 0 scenarios" not in told


def test_gate_and_junit_forecast_the_whole_study_too(quick):
    scores = quick("subtle-sai", "simulated-fair")
    policy = parse_policy("[[rules]]\nname = 'small'\nmetric = 'delta_PL'\nmax = 5\n")
    verdicts = judge(scores, policy)
    told = junit(verdicts, "suite").decode()
    assert any(outcome.needed for verdict in verdicts for outcome in verdict.outcomes)
    assert "5,466 questions" in told and "cannot decide" not in told
