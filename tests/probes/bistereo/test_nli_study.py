"""BIStereo-NLI and -Tuples end to end: planted effects, and real checkpoints that order their labels differently."""

from __future__ import annotations

import json

import polars as pl
import pytest

import prejudge
from prejudge.core.answer import answer_of
from prejudge.core.contracts.estimates import Verdict
from prejudge.probes.bistereo.nli_design import load_lists

from ...adapters.checkpoints import write_causal, write_classifier
from ...command import blank_figure

# No test here looks at a figure.
pytestmark = pytest.mark.usefixtures("no_figures")
SMALL = {"per_cell": 40, "bistereo-nli.resamples": 199}
LABELS = ("entailment", "contradiction", "neutral")


def settings_in(folder):
    """Return settings with models that know all attributes of the study."""
    words = {"desirable": ["fair-skinned"], "undesirable": ["dark-skinned"]}
    for sentiment in ("positive", "negative"):
        words[sentiment] = [w for c in load_lists().categories if c.sentiment == sentiment for w in c.words]
    lists = ", ".join(f"{name} = {json.dumps(listed)}" for name, listed in words.items())
    models = [
        f'[models.planted-{strength}]\nadapter = "simulated"\nsettings = {{ strength = {strength}.0, {lists} }}'
        for strength in (0, 1, 3)
    ]
    registry = folder / "registry.toml"
    registry.write_text("\n".join(models), "utf-8")
    return prejudge.Settings(store=str(folder / "s.db"), runs=str(folder / "runs"), registry=str(registry))


