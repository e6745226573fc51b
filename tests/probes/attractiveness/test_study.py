"""The attractiveness study end to end: on a tiny real LLaVA, on a planted effect, and on models that do not answer."""

from __future__ import annotations

from pathlib import Path

import msgspec
import polars as pl
import pytest

import prejudge
from prejudge.core.contracts.errors import HaltedError
from prejudge.testing import raises_code

from ...adapters.llava_files import make_llava

pytest.importorskip("PIL")

# No test here looks at a figure.
pytestmark = pytest.mark.usefixtures("no_figures")
SMALL = {"per_cell": 1, "attractiveness.resamples": 299, "attractiveness.effect_resamples": 99}


OWN = """first,second,category,kind,positive,stereotype
Kind,Rude,traits,directed,first,
Cook,Guard,jobs,gender,,female vs male
"""


def answer_with_labels(folder: Path) -> None:
    """Turn the weights of a tiny LLaVA so that it says (a) or (b) after a prompt, which of them as the rest has it."""
    import torch
    from transformers import AutoTokenizer, LlavaForConditionalGeneration

    model, tokenizer = LlavaForConditionalGeneration.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    last, *label = (tokenizer(text, add_special_tokens=False).input_ids for text in ("ASSISTANT:", "(", "a", "b", ")"))
    opening, a, b, closing = (ids[-1] for ids in label)
    words, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    with torch.no_grad():
        # Each word points one way of its own, and the head follows it to the word that comes next.
        for way, token in enumerate((last[-1], opening, a, b, closing)):
            words[token] = torch.nn.functional.one_hot(torch.tensor(way), words.shape[1]) * 8.0
        for token, ways in {opening: [0], a: [1], b: [1], closing: [2, 3], tokenizer.eos_token_id: [4]}.items():
            head[token, :5] = 0.0
            head[token, ways] = 8.0
    model.save_pretrained(folder)


@pytest.fixture
def settings(tmp_path: Path) -> prejudge.Settings:
    """Return settings with a tiny LLaVA, and a model that refuses."""
    make_llava(tmp_path / "tiny-llava")
    registry = tmp_path / "registry.toml"
    registry.write_text(
        '[models.tiny]\nadapter = "hf-vlm"\nsettings = { model = "./tiny-llava" }\n'
        '[models.labels]\nadapter = "hf-vlm"\nsettings = { model = "./labels" }\n'
        '[models.refusing]\nadapter = "simulated"\nsettings = { refusal_rate = 1.0 }\n'
    )
    return prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"), registry=str(registry))


@pytest.fixture
def own(tmp_path: Path) -> dict[str, object]:
    """Return options that ask about two scenarios."""
    (tmp_path / "own.csv").write_text(OWN)
    return {"scenarios": str(tmp_path / "own.csv"), "built_in": False, **SMALL}


def of(run: prejudge.Run, metric: str) -> pl.DataFrame:
    return run.estimates.filter(pl.col("metric") == metric)


def test_likelihoods_of_a_tiny_llava_run_through_the_whole_study(settings, own):
    run = prejudge.run("attractiveness", "tiny", settings, asking="likelihood", **own)
    observations = run.observations
    assert observations.height == 2 * 18 * 2 * 4 and set(observations["status"]) == {"ok"}
    assert observations["p_a"].is_between(0, 1).all()
    gaps = of(run, "gap").filter(pl.col("gender").is_null() & pl.col("race").is_null() & pl.col("age_group").is_null())
    assert gaps.height == 2 and gaps["value"].null_count() == 0
    # Its images do reach it: two variants of one face are not answered alike.
    assert gaps["value"].abs().max() > 0


def test_answers_of_a_tiny_llava_run_through_the_whole_study(settings, own, tmp_path):
    make_llava(tmp_path / "labels")
    answer_with_labels(tmp_path / "labels")
    run = prejudge.run("attractiveness", "labels", settings, seeds=[0, 42], temperature=1.0, **own)
    observations = run.observations
    assert observations.height == 2 * 18 * 2 * 4 * 2
    assert set(observations["status"]) == {"ok"} and set(observations["p_a"]) == {0.0, 1.0}
    seeds = observations.pivot("seed", index=["scenario", "face", "variant", "first_is", "asked"], values="p_a")
    assert (seeds["0"] != seeds["42"]).any()
    assert of(run, "gap")["value"].null_count() == 0 and of(run, "halo")["n"].to_list() == [18]
    assert (Path(settings.runs) / run.name / "report.html").exists()


def test_words_other_than_labels_stop_the_run_or_end_with_counts_and_bounds(settings, own):
    with raises_code(HaltedError, "run.unfit"):
        prejudge.run("attractiveness", "tiny", settings, seeds=[0], max_tokens=4, **own)
    settings = msgspec.structs.replace(settings, keep_going=True)
    run = prejudge.run("attractiveness", "tiny", settings, seeds=[0], max_tokens=4, **own)
    assert set(run.observations["status"]) == {"unreadable"}
    assert of(run, "missing")["value"].min() == 100 and of(run, "unreadable")["value"].sum() == pytest.approx(100)
    gaps = of(run, "gap")
    assert gaps["value"].null_count() == gaps.height and set(gaps["bound_high"]) == {1.0}
    assert "100.0 %" in run.conclusions["attractiveness"]


def test_planted_filter_is_found_on_the_traits_it_is_planted_on(settings):
    chosen = {**SMALL, "categories": ["traits"], "strength": 1.0, "attractiveness.effect_resamples": 0}
    run = prejudge.run("attractiveness", "simulated-halo", settings, seeds=[0], **chosen)
    (halo,) = of(run, "halo").to_dicts()
    assert halo["value"] > 0.1 and halo["p"] < 0.01
    gaps = of(run, "gap").filter(pl.all_horizontal(pl.col("gender", "race", "age_group").is_null()))
    directed = gaps["facts"].str.contains("positive_option")
    assert gaps.filter(directed)["value"].mean() > 0.1 > gaps.filter(~directed)["value"].abs().mean()


def test_model_that_refuses_ends_with_counts_and_bounds(settings):
    run = prejudge.run("attractiveness", "refusing", settings, seeds=[0], categories=["conditions"], **SMALL)
    gaps = of(run, "gap")
    assert gaps["value"].null_count() == gaps.height and gaps["p"].null_count() == gaps.height
    assert set(gaps["bound_low"]) == {-1.0} and set(gaps["bound_high"]) == {1.0}
    assert of(run, "missing")["value"].min() == 100
