import asyncio
import csv
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from prejudge.adapters.encoder_training import command
from prejudge.core.cli.main import cli
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.probes.indicasa.confusion import read_confusion

CALL = ("--epochs", "1", "--batch", "32", "--learning-rate", "0.003", "--device", "cpu", "--quiet")


def need_the_trainer():
    for package in command.NEEDED:
        pytest.importorskip(package, reason="needs the extra encoder")


def run(*arguments):
    return CliRunner().invoke(
        cli, ["train-encoder", *map(str, arguments)], catch_exceptions=False, standalone_mode=False
    )


@pytest.fixture(scope="module")
def trained(files, tiny, tmp_path_factory):
    """The folder and what was printed by one call: two losses, both splits, one classifier."""
    need_the_trainer()
    out = tmp_path_factory.mktemp("out") / "encoders"
    heads = ("--classifier", "frozen", "--head-seeds", "2", "--head-epochs", "3")
    made = run(*files, "--model", tiny, "--out", out, "--loss", "nt-bxent", "--loss", "triplet", *heads, *CALL)
    return out, made.output


@pytest.fixture(scope="module")
def chosen_on_validation(files, tiny, tmp_path_factory):
    """The folder and what was printed by a call that chooses on the reported part: two margins, two seeds."""
    need_the_trainer()
    out = tmp_path_factory.mktemp("out") / "encoders"
    many = ("--margin", "0.2", "--margin", "0.4", "--seed", "0", "--seed", "1", "--split", "sentence")
    made = run(*files, "--model", tiny, "--out", out, "--loss", "triplet", "--select", "validation", *many, *CALL)
    return out, made.output


def test_describe_trains_nothing(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "96" in run(*files, "--describe").output and not list(tmp_path.iterdir())


def test_model_must_be_named(files):
    with pytest.raises(UsageError) as caught:
        run(*files)
    assert caught.value.fields == {"option": "model"}


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
    from prejudge.adapters.hf.encoder.adapter import HFEncoder, HFEncoderOptions
    from prejudge.core.contracts.records import Embed

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
        "was used for training",
    ):
        assert words in card


def test_card_has_what_the_trainer_recorded(trained):
    out, _ = trained
    recorded = json.loads((out / "encoders" / "context-nt-bxent" / "result.json").read_text())["trainer"]
    card = (out / "encoders" / "context-nt-bxent" / "encoder" / "README.md").read_text()
    assert {"sentence_transformers", "torch", "learning_rate", "num_train_epochs"} <= set(recorded)
    assert all(f"| {name} | {value} |" in card for name, value in recorded.items())


def test_cards_quote_no_sentence(trained, corpus):
    cards = [path.read_text() for path in trained[0].glob("encoders/*/encoder/README.md")]
    assert len(cards) == 4 and not any(text in card for card in cards for text in corpus.texts)


def test_results_tell_both_splits_and_the_classifiers(trained):
    out, printed = trained
    told = json.loads((out / "results.json").read_text())
    assert [(s["split"], s["loss"]) for s in told["summaries"]] == [
        ("sentence", "nt-bxent"), ("sentence", "triplet"), ("context", "nt-bxent"), ("context", "triplet")
    ]  # fmt: skip
    assert [row["encoder"] for row in told["classifiers"]] == ["given", "trained", "given", "trained"]
    table = (out / "results.md").read_text()
    assert "\n| frozen | given | 2 | " in table and "Best encoder, split by context" in printed


def test_tables_have_a_cell_for_each_column(trained):
    rows, widths = (trained[0] / "results.md").read_text().splitlines(), []
    for above, line in zip(["", *rows], rows, strict=False):
        if line.startswith("|"):
            widths.append((line.count("|"), above.count("|") if above.startswith("|") else line.count("|")))
    assert len(widths) > 20 and all(one == other for one, other in widths)


