"""Parts of templates: joined to observations, stored with a run, covered by inference, and no finding of their own."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import prejudge
from prejudge.metrics.bistereo.trisentbias import TriSentBias, TriSentBiasOptions
from prejudge.probes.bistereo.pairs import BIStereoOptions, BIStereoPairs

pytestmark = pytest.mark.usefixtures("no_figures")
PARTS = ("place", "attribute")
PRAISE, BLAME = ("kind", "nice", "calm"), ("rude", "mean", "cold")
WORDS = [*(("positive", word) for word in PRAISE), *(("negative", word) for word in BLAME)]
EVERY = ("opening", *PARTS)
OVER = {"trisentbias.over": []}
"""All that the design samples."""
STUDIES = 60


@pytest.fixture
def settings(tmp_path):
    return prejudge.Settings(store=str(tmp_path / "p.db"), runs=str(tmp_path / "runs"))


def test_a_run_stores_its_design_and_infers_over_the_parts(settings):
    run = prejudge.run("bistereo-pairs", "simulated-fair", settings, per_cell=6, axes=["height"], **OVER)
    assert run.manifest.design is not None
    assert {"opening", "ending", "place"} <= set(run.observations.columns)
    over = {e.facts.get("over") for e in run.scores.estimates["trisentbias"] if e.metric == "favouritism"}
    assert over == {" x ".join(PARTS)}
    again = prejudge.load(run.name, settings)
    assert again.manifest.options.metrics["trisentbias"]["over"] == list(PARTS)


def test_own_sentences_have_no_parts(settings, tmp_path):
    rows = ["desirable,undesirable,axis,gender,sentiment,template,attribute"]
    for number in range(12):
        for sentiment, word in WORDS:
            rows.append(
                f"A {word} tall man {number}.,A {word} short man {number}.,height,men,{sentiment},t{number},{word}"
            )
    (tmp_path / "own.csv").write_text("\n".join(rows), "utf-8")
    run = prejudge.run("bistereo-pairs", "simulated-fair", settings, data=str(tmp_path / "own.csv"), **OVER)
    (estimate,) = [e for e in run.scores.estimates["trisentbias"] if e.metric == "favouritism" and e.facts.get("over")][
        :1
    ]
    assert estimate.facts["over"] == "template x attribute"


@pytest.fixture(scope="module")
def asked():
    """Return the observations of one axis and gender, without numbers."""
    options = BIStereoOptions(axes=("height",), genders=("women",))
    (stage,) = BIStereoPairs().stages(options)
    frame = pl.DataFrame([{**trial.factors, "trial": trial.id} for trial in stage.trials({})])
    frame = BIStereoPairs().design(options).record().join(frame)
    return frame.with_columns(
        status=pl.lit("ok"), reason=pl.lit(None, dtype=pl.String), key=pl.lit(None, dtype=pl.Binary)
    )


@pytest.mark.parametrize("part", ["place", "opening"])
def test_models_that_lean_by_a_part_of_the_template_are_rarely_found_biased(asked, part):
    """Preferences of 0.3 nats by part and sentiment, with the same law for praise and blame: no bias."""
    rng = np.random.default_rng(3)
    level, sentiment, pair = (asked[name].rank("dense").to_numpy() - 1 for name in (part, "sentiment", "pair"))
    side = np.where(asked["side"] == "desirable", 0.5, -0.5)
    found = {cluster: 0 for cluster in (("template", "attribute"), EVERY)}
    for _ in range(STUDIES):
        lean = rng.normal(0, 0.3, (level.max() + 1, sentiment.max() + 1))[level, sentiment]
        value = -30 + side * (lean + rng.normal(0, 0.5, pair.max() + 1)[pair])
        frame = asked.with_columns(log_probability=pl.Series(value))
        for cluster in found:
            options = TriSentBiasOptions(over=cluster, resamples=99, thresholds=(0.02,))
            (estimate,) = (e for e in TriSentBias().compute(frame, options) if e.metric == "favouritism")
            found[cluster] += estimate.p < 0.05
    # Of 60 studies at 5 %, more than 8 have a chance below 1 %; templates as if independent find far more.
    assert found[EVERY] <= 8
    assert found["template", "attribute"] >= 15


def test_a_run_is_scored_without_the_file_of_its_sentences(settings, tmp_path):
    rows = ["desirable,undesirable,axis,gender,sentiment"]
    rows += [f"A tall man {n}.,A short man {n}.,height,men,neutral" for n in range(6)]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(rows), "utf-8")
    run = prejudge.run("bistereo-pairs", "simulated-fair", settings, data=str(path))
    path.unlink()
    assert prejudge.load(run.name, settings).estimates.equals(run.estimates)
