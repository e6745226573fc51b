"""Runs whose reader errs: corrected by labels and by a matrix, refused where they say nothing, shown everywhere."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import prejudge
from prejudge.core.annotation.correct import _correction
from prejudge.core.annotation.powered import Corrected
from prejudge.core.annotation.results import sample_results
from prejudge.core.annotation.samples import DESIGN, Sample
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.core.store import Store, get_run
from prejudge.core.view.room import Room
from prejudge.core.view.sampling import Wanted, draw_sample
from prejudge.core.view.urls import View
from prejudge.testing import raises_code

pytestmark = pytest.mark.usefixtures("no_figures")

CHOICES = ("positive", "negative", "neutral")
INFERRED = ("entailment", "contradiction", "neutral")


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    place = tmp_path_factory.mktemp("correction")
    return prejudge.Settings(store=str(place / "p.db"), runs=str(place / "runs"))


@pytest.fixture(scope="module")
def runs(settings):
    """Return a run of single answers and one of pairs; reports are written by the commands only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prejudge.core.api.running.write_output", lambda *_: None)
        yield {
            "subtle": prejudge.run("subtle-sai", "simulated-biased", settings, per_cell=8),
            "nli": prejudge.run("bistereo-nli", "simulated-biased", settings, per_cell=12),
        }


def told(sample, wrong=lambda one, stratum: False, people=("Ana",)):
    """Label a sample: the verdict, or the one after it where it is wrong."""
    labels = sample.sheet.labels
    for one in sample.design.items:
        stratum = sample.design.strata[one.stratum]
        place = labels.index(stratum.verdict) + bool(wrong(one, stratum))
        for by in people:
            sample.add(by, one.item, labels[place % len(labels)])
    return sample


def sample_of(run, settings, folder, n=150, **more):
    subtle = "subtle" in run.name
    outcome, labels, cells = ("chosen", CHOICES, ["given"]) if subtle else ("label", INFERRED, ["skin"])
    return prejudge.draw_sample(
        run.name, outcome, labels, n, cells=cells, seed=4, samples=folder, settings=settings, **more
    )


@pytest.fixture(scope="module")
def unfair(runs, settings, tmp_path_factory):
    """Return a sample whose people see errors of the reader after positive terms only."""
    random = np.random.default_rng(6)
    sample = sample_of(runs["subtle"], settings, tmp_path_factory.mktemp("samples"))
    return told(sample, lambda _, stratum: stratum.cell["given"] == "positive" and random.random() < 0.4)


@pytest.fixture(scope="module")
def shown(runs, settings, unfair):
    return prejudge.corrected(runs["subtle"], unfair, settings=settings)


def row(run, metric, **group):
    fits = [pl.col(name).is_null() if level is None else pl.col(name) == level for name, level in group.items()]
    return run.estimates.filter(pl.col("metric") == metric, *fits).row(0, named=True)


def test_difference_is_that_of_weighted_labels(runs, unfair, shown):
    """Of each side, over verdicts: their share times the share of the label among their labels."""
    observations = runs["subtle"].observations
    labels = {one.item: one.label for one in unfair.labels()["Ana"].values()}
    by: dict[tuple[str, str], list[bool]] = {}
    for one in unfair.design.items:
        stratum = unfair.design.strata[one.stratum]
        by.setdefault((stratum.cell["given"], stratum.verdict), []).append(labels[one.item] == "positive")
    value = 0.0
    for (given, verdict), own in by.items():
        side = observations.filter(pl.col("given") == given)
        share = side.filter(pl.col("chosen") == verdict).height / side.height
        # The measure groups verdicts by what they add: `negative` and `neutral` add nothing.
        value += (1 if given == "positive" else -1) * share * sum(own) / len(own)
    found = row(shown, "delta_PL", domain=None)
    assert found["corrected"] == pytest.approx(100 * value, abs=3)
    assert found["value"] == row(runs["subtle"], "delta_PL", domain=None)["value"]
    assert found["corrected_low"] < found["corrected"] < found["corrected_high"] < found["value"] + 20
    assert found["corrected_labels"] == len(unfair.design.items)


def test_page_of_the_sample_gives_the_numbers_of_the_scored_run(unfair, shown):
    """The difference of a share between two groups, by the page of the sample and by `score --labels`."""
    (on_page,) = [difference for difference in sample_results(unfair).differences if difference.label == "positive"]
    scored = row(shown, "delta_PL", domain=None)
    sign = 1 if on_page.group == "given: positive less negative" else -1
    assert 100 * sign * on_page.raw == pytest.approx(scored["value"])
    assert 100 * sign * on_page.rate.value == pytest.approx(scored["corrected"])


def test_right_labels_change_nothing(runs, settings, tmp_path):
    found = prejudge.corrected(runs["nli"], told(sample_of(runs["nli"], settings, tmp_path)), settings=settings)
    rows = found.estimates.filter(pl.col("corrected").is_not_null())
    assert {"halo", "horn"} <= set(rows["metric"])
    assert (rows["corrected"] - rows["value"]).abs().max() < 1e-9
    assert set(rows.filter(pl.col("metric") == "halo")["corrected_closer"]) == {"raw"}


