"""What runs of a part forecast of the whole study, against what whole runs of the same models find."""

from __future__ import annotations

import asyncio
import random
from functools import cache
from itertools import product

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
from prejudge.core.contracts import factors_of
from prejudge.core.gate.judge import judge
from prejudge.core.gate.policy import parse_policy
from prejudge.core.gate.words import junit
from prejudge.core.lab.calibration.bench import Bench
from prejudge.core.statistics.smallest_effect import SmallestEffectOptions, smallest_effects_of

pytestmark = pytest.mark.usefixtures("no_figures")
PILOTS = 20
SHIFT = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)


class Words(msgspec.Struct, frozen=True):
    """A fair simulated model with preferences of single words."""

    spread: float


@cache
def catalogue():
    return Catalogue.load()


def asked(study, metric, name, model_seed, group=(), masks=None, **options):
    """Return the metric's units of a group, or of everything, and its estimates, of a simulated model of this seed.

    The model has every role of the study.
    """
    spread = name.spread if isinstance(name, Words) else 0.0
    name = "simulated-fair" if isinstance(name, Words) else name
    roles = dict.fromkeys(ROLES.get(study, ("subject",)), name)
    bench = Bench(Catalogue(catalogue().registry, catalogue().plugins), catalogue().study(study, roles, options))
    settings = msgspec.structs.replace(catalogue().options_of(name), seed=model_seed, word_spread=spread, masks=masks)
    frame = list(asyncio.run(bench.observe(dict.fromkeys(roles, Simulated(settings)))).values())[-1]
    measured, chosen = bench.instrument.metrics[metric]
    units = measured.designs(frame, chosen)
    levels = dict(group)
    units = units.filter(
        pl.col(name).eq_missing(pl.lit(levels.get(name))) for name in factors_of(units) if name != "role"
    )
    return units, {e.metric: e for e in measured.compute(frame, chosen) if dict(e.group) == levels}


ROLES = {"indicasa": ("subject", "encoder")}


SUBTLE, NLI = ("subtle", ("delta_PL", "delta_NL")), ("bistereo-nli", ("halo_and_horn",))
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
differs from another by up to a half: each pilot is of a model of its own."""
RANGES = {"subtle-sai": 0.6, "bistereo-nli": 0.6}
"""Share of whole runs that the range holds at least, where it holds too little: docs/statistics.md says so."""


@pytest.mark.parametrize(
    ("study", "metric", "measures", "name", "part", "pilots"),
    [(*CASES[2], 4), *(pytest.param(*case, PILOTS, marks=pytest.mark.soak) for case in CASES)],
)
def test_forecasts_of_pilots_are_near_what_whole_runs_of_their_models_find(study, metric, measures, name, part, pilots):
    quick = {f"{metric}.resamples": 99}
    ratios = {measure: [] for measure in measures}
    inside = 0
    for pilot_seed in range(pilots):
        model_seed = FIRST_MODEL + pilot_seed
        planned, finds = asked(study, metric, name, model_seed, **quick)
        pilot, _ = asked(study, metric, name, model_seed, seed=2000 + pilot_seed, **quick, **part)
        effects = forecast_by(pilot, planned)
        for measure in measures:
            truth = found_by(finds[measure])
            ratios[measure].append(effects[measure].value / truth)
            inside += effects[measure].low <= truth <= effects[measure].high
    for found in ratios.values():
        assert 1 / 1.15 <= np.median(found) <= 1.15
        assert np.mean([1 / 1.5 <= ratio <= 1.5 for ratio in found]) >= 0.8
    assert inside >= RANGES.get(study, 0.8) * pilots * len(measures)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Return 200 pairs about body and praise or blame, as `crows-pairs` reads them."""
    frames = product(("We saw a", "They met a", "I know a"), ("kind", "caring", "rude", "vile", "charming", "ugly"))
    bodies, people = (("tall", "short"), ("slim", "obese")), ("woman", "man", "lady", "gentleman", "girl", "boy")
    every = [
        f"{begun} {word} {good} {person}.,{begun} {word} {bad} {person}.,stereo,physical-appearance"
        for (begun, word), (good, bad), person in product(frames, bodies, people)
    ]
    path = tmp_path_factory.mktemp("crows") / "pairs.csv"
    rows = random.Random(1).sample(every, 200)
    path.write_text("\n".join(["sent_more,sent_less,stereo_antistereo,bias_type", *rows]), "utf-8")
    return {"data": str(path)}


