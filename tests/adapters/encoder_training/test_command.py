import asyncio
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from prejudge.adapters.encoder_training import _write
from prejudge.adapters.encoder_training._figures import delta_bars
from prejudge.core.cli.main import cli
from prejudge.core.errors import DataError, UsageError
from prejudge.probes._indicasa_confusion import read_confusion

CALL = ("--epochs", "1", "--batch", "32", "--learning-rate", "0.003", "--device", "cpu", "--quiet")


def run(*arguments):
    return CliRunner().invoke(
        cli, ["train-encoder", *map(str, arguments)], catch_exceptions=False, standalone_mode=False
    )


@pytest.fixture(scope="module")
def trained(files, tiny, tmp_path_factory):
    """The folder and what was printed by one call: two losses, both splits, one classifier."""
    pytest.importorskip("sentence_transformers", reason="needs the extra encoder")
    out = tmp_path_factory.mktemp("out") / "encoders"
    heads = ("--classifier", "frozen", "--head-seeds", "2", "--head-epochs", "3")
    made = run(*files, "--model", tiny, "--out", out, "--loss", "nt-bxent", "--loss", "triplet", *heads, *CALL)
    return out, made.output


def test_describe_trains_nothing(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "96" in run(*files, "--describe").output and not list(tmp_path.iterdir())


def test_model_must_be_named(files):
    with pytest.raises(UsageError, match=r"needs --model\. To look at the data only, add --describe"):
        run(*files)


def test_best_encoders_are_kept_with_their_confusion(trained):
    out, _ = trained
    kept = sorted(path.name for path in (out / "encoders").iterdir())
    assert kept == ["context-nt-bxent", "context-triplet", "sentence-nt-bxent", "sentence-triplet"]
    told = json.loads((out / "encoders" / "context-triplet" / "confusion.json").read_text())
    counts = told["categories"]["gender"]
    assert (told["split"], told["seed"]) == ("context", 0)
    assert sum(counts["stereotype"].values()) == sum(counts["anti-stereotype"].values()) == 4


@pytest.mark.parametrize("name", ["confusion.json", "confusion-nearest.json"])
def test_study_reads_the_confusion(trained, name):
    counts = read_confusion(str(trained[0] / "encoders" / "context-nt-bxent" / name))
    assert {category: sum(cells) for category, cells in counts.items()} == {"caste": 8, "gender": 8}


def test_kept_encoder_answers_as_any_other(trained):
    from prejudge.adapters.hf_encoder import HFEncoder, HFEncoderOptions
    from prejudge.core.records import Embed

    async def ask(folder: Path):
        adapter = HFEncoder(HFEncoderOptions(model=str(folder), device="cpu"))
        try:
            return await adapter.embed(Embed(text="They are poor."))
        finally:
            await adapter.aclose()

    assert len(asyncio.run(ask(trained[0] / "encoders" / "sentence-nt-bxent" / "encoder")).vector) == 32


def test_card_says_how_it_was_made(trained):
    card = (trained[0] / "encoders" / "context-nt-bxent" / "encoder" / "README.md").read_text()
    for words in (
        "| loss | nt-bxent |",
        "| temperature | 0.1 |",
        "| overall | ",
        "my set - caste.csv",
        "was trained on",
    ):
        assert words in card


def test_results_tell_both_splits_and_the_classifiers(trained):
    out, printed = trained
    told = json.loads((out / "results.json").read_text())
    assert [(s["split"], s["loss"]) for s in told["summaries"]] == [
        ("sentence", "nt-bxent"), ("sentence", "triplet"), ("context", "nt-bxent"), ("context", "triplet")
    ]  # fmt: skip
    assert [row["encoder"] for row in told["classifiers"]] == ["given", "trained", "given", "trained"]
    assert "Macro F1 of the classifiers, split by context" in (out / "results.md").read_text()
    assert "Best encoder, split by context" in printed


def test_figures_are_drawn(trained):
    drawn = sorted((trained[0] / "figures").iterdir())
    assert [path.name for path in drawn] == ["delta-sim.png", "t-sne-context.png", "t-sne-sentence.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_bars_of_another_encoder_stand_beside(trained, files, tiny, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(_write, "delta_bars", lambda summaries: drawn.append(summaries) or delta_bars(summaries))
    other = shutil.copytree(tiny, tmp_path / "other" / Path(tiny).name)
    weights = load_file(other / "model.safetensors")
    save_file({name: 1.01 * value for name, value in weights.items()}, other / "model.safetensors")
    made = ("--out", tmp_path / "out", "--loss", "triplet", "--split", "context", *CALL)
    run(*files, "--model", other, *made, "--beside", trained[0])
    (summaries,) = drawn
    panels = {(summary.model, summary.split) for summary in summaries}
    name, told = Path(tiny).name, json.loads((trained[0] / "results.json").read_text())
    apart = f"{name} ({told['digest'].removeprefix('sha256:')[:8]})"
    assert panels == {(name, "context"), (apart, "context"), (apart, "sentence")}


def test_a_folder_without_results_is_refused_before_anything_is_trained(files, tiny, tmp_path):
    pytest.importorskip("sentence_transformers", reason="needs the extra encoder")
    with pytest.raises(DataError, match=r"holds no results of train-encoder: .* Give an --out of another call"):
        run(*files, "--model", tiny, "--out", tmp_path / "out", *CALL, "--beside", tmp_path)
    assert not (tmp_path / "out").exists()


def test_second_call_trains_nothing(trained, files, tiny):
    out, _ = trained
    done = sorted((out / "cells").glob("*/result.json"))
    before = [path.stat().st_mtime_ns for path in done]
    run(*files, "--model", tiny, "--out", out, "--loss", "nt-bxent", *CALL)
    assert [path.stat().st_mtime_ns for path in done] == before and len(done) == 4
    told = json.loads((out / "results.json").read_text())
    assert len(told["summaries"]) == len(told["classifiers"]) == 4


def test_other_settings_need_another_folder(trained, files, tiny):
    with pytest.raises(DataError, match="holds trainings with learning_rate 0.003, not 0.1. Give another --out"):
        run(*files, "--model", tiny, "--out", trained[0], *CALL, "--learning-rate", "0.1")


def test_transformers_folder_is_pooled_by_its_mean(tiny_bert, corpus):
    pytest.importorskip("sentence_transformers", reason="needs the extra encoder")
    from prejudge.adapters.encoder_training._model import find_model, open_trainee

    model = open_trainee(find_model(str(tiny_bert)), corpus.texts, "cpu").encoder.model
    assert model[1].get_config_dict()["pooling_mode"] == "mean"
