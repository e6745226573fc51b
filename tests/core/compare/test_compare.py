"""Comparing runs: what may be compared, on which units, and what is left behind."""

from __future__ import annotations

import asyncio
import io
import json
import re
from types import SimpleNamespace

import msgspec
import numpy as np
import polars as pl
import pytest
from fakes import FakeModel, MeanLength
from rich.console import Console
from scipy import stats

from prejudge.core import compare as door
from prejudge.core.catalogue.plugins import Plugged, Registered
from prejudge.core.catalogue.published import Published
from prejudge.core.catalogue.registry import StudyEntry
from prejudge.core.charts.numbers import numbers_of
from prejudge.core.cli.comparison import rank_table
from prejudge.core.compare import (
    CompareOptions,
    Comparison,
    Difference,
    compare,
    rank_runs,
    score_all,
    write_comparison,
)
from prejudge.core.compare.beside import in_words, set_beside
from prejudge.core.compare.compare import within_range
from prejudge.core.compare.markdown import ROWS, markdown
from prejudge.core.compare.pair import Units, families, key_of, widest
from prejudge.core.compare.write import largest
from prejudge.core.contracts import Estimate, Listing
from prejudge.core.contracts.errors import PermanentError, PluginError, UnknownNameError, UsageError
from prejudge.core.contracts.estimates import Measure
from prejudge.core.contracts.records import Generation
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.scoring.score import score
from prejudge.core.store.evidence import seal
from prejudge.testing import raises_code

QUICK = CompareOptions(assignments={"paired-difference.resamples": 99})


