import asyncio
import csv
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from prejudge.adapters.encoder_training import command
from prejudge.core.cli.main import cli
from prejudge.core.contracts.adapter import answer_one
from prejudge.core.contracts.errors import DataError, UsageError
from prejudge.probes.indicasa.confusion import read_confusion

CALL = ("--epochs", "1", "--batch", "48", "--learning-rate", "0.003", "--device", "cpu", "--quiet")
PAPER = ("--recipe", "indicasa-2025", "--loss", "triplet", "--margin", "0.2", "--margin", "0.4")


def need_the_trainer():
    for package in command.NEEDED:
        pytest.importorskip(package, reason="needs the extra encoder")


def run(*arguments):
    return CliRunner().invoke(
        cli, ["study", "train-encoder", *map(str, arguments)], catch_exceptions=False, standalone_mode=False
    )


def read(path):
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def trained(files, tiny, tmp_path_factory):
    """The folder and what was printed by one call: both splits of one loss, one classifier."""
    need_the_trainer()
    out = tmp_path_factory.mktemp("out") / "encoders"
    more = ("--split", "context", "--split", "sentence", "--seed", "1", "--classifier", "frozen", "--head-seeds", "2")
    made = run(*files, "--model", tiny, "--out", out, "--loss", "nt-bxent", *more, *CALL)
    return out, made.output


@pytest.fixture(scope="module")
def papers(files, tiny, tmp_path_factory):
    """The folder and what was printed by a call with the paper's recipe: two margins."""
    need_the_trainer()
    out = tmp_path_factory.mktemp("out") / "encoders"
    made = run(*files, "--model", tiny, "--out", out, *PAPER, *CALL)
    return out, made.output