def test_results_stand_alone(trained, files):
    text = (trained[0] / "results.md").read_text()
    digest = json.loads((trained[0] / "results.json").read_text())["digest"]
    assert text.startswith("# ") and f"`{digest}`" in text and "*reversed*: the difference is below zero" in text
    assert all(f"`{Path(file).name}`, sha256" in text for file in files)
    assert "\n| sentence | 0 | train 67, tuning 10, validation 19 |\n" in text
    assert "Training stopped, and parameters were chosen, by the tuning part" in text
    titles = [line.split("split by ")[1].split()[0] for line in text.splitlines() if ", split by" in line]
    assert titles == ["sentence", "context", "sentence", "context"]


def test_all_parameters_tried_are_reported(chosen_on_validation):
    out, _ = chosen_on_validation
    summaries = json.loads((out / "results.json").read_text())["summaries"]
    rows = [line for line in (out / "results.md").read_text().splitlines() if line.startswith("| sentence | triplet |")]
    assert [row.split(" | ")[2] for row in rows] == ["margin 0.2", "margin 0.4"]
    for row, tried in zip(rows, summaries, strict=True):
        assert f"| {tried['tuning']:.4f} | 0, 1 | {', '.join(map(str, tried['epochs']))} |" in row
        assert row.endswith("| chosen |") == tried["chosen"]


def test_choice_by_the_reported_part_is_said_everywhere(chosen_on_validation):
    out, printed = chosen_on_validation
    text = (out / "results.md").read_text()
    card = (out / "encoders" / "sentence-triplet" / "encoder" / "README.md").read_text()
    assert "stopped and chosen by this part)" in text and "by the validation part itself" in text
    assert "stopped and chosen by this part" in " ".join(printed.split())
    assert "chosen, by this part**" in card
    assert "train 77, validation (which served for tuning too) 19" in card and "tuning 19" not in card + text
    assert "Of 4 training(s) with this loss and split (seeds 0, 1; margin 0.2, 0.4)" in card