@pytest.fixture
def settings(tmp_path):
    return settings_in(tmp_path)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Return the settings and the runs by the strength of what is planted."""
    own = settings_in(tmp_path_factory.mktemp("planted"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.savefig", blank_figure)
        return own, {n: prejudge.run("bistereo-nli", f"planted-{n}", own, **SMALL) for n in (0, 1, 3)}


def effects(run, metric):
    """Return the estimates of a contrast: the whole study, and by gender and kind."""
    found = run.estimates.filter(pl.col("metric") == metric, pl.col("direction").is_null())
    return found.filter(pl.col("gender").is_null()).row(0, named=True), found.filter(pl.col("gender").is_not_null())


@pytest.mark.parametrize(
    "metric", ["halo_and_horn", "halo", "horn", "halo_contradiction", "horn_contradiction", "halo_probability"]
)
def test_planted_effect_is_found_for_looks_and_behaviour_of_both_genders(planted, metric):
    whole, groups = effects(planted[1][3], metric)
    assert whole["value"] > 20 and whole["p_adjusted"] <= 0.05 and groups.height == 4
    assert groups["value"].min() > 20 and groups["p_adjusted"].max() <= 0.05


@pytest.mark.parametrize(("model", "shown"), [("simulated-biased", True), ("simulated-fair", False)])
def test_models_of_the_catalogue_have_what_is_planted_in_looks_and_in_behaviour(model, shown, settings):
    run = prejudge.run("bistereo-nli", model, settings, **SMALL)
    for metric in ("halo_probability", "horn_probability"):
        _, groups = effects(run, metric)
        assert sorted(groups["kind"].unique()) == ["behaviour", "looks"]
        if shown:
            assert groups["value"].min() > 10 and groups["p_adjusted"].max() <= 0.05
        else:
            assert groups["p_adjusted"].min() > 0.05


def test_effect_rises_with_what_is_planted_and_is_not_shown_without(planted):
    runs = list(planted[1].values())
    none, some, much = (effects(run, "halo_probability")[0] for run in runs)
    assert none["value"] < some["value"] < much["value"]
    assert none["p_adjusted"] > 0.05 and none["low"] < 0 < none["high"]
    verdicts = [next(e.verdict for e in run.scores.headline if not e.group) for run in runs]
    assert verdicts[0] is Verdict.OPEN and verdicts[2] is Verdict.ABOVE


def test_first_sentence_names_the_fixed_forms_that_the_claim_averages_over(planted):
    run = planted[1][3]
    assert {e.facts["fixed"] for e in run.scores.headline} == {"in these four forms, with these nouns"}
    assert "in these four forms" in run.conclusions["bistereo-nli"].partition(".")[0]
    assert "in these four forms" in answer_of(run.scores).replies[0].sentence


def test_run_can_be_scored_again_by_attribute(planted):
    settings, run = planted[0], planted[1][1]
    again = prejudge.score(run.name, settings, {"bistereo-nli.over": "attribute"})
    first, second = (effects(one, "halo")[0] for one in (run, again))
    assert first["value"] == second["value"] and second["interval"].endswith("(attribute)") and second["clusters"] == 17


def test_labels_of_a_checkpoint_go_by_its_own_names(settings, tmp_path):
    rotated = (LABELS, (*LABELS[1:], LABELS[0]))
    folder = write_classifier(tmp_path / "classifier", "bert", LABELS, max_position_embeddings=160)
    frames = []
    for labels in rotated:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        config |= {"id2label": dict(enumerate(labels)), "label2id": {name: at for at, name in enumerate(labels)}}
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
        run = prejudge.run(
            "bistereo-nli", f"hf-classifier:{folder}", settings, per_cell=2, **{"bistereo-nli.resamples": 99}
        )
        frames.append(run.observations)
    first, second = frames
    # The same weights under other names: what the first calls entailment the second calls contradiction.
    for old, new in zip(*rotated, strict=True):
        assert first[f"p_{old}"].to_list() == pytest.approx(second[f"p_{new}"].to_list(), abs=1e-6)
    names = dict(zip(*rotated, strict=True))
    assert [names[label] for label in first["label"]] == second["label"].to_list()


def test_by_likelihood_the_probabilities_are_judged_and_labels_are_compared_anew(settings):
    chosen = {"per_cell": 20, "asking": "likelihood", "bistereo-nli.resamples": 99}
    run = prejudge.run("bistereo-nli", "simulated-biased", settings, **chosen)
    answer = answer_of(run.scores)
    measures = {row.estimate.metric for row in answer.rows}
    assert measures == {"halo_and_horn_probability"} and "Halo and horn effect (" not in answer.also
    words = prejudge.run("bistereo-nli", "simulated-biased", settings, per_cell=20, **{"bistereo-nli.resamples": 99})
    assert {row.estimate.metric for row in answer_of(words.scores).rows} == {"halo_and_horn"}
    # The same stored answers, compared otherwise: the ratio of both is that of the labels without content.
    again = prejudge.score(run.name, settings, {"labels": "sum"})
    methods = [scores.methods[0] for scores in (run.scores, again.scores)]
    assert "without content" in methods[0] and "divided by" in methods[0] and "labels = calibrated" in methods[0]
    assert "compared as they are" in methods[1] and "labels = sum" in methods[1]
    assert not any("labels = " in text for text in words.scores.methods)
    ok = (pl.col("status") == "ok") & (pl.col("stage") == "pairs")
    first, second = run.observations.filter(ok), again.observations.filter(ok)
    assert first.height == second.height > 250
    for row, other in zip(first.iter_rows(named=True), second.iter_rows(named=True), strict=True):
        ratios = [other[f"p_{name}"] / row[f"prior_{name}"] for name in LABELS]
        assert [row[f"p_{name}"] for name in LABELS] == pytest.approx([ratio / sum(ratios) for ratio in ratios])


def test_questions_without_content_are_planned_beside_the_study_and_size_none_of_it():
    asked = {"asking": "likelihood"}
    main, priors = prejudge.plan("bistereo-nli", "simulated-biased", **asked)
    assert (main.stage, main.units, main.later) == ("pairs", 58224, ()) and (priors.stage, priors.requests) == (
        "priors",
        3,
    )
    (words,) = prejudge.plan("bistereo-nli", "simulated-biased")
    for part in ({"quick": True}, {"limit": 64}):
        small, beside = prejudge.plan("bistereo-nli", "simulated-biased", **asked, **part)
        (same,) = prejudge.plan("bistereo-nli", "simulated-biased", **part)
        assert small.units == same.units < words.units and beside.requests == 3


def test_causal_checkpoint_answers_both_studies_by_likelihood(settings, tmp_path):
    model = f"hf-causal:{write_causal(tmp_path / 'causal', 'llama', max_position_embeddings=1024)}"
    run = prejudge.run(
        "bistereo-nli", model, settings, per_cell=1, asking="likelihood", **{"bistereo-nli.resamples": 99}
    )
    assert run.observations["status"].to_list() == ["ok"] * (3 + 16)
    run = prejudge.run("bistereo-tuples", model, settings, **{"bistereo-tuples.resamples": 99})
    shares = run.estimates.filter(metric="biased_preference_normalised").filter(pl.col("dimension").is_null())
    assert dict(shares.select("gender", "n").iter_rows()) == {"women": 24, "men": 4}


def test_by_likelihood_headline_conclusion_and_figures_are_of_probabilities(settings):
    options = {"per_cell": 20, "bistereo-nli.resamples": 99}
    asked = prejudge.run("bistereo-nli", "simulated-biased", settings, asking="likelihood", **options).scores
    assert {e.metric for e in asked.headline} == {"halo_and_horn_probability"}
    assert "mean probability" in asked.conclusions["bistereo-nli"]
    assert "given to" not in asked.conclusions["bistereo-nli"]
    assert any("Mean probability" in chart.caption for chart in asked.charts)
    assert not any("answers that say" in chart.caption for chart in asked.charts)
    told = prejudge.run("bistereo-nli", "simulated-biased", settings, **options).scores
    assert {e.metric for e in told.headline} == {"halo_and_horn"}
    assert "given to" in told.conclusions["bistereo-nli"]
    assert any("answers that say" in chart.caption for chart in told.charts)
