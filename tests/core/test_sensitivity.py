"""The smallest effect a design can detect, from a pilot run or from a stated spread."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest
from click.testing import CliRunner
from fakes import FakeModel, MeanLength, text_of

from prejudge.core.cli.main import cli
from prejudge.core.contracts import Estimate
from prejudge.core.errors import UsageError
from prejudge.core.plugins import Plugged, Registered
from prejudge.core.records import Generation
from prejudge.core.scoring import score
from prejudge.core.sensitivity import Assumed, in_lines, smallest_effects


class UnitLength(MeanLength):
    """The mean length, as a mean of trials in clusters of two."""

    def units(self, observations, options):
        return observations.select(
            pl.lit("mean_length").alias("metric"),
            pl.col("trial").alias("unit"),
            (pl.col("number") // 2).cast(pl.String).alias("cluster"),
            pl.lit(1).alias("sign"),
            pl.col("length").cast(pl.Float64).alias("value"),
            pl.lit(None, dtype=pl.Float64).alias("least"),
            pl.lit(None, dtype=pl.Float64).alias("greatest"),
            "status",
        )


@pytest.fixture
def measuring(catalogue):
    """Return the catalogue of fakes with a metric that has units."""
    targets = {"mean": UnitLength, "smallest-effect": "prejudge.metrics.smallest_effect:SmallestEffect"}
    for name, target in targets.items():
        catalogue.plugins.offers["metric"][name] = Registered(Plugged(name, target), "tests")
    return catalogue


def study(catalogue, **options):
    return catalogue.study("count", {"subject": "fake"}, options)


def smallest(catalogue, chosen, **assumed):
    (found,) = smallest_effects(catalogue, chosen, Assumed(**assumed))["mean"]
    return found


def test_design_is_counted_without_an_answer(measuring):
    found = smallest(measuring, study(measuring, n=20), spread=1.0, icc=0.5)
    assert (found.n, found.clusters) == (20, 10)
    assert found.value == pytest.approx(0.863, abs=0.01)
    assert all(model.asked == [] for model in FakeModel.made)


def test_larger_design_detects_less(measuring):
    effects = [smallest(measuring, study(measuring, n=n), spread=1.0, icc=0.2).value for n in (20, 80)]
    assert effects[1] < effects[0] / 1.9


def test_pilot_tells_the_spread_of_a_larger_design(measuring, run_study, store):
    FakeModel.script = lambda request, seen: Generation(text="x" * (1 + len(text_of(request)) * 7 % 5))
    name, _ = run_study("fake", n=12)
    pilot = score(measuring, store, name)
    found = smallest(measuring, study(measuring, n=40), pilot=pilot)
    assert (found.n, found.clusters) == (40, 20)
    assert "spread from the pilot" in found.note


def test_pilot_of_another_probe_is_refused(measuring, run_study, store):
    FakeModel.script = lambda request, seen: Generation(text=text_of(request))
    name, _ = run_study("fake", n=4)
    pilot = score(measuring, store, name)
    other = study(measuring)
    with pytest.raises(UsageError, match="Name a run of its kind"):
        smallest_effects(measuring, type(other)(**{**_fields(other), "probe": "other"}), Assumed(pilot=pilot))


def _fields(record):
    return {name: getattr(record, name) for name in record.__struct_fields__}


def test_metric_without_units_has_no_smallest_effect(measuring, monkeypatch):
    monkeypatch.setattr(UnitLength, "units", lambda self, observations, options: None)
    assert smallest_effects(measuring, study(measuring), Assumed(spread=1.0)) == {}


def test_lines_give_the_range_over_groups():
    effects = [Estimate(metric="m", group={"g": g}, value=g, unit="%", note="as stated") for g in (1.0, 2.5)]
    assert list(in_lines(effects)) == ["m: 1 to 2.5 % (as stated)"]


def test_lines_say_what_is_undefined():
    nothing = Estimate(metric="m", group={}, value=None, note="undefined: no spread")
    assert list(in_lines([nothing])) == ["m: undefined: no spread"]


def test_pilot_of_single_units_takes_the_stated_correlation(measuring, run_study, store):
    FakeModel.script = lambda request, seen: Generation(text="x" * (1 + len(text_of(request)) * 7 % 5))
    name, _ = run_study("fake", n=12)
    pilot = score(measuring, store, name)
    alone = pilot.last.gather_every(2)  # one unit of each cluster: nothing tells a correlation
    pilot = msgspec.structs.replace(pilot, observations={"count": alone})
    assert "0.30 (stated)" in smallest(measuring, study(measuring, n=40), pilot=pilot, icc=0.3).note


def test_pilot_that_tells_the_correlation_comes_before_a_stated_one(measuring, run_study, store):
    FakeModel.script = lambda request, seen: Generation(text="x" * (1 + len(text_of(request)) * 7 % 5))
    name, _ = run_study("fake", n=12)
    pilot = score(measuring, store, name)
    assert "(the pilot)" in smallest(measuring, study(measuring, n=40), pilot=pilot, icc=0.3).note


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pilot", "latest", "--spread", "2"], "Leave one of them out"),
        (["--pilot", "latest"], "there is no store"),
        (["--icc", "3"], "is not in the range"),
        (["--spread", "0"], "is not in the range"),
    ],
)
def test_plan_refuses_before_it_prints(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["plan", "bistereo-pairs", "--set", "per_cell=2", *words])
    assert result.exit_code != 0 and "stage" not in result.output
    assert said in f"{result.output}{result.exception}"


def test_plan_says_what_a_measure_without_limits_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["plan", "bistereo-pairs", "--set", "per_cell=12", "--icc", "0.1"])
    assert "state it with --spread, or name a run with --pilot" in result.output


def test_plan_prints_the_smallest_effect(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["plan", "bistereo-pairs", "--set", "per_cell=12", "--icc", "0.1", "--spread", "4"]
    result = CliRunner().invoke(cli, asked, catch_exceptions=False)
    assert "Smallest effect this design can detect" in result.output
    assert "favouritism_log_odds" in result.output
    assert result.exit_code == 0
