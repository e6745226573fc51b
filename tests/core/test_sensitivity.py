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

WILCOXON = "Wilcoxon signed-rank"


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


class Designed(UnitLength):
    """The mean length, whose numbers cross its clusters, and its signed ranks."""

    def designs(self, observations, options):
        units = self.units(observations, options)
        row = (observations["number"] % 2).cast(pl.String).alias("row")
        crossed = units.with_columns(row, ways=pl.lit("place x two"))
        ranked = units.with_columns(test=pl.lit("wilcoxon"))
        return pl.concat([crossed, ranked], how="diagonal")


def test_metric_that_designs_its_tests_has_an_effect_of_each(measuring):
    measuring.plugins.offers["metric"]["mean"] = Registered(Plugged("mean", Designed), "tests")
    found = smallest_effects(measuring, study(measuring, n=60), Assumed(spread=1.0, icc=0.1, row_icc=0.2))["mean"]
    assert [e.test for e in found] == ["t of place x two", "t of two, for these values of place alone", WILCOXON]
    assert found[0].value > found[1].value
    assert found[2].unit == "matched-pairs rank-biserial"


def test_lines_of_a_few_kinds_name_what_they_share():
    groups = [("a", "x"), ("a", "y"), ("b", "x")]
    effects = [
        Estimate(metric="m", group={"by": by, "item": item}, value=1.0, unit="%", test="t", note=f"groups of {by}")
        for by, item in groups
    ]
    assert list(in_lines(effects)) == ["m, by a: 1 % (t; groups of a)", "m, by b, item x: 1 % (t; groups of b)"]


def test_lines_of_many_kinds_are_of_the_whole_and_of_its_groups():
    groups = [{}, *({"domain": str(number)} for number in range(5))]
    effects = [Estimate(metric="m", group=group, value=1.0 + len(group), note=f"rests on {group}") for group in groups]
    assert list(in_lines(effects)) == ["m: 1  (rests on {})", "m, by domain: 2  (by group)"]


def test_lines_count_what_is_undefined():
    effects = [Estimate(metric="m", group={"g": g}, value=v, unit="%", test="t") for g, v in ((1, 2.0), (2, None))]
    assert list(in_lines(effects)) == ["m: 2 % (t; 1 of 2 undefined)"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["attractiveness", "--set", "per_cell=2", "--set", "attractiveness.effect_resamples=0"],
            [
                "(t of scenario x face; greatest spread, share of its variance by scenario 0.05 (stated), ",
                "halo: ",
                "(t of face, for these values of scenario alone)",
                "gap_signed_ranks: 0.",
                "matched-pairs rank-biserial (Wilcoxon signed-rank)",
                "kruskal_wallis_faces, by gender: 0.",
                "bias_change, by race: 0.",
                "Cohen's f (Kruskal-Wallis; 6 groups of 4)",
            ],
        ),
        (["subtle-sai", "--set", "per_cell=12"], ["delta_PL: ", "percentage points (t of template x term; "]),
    ],
)
def test_plan_knows_crossed_designs_and_rank_tests(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["plan", *words, "--icc", "0.1", "--row-icc", "0.05"], catch_exceptions=False)
    assert result.exit_code == 0
    assert all(part in result.output for part in said), result.output


def test_plan_takes_the_power_that_is_stated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["plan", "attractiveness", "--set", "per_cell=2", "--set", "attractiveness.effect_resamples=0", "--power"]
    said = [CliRunner().invoke(cli, [*asked, power]).output for power in ("0.8", "0.95")]
    assert "(80 % power, tests" in said[0] and "(95 % power, tests" in said[1]
    reach = [float(text.split("gap: ")[1].split()[0]) for text in said]
    # Of a mean of many faces the effect is (1.96 + z) standard errors.
    assert reach[1] / reach[0] == pytest.approx((1.96 + 1.645) / (1.96 + 0.8416), rel=0.02)