def test_describe_trains_nothing(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "96" in run(*files, "--describe").output and not list(tmp_path.iterdir())


def test_model_must_be_named(files):
    with pytest.raises(UsageError) as caught:
        run(*files)
    assert caught.value.fields == {"option": "model"}


def given(**more):
    names = (*command.RECIPES["nested"].__struct_fields__, "temperature", "margin", "losses", "splits", "seeds")
    return dict.fromkeys(names) | {"recipe": "nested", "paper_grid": False} | more


def test_each_loss_has_its_own_default():
    made = {recipe.loss: recipe.value for recipe in command.make_recipes(given(losses=tuple(command.LOSSES)))}
    assert made["nt-xent"] == made["nt-xent-printed"] == 0.1 and made["nt-bxent"] == made["nt-bxent-printed"] == 10
    assert made["triplet"] == made["pairwise"] == 0.5


def test_recipe_of_the_authors_is_what_their_program_does():
    (one, *_) = recipes = command.make_recipes(given(recipe="indicasa-2025"))
    assert [recipe.loss for recipe in recipes] == ["nt-xent", "nt-bxent", "pairwise", "triplet"]
    assert (one.split, one.seed, one.pooling, one.batch, one.select) == ("context", 42, "cls", 1, "validation")
    assert (one.learning_rate, one.schedule, one.warmup, one.reshuffle) == (5e-5, "constant", 0.0, False)


def test_option_wins_over_the_recipe_and_combinations_are_trained_once():
    made = command.make_recipes(
        given(recipe="indicasa-2025", select="inner", losses=("triplet",), margin=(0.2, 0.2), seeds=(1, 2, 1))
    )
    assert [(one.seed, one.value, one.select, one.pooling) for one in made] == [
        (1, 0.2, "inner", "cls"), (2, 0.2, "inner", "cls")
    ]  # fmt: skip
    assert len(command.make_recipes(given(paper_grid=True))) == 2 * 6 + 2 * 5


@pytest.mark.parametrize("name", ["confusion.json", "confusion-mean.json", "confusion-nearest.json"])
def test_study_reads_the_confusion(trained, name):
    counts = read_confusion(str(trained[0] / "context-nt-bxent-t10-s1" / name))
    assert {category: sum(cells) for category, cells in counts.items()} == {"caste": 16, "gender": 16}


def test_confusion_names_its_encoder(trained):
    from prejudge.adapters.hf.encoder.files import find_encoder

    folder = trained[0] / "sentence-nt-bxent-t10-s1"
    confusion = read(folder / "confusion.json")
    assert confusion["encoder"] == find_encoder(str(folder / "encoder")).digest
    assert (confusion["several"], confusion["completions"]) == ("pair", 5)


def test_kept_encoder_answers_as_any_other(trained):
    from prejudge.adapters.hf.encoder.adapter import HFEncoder, HFEncoderOptions
    from prejudge.core.contracts.records import Embed

    async def ask(folder: Path):
        adapter = HFEncoder(HFEncoderOptions(model=str(folder), device="cpu"))
        try:
            return await answer_one(adapter, Embed(text="They are poor."))
        finally:
            await adapter.aclose()

    assert len(asyncio.run(ask(trained[0] / "sentence-nt-bxent-t10-s1" / "encoder")).vector) == 32


def test_card_says_how_it_was_made_and_quotes_no_sentence(trained, corpus):
    folder = trained[0] / "context-nt-bxent-t10-s1"
    card, recorded = (folder / "encoder" / "README.md").read_text(), read(folder / "result.json")["trainer"]
    for words in ("| loss | nt-bxent, temperature 10 |", "| overall | ", "my set - caste.csv", "was used for training"):
        assert words in card
    assert {"sentence_transformers", "torch", "learning_rate", "num_train_epochs"} <= set(recorded)
    assert all(f"| {name} | {value} |" in card for name, value in recorded.items())
    assert not any(text in card for text in corpus.texts)


def test_tables_have_a_cell_for_each_column(trained, papers):
    for out, _ in (trained, papers):
        rows, widths = (out / "results.md").read_text().splitlines(), []
        for above, line in zip(["", *rows], rows, strict=False):
            if line.startswith("|"):
                widths.append((line.count("|"), above.count("|") if above.startswith("|") else line.count("|")))
        assert len(widths) > 6 and all(one == other for one, other in widths)


def test_results_stand_alone(trained, files):
    text = (trained[0] / "results.md").read_text()
    assert text.startswith("# ") and all(f"`{Path(file).name}`, sha256" in text for file in files)
    assert read(trained[0] / "context-nt-bxent-t10-s1" / "result.json")["digest"] in text
    assert "by the tuning part, which is not reported" in text and "Nested" not in text
    assert [head["encoder"] for head in read(trained[0] / "classifiers.json")] == ["vanilla", "contrastive"]
    assert "\n| frozen | contrastive | encoder | 2 | " in text


def test_choice_by_the_reported_part_is_said_with_the_nested_value_beside_it(papers):
    out, printed = papers
    text = (out / "results.md").read_text()
    card = (out / "context-triplet-m0.2-s42" / "encoder" / "README.md").read_text()
    assert "by the validation part itself**" in text and "chosen by this part**" in card
    # One line for the two margins: the half chooses among all their epochs.
    assert text.count("\n| context | 42 | triplet | ") == 1 and "other half" in " ".join(printed.split())


def test_scores_are_those_of_the_papers_tables(papers):
    with (papers[0] / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    results = [read(path) for path in papers[0].glob("*/result.json")]
    assert [(row["loss"], row["category"]) for row in rows] == [
        ("", ""), ("", "caste"), ("", "gender"), ("triplet", "")
    ]  # fmt: skip
    assert float(rows[2]["value"]) == abs(results[0]["before"]["gender"]["value"])
    assert float(rows[3]["value"]) == max(abs(one["after"]["overall"]["value"]) for one in results)


def test_scores_of_another_split_are_not_held_against_the_paper(trained):
    lines = (trained[0] / "scores.csv").read_text().splitlines()
    assert {line.split(",")[1] for line in lines[1:]} == {"macro_f1"}


def test_held_out_rows_are_those_of_the_split(trained, corpus):
    from prejudge.adapters.encoder_training.data import cut

    parts = cut(corpus, "context", 1)
    with (trained[0] / "held-out.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "context"]
    for part in ("tuning", "validation"):
        there = [(row["file"], int(row["line"])) for row in rows if row["part"] == part]
        assert there == corpus.sentences.select("file", "line")[getattr(parts, part)].rows()
    assert len(rows) == 96 and len(rows[0]) == 8


def test_no_split_is_trained_before_all_can_be_cut(write, tiny, tmp_path):
    need_the_trainer()
    lines = [f"0,He is {word}.,{kind}" for kind in ("stereotype", "anti_stereotype") for word in "abcd"]
    with pytest.raises(DataError) as caught:
        run(write(*lines), "--model", tiny, "--out", tmp_path / "out", *CALL)
    assert caught.value.code == "training.too-few" and not (tmp_path / "out").exists()


def test_parameter_that_no_loss_uses_is_told(papers, files, tiny):
    made = run(*files, "--model", tiny, "--out", papers[0], *PAPER, "--temperature", "1", *CALL)
    assert made.stderr == "Note: --temperature is not used by triplet.\n"


def test_interrupted_call_says_how_to_go_on(files, tiny, tmp_path, monkeypatch):
    need_the_trainer()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_train", interrupt)
    with pytest.raises(UsageError) as caught:
        run(*files, "--model", tiny, "--out", tmp_path / "out", *CALL)
    assert caught.value.code == "training.interrupted"


def test_second_call_trains_nothing_and_says_so(papers, files, tiny):
    done = sorted(papers[0].glob("*/result.json"))
    before, loud = [path.stat().st_mtime_ns for path in done], [option for option in CALL if option != "--quiet"]
    made = run(*files, "--model", tiny, "--out", papers[0], *PAPER[:-2], *loud)
    assert made.stderr == "[1/1] context-triplet-m0.2-s42: done\n"
    assert [path.stat().st_mtime_ns for path in done] == before and len(done) == 2


def test_other_settings_or_data_need_another_folder(papers, files, tiny, tmp_path):
    other = shutil.copy(files[1], tmp_path)
    Path(other).write_text(Path(other).read_text().replace("poor", "shy"))
    again, found = ("--model", tiny, "--out", papers[0], *PAPER), []
    faster = tuple(word.replace("0.003", "0.1") for word in CALL)
    for own, settings in ((files, faster), ((files[0], other), CALL), (files[::-1], CALL)):
        with pytest.raises(DataError) as caught:
            run(*own, *again, *settings)
        found.append(caught.value.fields["differs"])
    assert found == ["learning_rate", "data", "data"]


def test_precision_that_the_device_cannot_take_is_refused(files, tiny, tmp_path):
    need_the_trainer()
    with pytest.raises(UsageError) as caught:
        run(*files, "--model", tiny, "--out", tmp_path / "out", *CALL, "--precision", "float16")
    assert caught.value.code == "options.conflict" and not (tmp_path / "out").exists()


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