def test_pairs_are_corrected_answer_by_answer(runs, settings, tmp_path):
    """Every answer is labelled, so the corrected value is the metric's own with the labels for verdicts."""
    random = np.random.default_rng(8)
    run = runs["nli"]
    sample = told(sample_of(run, settings, tmp_path, n=5000), lambda *_: random.random() < 0.3)
    labels = {one.item: one.label for one in sample.labels()["Ana"].values()}
    by_trial = {one.trial: labels[one.item] for one in sample.design.items}
    metric, options = run.scores.metrics["bistereo-nli"]
    relabelled = run.observations.with_columns(pl.col("trial").replace_strict(by_trial).alias("label"))
    own = {(e.metric, *e.group.values()): e.value for e in metric.compute(relabelled, options)}
    found = prejudge.corrected(run, sample, settings=settings)
    done = [e for es in found.scores.estimates.values() for e in es if "corrected_value" in e.facts]
    assert len(done) > 20
    for e in done:
        assert e.facts["corrected_value"] == pytest.approx(own[e.metric, *e.group.values()]), e.metric


def test_probabilities_are_not_what_was_labelled(runs, settings, tmp_path):
    """Measures of other columns than the labelled one stay as they are."""
    found = prejudge.corrected(runs["nli"], told(sample_of(runs["nli"], settings, tmp_path)), settings=settings)
    assert found.estimates.filter(pl.col("metric") == "halo_probability", pl.col("corrected").is_not_null()).is_empty()


def test_every_number_that_is_not_corrected_says_why(runs, settings, unfair, shown, tmp_path):
    """Ranks, tests and shares of both outcomes are no differences of means; log-odds are of other columns."""
    nli = prejudge.corrected(runs["nli"], told(sample_of(runs["nli"], settings, tmp_path)), settings=settings)
    for run, expected in (
        (shown, {"tau_b": "annotation.measure", "tau_c": "annotation.measure", "PL": "annotation.measure"}),
        (nli, {"halo_probability": "annotation.unused"}),
    ):
        rows = run.estimates.filter(pl.col("value").is_not_null())
        neither = rows.filter(pl.col("corrected").is_null() & (pl.col("corrected_code") == ""))
        assert neither.is_empty(), neither.select("metric")
        assert rows.filter(pl.col("corrected").is_not_null()).height > 0
        codes = dict(rows.filter(pl.col("corrected").is_null()).select("metric", "corrected_code").iter_rows())
        assert {name: codes.get(name) for name in expected} == expected


def test_people_who_disagree_count_where_most_agree(runs, settings, tmp_path):
    """Three people, of whom one says always otherwise: as if they were two."""
    sample = told(sample_of(runs["subtle"], settings, tmp_path, n=60), people=("Ana", "Ben"))
    before = prejudge.corrected(runs["subtle"], sample, settings=settings)
    told(sample, lambda *_: True, people=("Cem",))
    after = prejudge.corrected(runs["subtle"], Sample(sample.folder), settings=settings)
    assert row(after, "delta_PL", domain=None)["corrected"] == row(before, "delta_PL", domain=None)["corrected"]


def test_answers_of_one_group_that_people_disagree_on_do_not_shift_a_difference(runs, settings, tmp_path):
    """The judge is wrong alike for both skins. People cannot settle 7 of 10 answers about one of them, at random."""
    run, random = runs["nli"], np.random.default_rng(3)
    wrong = {one: random.random() < 0.3 for one in run.observations["trial"]}
    found = []
    for name, lost in (("all", 0.0), ("part", 0.7)):
        sample = told(sample_of(run, settings, tmp_path / name, n=5000), lambda one, _: wrong[one.trial])
        agreed = sample.labels()["Ana"]
        for one in sample.design.items:
            unsettled = sample.design.strata[one.stratum].cell["skin"] == "dark" and random.random() < lost
            sample.add("Ben", one.item, "" if unsettled else agreed[one.item].label)
        found.append(prejudge.corrected(run, Sample(sample.folder), settings=settings))
    every, part = (row(one, "halo", gender=None) for one in found)
    assert "more answers have no label" in part["corrected_method"]
    assert part["corrected_labels"] < 0.8 * every["corrected_labels"]
    assert part["corrected"] == pytest.approx(every["corrected"], abs=5)


def test_labels_are_refused(runs, settings, unfair, tmp_path):
    subtle, nli = runs["subtle"], runs["nli"]

    def refused(code, run, labels, error=UsageError):
        with raises_code(error, code):
            prejudge.corrected(run, labels, settings=settings)

    refused("annotation.other-run", nli, unfair)
    design = msgspec.structs.replace(
        unfair.design, items=tuple(msgspec.structs.replace(one, trial="x") for one in unfair.design.items)
    )
    strange = _copy(unfair, tmp_path / "strange", design)
    refused("annotation.other-run", subtle, strange)
    bare = sample_of(subtle, settings, tmp_path)
    refused("annotation.few", subtle, bare)
    last = [bare.sheet.items[place].item for place in bare.order("Ana")][-40:]
    for item in last:
        bare.add("Ana", item, "positive")
    refused("annotation.not-random", subtle, bare)
    few = told(sample_of(subtle, settings, tmp_path, n=10))
    refused("annotation.few", subtle, few)
    table = tmp_path / "labels.csv"
    table.write_text("trial,label\na,positive\n")
    refused("annotation.not-random", subtle, table)
    refused("annotation.sample", subtle, tmp_path / "nowhere", DataError)
    position = prejudge.draw_sample(subtle.name, "position", ("1", "2", "3"), 90, samples=tmp_path, settings=settings)
    refused("annotation.unused", subtle, told(position))


