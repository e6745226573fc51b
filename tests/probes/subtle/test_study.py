"""The subtle-bias studies end to end, on a model whose bias is planted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import prejudge
from prejudge.core.catalogue.published import Published
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.engine.plan import plan
from prejudge.probes.subtle.design import load_design

# No test here looks at a figure.
pytestmark = pytest.mark.usefixtures("no_figures")
SMALL = {"per_cell": 12, "subtle.resamples": 199}
VARYING = (
    "he",
    "she",
    "they",
    "him",
    "her",
    "his",
    "their",
    "them",
    "man",
    "woman",
    "person",
    "men",
    "women",
    "people",
)


@pytest.fixture
def settings(tmp_path: Path) -> prejudge.Settings:
    """Return settings with models that know which words are positive and which are negative."""
    words: dict[str, list[str]] = {name: [] for name in ("desirable", "undesirable", "positive", "negative")}
    for domain in load_design().domains:
        for names, side in (
            (("desirable", "undesirable"), domain.stimuli),
            (("positive", "negative"), domain.attributes),
        ):
            for name, column in zip(names, zip(*side.pairs, strict=True), strict=True):
                words[name] += [word for word in column if word not in words[name]]
    lists = ", ".join(f"{name} = {json.dumps(listed)}" for name, listed in words.items())
    lists += f", varying = {json.dumps(VARYING)}"
    models = [
        f'[models.planted-{strength}]\nadapter = "simulated"\nsettings = {{ strength = {strength}.0, {lists} }}'
        for strength in (0, 1, 3)
    ]
    registry = tmp_path / "registry.toml"
    registry.write_text("\n".join(models), "utf-8")
    return prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"), registry=str(registry))


def whole(run: prejudge.Run, metric: str) -> dict[str, float]:
    """Return the one estimate of a metric for the whole study."""
    rows = run.estimates.filter(pl.col("metric") == metric, pl.col("domain").is_null(), pl.col("pronoun").is_null())
    return rows.row(0, named=True)


@pytest.mark.parametrize("asking", ["generate", "likelihood"])
@pytest.mark.parametrize("study", ["subtle-sai", "subtle-asa"])
def test_planted_bias_is_found_in_every_domain(settings, study, asking):
    run = prejudge.run(study, "planted-3", settings, asking=asking, **SMALL)
    found = run.estimates.filter(
        pl.col("metric") == "delta_PL", pl.col("domain").is_not_null(), pl.col("pronoun").is_null()
    )
    assert found.height == 5 and found["value"].min() > 30 and found["p_adjusted"].max() <= 0.05
    assert whole(run, "delta_NL")["value"] < -30 and whole(run, "tau_c_clustered")["value"] > 0.4
    assert whole(run, "delta_PL")["verdict"] == "above"


def test_effect_rises_with_the_planted_bias_and_is_not_shown_without(settings):
    runs = [prejudge.run("subtle-sai", f"planted-{strength}", settings, **SMALL) for strength in (0, 1, 3)]
    none, some, much = (whole(run, "delta_PL") for run in runs)
    assert none["value"] < some["value"] < much["value"]
    assert none["p_adjusted"] > 0.05 and none["low"] < 0 < none["high"]


def test_orders_are_a_factor_and_reported_apart(settings):
    run = prejudge.run("subtle-sai", "planted-1", settings, orders="latin", **SMALL)
    assert run.observations["order"].n_unique() == 3
    places = run.estimates.filter(pl.col("metric") == "position_bias")
    assert places.height == 3 and places["n"].to_list() == [1080] * 3


def test_run_can_be_scored_again_by_other_clusters(settings):
    run = prejudge.run("subtle-sai", "planted-1", settings, **SMALL)
    again = prejudge.score(run.name, settings, {"subtle.over": ["term"]})
    assert whole(again, "delta_PL")["interval"] == "cluster bootstrap (term)"
    assert whole(again, "delta_PL")["value"] == whole(run, "delta_PL")["value"]


def test_values_of_other_models_are_no_target_for_a_run(settings):
    run = prejudge.run("subtle-asa", "planted-1", settings, **SMALL)
    assert "PaLM 2" not in run.report.read_text("utf-8").split("Published values")[-1]


def test_plan_holds_the_papers_counts_by_domain():
    catalogue = Catalogue.load(None)
    (stage,) = plan(catalogue, catalogue.study("subtle-sai", {}, {"domains": ["beauty", "institution"]}))
    found = {cell.group["domain"]: (cell.units, cell.published) for cell in stage.coarser}
    assert found["beauty"] == (1026, 1026) and found["institution"] == (960, 940) and found["ageism"] == (0, 858)


def test_published_values_are_complete():
    pronouns = {"subtle-sai": (5, 8), "subtle-asa": (6, 9)}
    for study, tables in pronouns.items():
        values: tuple[Published, ...] = Catalogue.load(None).registry.study(study).published
        printed = [value for value in values if value.model in ("GPT-3.5", "PaLM 2")]
        counts = Counter(value.source for value in printed)
        assert [counts[f"Table {number}"] for number in (1, 2, 3, 4, 7, *tables)] == [4, 30, 36, 30, 30, 90, 90]
        assert all(value.width is not None for value in printed)
        assert len({(v.measure, v.of, str(v.group), v.model, v.source) for v in values}) == len(values)
    assert Catalogue.load(None).registry.study("subtle-sai").options == {"direction": "sai"}
