"""Whole convergences over models whose bias is known: what agrees, what must not, and what is written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import prejudge
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import BudgetError, DataError, UsageError
from prejudge.core.lab.converge import Finding
from prejudge.testing import raises_code

from .looks import looks

pytestmark = pytest.mark.usefixtures("no_figures")

CONSTRUCT = (
    looks(per_cell=40)
    + """
[methods.choice]
study = "subtle-sai"
options = { asking = "generate", domains = ["beauty"] }
size = { per_cell = 15 }
measure = "delta_PL"
group = { domain = "beauty" }
scale = "difference"
"""
)
ODD = {
    "words": "word_spread = 0.5\nseed = 1",
    "templates": "spread = 1.5\nseed = 2",
    "refusing": "refusal_rate = 0.02\nrefusal_lean = 0.2\nseed = 4",
}
"""Fair models that are not neutral, by their settings."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the construct, the fair but odd models, and one that is biased in sentences alone."""
    folder = tmp_path_factory.mktemp("convergence")
    (folder / "looks.toml").write_text(CONSTRUCT)
    registry = Catalogue.load().registry
    lists = registry.models["simulated-fair"].settings
    words = "\n".join(f"{name} = {json.dumps(lists[name])}" for name in ("blanks", "positive", "negative"))
    entries = {name: settings for name, settings in ODD.items()} | {"biased-half": "strength = 0.6\nseed = 3"}
    text = "\n".join(
        f'[models.{name}]\nadapter = "simulated"\n[models.{name}.settings]\n{words}\n{settings}\n'
        for name, settings in entries.items()
    )
    (folder / "models.toml").write_text(text)
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.fixture(scope="module")
def settings(place):
    return prejudge.Settings(registry="models.toml")


@pytest.fixture(scope="module")
def found(settings):
    """Every odd model, a fair, a biased and an unable one."""
    return prejudge.converge("./looks.toml", [*ODD, "biased-half", "simulated-biased", "lexicon"], settings)


def test_biased_models_agree_and_fair_ones_that_are_odd_do_not(found):
    findings = {one.model: one.finding for one in found.convergence.judged}
    assert findings["simulated-biased"] is Finding.AGREE_ABOVE
    assert {findings[name] for name in ODD} <= {Finding.NOT_SHOWN, Finding.ONE_SOURCE}
    assert [findings[name] for name in ODD].count(Finding.ONE_SOURCE) <= 1
    assert findings["lexicon"] is Finding.TOO_FEW


def test_unable_model_has_reasons_and_no_values(found):
    (judged,) = (one for one in found.convergence.judged if one.model == "lexicon")
    able = [one.method for one in judged.evidence if not one.lacking]
    assert not able and judged.heterogeneity is None and not judged.pairs


def test_methods_order_models(found):
    strong = {"simulated-biased": 1.0, "biased-half": 0.6, "words": 0.0}
    frame = found.estimates.filter(pl.col("model").is_in(list(strong)))
    for method in ("sentences", "choice"):
        own = {row["model"]: row["dominance"] for row in frame.filter(method=method).iter_rows(named=True)}
        assert own["simulated-biased"] > own["biased-half"] > own["words"]
    assert found.convergence.matrix is not None
    assert {one.found.n for one in found.convergence.matrix.correlations} == {len(ODD) + 2}


def test_files(found):
    folder = found.report.parent
    page = found.report.read_text("utf-8")
    written = json.loads((folder / "convergence.json").read_text("utf-8"))
    assert len(written["judged"]) == len(found.conclusions) == len(ODD) + 3
    for said in found.conclusions.values():
        assert said[:40] in page
    names = {path.name for path in folder.iterdir()}
    assert {"methods.csv", "pairs.csv", "conclusions.csv", "correlations.csv", "figures"} <= names
    values = pl.read_csv(folder / "methods.csv").filter(model="simulated-biased")
    assert values.height == 3 and (values["dominance"] > 0.3).all() and values["certificate"].null_count() == 0


def test_runs_instead_of_asking(found, settings):
    runs = {run: manifest for run, manifest in found.convergence.manifests.items()}
    chosen = [run for run, manifest in runs.items() if manifest.study.roles["subject"] == "simulated-biased"]
    again = prejudge.converge("./looks.toml", settings=settings, runs=chosen)
    before = next(one for one in found.convergence.judged if one.model == "simulated-biased")
    assert again.convergence.judged == (before,)
    one = prejudge.converge("./looks.toml", settings=settings, runs=chosen[:1])
    assert one.convergence.judged[0].finding is Finding.TOO_FEW
    with raises_code(DataError, "converge.run"):
        prejudge.converge("beauty-and-competence", settings=settings, runs=chosen[:1])


def test_two_runs_of_one_method_are_refused(found, settings):
    run = next(iter(found.convergence.manifests))
    with raises_code(UsageError, "converge.twice"):
        prejudge.converge("./looks.toml", settings=settings, runs=[run, run])


def test_model_that_changed_between_its_methods_is_told(found, settings, place):
    text = (place / "models.toml").read_text()
    (place / "changed.toml").write_text(text.replace("strength = 0.6", "strength = 0.7"))
    changed = prejudge.Settings(registry="changed.toml")
    runs = [
        prejudge.run(
            "bistereo-pairs",
            "biased-half",
            settings,
            axes=["skin complexion"],
            genders=["women"],
            sentiments=["positive", "negative"],
            per_cell=10,
        ),
        prejudge.run(
            "bistereo-nli",
            "biased-half",
            changed,
            asking="classify",
            genders=["women"],
            categories=["attractiveness", "unattractiveness"],
            per_cell=10,
        ),
    ]
    again = prejudge.converge("./looks.toml", settings=settings, runs=[one.name for one in runs])
    assert any("2 different models" in note and runs[1].name in note for note in again.convergence.notes)
    assert not any("different models" in note for note in found.convergence.notes)


def test_nothing_named_and_a_budget(settings, place):
    with raises_code(UsageError, "converge.nothing"):
        prejudge.converge("./looks.toml", settings=settings)
    small = prejudge.Settings(registry="models.toml", max_requests=20)
    with pytest.raises(BudgetError):
        prejudge.converge("./looks.toml", "simulated-halo", small)


def call(*words):
    done = CliRunner().invoke(cli, ["lab", "converge", "./looks.toml", *words], standalone_mode=False)
    return done.return_value if done.exception is None else done.exception, done.output


def test_command(found, place):
    code, said = call("--model", "simulated-biased", "--quiet")
    assert code == 0 and "sentences" in said and "Report: " in said
    assert call("--model", "lexicon", "--quiet")[0] == 1
    code, said = call("--model", "simulated-analogies", "--model", "lexicon", "--plan")
    assert code == 0 and "to ask" in said and "lexicon cannot answer" in said
    assert call("--model", "simulated-analogies", "--quiet", "--max-requests", "30")[0] == 3
    assert call("--model", "no-such-model")[0].code == "unknown-model"