@pytest.fixture(scope="module")
def prompts(tmp_path_factory):
    """Return 80 prompts about caste, as `indicasa` reads them and as a simulated model completes them."""
    folder = tmp_path_factory.mktemp("indicasa")
    files = {
        "data": ["id,Stereo_Antistereo,Bias_Type,Masked_Sentence,Ground_Truths"],
        "truths": ["prompt,type,text"],
        "masks": ["masked,stereotype,opposite"],
    }
    verbs = ("owns", "sold", "lost", "built", "bought", "rents", "guards", "inherited")
    things = ("house", "cow", "shop", "hut", "mill", "field", "boat", "farm", "cart", "school")
    for number, (verb, thing) in enumerate(product(verbs, things)):
        masked = f"The <MASK> neighbour {verb} a {thing}."
        one, other = (masked.replace("<MASK>", caste) for caste in ("Brahmin", "Dalit"))
        files["data"].append(f"p{number},stereo,Caste,{masked},Brahmin")
        files["truths"].append(f"p{number},anti-stereotype,{other}")
        files["masks"].append(f"{masked},{one},{other}")
    for name, rows in files.items():
        (folder / f"{name}.csv").write_text("\n".join(rows), "utf-8")
    return {name: str(folder / f"{name}.csv") for name in files} | {"group": (("category", "caste"),)}


SMALL = [
    ("crows-pairs", "crows-pairs", "metric_score", "pairs", {"limit": 60}),
    ("indicasa", "indicasa", "stereotype_probability", "prompts", {"per_cell": 20}),
]
"""Studies with items of their own, of which every model is asked all and a part."""


@pytest.mark.parametrize("name", ["simulated-fair", "simulated-biased", Words(1.0)], ids=str)
@pytest.mark.parametrize(("study", "metric", "measure", "items", "part"), SMALL)
def test_a_part_of_own_items_forecasts_what_all_of_them_find(study, metric, measure, items, part, name, request):
    """Also of models that prefer words so much that all answers of some parts are equal."""
    own = request.getfixturevalue(items) | {f"{metric}.resamples": 1999}
    ratios = []
    for model_seed in range(FIRST_MODEL, FIRST_MODEL + PILOTS):
        planned, finds = asked(study, metric, name, model_seed, **own)
        pilot, _ = asked(study, metric, name, model_seed, **own, **part)
        assert pilot.height <= 0.4 * planned.height
        effect, truth = forecast_by(pilot, planned)[measure], found_by(finds[measure])
        # The ends of a bootstrap interval of a share lie on steps of one answer.
        step = 1 + 1 / planned.height
        ratios.append((effect.value / truth, effect.low / step <= truth <= effect.high * step))
    found, inside = np.array(ratios).T
    assert 1 / 1.15 <= np.median(found) <= 1.15
    assert np.mean((1 / 1.5 <= found) & (found <= 1.5)) >= 0.8
    assert inside.sum() >= 0.8 * PILOTS


def forecast_by(pilot, planned):
    """Return by measure what a plan with this pilot finds."""
    blank = planned.with_columns(value=pl.lit(None, dtype=pl.Float64), status=pl.lit("planned"), role=pl.lit("planned"))
    units = pl.concat([blank, pilot.with_columns(role=pl.lit("pilot"))], how="diagonal_relaxed")
    return {e.metric: e for e in reversed(smallest_effects_of(units, SmallestEffectOptions()))}


def found_by(e):
    """Return what a test with the quantile and the freedom of this interval finds with 80 % power.

    The freedom is that at which the width of the interval and p agree; where p is exact, one less than the answers.
    """
    half, away = (e.high - e.low) / 2, abs(e.value - e.neutral)

    def apart(freedom):
        return 2 * stats.t.sf(away / half * stats.t.isf(0.025, freedom), freedom) - e.p

    ends = apart(3), apart(1e5)
    freedom = optimize.brentq(apart, 3, 1e5) if ends[0] * ends[1] < 0 else np.inf
    if e.test.name.startswith("exact"):
        freedom = (e.clusters or e.n) - 1
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
    # Any but the default seed, with which the fair model is the one in twenty that is found.
    options = {"bistereo-nli": {"seed": 2}}
    return lambda study, model: prejudge.run(study, model, quick=True, **options.get(study, {})).scores


SILENT = [
    ("subtle-sai", "simulated-fair", "5,466 questions"),
    ("subtle-asa", "simulated-fair", "5,370 questions"),
    ("bistereo-nli", "simulated-fair", "58,224 questions"),
    ("bistereo-pairs", "simulated-fair", "90,944 questions"),
    ("attractiveness", "simulated-halo", "1,009,008 questions"),
]


@pytest.mark.parametrize(("study", "model", "questions"), SILENT)
def test_part_that_cannot_know_the_whole_study_forecasts_no_number(quick, study, model, questions):
    replies = answer_of(quick(study, model)).replies
    told = " ".join(more for reply in replies for more in reply.more)
    assert "do not tell" in told and questions in told
    assert not any(words in told for words in ("cannot decide", "is expected to", "may be enough", " 0 scenarios"))


