"""The smallest effect a design can detect, from a pilot run or from a stated spread."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest
from click.testing import CliRunner
from fakes import CountProbe, CountStage, FakeModel, MeanLength, text_of

import prejudge
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.cli.main import cli
from prejudge.core.contracts import Estimate, Options
from prejudge.core.contracts.errors import UsageError
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.contracts.records import Generation
from prejudge.core.contracts.words import BASIS, explained
from prejudge.core.scoring.score import score
from prejudge.core.scoring.sensitivity import Assumed, Detectable, smallest_effects
from prejudge.core.scoring.sensitivity_words import in_lines
from prejudge.testing import raises_code

# No test here looks at a figure.
pytestmark = pytest.mark.usefixtures("no_figures")
WILCOXON = "Wilcoxon signed-rank"


class UnitLength(MeanLength):
    """The mean length, as a mean of trials in clusters of two."""

    def units(self, observations, options):
        return observations.select(
            pl.lit("mean_length").alias("metric"),
            pl.col("trial").alias("unit"),
            (pl.col("number") // 2).cast(pl.String).alias("over.two"),
            pl.lit(1).alias("sign"),
            pl.col("length").cast(pl.Float64).alias("value"),
            pl.lit(None, dtype=pl.Float64).alias("least"),
            pl.lit(None, dtype=pl.Float64).alias("greatest"),
            "status",
        )


@pytest.fixture
def measuring(catalogue):
    """Return the catalogue of fakes with a metric that has units."""
    catalogue.plugins.offers["metric"]["mean"] = Registered(Plugged("mean", UnitLength), "tests")
    return catalogue


def study(catalogue, **options):
    return catalogue.study("count", {"subject": "fake"}, options)


def smallest(catalogue, chosen, **assumed):
    (found,) = smallest_effects(catalogue, chosen, Assumed(**assumed)).effects["mean"]
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
    name, _ = run_study("fake", n=20)
    pilot = score(measuring, store, name)
    found = smallest(measuring, study(measuring, n=40), pilot=pilot)
    assert (found.n, found.clusters) == (40, 20)
    assert "from the pilot" in explained(found)


def test_pilot_of_another_probe_is_refused(measuring, run_study, store):
    FakeModel.script = lambda request, seen: Generation(text=text_of(request))
    name, _ = run_study("fake", n=4)
    pilot = score(measuring, store, name)
    other = study(measuring)
    with raises_code(UsageError, "run.other-study"):
        smallest_effects(measuring, type(other)(**{**_fields(other), "probe": "other"}), Assumed(pilot=pilot))


def _fields(record):
    return {name: getattr(record, name) for name in record.__struct_fields__}


def test_metric_without_units_has_no_smallest_effect(measuring, monkeypatch):
    monkeypatch.setattr(UnitLength, "units", lambda self, observations, options: None)
    assert smallest_effects(measuring, study(measuring), Assumed(spread=1.0)).effects == {}


def test_lines_give_the_range_over_groups():
    effects = [
        Estimate.from_flat(metric="m", group={"g": g}, value=g, unit="%", facts={BASIS: "as stated"})
        for g in (1.0, 2.5)
    ]
    assert list(in_lines(effects)) == ["m: 1 to 2.5 % (as stated)"]


def test_lines_say_what_is_undefined():
    nothing = Estimate.from_flat(metric="m", group={}, value=None, caveats=(Caveat.UNDEFINED,), note="no spread")
    assert list(in_lines([nothing])) == ["m: undefined: no spread"]


def test_pilot_of_single_units_takes_the_stated_correlation(measuring, run_study, store):
    FakeModel.script = lambda request, seen: Generation(text="x" * (1 + len(text_of(request)) * 7 % 5))
    name, _ = run_study("fake", n=12)
    pilot = score(measuring, store, name)
    alone = pilot.last.gather_every(2)  # one unit of each cluster: nothing tells a correlation
    pilot = msgspec.structs.replace(pilot, observations={"count": alone})
    assert "0.30 (stated)" in smallest(measuring, study(measuring, n=40), pilot=pilot, icc=0.3).facts["basis"]


def test_pilot_that_tells_the_correlation_comes_before_a_stated_one(measuring, run_study, store):
    FakeModel.script = lambda request, seen: Generation(text="x" * (1 + len(text_of(request)) * 7 % 5))
    name, _ = run_study("fake", n=12)
    pilot = score(measuring, store, name)
    assert "(the pilot)" in smallest(measuring, study(measuring, n=40), pilot=pilot, icc=0.3).facts["basis"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pilot", "latest", "--spread", "2"], "--spread is not used"),
        (["--pilot", "latest"], "does not exist"),
        (["--icc", "3"], "is not in the range"),
        (["--spread", "0"], "is not in the range"),
    ],
)
def test_plan_refuses_before_it_prints(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["plan", "bistereo-pairs", "--set", "per_cell=2", *words])
    assert result.exit_code != 0 and "Stage" not in result.output
    assert said in f"{result.output}{result.exception}"


def test_plan_says_what_a_measure_without_limits_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["plan", "bistereo-pairs", "--set", "per_cell=12", "--icc", "0.1"])
    assert "not known without --spread or --pilot: the measure has no limits" in result.output


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
        place = (observations["number"] % 2).cast(pl.String).alias("over.place")
        crossed = units.with_columns(place).select(pl.exclude("over.two"), "over.two")
        ranked = units.with_columns(test=pl.lit("wilcoxon"))
        return pl.concat([crossed, ranked], how="diagonal")


def test_metric_that_designs_its_tests_has_an_effect_of_each(measuring):
    measuring.plugins.offers["metric"]["mean"] = Registered(Plugged("mean", Designed), "tests")
    assumed = Assumed(spread=1.0, icc=0.1, row_icc=0.2)
    found = smallest_effects(measuring, study(measuring, n=60), assumed).effects["mean"]
    assert [e.test.name for e in found] == ["t of place x two", "t of two, for these values of place alone", WILCOXON]
    assert found[0].value > found[1].value
    assert found[2].unit == "matched-pairs rank-biserial"


def test_lines_of_a_few_kinds_name_what_they_share():
    groups = [("a", "x"), ("a", "y"), ("b", "x")]
    effects = [
        Estimate.from_flat(
            metric="m", group={"by": by, "item": item}, value=1.0, unit="%", test="t", facts={BASIS: f"groups of {by}"}
        )
        for by, item in groups
    ]
    assert list(in_lines(effects)) == ["m, by a: 1 % (t; groups of a)", "m, by b, item x: 1 % (t; groups of b)"]


def test_lines_of_many_kinds_are_of_the_whole_and_of_its_groups():
    groups = [{}, *({"domain": str(number)} for number in range(5))]
    effects = [
        Estimate.from_flat(metric="m", group=group, value=1.0 + len(group), facts={BASIS: f"rests on {group}"})
        for group in groups
    ]
    assert list(in_lines(effects)) == ["m: 1  (rests on {})", "m, by domain: 2  (by group)"]


def test_lines_count_what_is_undefined():
    effects = [
        Estimate.from_flat(metric="m", group={"g": g}, value=v, unit="%", test="t") for g, v in ((1, 2.0), (2, None))
    ]
    assert list(in_lines(effects)) == ["m: 2 % (t; 1 of 2 undefined)"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["attractiveness", "--set", "per_cell=2", "--set", "attractiveness.effect_resamples=0"],
            [
                "(t of scenario x face; maximum standard deviation, share of its variance by scenario 0.05 (stated), ",
                "halo: ",
                "(t of face, for these values of scenario alone)",
                "gap_signed_ranks: 0.",
                "matched-pairs rank-biserial (Wilcoxon signed-rank)",
                "kruskal_wallis_faces, by gender: 0.",
                "filter_between_groups, by race: 0.",
                "Cohen's f (Kruskal-Wallis; 6 groups of 4)",
            ],
        ),
        (
            ["subtle-sai", "--set", "per_cell=12"],
            ["delta_PL: ", "(t of template x term x positive x negative x neutral; "],
        ),
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


class LevelOptions(Options, frozen=True, kw_only=True):
    alpha: float = 0.05


def test_tests_are_at_the_level_of_the_metric(measuring, monkeypatch):
    monkeypatch.setattr(UnitLength, "options", LevelOptions)
    usual, strict = (
        smallest_effects(measuring, study(measuring, n=40, **{"mean.alpha": alpha}), Assumed(spread=1.0))
        for alpha in (0.05, 0.01)
    )
    assert "tests at 5 %" in usual.lines[0] and "tests at 1 %" in strict.lines[0]
    assert strict.effects["mean"][0].value > 1.1 * usual.effects["mean"][0].value


def test_levels_that_differ_are_named():
    found = Detectable(effects={}, levels={"a": 0.05, "b": 0.01})
    assert "tests at 5 % (a), 1 % (b), not corrected" in found.lines[0]


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"spread": 1.0, "icc": 0.1}, []),
        ({"spread": 1.0, "row_icc": 0.1}, ["--row-icc was not used: no design here has rows that cross clusters."]),
        ({"icc": 0.1}, ["--icc was not used: nothing can be computed without a spread."]),
    ],
)
def test_what_makes_no_difference_is_named(measuring, stated, said):
    assert list(smallest_effects(measuring, study(measuring, n=20), Assumed(**stated)).notes) == said


def test_spread_where_every_measure_has_limits_is_named(measuring, monkeypatch):
    units = UnitLength.units
    limited = {"least": pl.lit(0.0), "greatest": pl.lit(1.0)}
    monkeypatch.setattr(UnitLength, "units", lambda *given: units(*given).with_columns(**limited))
    found = smallest_effects(measuring, study(measuring, n=20), Assumed(spread=1.0))
    assert found.notes == ("--spread was not used: each measure here has limits, or tests that need no spread.",)


def test_correlation_of_units_without_company_is_named(measuring, monkeypatch):
    units = UnitLength.units
    monkeypatch.setattr(
        UnitLength, "units", lambda *given: units(*given).with_columns(pl.col("unit").alias("over.two"))
    )
    found = smallest_effects(measuring, study(measuring, n=20), Assumed(spread=1.0, icc=0.1))
    assert found.notes == ("--icc was not used: no two units here share a cluster.",)


def test_what_is_stated_of_too_few_clusters_is_named(measuring):
    found = smallest_effects(measuring, study(measuring, n=1), Assumed(spread=1.0, icc=0.1))
    assert found.notes == (
        "--spread was not used: nothing is known about this design (see above).",
        "--icc was not used: nothing is known about this design (see above).",
    )


def test_correlation_that_the_pilot_tells_is_named(measuring, run_study, store):
    FakeModel.script = lambda request, seen: Generation(text="x" * (1 + len(text_of(request)) * 7 % 5))
    pilot = score(measuring, store, run_study("fake", n=20)[0])
    found = smallest_effects(measuring, study(measuring, n=40), Assumed(pilot=pilot, icc=0.3))
    assert found.notes == ("--icc was not used: the pilot gives it.",)


class Counted(CountStage):
    """A stage whose questions depend on the answers to the first one."""

    name = "again"


@pytest.fixture
def discovering(measuring, monkeypatch):
    """Return the catalogue with a second stage, which asks as many questions as the first one was answered."""
    monkeypatch.setattr(CountProbe, "stages", lambda self, options: [CountStage(options), Counted(options)])
    FakeModel.script = lambda request, seen: Generation(text="x" * (1 + len(text_of(request)) * 7 % 5))
    return measuring


@pytest.mark.parametrize("counted", ["over.two", "unit"])
def test_pilot_of_answers_stands_for_as_many_clusters_as_are_planned(
    discovering, run_study, store, monkeypatch, counted
):
    trial = pl.col("number").cast(pl.String)
    units = UnitLength.units
    named = {counted: trial, "over.two": trial if counted == "over.two" else pl.format("of {}", "parity")}
    # The factor is a word, so that clusters can be its levels; the metric's own units halve it as a number.
    monkeypatch.setattr(
        UnitLength,
        "units",
        lambda self, seen, options: units(self, seen.cast({"number": pl.Int64}), options).with_columns(
            seen.select(**named)
        ),
    )
    monkeypatch.setattr(CountStage, "trials", _named(CountStage.trials))
    pilot = score(discovering, store, run_study("fake", n=12)[0])
    found = [smallest(discovering, study(discovering, n=n), pilot=pilot) for n in (12, 24, 96)]
    assert [effect.clusters for effect in found] == ([12, 24, 96] if counted == "over.two" else [2, 4, 16])
    if counted == "unit":
        # Two clusters do not tell how much others differ.
        assert found[0].value is not None and found[1].value is found[2].value is None
        return
    assert found[0].value > found[1].value > found[2].value
    assert all(effect.facts["basis"].endswith("clusters as planned, each as in the pilot") for effect in found)


def _named(trials):
    """Return trials whose numbers are words."""

    def again(stage, earlier):
        for trial in trials(stage, earlier):
            factors = trial.factors | {"number": str(trial.factors["number"])}
            yield type(trial)(trial.id, factors, trial.request)

    return again


def test_pilot_whose_clusters_cannot_be_counted_holds_for_its_own_size(discovering, run_study, store):
    pilot = score(discovering, store, run_study("fake", n=12)[0])
    found = [smallest(discovering, study(discovering, n=n), pilot=pilot) for n in (12, 24)]
    assert found[0].value == found[1].value
    assert all(effect.facts["basis"].endswith("for a run as large as the pilot") for effect in found)


def test_python_gives_what_the_command_line_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["plan", "bistereo-pairs", "--set", "per_cell=12", "--icc", "0.1", "--spread", "4", "--power", "0.9"]
    printed = CliRunner().invoke(cli, words, catch_exceptions=False).output
    found = prejudge.smallest_effects("bistereo-pairs", per_cell=12, icc=0.1, spread=4, power=0.9)
    assert printed.endswith(f"{found!r}\n")
    assert set(found.estimates["metric"]) == {"favouritism", "favouritism_log_odds", "discrimination"}


def test_python_takes_a_pilot_by_name_or_as_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"per_cell": 4, "trisentbias.resamples": 99}
    done = prejudge.run("bistereo-pairs", "simulated-biased", **asked)
    by_name, by_run = (prejudge.smallest_effects("bistereo-pairs", pilot=pilot, **asked) for pilot in ("latest", done))
    assert by_name.conclusion == by_run.conclusion
    assert "from the pilot" in repr(by_name)


@pytest.mark.parametrize("stated", [{"pilot": "latest"}, {"icc": 0.1}])
def test_plan_in_python_says_where_smallest_effects_are(stated):
    with raises_code(UsageError, "plan.choice", "smallest_effects"):
        prejudge.plan("subtle-sai", **stated)


def test_python_refuses_a_spread_beside_a_pilot():
    with raises_code(UsageError, "options.conflict"):
        prejudge.smallest_effects("subtle-sai", pilot="latest", spread=2.0)