def test_held_out_rows_are_those_of_the_split(trained, files):
    from prejudge.adapters.encoder_training.data import read_corpus
    from prejudge.adapters.encoder_training.splits import cut

    corpus = read_corpus(files)
    parts = cut(corpus, "context", 0)
    with (trained[0] / "held-out.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "context"]
    found = {
        part: [(r["file"], int(r["line"])) for r in rows if r["part"] == part] for part in ("tuning", "validation")
    }
    for part, there in found.items():
        assert there == corpus.sentences.select("file", "line")[getattr(parts, part)].rows()
    assert len(rows) == 96 and len(rows[0]) == 8


def test_terminal_has_a_line_for_each_loss(trained):
    out, printed = trained
    assert max(map(len, printed.splitlines()[:-3])) <= 120
    assert printed.count("nt-bxent, temperature 0.1") == printed.count("triplet, margin 0.5") == 2


def test_figures_are_drawn(trained):
    drawn = sorted((trained[0] / "figures").iterdir())
    assert [path.name for path in drawn] == [
        "delta-sim-context.png", "delta-sim-sentence.png", "t-sne-context.png", "t-sne-sentence.png"
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_results_of_another_folder_are_drawn_beside(trained, files, tiny, monkeypatch):
    from prejudge.adapters.encoder_training import results

    drawn, draw = [], results.delta_figure
    monkeypatch.setattr(results, "delta_figure", lambda found, split: drawn.append(found) or draw(found, split))
    again = ("--out", trained[0], "--loss", "triplet", "--split", "context", *CALL)
    other = shutil.copytree(trained[0], trained[0].parent / "other", dirs_exist_ok=True)
    run(*files, "--model", tiny, *again, "--beside", other, "--beside", f"{other}/")
    name = Path(tiny).name
    assert [[one.model for one in found] for found in drawn] == [[name, f"{name} ({other})"]] * 2


@pytest.mark.parametrize(
    ("folder", "problem", "code"),
    [("out", UsageError, "options.conflict"), ("empty", DataError, "training.no-results")],
)
def test_beside_names_another_folder_with_results(files, tiny, tmp_path, monkeypatch, folder, problem, code):
    need_the_trainer()
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).mkdir()
    with pytest.raises(problem) as caught:
        run(*files, "--model", tiny, "--out", "out", *CALL, "--beside", f"./{folder}")
    assert caught.value.code == code and not list((tmp_path / folder).iterdir())


def test_no_split_is_trained_before_all_can_be_cut(write, tiny, tmp_path):
    need_the_trainer()
    lines = [f"0,He is {word}.,{kind}" for kind in ("stereotype", "anti_stereotype") for word in "abcd"]
    with pytest.raises(DataError) as caught:
        run(write(*lines), "--model", tiny, "--out", tmp_path / "out", *CALL)
    assert caught.value.code == "training.too-few" and not (tmp_path / "out").exists()


def test_parameter_that_no_loss_uses_is_told(trained, files, tiny):
    again = ("--model", tiny, "--out", trained[0], "--loss", "triplet", *CALL)
    made = run(*files, *again, "--margin", "0.5", "--temperature", "1")
    assert made.stderr == "Note: --temperature is not used by triplet.\n"


def test_interrupted_call_says_how_to_go_on(files, tiny, tmp_path, monkeypatch):
    need_the_trainer()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_train", interrupt)
    with pytest.raises(UsageError) as caught:
        run(*files, "--model", tiny, "--out", tmp_path / "out", *CALL)
    assert caught.value.code == "training.interrupted"


def test_what_is_done_is_said_to_be(trained, files, tiny):
    loud = [option for option in CALL if option != "--quiet"]
    made = run(*files, "--model", tiny, "--out", trained[0], "--loss", "triplet", "--split", "context", *loud)
    assert made.stderr == "[1/1] context-triplet-m0.5-s0: done\n"


def test_second_call_trains_nothing(trained, files, tiny):
    out, _ = trained
    done = sorted((out / "cells").glob("*/result.json"))
    before = [path.stat().st_mtime_ns for path in done]
    run(*files, "--model", tiny, "--out", out, "--loss", "nt-bxent", *CALL)
    assert [path.stat().st_mtime_ns for path in done] == before and len(done) == 4
    told = json.loads((out / "results.json").read_text())
    assert len(told["summaries"]) == len(told["classifiers"]) == 4


def test_other_settings_need_another_folder(trained, files, tiny):
    with pytest.raises(DataError) as caught:
        run(*files, "--model", tiny, "--out", trained[0], *CALL, "--learning-rate", "0.1")
    assert caught.value.fields == {"differs": "learning_rate"}


def test_other_data_need_another_folder(trained, files, tiny, tmp_path):
    other = shutil.copy(files[1], tmp_path)
    Path(other).write_text(Path(other).read_text().replace("poor", "shy"))
    again, found = ("--model", tiny, "--out", trained[0], *CALL), []
    for given in ((files[0], other), files[1:], files[::-1]):
        with pytest.raises(DataError) as caught:
            run(*given, *again)
        found.append(caught.value.fields["differs"])
    assert found == ["file my set - gender.csv", "files", "files"]


@pytest.mark.parametrize(
    ("more", "code"), [(("--precision", "float16"), "options.conflict"), (("--device", "cpu:0"), "model.device")]
)
def test_device_that_the_trainer_cannot_take_is_refused(files, tiny, tmp_path, more, code):
    need_the_trainer()
    with pytest.raises(UsageError) as caught:
        run(*files, "--model", tiny, "--out", tmp_path / "out", *CALL, *more)
    assert caught.value.code == code and not (tmp_path / "out").exists()


def test_classifiers_are_refused_among_several_processes(files, tiny, tmp_path, monkeypatch):
    need_the_trainer()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError) as caught:
        run(*files, "--model", tiny, "--out", tmp_path / "out", *CALL, "--classifier", "frozen")
    assert caught.value.code == "training.processes"


def test_transformers_folder_is_pooled_by_its_mean(tiny_bert, corpus):
    need_the_trainer()
    from prejudge.adapters.encoder_training.encoder import find_model, open_encoder

    model = open_encoder(find_model(str(tiny_bert)), corpus.texts, "cpu").model
    assert model[1].get_config_dict()["pooling_mode"] == "mean"
