"""Variance components of runs: from the store to the page, and what cannot be estimated."""

from __future__ import annotations

import json
from math import sqrt

import msgspec
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import cli
from prejudge.core.lab.variance.outcome import VarianceOptions, outcome_of
from prejudge.core.scoring.score import opened
from prejudge.core.store import Store
from prejudge.testing import raises_code

pytestmark = pytest.mark.usefixtures("no_figures")

PLANTED = """
[models.leaning]
adapter = "simulated"
settings = { strength = 1.0, spread = 1.5, word_spread = 1.0, noise = 0.8 }

[models.other]
adapter = "simulated"
settings = { strength = 0.2, spread = 1.5, word_spread = 1.0, noise = 0.8, seed = 3 }
"""
SMALL = {"per_cell": 60, "axes": ["height"], "sentiments": ["positive", "negative"]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the settings of a store, and its runs: one on each model, one of another design, one of another study."""
    place = tmp_path_factory.mktemp("variance")
    (place / "registry.toml").write_text(PLANTED)
    settings = prejudge.Settings(
        store=str(place / "p.db"), runs=str(place / "runs"), registry=str(place / "registry.toml")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prejudge.core.api.running.write_output", lambda *_: None)
        asked = [("bistereo-pairs", "leaning", SMALL), ("bistereo-pairs", "other", SMALL)]
        asked += [("bistereo-pairs", "leaning", SMALL | {"seed": 7}), ("subtle-sai", "simulated-fair", {"per_cell": 3})]
        return settings, [prejudge.run(study, model, settings, **options).name for study, model, options in asked]


@pytest.fixture(scope="module")
def leaning(runs):
    settings, names = runs
    return prejudge.variance(
        names[0], facets=["template", "attribute", "gender", "axis"], random=["template"], settings=settings
    )


def test_headline_is_that_of_the_run(runs, leaning):
    """The difference of means of the two sides, from the observations alone."""
    settings, names = runs
    rows = prejudge.load(names[0], settings).observations
    wide = rows.pivot("side", index=["pair", "sentiment"], values="log_probability")
    by = dict(wide.group_by("sentiment").agg((pl.col("desirable") - pl.col("undesirable")).mean()).iter_rows())
    assert leaning.variance.outcome.value == pytest.approx(by["positive"] - by["negative"])
    assert leaning.variance.outcome.measure == "favouritism_log_odds"


def test_planted_leans_are_where_the_variance_is(runs, leaning):
    by = {row["component"]: row for row in leaning.estimates.iter_rows(named=True)}
    template = next(row for name, row in by.items() if name.startswith("template"))
    assert template["low"] <= 1.5**2 <= template["high"]
    word = next(row for name, row in by.items() if name.startswith("attribute"))
    assert word["low"] <= 1.0 <= word["high"]
    # Every template has words of both sides, and every word one side only.
    assert word["share of squared error (%)"] > template["share of squared error (%)"]
    assert leaning.variance.headline.random == {"template", "attribute"}
    # Words alone, each with a variance of 1 and on one side, give this much; answers as independent ones give less.
    rows = prejudge.load(runs[1][0], runs[0]).observations
    by_words = sqrt(sum(1 / n for n in rows.group_by("sentiment").agg(pl.col("attribute").n_unique())["attribute"]))
    error = leaning.variance.headline.error
    assert error.low < by_words < error.high
    assert error.value > 1.2 * leaning.variance.outcome.naive


def test_designs_agree_with_a_run_of_so_many(leaning):
    """A design with all words twice has sqrt(2) less of their part of the error."""
    rows = {row["design"]: row for row in leaning.designs.iter_rows(named=True)}
    now, twice = rows["as run"], rows["2 x attribute"]
    assert twice["requests"] == 2 * now["requests"]
    assert now["standard error"] / sqrt(2) <= twice["standard error"] < now["standard error"]
    (best,) = (row for name, row in rows.items() if name.startswith("fewest"))
    assert best["standard error"] <= now["standard error"] / 2


def test_models_are_told_apart(runs):
    settings, names = runs
    found = prejudge.variance(*names[:2], settings=settings)
    headline = found.variance.headline
    assert headline.object == "model"
    assert 0 < headline.relative.value < 1
    assert headline.dependable.value <= headline.relative.value + 1e-9
    assert set(found.variance.outcome.rows["model"]) == {"leaning", "other"}


def test_page_and_files(leaning):
    place = leaning.report.parent
    drawn = {one.stem.partition("-")[2] for one in (place / "figures").iterdir()}
    assert drawn == {"components", "designs"}
    assert pl.read_parquet(place / "components.parquet").equals(leaning.estimates)
    assert json.loads((place / "variance.json").read_text())["conclusion"] == leaning.conclusion
    page = (place / "report.html").read_text()
    assert leaning.variance.outcome.words.label in page
    assert set(leaning.plot()) == {"components", "designs"}


@pytest.mark.parametrize(
    ("chosen", "options", "code"),
    [
        ((0, 3), {}, "variance.studies"),
        ((0, 2), {}, "variance.design"),
        ((0, 0), {}, "variance.twice"),
        ((0,), {"facets": ("templat",)}, "variance.facet"),
        ((0,), {"random": ("model",)}, "variance.facet"),
        ((0,), {"object": "model"}, "variance.facet"),
        ((0,), {"facets": ("axis",)}, "variance.facets"),
        ((0,), {"where": {"gender": "nobody"}}, "variance.nothing"),
        ((0,), {"measure": "favourites"}, "unknown-measure"),
        ((0,), {"metric": "none"}, "unknown-metric"),
        ((0,), {"error": 0.0}, "options.value"),
        ((0,), {"method": "ml"}, "options.choice"),
    ],
)
def test_what_cannot_be_done(runs, chosen, options, code):
    settings, names = runs
    with raises_code(prejudge.errors.UsageError, code):
        named = [names[place] for place in chosen]
        prejudge.variance(*named, settings=settings, **options)


def test_another_method_has_its_own_numbers_and_words(runs, leaning):
    settings, (name, *_) = runs
    found = prejudge.variance(name, settings=settings, method="reml", interactions=1)
    assert found.estimates["variance"].min() >= 0
    word = found.estimates.filter(pl.col("component") == "attribute (in sentiment)")
    assert word["low"].item() <= 1.0 <= word["high"].item()
    error = found.variance.headline.error
    assert error.low <= leaning.variance.headline.error.value <= error.high
    page = found.report.read_text()
    assert "Variance components by REML" in page and "profile likelihood" in page and "Ting" not in page


def test_one_level_is_said_and_the_rest_is_estimated(runs, leaning):
    assert "variance.one-level" in {note.code for note in leaning.variance.notes}
    settings, (name, *_) = runs
    found = prejudge.variance(name, settings=settings, where={"sentiment": "positive"}, measure="log_odds_difference")
    said = {note.code: note.text for note in found.variance.notes}
    assert "sentiment" in said["variance.one-level"] + str([n.text for n in found.variance.notes])
    assert found.variance.headline.error.value > 0


def test_command(runs):
    settings, (name, *_) = runs
    where = ["--store", settings.store, "--runs", settings.runs, "--registry", settings.registry]
    done = CliRunner().invoke(
        cli, ["lab", "variance", name, *where, "--facets", "template,attribute", "--error", "0.2"]
    )
    assert done.exit_code == 0, done.output
    assert "fewest answers for 0.2" in done.output
    assert "report.html" in done.output
    done = CliRunner().invoke(cli, ["lab", "variance", name, *where, "--where", "gender"])
    assert done.exception is not None
    assert done.exception.code == "options.value"


def test_missing_answers_are_left_out_and_counted(runs):
    settings, (name, *_) = runs
    with Store(settings.store, writable=False) as store:
        scores, instrument = opened(Catalogue.load(settings.registry), store, name)
    (stage, frame), *_ = scores.observations.items()
    lost = pl.int_range(pl.len()) < 10
    frame = frame.with_columns(status=pl.when(lost).then(pl.lit("refused")).otherwise("status"))
    damaged = msgspec.structs.replace(scores, observations={stage: frame}, metrics=instrument.metrics)
    outcome = outcome_of({"one": damaged}, VarianceOptions())
    whole = frame["pair"].n_unique()
    assert outcome.missing == frame.head(10)["pair"].n_unique()
    assert outcome.rows.height == whole - outcome.missing
    assert outcome.rows["_value"].is_finite().all()


def test_one_way_components_of_a_run_are_those_of_numpy(runs):
    """Mean squares between and within the words of praise, from the observations alone (Searle 1971, chapter 10)."""
    settings, (name, *_) = runs
    rows = prejudge.load(name, settings).observations
    wide = rows.filter(pl.col("sentiment") == "positive").pivot(
        "side", index=["pair", "attribute"], values="log_probability"
    )
    gap = wide.select("attribute", gap=pl.col("desirable") - pl.col("undesirable"))
    groups = [part["gap"].to_numpy() for part in gap.partition_by("attribute")]
    sizes = np.array([len(own) for own in groups])
    within = sum(((own - own.mean()) ** 2).sum() for own in groups) / (sizes.sum() - len(groups))
    middle = gap["gap"].mean()
    between = sum(len(own) * (own.mean() - middle) ** 2 for own in groups) / (len(groups) - 1)
    typical = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(groups) - 1)
    assert len(set(sizes)) > 1  # unbalanced, so that the sizes matter
    options = {"measure": "log_odds_difference", "where": {"sentiment": "positive"}, "facets": ("attribute",)}
    found = prejudge.variance(name, settings=settings, **options)
    by = dict(found.estimates.select("component", "variance").iter_rows())
    assert list(by.values()) == pytest.approx([(between - within) / typical, within])


def damaged(runs, change):
    """Return the first run with other observations."""
    settings, (name, *_) = runs
    with Store(settings.store, writable=False) as store:
        scores, instrument = opened(Catalogue.load(settings.registry), store, name)
    (stage, frame), *_ = scores.observations.items()
    return msgspec.structs.replace(scores, observations={stage: change(frame)}, metrics=instrument.metrics)


def test_facets_that_change_together_are_both_named(runs):
    """A run that asked about each noun in an order of its own."""
    confounded = damaged(runs, lambda frame: frame.with_columns(order=pl.col("noun")))
    outcome = outcome_of({"one": confounded}, VarianceOptions(facets=("noun", "order", "attribute")))
    (note,) = (one for one in outcome.notes if one.code == "variance.confounded")
    assert "noun" in note.text and "order" in note.text
    assert "order" not in outcome.facets and {"noun", "attribute"} <= set(outcome.facets)


def test_empty_cells_are_left_out_and_the_rest_is_estimated(runs):
    """No answer about one word in half of the templates."""
    first = pl.col("attribute") == pl.col("attribute").first()
    holes = damaged(runs, lambda frame: frame.filter(~(first & (pl.col("template").rank("dense") % 2 == 0))))
    outcome = outcome_of({"one": holes}, VarianceOptions(facets=("template", "attribute")))
    assert set(outcome.facets) >= {"template", "attribute"}
    assert outcome.rows.height == holes.observations[next(iter(holes.observations))]["pair"].n_unique()
    assert outcome.missing == 0


def test_level_that_is_none_is_named_with_those_that_are(runs):
    settings, (name, *_) = runs
    with raises_code(prejudge.errors.UsageError, "variance.nothing", "nobody", "women"):
        prejudge.variance(name, settings=settings, where={"gender": "nobody"})
