"""Parts of templates: joined to observations, stored with a run, covered by inference, and no finding of their own."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import prejudge
from prejudge.metrics.bistereo.trisentbias import TriSentBias, TriSentBiasOptions
from prejudge.probes.bistereo.pairs import BIStereoOptions, BIStereoPairs

from .simulated_pairs import FACETS, Model, Pairs, significant

pytestmark = pytest.mark.usefixtures("no_figures")
PRAISE, BLAME = ("kind", "nice", "calm"), ("rude", "mean", "cold")
WORDS = [*(("positive", word) for word in PRAISE), *(("negative", word) for word in BLAME)]


@pytest.fixture
def settings(tmp_path):
    return prejudge.Settings(store=str(tmp_path / "p.db"), runs=str(tmp_path / "runs"))


def test_a_run_stores_its_design_and_infers_over_the_parts(settings):
    run = prejudge.run("bistereo-pairs", "simulated-fair", settings, per_cell=6, axes=["height"])
    assert run.manifest.design is not None
    assert {"opening", "place"} <= set(run.observations.columns)
    over = {e.facts.get("over") for e in run.scores.estimates["trisentbias"] if e.metric == "favouritism"}
    assert over == {" x ".join(FACETS)}
    again = prejudge.load(run.name, settings)
    assert again.manifest.options.metrics["trisentbias"]["over"] == list(FACETS)


def test_own_sentences_have_no_parts(settings, tmp_path):
    rows = ["desirable,undesirable,axis,gender,sentiment,template,attribute"]
    for number in range(12):
        for sentiment, word in WORDS:
            rows.append(
                f"A {word} tall man {number}.,A {word} short man {number}.,height,men,{sentiment},t{number},{word}"
            )
    (tmp_path / "own.csv").write_text("\n".join(rows), "utf-8")
    run = prejudge.run("bistereo-pairs", "simulated-fair", settings, data=str(tmp_path / "own.csv"))
    (estimate,) = [e for e in run.scores.estimates["trisentbias"] if e.metric == "favouritism" and e.facts.get("over")][
        :1
    ]
    assert estimate.facts["over"] == "template x attribute"


STUDIES = 60
LEANING = [Model((facet,), spread) for facet in FACETS for spread in (0.3, 0.5, 1.0)]
# At 5 % of 300 studies, more than 25 have a chance below 1 %.
MOST = 25 / 300


def test_numbers_of_simulated_studies_are_those_of_the_metric():
    """The simulation infers as the metric does: p and value of one study, from its observations."""
    options = BIStereoOptions(axes=("height",), sentiments=("positive", "negative"), per_cell=20)
    (stage,) = BIStereoPairs().stages(options)
    frame = pl.DataFrame([{**trial.factors, "trial": trial.id} for trial in stage.trials({})])
    frame = stage.design.record().join(frame)
    rng = np.random.default_rng(5)
    difference = {pair: rng.normal(0, 1) for pair in frame["pair"].unique(maintain_order=True)}
    side = pl.when(pl.col("side") == "desirable").then(0.5).otherwise(-0.5)
    score = pl.col("pair").replace_strict(difference) * side
    answers = frame.with_columns(
        log_probability=score, status=pl.lit("ok"), reason=pl.lit(None, pl.String), key=pl.lit(None, pl.Binary)
    )
    settled = TriSentBias().settled(TriSentBiasOptions(thresholds=(0.02,)), lambda: FACETS)
    own = [e for e in TriSentBias().compute(answers, settled) if e.metric == "favouritism"]
    pairs = Pairs(20, axes=("height",))
    values = np.array([[difference[pair]] for pair in frame["pair"].to_list()[::2]])
    for group in pairs.groups:
        p, value = pairs.inferred(group, values[group["row"]])[0]
        (estimate,) = (e for e in own if e.group["gender"] == group["name"])
        assert estimate.p == pytest.approx(p, rel=1e-9) and estimate.value == pytest.approx(100 * value, rel=1e-9)


def test_models_that_lean_by_openings_are_rarely_found_biased():
    """Preferences of 0.5 nats by opening and sentiment, of one law in praise and blame: no bias."""
    model = Model(("opening",), 0.5)
    assert significant(Pairs().tests(model, STUDIES, 1)).mean() <= 8 / STUDIES
    # The same studies of the paper's texts by whole templates, five openings of which each is in thirty of these.
    old = Pairs(texts="paper", over=("template", "attribute")).tests(model, STUDIES, 1)
    assert significant(old).mean() >= 20 / STUDIES


def test_a_planted_bias_is_found():
    model = Model(FACETS, 0.3, favours=0.5)
    assert significant(Pairs().tests(model, STUDIES, 1)).mean() >= 0.95


@pytest.mark.soak
@pytest.mark.parametrize("per_cell", [None, 60, 20, 11])
@pytest.mark.parametrize("model", LEANING)
def test_fair_models_are_rarely_found_biased(model, per_cell):
    pairs = Pairs(per_cell)
    tests = np.concatenate([pairs.tests(model, STUDIES, seed) for seed in range(300 // STUDIES)])
    assert significant(tests).mean() <= MOST


def test_a_run_is_scored_without_the_file_of_its_sentences(settings, tmp_path):
    rows = ["desirable,undesirable,axis,gender,sentiment"]
    rows += [f"A tall man {n}.,A short man {n}.,height,men,neutral" for n in range(6)]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(rows), "utf-8")
    run = prejudge.run("bistereo-pairs", "simulated-fair", settings, data=str(path))
    path.unlink()
    assert prejudge.load(run.name, settings).estimates.equals(run.estimates)