def _copy(sample, folder, design):
    folder.mkdir()
    for path in sample.folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / DESIGN).write_bytes(msgspec.json.encode(design))
    return Sample(folder)


def test_a_part_of_the_answers_corrects_only_numbers_of_that_part(runs, settings, tmp_path):
    """A sample of one domain says nothing of all."""
    wanted = Wanted(
        verdict="chosen", labels=CHOICES, n=300, cells=("given",), view=View(filters={"domain": ("beauty",)})
    )
    with Store(settings.store, writable=False) as store:
        room = Room(store, Catalogue.load(None), tmp_path / "runs")
        sample = told(draw_sample(room, get_run(store, runs["subtle"].name), tmp_path, wanted))
    found = prejudge.corrected(runs["subtle"], sample, settings=settings)
    assert row(found, "delta_PL", domain="beauty")["corrected"] is not None
    assert row(found, "delta_PL", domain=None)["corrected_code"] == "annotation.filtered"


def test_matrix_by_command(runs, settings, tmp_path):
    """Shares of two labels by file; a file whose judge guesses, or that knows one label only, corrects nothing."""
    told_of = runs["nli"].observations.filter(pl.col("label") != "neutral")["label"].unique().to_list()
    assert sorted(told_of) == ["contradiction", "entailment"]
    path = tmp_path / "errors.csv"

    def score(*counts):
        pairs = [(label, verdict) for label in sorted(told_of) for verdict in sorted(told_of)]
        lines = [f"{verdict},{label},{n}" for (label, verdict), n in zip(pairs, counts, strict=True)]
        path.write_text("\n".join(["verdict,label,n", *lines]))
        words = ["score", runs["nli"].name, "--matrix", str(path), "--store", settings.store, "--runs", settings.runs]
        return CliRunner().invoke(cli, words)

    done = score(180, 20, 10, 190)
    assert done.exit_code == 0, done.output
    csv = pl.read_csv(next((tmp_path / settings.runs).glob("*nli*/estimates.csv")), infer_schema_length=None)
    own = csv.filter(pl.col("metric") == "entailment", pl.col("corrected").is_not_null()).row(0, named=True)
    expected = 100 * (own["value"] / 100 + 0.9 - 1) / (0.9 + 0.95 - 1)
    assert own["corrected"] == pytest.approx(min(max(expected, 0), 100))
    third = tmp_path / "third.csv"
    pairs = [(verdict, label) for verdict in ("positive", "negative") for label in ("positive", "negative")]
    lines = [f"{verdict},{label},{90 if verdict == label else 10}" for verdict, label in pairs]
    third.write_text("\n".join(["verdict,label,n", *lines]))
    with raises_code(UsageError, "annotation.matrix", "neutral"):
        prejudge.corrected(runs["subtle"], matrix=str(third), settings=settings)
    for counts in ((100, 100, 100, 100), (12, 8, 9, 11), (0, 0, 10, 190)):
        assert score(*counts).exception.code == "annotation.matrix"


def test_report_terminal_and_export_show_both(runs, settings, unfair, tmp_path):
    places = ["--store", settings.store, "--runs", str(tmp_path), "--labels", str(unfair.folder)]
    done = CliRunner().invoke(cli, ["score", runs["subtle"].name, *places])
    assert done.exit_code == 0, done.output
    assert "PPI++" in done.output
    assert "corrected" in done.output
    page = (tmp_path / runs["subtle"].name / "report.html").read_text("utf-8")
    assert page.count("prediction-powered inference (PPI++)") > 2
    out = tmp_path / "e.csv"
    done = CliRunner().invoke(cli, ["export", runs["subtle"].name, *places, "--out", str(out)])
    assert done.exit_code == 0, done.output
    table = pl.read_csv(out, infer_schema_length=None)
    assert {"value", "corrected", "corrected_low", "corrected_high", "corrected_method"} <= set(table.columns)
    assert not table["facts"].str.contains("corrected").any()


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-1.0, 1.0), (0.0, 100.0)])
def test_corrected_numbers_end_at_what_the_measure_can_be(ends):
    """A correction adds errors to a share, and may pass its ends."""
    least, greatest = ends
    high = _correction(Corrected(greatest + 0.1, greatest - 0.2, greatest + 0.4, True), ends, 0.95, "labels")
    low = _correction(Corrected(least - 0.1, least - 0.4, least + 0.2, True), ends, 0.95, "labels")
    assert (high.value, high.low, high.high) == (greatest, greatest - 0.2, greatest)
    assert (low.value, low.low, low.high) == (least, least, least + 0.2)