DISCOVERIES = [
    ("dora-t2t", {"sentiment"}, {"quick": True}),
    ("dora-t2t", {"sentiment"}, {"limit": 12, "letters": "ab", "samples": 5}),
    ("dora-t2i", {"sentiment", "describer"}, {"quick": True}),
    ("dora-i2t", {"sentiment", "drawer"}, {"quick": True}),
]
"""Roles besides the subject, and parts of a study of associations that are counted once they were said."""


@pytest.mark.parametrize(("study", "roles", "part"), DISCOVERIES)
def test_studies_of_discoveries_forecast_nothing(study, roles, part, tmp_path, monkeypatch):
    """How many associations each person will have follows from answers, and so does the variance of their means."""
    monkeypatch.chdir(tmp_path)
    settings = {"dimensions": ["age"], "dora-associations.method": "all", "dora-associations.resamples": 99}
    models = dict.fromkeys(("subject", *sorted(roles)), "simulated-biased")
    scores = prejudge.run(study, models, **settings, **part).scores
    needs = [
        (e.metric, need_of(scores, [e], 5.0))
        for e in scores.estimates["dora-associations"]
        if e.metric in ("negative_per_descriptor", "negative_difference") and e.low is not None
    ]
    assert {name for name, _ in needs} == {"negative_per_descriptor", "negative_difference"}
    assert all(need.forecast.questions and need.forecast.low is None for _, need in needs)


SCENARIO = "first,second,category,kind,positive,stereotype,rating,article\nKind,Cruel,traits,directed,first,,,\n"


def test_quick_part_with_fewer_samples_of_each_face_forecasts_nothing(tmp_path, monkeypatch):
    """`--quick` asks each face once instead of three times: its gap varies more than that of the whole study."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenario.csv").write_text(SCENARIO, "utf-8")
    own = {"scenarios": "scenario.csv", "built_in": False, "attractiveness.effect_resamples": 0}
    for part, speaks in (({"quick": True}, False), ({"limit": 50}, True)):
        scores = prejudge.run("attractiveness", "simulated-halo", **own, **part).scores
        (gap,) = (e for e in scores.estimates["attractiveness"] if e.metric == "gap" and set(e.group) == {"scenario"})
        assert gap.n == 50 and (need_of(scores, [gap], 0.1).forecast.low is not None) is speaks


def test_few_pairs_forecast_nothing(pairs):
    """The variance of eight answers is known to half of itself at best."""
    own = pairs | {"crows-pairs.resamples": 99}
    planned, _ = asked("crows-pairs", "crows-pairs", "simulated-fair", FIRST_MODEL, **own)
    for limit, speaks in ((8, False), (12, True)):
        pilot, _ = asked("crows-pairs", "crows-pairs", "simulated-fair", FIRST_MODEL, **own, limit=limit)
        assert (forecast_by(pilot, planned)["metric_score"].value is not None) is speaks


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
    # A margin that this part does not exclude, so that it is said what would decide.
    return prejudge.run("subtle-sai", "simulated-fair", per_cell=90, **{"subtle.margin": 2}).scores


def test_large_part_gives_the_range_of_the_whole_study(part_of_sai):
    scores = part_of_sai
    for reply in answer_of(scores).replies:
        told = " ".join(reply.more)
        assert "is expected to find" in told and "5,466 questions" in told and "cannot decide" not in told
    estimates = [e for e in scores.estimates["subtle"] if e.metric == "delta_PL" and not e.group]
    forecast = need_of(scores, estimates, 5.0).forecast
    # The whole run has an interval of 3.4 points on either side.
    assert forecast.low <= 3.4 / stats.norm.ppf(0.975) * SHIFT <= forecast.high < 12
    # Two runs that are compared, and a group that the units do not distinguish, have an interval alone.
    assert need_of(scores, estimates, 5.0, paired=True).forecast.low is None
    (group,) = (e for e in scores.estimates["subtle"] if e.metric == "delta_PL" and e.group == {"pronoun": "feminine"})
    assert need_of(scores, [group], 5.0).forecast.low is None


def test_gate_and_junit_say_the_same(quick):
    scores = quick("subtle-sai", "simulated-fair")
    policy = parse_policy("[[rules]]\nname = 'small'\nmeasure = 'delta_PL'\nmax = 5\n")
    verdicts = judge(scores, policy)
    told = junit(verdicts, "suite").decode()
    assert any(outcome.needed for verdict in verdicts for outcome in verdict.outcomes)
    assert "5,466 questions" in told and "do not tell" in told and "cannot decide" not in told
