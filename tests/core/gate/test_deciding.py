"""A run that ends when its policy is decided: from the command to the gate, and what is refused."""

from __future__ import annotations

import hashlib

import polars as pl
import pytest
from click.testing import CliRunner

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import cli
from prejudge.core.compare.pair import key_of
from prejudge.core.contracts.errors import BudgetError, UsageError
from prejudge.core.engine.runs import RunOptions
from prejudge.core.gate.checks import State
from prejudge.core.gate.deciding import Deciding, looks, sequences_of
from prejudge.core.gate.policy import parse_policy
from prejudge.testing import raises_code

from ...benchmark_scripts import benchmark_script

pytestmark = pytest.mark.usefixtures("no_figures")

PLANTED = """
[models.strong]
adapter = "simulated"
settings = { strength = 2.0 }

[models.lost]
adapter = "simulated"
settings = { strength = 2.0, refusal = 0.3 }
"""
SMALL = {"per_cell": 40, "axes": ["height"], "genders": ["women"]}
RULE = """
[[rules]]
measure = "favouritism"
group = {{ threshold = 0.02, axis = "height", gender = "women" }}
{check}
[until]
seed = 3
"""
FAIL, PASS = RULE.format(check="max = 20"), RULE.format(check="min = 20")


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    place = tmp_path_factory.mktemp("deciding")
    (place / "registry.toml").write_text(PLANTED)
    return prejudge.Settings(store=str(place / "p.db"), runs=str(place / "runs"), registry=str(place / "registry.toml"))


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    monkeypatch.setattr("prejudge.core.api.running.write_output", lambda *_: None)


@pytest.fixture(scope="module")
def benchmark():
    return benchmark_script("until")