class UnitLength(MeanLength):
    """The mean length, which is a mean of units, and the longest answer, which is none."""

    wrong = 0.0

    def compute(self, observations, options):
        (mean,) = super().compute(observations, options)
        longest = observations["length"].max()
        mean = mean.replace(neutral=3.0, unit="%")
        return [mean, Estimate.from_flat(metric="longest", group={}, value=longest, n=mean.n)]

    def units(self, observations, options):
        return observations.select(
            pl.lit("mean_length").alias("metric"),
            pl.col("trial").alias("unit"),
            (pl.col("parity") + (pl.col("number") // 2).cast(pl.String)).alias("over.two"),
            pl.lit(1).alias("sign"),
            value=pl.col("length") + self.wrong,
            least=pl.lit(0.0),
            greatest=pl.lit(9.0),
            status="status",
        )


@pytest.fixture
def comparing(catalogue):
    """Return the catalogue of fakes with a metric that has units, and the built-in metrics of comparisons."""
    UnitLength.wrong = 0.0
    metrics = {
        "mean": UnitLength,
        "paired-difference": "prejudge.metrics.general.paired:PairedDifference",
        "rank-agreement": "prejudge.metrics.general.ranks:RankAgreement",
    }
    for name, target in metrics.items():
        catalogue.plugins.offers["metric"][name] = Registered(Plugged(name, target), "tests")
    return catalogue


def speak(word):
    """Let the model answer with a word, whatever is asked."""
    FakeModel.script = lambda request, seen: Generation(text=word)


def two_runs(run_study, **second):
    first, _ = run_study("fake")
    speak("longer")
    other, _ = run_study("other", **second)
    return first, other


def test_difference_is_tested_on_shared_trials(comparing, run_study, store):
    done = compare(comparing, store, two_runs(run_study), QUICK)
    mean, longest = done.differences
    assert list(done.runs) == ["fake", "other"]
    assert (mean.first, mean.second, mean.estimate.value) == (3.0, 6.0, 3.0)
    assert mean.estimate.group == {"run": "other", "against": "fake"}
    assert mean.estimate.n == 10 and mean.estimate.p is not None
    assert mean.estimate.test.family == "difference in mean_length: 1 test"
    assert mean.estimate.unit == "percentage points"
    assert longest.estimate.value == 3.0 and longest.estimate.p is None
    assert longest.estimate.caveats == ("untested",)


def test_interval_of_a_difference_has_no_impossible_values():
    """Shares of two sides are at most 100 points apart in a run, and so 200 in two; a unit without limits has none."""
    sides = [(1, 0.0, 100.0, "a"), (-1, 0.0, 100.0, "a"), (1, 0.0, 100.0, "b"), (1, None, None, "c")]
    frame = pl.DataFrame(
        [{"metric": "m", "g": g, "sign": sign, "least": low, "greatest": high} for sign, low, high, g in sides],
        infer_schema_length=None,
    )
    widths = widest(Units(frame, ("g",)))
    assert widths == {key_of("m", {"g": "a"}): 200.0, key_of("m", {"g": "b"}): 100.0}
    wide = Estimate.from_flat(metric="m", group={}, value=90.0, low=40.0, high=140.0)
    assert within_range(wide, 100.0).high == 100.0 and within_range(wide, 100.0).low == 40.0
    assert within_range(wide, None) == wide and within_range(wide.replace(low=None, high=None), 100.0).low is None


def test_missing_trial_of_either_is_left_out_and_bounded(comparing, run_study, store):
    FakeModel.script = lambda request, seen: PermanentError("no") if "q 3" in str(request) else None
    names = [run_study("fake")[0]]
    speak("longer")
    names.append(run_study("other")[0])
    mean = compare(comparing, store, names, QUICK).differences[0].estimate
    assert "own values" not in mean.note
    assert (mean.n, mean.missing.counts) == (9, {"failed": 1})
    assert mean.bound_low == pytest.approx((9 * 3.0 + (6 - 9)) / 10)
    assert mean.bound_high == pytest.approx((9 * 3.0 + 6) / 10)


def test_difference_that_is_not_that_of_the_runs_own_values_says_so(comparing, run_study, store):
    FakeModel.script = lambda request, seen: Generation(text="x" * (1 + 5 * ("q 3" in str(request))))
    names = [run_study("fake")[0]]
    FakeModel.script = lambda request, seen: PermanentError("no") if "q 3" in str(request) else Generation(text="xxx")
    names.append(run_study("other")[0])
    found = compare(comparing, store, names, QUICK).differences[0]
    assert (found.first, found.second, found.estimate.value) == (1.5, 3.0, 2.0)
    assert "of the units that both runs answered" in found.estimate.note


def test_other_options_are_refused_and_named(comparing, run_study, store):
    with raises_code(UsageError, "compare.design", "10", "6", "--allow-different"):
        compare(comparing, store, two_runs(run_study, n=6), QUICK)


def test_default_set_by_hand_is_no_difference(comparing, run_study, store):
    assert compare(comparing, store, two_runs(run_study, n=10), QUICK).notes == ()


def test_shared_trials_of_different_runs_can_be_compared(comparing, run_study, store):
    options = msgspec.structs.replace(QUICK, allow_different=True)
    done = compare(comparing, store, two_runs(run_study, n=6), options)
    assert done.differences[0].estimate.n == 6 and done.differences[0].estimate.missing.counts == {}
    assert any("option n is 10" in note for note in done.notes)


def test_different_studies_are_refused(comparing, run_study, store):
    comparing.registry.studies["again"] = StudyEntry(probe="count", metrics={"mean": {}})
    runs = {label: _scored(comparing, store, study, label) for study, label in (("count", "fake"), ("again", "other"))}
    with raises_code(UsageError, "compare.studies", "'count'", "'again'"):
        door.compare_scores(comparing, runs, QUICK)


def test_runs_of_several_studies_are_listed_where_their_metric_lists_them(comparing, store, tmp_path, monkeypatch):
    def across(self, runs):
        rows = [{"run": label, "answers": frame.height} for label, (frame, _) in runs.items()]
        return [Listing("answers", "Answers of each run", "All answers.", pl.DataFrame(rows))]

    monkeypatch.setattr(UnitLength, "across", across)
    comparing.registry.studies["again"] = StudyEntry(probe="count", metrics={"mean": {}})
    runs = {label: _scored(comparing, store, study, label) for study, label in (("count", "fake"), ("again", "other"))}
    done = door.compare_scores(comparing, runs, QUICK)
    assert done.differences == () and [one.name for one in done.listings] == ["answers"]
    report = write_comparison(done, tmp_path)
    assert pl.read_csv(report.with_name("answers.csv"))["answers"].to_list() == [10, 10]
    page = report.read_text(encoding="utf-8")
    assert "Answers of each run" in page and "<details" in page.split('id="tables"')[1]


def _scored(catalogue, store, study, model):
    name = asyncio.run(execute(catalogue, catalogue.study(study, {"subject": model}, {}), store, RunOptions()))
    return score(catalogue, store, name)


def test_one_run_is_refused(comparing, run_study, store):
    name, _ = run_study()
    with raises_code(UsageError, "compare.too-few"):
        compare(comparing, store, [name], QUICK)
    with raises_code(UsageError, "compare.twice"):
        compare(comparing, store, [name, "latest"], QUICK)
    with pytest.raises(UnknownNameError):
        compare(comparing, store, [name, "nothing"], QUICK)


def test_unfinished_run_is_told(comparing, run_study, store):
    names = two_runs(run_study)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'interrupted' WHERE id = 2")
        connection.exec_driver_sql("DELETE FROM run_trial WHERE run_id = 2 AND ordinal = 9")
        seal(connection, 2)
    done = compare(comparing, store, names, QUICK)
    assert any("other: This run is not complete" in note for note in done.notes)
    assert done.differences[0].estimate.missing.counts == {"absent": 1}


def test_runs_of_one_model_are_told_apart_by_name(comparing, run_study, store):
    names = [run_study("fake")[0], run_study("fake", mode="refresh")[0]]
    assert list(compare(comparing, store, names, QUICK).runs) == names


@pytest.mark.parametrize(("all_pairs", "count"), [(False, 2), (True, 3)])
def test_pairs_of_three_runs(comparing, run_study, store, all_pairs, count):
    names = [*two_runs(run_study), run_study("fake", mode="refresh")[0]]
    done = compare(comparing, store, names, msgspec.structs.replace(QUICK, all_pairs=all_pairs))
    tested = [d.estimate for d in done.differences if d.estimate.metric == "mean_length"]
    assert len(tested) == count and tested[0].test.family.endswith(f"{count} comparisons")


def test_units_that_are_not_the_estimate_blame_the_plugin(comparing, run_study, store):
    names = two_runs(run_study)
    UnitLength.wrong = 0.5
    with raises_code(PluginError, "plugin.units", "'tests'", "mean_length", "3.5", "3.0"):
        compare(comparing, store, names, QUICK)


def test_factor_with_a_name_of_comparisons_blames_the_plugin(comparing, run_study, store, monkeypatch):
    units = UnitLength.units
    monkeypatch.setattr(UnitLength, "units", lambda *words: units(*words).with_columns(run=pl.lit("x")))
    with raises_code(PluginError, "plugin.units", "'tests'", "'run'"):
        compare(comparing, store, two_runs(run_study), QUICK)


def test_metric_without_units_is_compared_without_test(comparing, run_study, store, monkeypatch):
    monkeypatch.setattr(UnitLength, "units", lambda self, observations, options: None)
    done = compare(comparing, store, two_runs(run_study), QUICK)
    assert [d.estimate.p for d in done.differences] == [None, None]
    assert done.conclusion == "No difference between the runs could be tested."


def test_values_that_differ_by_rounding_alone_have_no_difference(comparing, run_study, store, monkeypatch):
    told = iter([100 * (0.1 + 0.2), 30.0])

    def compute(self, observations, options):
        return [Estimate.from_flat(metric="share", group={}, value=next(told), n=3)]

    monkeypatch.setattr(UnitLength, "compute", compute)
    monkeypatch.setattr(UnitLength, "units", lambda *words: None)
    (found,) = compare(comparing, store, two_runs(run_study), QUICK).differences
    assert (found.first, found.second, found.estimate.value) == (100 * (0.1 + 0.2), 30.0, 0.0)
    assert found.first != found.second


def test_comparison_leaves_report_frames_and_figures(comparing, run_study, store, tmp_path):
    report = write_comparison(compare(comparing, store, two_runs(run_study), QUICK), tmp_path, ("pdf", "png"))
    folder = report.parent
    assert folder.name.startswith("compare-") and "2 runs compared" in report.read_text()
    frame = pl.read_parquet(folder / "differences.parquet")
    assert frame.select("against_value", "run_value", "value").row(0) == (3.0, 6.0, 3.0)
    assert pl.read_csv(folder / "differences.csv").height == 2
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".svg", ".pdf", ".png"}
    assert set(json.loads((folder / "manifests.json").read_text())) == {"fake", "other"}


def test_page_of_many_pairs_shows_the_largest_differences_by_group_first():
    def one(pair, value, **group):
        run, against = pair
        made = Estimate.from_flat(metric="m", group={"run": run, "against": against, **group}, value=value, n=9)
        return Difference(made, 0.0, value)

    def comparison(pairs):
        over_all = [one(pair, 0.001) for pair in pairs]
        by_group = [one(pair, (-1) ** place * place / 100, g=place) for pair in pairs for place in range(20)]
        undefined = [one(pair, None, g="none") for pair in pairs]
        found = (*over_all, *by_group, *undefined)
        return Comparison("t", {}, found, found, "", (), (), ())

    three = comparison([("b", "a"), ("c", "a"), ("c", "b")])
    shown, said = largest(three)
    assert [e.value for e in shown] == [0.001] * 3 + [0.18, -0.19] * 2 + [-0.19] and f"{len(shown)} of 66" in said
    assert len(three.estimates) == 66
    pair = comparison([("b", "a")])
    assert largest(pair) == ([d.estimate for d in pair.headline], "")


def test_what_a_metric_tests_together_is_one_family_of_differences():
    """Named by the measure, by the factors that differ within it, and by the levels that do not."""

    def estimate(metric, family, **group):
        return Estimate.from_flat(metric=metric, group=group, value=1.0, n=9, p=0.5, family=family)

    both = [estimate("gap", "gaps", axis="age", person=person) for person in ("he", "she")]
    other, alone = estimate("gap", "others", axis="size"), estimate("score", "gaps")
    found = families([*both, other, alone])
    assert {found[key_of(e.metric, e.group)] for e in both} == {"difference in gap by person axis age"}
    assert found[key_of("gap", other.group)] == "difference in gap axis size"
    assert found[key_of("score", {})] == "difference in score"


@pytest.mark.parametrize(("headed", "others"), [(0, 3), (0, ROWS + 1), (2, 5)])
def test_markdown_shows_the_headline_or_else_the_first_differences_and_counts_the_others(headed, others):
    def difference(name):
        made = Estimate.from_flat(metric="m", group={"run": "b", "against": "a", "g": name}, value=0.5, n=9)
        return Difference(made, 0.25, 0.75)

    headline = tuple(difference(f"main{n}.") for n in range(headed))
    every = (*headline, *(difference(f"other{n}.") for n in range(others)))
    page = markdown(Comparison("t", {}, every, headline, "", (), (), ()))
    shown = [d.estimate.group["g"] for d in every if d.estimate.group["g"] in page.replace("\\", "")]
    assert shown == [d.estimate.group["g"] for d in (headline or every)[:ROWS]]
    left = len(every) - len(shown)
    assert (f"{left} more" in page) if left else ("more differences" not in page)
    assert re.search(r"0\.75[^|]*\|[^|]*0\.25[^|]*\|[^|]*0\.5", page), "the run's value stands before the other's"


def test_margin_says_which_differences_matter_in_words_without_identifiers(comparing, run_study, store, tmp_path):
    UnitLength.measures = {"mean_length": Measure("Mean <b>length</b>", unit="%")}
    try:
        names = two_runs(run_study)
        (mean, longest) = compare(comparing, store, names, msgspec.structs.replace(QUICK, margin=2.0)).differences
        wide = compare(comparing, store, names, msgspec.structs.replace(QUICK, margin=4.0))
        page = write_comparison(wide, tmp_path)
    finally:
        del UnitLength.measures
    assert (mean.estimate.facts["margin"], mean.estimate.facts["within_margin"]) == (2.0, False)
    assert "margin" not in longest.estimate.facts
    assert "mean_length" not in wide.conclusion and "Mean <b>length</b>" in wide.conclusion
    told = page.with_name("comparison.md").read_text("utf-8")
    assert "Mean &lt;b&gt;length" in told and "<b>" not in told and "| fake |" in told
    assert "<b>length" not in page.read_text("utf-8")


def test_printed_values_are_grey_marks_without_being_asked_for(comparing, run_study, store):
    names = two_runs(run_study)
    study = score(comparing, store, names[0]).manifest.study.name
    values = (Published("mean_length", 2.0, model="M"), Published("absent", 1.0, model="N"))
    comparing.registry.studies[study] = msgspec.structs.replace(comparing.registry.studies[study], published=values)
    done = compare(comparing, store, names, QUICK)
    assert [chart.name for chart in done.charts] == ["levels-mean_length", "differences-mean_length"]
    (numbers,) = numbers_of(done.charts[0].figure)
    assert [row[1] for row in numbers.rows] == ["fake", "other", "M (published)"]
    assert len(done.differences) == 2  # nothing is subtracted from a printed value before that is asked for


def test_unknown_option_of_the_comparison_is_named(comparing, run_study, store):
    options = CompareOptions(assignments={"paired-difference.resample": 99})
    with raises_code(UnknownNameError, "unknown-option", "'resamples'"):
        compare(comparing, store, two_runs(run_study), options)


@pytest.fixture
def many(comparing, store):
    """Return runs of three models in two studies: in one the order of the models is turned round."""
    comparing.registry.studies["again"] = StudyEntry(probe="count", metrics={"mean": {}})
    comparing.registry.models["third"] = msgspec.structs.replace(
        comparing.registry.models["fake"], settings={"model": "third"}
    )
    runs = {}
    for study, words in (("count", ["xxxx", "xxxxx", "xxxxxx"]), ("again", ["xxxxxx", "xxxxx", "xxxx"])):
        for model, word in zip(("fake", "other", "third"), words, strict=True):
            speak(word)
            FakeModel.made.clear()
            comparing.registry.models[model].settings["model"] = f"{model} {study}"
            runs[f"{study} {model}"] = _scored(comparing, store, study, model)
    return runs


def test_ranks_that_are_turned_round(comparing, many):
    assert door.ranks_possible(many)
    (found,) = rank_runs(comparing, many, QUICK).estimates
    assert (found.value, found.n) == (-1.0, 3)
    assert found.group["first study"] == "count" and found.group["second measure"] == "mean_length"


def test_ranks_need_models_and_studies(comparing, many):
    few = {label: scores for label, scores in many.items() if "third" not in label}
    assert not door.ranks_possible(few)
    with raises_code(UsageError, "compare.too-few", "count: 2", "again: 2"):
        rank_runs(comparing, few, QUICK)


def test_ranks_leave_a_report(comparing, many, tmp_path):
    report = write_comparison(rank_runs(comparing, many, QUICK), tmp_path)
    page = report.read_text()
    assert "Ranks of 3 models across 2 studies" in page
    head = page.split("<nav")[0]
    assert "<dt>Study</dt><dd>count, again</dd>" in head and "count: not stated; again: not stated" in head
    for model in ("fake", "other", "third"):
        assert f"<dt>Model (again {model})</dt><dd>{model}: " in head


def test_ranks_have_a_table_of_their_own(comparing, many):
    ranked = rank_runs(comparing, many, QUICK)
    Console(file=(stream := io.StringIO()), width=120).print(rank_table(ranked.estimates))
    said = stream.getvalue()
    heads = ("first study", "first measure", "second study", "second measure", "Kendall's tau", "models", "p")
    assert re.search(" +".join(heads), said) and re.search(
        "count +mean_length +again +mean_length +\N{MINUS SIGN}1.000 +3 ", said
    )
    assert ranked.ranked and "difference" not in said


def test_score_all_labels_by_model(comparing, run_study, store):
    assert list(score_all(comparing, store, two_runs(run_study))) == ["fake", "other"]


VALUES = (
    Published("share", 60.0, model="M", source="Table 1", n=50),
    Published("share", 1.0, {"pronoun": "she"}, model="M"),
    Published("tau", 0.5, model="N (answers)", source="Table 2"),
    Published("tau", 0.1, model="M", reference=False),
)


def test_published_values_are_set_beside_estimates():
    """The intervals are recomputed with scipy: MOVER of the run's and of the exact interval of 30 of 50."""
    ends = {"low": 40.0, "high": 52.0, "level": 0.95}
    share = Estimate.from_flat(metric="share", group={}, value=45.0, unit="%", n=200, **ends)
    tau = Estimate.from_flat(metric="tau", group={}, value=0.2, n=200, low=0.1, high=0.35, level=0.95)
    other = Estimate.from_flat(metric="share", group={"pronoun": "he"}, value=45.0, unit="%", n=200, **ends)
    runs = {"mine": SimpleNamespace(estimates={"m": [share, tau, other]})}
    one, two = set_beside(runs, VALUES, ["all"])
    assert [d.estimate.group for d in (one, two)] == [
        {"run": "mine", "against": "M (published)"},
        {"run": "mine", "against": "N (answers)"},
    ]
    low, high = 100 * stats.beta.ppf([0.025, 0.975], [30, 31], [21, 20])
    assert (one.first, one.second, one.estimate.value) == (60, 45, -15)
    assert one.estimate.low == pytest.approx(-15 - np.hypot(45 - 40, high - 60), rel=1e-6)
    assert one.estimate.high == pytest.approx(-15 + np.hypot(52 - 45, 60 - low), rel=1e-6)
    assert one.estimate.unit == "percentage points" and "exact" not in one.estimate.note
    assert (two.estimate.low, two.estimate.high) == pytest.approx((0.1 - 0.5, 0.35 - 0.5))
    assert "exact" in two.estimate.note and two.estimate.p is None
    assert in_words([one, two]) == (
        "mine and M (published): 0 of 1 differences have an interval without 0 (not corrected); "
        "mine and N (answers): 1 of 1 differences have an interval without 0 (not corrected)."
    )
    assert set_beside(runs, VALUES, ["n"]) == [two]
    with raises_code(UnknownNameError, "unknown-published-model", "'Q'"):
        set_beside(runs, VALUES, ["Q"])


def test_one_run_is_compared_with_published_models(comparing, run_study, store, tmp_path):
    name, _ = run_study("fake")
    study = score(comparing, store, name).manifest.study.name
    entry = msgspec.structs.replace(
        comparing.registry.studies[study], published=(Published("mean_length", 2.0, model="M"),)
    )
    comparing.registry.studies[study] = entry
    with raises_code(UsageError, "compare.too-few", "--published"):
        compare(comparing, store, [name], QUICK)
    done = compare(comparing, store, [name], msgspec.structs.replace(QUICK, published=("all",)))
    (mean,) = done.differences
    assert (mean.first, mean.second, mean.estimate.value) == (2.0, 3.0, 1.0)
    assert mean.estimate.group == {"run": "fake", "against": "M (published)"}
    assert "M (published)" in write_comparison(done, tmp_path).read_text("utf-8")