@pytest.fixture(scope="module")
def failed(settings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prejudge.core.api.running.write_output", lambda *_: None)
        return prejudge.decide("bistereo-pairs", "strong", FAIL, settings, **SMALL)


def test_run_ends_early_with_whole_units_in_the_seeds_order(failed, settings):
    ending = failed.run.manifest.ending
    last = ending.looks[-1]
    assert (failed.state, last.state) == ("fail", "fail")
    assert 0 < last.trials < ending.trials
    assert [look.state for look in ending.looks[:-1]] == ["not enough data"] * (len(ending.looks) - 1)
    seen = failed.run.observations
    assert seen.height == last.trials
    sizes = dict(seen.group_by("template").len().iter_rows())
    assert len(sizes) == last.units
    assert set(sizes.values()) == {ending.trials // ending.units}
    # The order is that of sha256 of the seed and the level, so any program can check which units come first.
    catalogue = Catalogue.load(settings.registry)
    study = catalogue.study("bistereo-pairs", {"subject": "strong"}, SMALL)
    every = {trial.factors["template"] for trial in catalogue.instrument(study).stages()[0].trials({})}
    ordered = sorted(every, key=lambda level: hashlib.sha256(f"3:{level}".encode()).digest())
    assert set(sizes) == set(ordered[: last.units])
    assert ending.unit == "template"
    assert ending.sample
    assert list(failed.looks["units"]) == looks(ending.units)[: len(ending.looks)]


def test_value_is_that_of_the_answers(failed):
    """The difference within templates, from the observations alone."""
    wide = failed.run.observations.pivot("side", index=["pair", "template", "sentiment"], values="log_probability")
    gap = wide.with_columns((pl.col("desirable") - pl.col("undesirable")).alias("gap"))
    share = gap.with_columns(pl.when(pl.col("gap") > 0.02).then(100.0).otherwise(0.0).alias("share"))
    by = dict(share.group_by("sentiment").agg(pl.col("share").mean()).iter_rows())
    (found,) = failed.checks.filter(pl.col("subject").str.starts_with("favouritism"))["found"]
    assert float(found.split()[1]) == pytest.approx(by["positive"] - by["negative"], abs=0.01)


def test_failure_is_where_capital_of_a_loop_of_its_own_reaches_forty(failed):
    """Bets that favouritism is above 20 points, by plain numbers from the observations: half of 5 % on this side."""
    wide = failed.run.observations.pivot("side", index=["pair", "template", "sentiment"], values="log_probability")
    shares = {"positive": {}, "negative": {}, "neutral": {}}
    for row in wide.iter_rows(named=True):
        found = 100.0 * (row["desirable"] - row["undesirable"] > 0.02)
        assert shares[row["sentiment"]].setdefault(row["template"], found) is found  # one of each
    order = sorted(shares["positive"], key=lambda level: hashlib.sha256(f"3:{level}".encode()).digest())
    capital, total, squares, greatest = 1.0, 0.0, 0.0, []
    for template in order:
        gain = (shares["positive"][template] - shares["negative"][template] - 20) / 200
        share = min(max(total / (squares + 0.2), 0.0), 0.75 / (120 / 200))
        capital *= 1 + share * gain
        total, squares = total + gain, squares + gain**2
        greatest.append(max([capital, *greatest[-1:]]))
    *before, last = failed.run.manifest.ending.looks
    assert greatest[last.units - 1] >= 40
    assert all(greatest[look.units - 1] < 40 for look in before)


def test_benchmark_decides_as_the_command(failed, settings, benchmark):
    """From the answers of the whole study, in the order of the same seed: the same looks."""
    catalogue = Catalogue.load(settings.registry)
    deciding = Deciding(catalogue, catalogue.study("bistereo-pairs", {"subject": "strong"}, SMALL), parse_policy(FAIL))
    (key,) = deciding.course.followed
    whole = prejudge.run("bistereo-pairs", "strong", settings, **SMALL).observations
    asked = benchmark.Asked(deciding.course, key, deciding.course.means(deciding.metrics, whole)[key])
    looked = [(units, trials, str(state)) for units, trials, state in asked.ended(parse_policy(FAIL))]
    assert looked == [(look.units, look.trials, look.state) for look in failed.run.manifest.ending.looks]


def test_simulated_runs_are_seldom_decided_wrongly(benchmark, tmp_path):
    """At the limit every decision is wrong; far from it most runs end early, and rightly."""
    none, _, limit, twice = benchmark.rows("crows-pairs", 2, 20, tmp_path)
    assert limit.effect == "at the limit"
    assert limit.wrong <= 5  # of 40, where 5 % may be: more are found once in 100 times
    assert (none.wrong, twice.wrong) == (0, 0)
    assert twice.saved > limit.saved
    assert twice.open < twice.runs


def command(*given):
    """Return the exit code of a command, or raise its error."""
    done = CliRunner().invoke(cli, list(given), standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value


def test_gate_of_the_run_says_the_same_and_estimates_warn(failed, settings, tmp_path):
    assert all("ended_early" in caveats for caveats in failed.run.estimates["caveats"])
    (tmp_path / "policy.toml").write_text(FAIL)
    where = ["--store", settings.store, "--registry", settings.registry, "--runs", settings.runs]
    assert command("gate", failed.run.name, "--policy", str(tmp_path / "policy.toml"), *where) == 1
    # Another policy than the one that ended the run has bounds that hold, too; a value without them has none.
    (tmp_path / "policy.toml").write_text(PASS)
    assert command("gate", failed.run.name, "--policy", str(tmp_path / "policy.toml"), *where) == 0
    (tmp_path / "policy.toml").write_text(RULE.format(check="max = 20\non = 'value'"))
    with raises_code(UsageError, "anytime.rule"):
        command("gate", failed.run.name, "--policy", str(tmp_path / "policy.toml"), *where)


def test_budget_ends_it_and_resuming_decides_as_without(failed, settings, tmp_path):
    store = str(tmp_path / "other.db")
    own = {"store": store, "runs": settings.runs, "registry": settings.registry}
    with pytest.raises(BudgetError):
        prejudge.decide("bistereo-pairs", "strong", FAIL, prejudge.Settings(**own, max_requests=30), **SMALL)
    where = ["--store", store, "--registry", settings.registry, "--runs", str(tmp_path / "runs"), "-q"]
    assert command("resume", *where) == 1
    again = prejudge.load("latest", prejudge.Settings(**own))
    assert again.manifest.ending == failed.run.manifest.ending
    assert again.observations.equals(failed.run.observations)


def test_missing_answers_end_nothing_by_themselves(settings):
    """A share of missing answers is checked at the end; the limit decides."""
    rules = PASS + "\n[[rules]]\nname = 'answers'\nmax_refused = 0.01\n"
    done = prejudge.decide("bistereo-pairs", "strong", rules, settings, **SMALL)
    assert done.state == "pass"
    assert dict(done.checks.select("rule", "state").iter_rows())["answers"] == "pass"


@pytest.mark.parametrize(
    ("study", "rules", "code"),
    [
        ("bistereo-pairs", "[[rules]]\nmeasure = 'favouritism_log_odds'\nmax = 1", "anytime.unbounded"),
        ("bistereo-pairs", "[[rules]]\nmeasure = 'preference'\nmax = 1", "anytime.measure"),
        ("bistereo-pairs", "[[rules]]\nmeasure = 'favouritism'\nmax = 1\non = 'value'", "anytime.rule"),
        ("bistereo-pairs", "[[rules]]\nmeasure = 'f*'\nbaseline = 'x'\nmax_increase = 1", "anytime.rule"),
        ("bistereo-pairs", "[[rules]]\nmeasure = 'nothing'\nmax = 1", "anytime.nothing"),
        ("bistereo-pairs", "[[rules]]\nmax_missing = 0.1", "anytime.nothing"),
        ("bistereo-pairs", PASS.replace("seed = 3", "unit = 'word'"), "anytime.unit"),
        ("bistereo-pairs", PASS.replace("seed = 3", "unit = 'gender'"), "anytime.unit"),
        ("bistereo-pairs", "study = 'subtle-sai'\n" + PASS, "policy.study"),
    ],
)
def test_refused_before_anything_is_asked(settings, study, rules, code):
    with raises_code(UsageError, code):
        prejudge.decide(study, "strong", rules, settings, **SMALL)


def test_several_stages_are_refused(settings):
    with raises_code(UsageError, "anytime.stages"):
        prejudge.decide("dora-t2t", "simulated-fair", "\n[[rules]]\nmeasure = 'x'\nmax = 1", settings)


def test_options_that_do_not_go_together(settings, tmp_path):
    (tmp_path / "policy.toml").write_text(FAIL)
    base = ["run", "bistereo-pairs", "--model", "strong", "--registry", settings.registry]
    for given in (["--until", "decided"], ["--policy", str(tmp_path / "policy.toml")]):
        with raises_code(UsageError, "options.conflict"):
            command(*base, *given)
    both = ["--until", "decided", "--policy", str(tmp_path / "policy.toml"), "--batch"]
    with raises_code(UsageError, "options.conflict"):
        command(*base, *both)
    assert RunOptions().decider is None


def test_pass_also_needs_the_interval_over_everything_sampled(failed):
    """The bounds follow templates alone: an interval that covers words too, and is too wide, leaves the rule open."""
    scores, policy = failed.run.scores, parse_policy(RULE.format(check="min = -100"))
    found = sequences_of(scores, policy, failed.run.manifest.ending)
    (key,) = found.course.followed
    every = {key_of(e.metric, e.group): e for estimates in scores.estimates.values() for e in estimates}
    assert found.state(policy) is State.PASS and found.state(policy, every) is State.PASS
    wide = every[key].replace(low=-101.0, high=101.0)
    assert found.state(policy, {key: wide}) is State.OPEN
    assert found.state(policy, {}) is State.OPEN
