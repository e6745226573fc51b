"""Which model can answer which study: every study on every kind of model, refused before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import prejudge
from prejudge.core.catalogue.needs import NEEDS as NEEDS_WORD
from prejudge.core.catalogue.needs import fit_of, ways_of
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import cli
from prejudge.core.contracts.abilities import OPERATIONS
from prejudge.core.contracts.adapter import ModelAdapter
from prejudge.core.contracts.errors import UnsupportedOperationError, UsageError
from prejudge.core.store import Store, statistics
from prejudge.testing import raises_code

from ...model_folders import write_kinds

WORDS, SCORES, MASKS, CLASSES, IMAGES, SEEN = "generate", "likelihood", "pll", "classify", "draw", "generate+images"
NEEDS = {
    "attractiveness": {SEEN},
    "bistereo-nli": {CLASSES, WORDS, SCORES},
    "bistereo-nli-prompts": {WORDS, SCORES},
    "bistereo-pairs": {MASKS, SCORES},
    "bistereo-tuples": {SCORES},
    "bistereo-tuples-draft": {WORDS},
    "dora-i2t": {SEEN},
    "dora-t2i": {IMAGES},
    "dora-t2t": {WORDS},
    "indicasa": {WORDS},
    "subtle-asa": {WORDS},
    "subtle-sai": {WORDS},
}
"""What the subject of a study is asked: it must be able to do one of these. Written from the studies' pages."""
BY_OPTION = {"bistereo-tuples": {WORDS}}
"""What it may be asked if an option says so that does not follow from the model by itself."""
CAN = {
    "hf-masked:masked": {MASKS},
    "hf-masked:headless": set(),
    "hf-masked:maskless": set(),
    "hf-masked:causal": set(),
    "hf-masked:seq2seq": set(),
    "hf-masked:classifier": set(),
    "hf-causal:causal": {WORDS, SCORES},
    "hf-causal:masked": set(),
    "hf-causal:seq2seq": set(),
    "hf-classifier:classifier": {CLASSES},
    "hf-classifier:untrained": set(),
    "hf-classifier:masked": set(),
    "hf-encoder:encoder": set(),
    "hf-encoder:masked": set(),
    "hf-vlm:vlm": {WORDS, SCORES, SEEN},
    "hf-vlm:seq2seq": set(),
    "hf-vlm:causal": set(),
    "diffusers:pipeline": {IMAGES},
    "diffusers:masked": set(),
    "llamacpp:gguf": {WORDS, SCORES},
    "chat": {WORDS, SEEN, IMAGES},
    "scores": {WORDS, SCORES, SEEN, IMAGES},
    "words-only": {WORDS, SEEN},
    "claude": {WORDS, SEEN},
    "gemini": {WORDS, SEEN},
    "responses": {WORDS, SEEN},
    "bedrock": {WORDS, SEEN},
    "vllm:causal": {WORDS, SCORES},
    "vllm:vlm": {WORDS, SCORES, SEEN},
    "vllm:masked": set(),
    "lexicon": {CLASSES},
    "simulated-fair": {WORDS, SCORES, MASKS, CLASSES, IMAGES, SEEN},
}
REGISTRY = """
[models.chat]
adapter = "openai"
settings = { model = "m", base_url = "http://127.0.0.1:9/v1", api_key_env = "" }
[models.scores]
adapter = "openai"
settings = { model = "m", base_url = "http://127.0.0.1:9/v1", api_key_env = "", likelihood = "echo" }
[models.claude]
adapter = "anthropic"
settings = { model = "m", base_url = "http://127.0.0.1:9", api_key_env = "" }
[models.gemini]
adapter = "gemini"
settings = { model = "m", base_url = "http://127.0.0.1:9", api_key_env = "" }
[models.responses]
adapter = "openai-responses"
settings = { model = "m", base_url = "http://127.0.0.1:9/v1", api_key_env = "" }
[models.bedrock]
adapter = "bedrock"
settings = { model = "m", base_url = "http://127.0.0.1:9", region = "eu-central-1" }
[models.words-only]
adapter = "openai"
settings = { model = "m", base_url = "http://127.0.0.1:9/v1", api_key_env = "", operations = ["generate"] }
"""
OTHERS = {"dora-i2t": {"drawer": "simulated-fair"}, "dora-t2i": {"describer": "simulated-fair"}}
OTHERS["indicasa"] = {"encoder": "simulated-fair"}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    (folder / "mine.toml").write_text(REGISTRY)
    return {"mine": str(folder / "mine.toml"), **{name: str(path) for name, path in write_kinds(folder).items()}}


@pytest.fixture(scope="module")
def catalogue(places: dict[str, str]) -> Catalogue:
    return Catalogue.load(places["mine"])


@pytest.fixture(autouse=True)
def nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> None:
        raise AssertionError("a model was asked")

    monkeypatch.setattr(ModelAdapter, "answer", refuse)


def named(places: dict[str, str], model: str) -> str:
    adapter, colon, kind = model.partition(":")
    return f"{adapter}:{places[kind]}" if colon else model


def test_every_study_is_in_the_table(catalogue):
    assert {*NEEDS, "crows-pairs"} == set(catalogue.registry.studies)


@pytest.mark.parametrize("model", CAN)
def test_list_says_which_studies_fit(catalogue, places, model):
    found = {study: fit_of(catalogue, study, named(places, model)) for study in NEEDS}
    assert {study: fit.able for study, fit in found.items()} == {
        study: bool((needs | BY_OPTION.get(study, set())) & CAN[model]) for study, needs in NEEDS.items()
    }
    assert all(
        "--set" in found[study].how for study in BY_OPTION if found[study].able and not NEEDS[study] & CAN[model]
    )
    # The model is named once above the rows, and not in each of them.
    assert all(fit.how.startswith(NEEDS_WORD) and model not in fit.how for fit in found.values() if not fit.able)


UNFIT = [(study, model) for model in CAN for study in NEEDS if not NEEDS[study] & CAN[model]]
# What fits is tried of all pairs above. Here each model and each study is refused; `make soak` tries every pair.
FIRST = {
    (study, model)
    for n, (study, model) in enumerate(UNFIT)
    if study not in {s for s, _ in UNFIT[:n]} or model not in {m for _, m in UNFIT[:n]}
}
REFUSED = [pair if pair in FIRST else pytest.param(*pair, marks=pytest.mark.soak) for pair in UNFIT]


@pytest.mark.parametrize(("study", "model"), REFUSED)
def test_plan_and_run_refuse_what_does_not_fit(places, study, model, tmp_path):
    """One coded line, with the models that can; nothing is asked, and nothing is stored."""
    settings = prejudge.Settings(store=str(tmp_path / "s.db"), runs=str(tmp_path), registry=places["mine"])
    roles = {"subject": named(places, model), **OTHERS.get(study, {})}
    for command in (prejudge.plan, prejudge.run):
        with pytest.raises(UnsupportedOperationError) as refused:
            command(study, roles, settings)
        assert refused.value.code == "study.operation" and "\n" not in str(refused.value)
        able = refused.value.fields["able"]
        assert "simulated-fair" in able and not {name for name in CAN if not NEEDS[study] & CAN[name]} & set(able)
    if Path(settings.store).exists():
        with Store(settings.store, writable=False) as store:
            assert statistics(store)["Exchange"] == 0


@pytest.mark.parametrize(
    ("study", "model", "options", "proposed"),
    [
        ("bistereo-pairs", "hf-causal:causal", {"scoring": "pll"}, ["--set scoring=joint-minus-marginal"]),
        ("bistereo-pairs", "hf-masked:masked", {"scoring": "joint-minus-marginal"}, ["--set scoring=pll"]),
        ("bistereo-nli", "hf-classifier:classifier", {"asking": "generate"}, ["--set asking=classify"]),
        ("bistereo-nli", "chat", {"asking": "classify"}, ["--set asking=generate"]),
        ("bistereo-tuples", "chat", {}, ["--set asking=generate"]),
        ("bistereo-nli", "hf-masked:masked", {"asking": "classify"}, []),
        ("bistereo-pairs", "chat", {"scoring": "pll"}, []),
    ],
)
def test_options_that_fit_the_model_are_proposed(catalogue, places, study, model, options, proposed):
    settings = prejudge.Settings(registry=places["mine"])
    with pytest.raises(UnsupportedOperationError) as refused:
        prejudge.plan(study, named(places, model), settings, **options)
    assert set(proposed) <= set(refused.value.fields["options"])
    assert bool(proposed) == bool(refused.value.fields["options"])
    for option in refused.value.fields["options"]:
        name, _, value = option.removeprefix("--set ").partition("=")
        prejudge.plan(study, named(places, model), settings, **{**options, name: value})


def test_command_lists_the_studies_of_a_folder(places):
    shown = CliRunner().invoke(cli, ["list", "--model", places["masked"]], catch_exceptions=False).output
    rows = {line.split()[1]: line.split()[3] for line in shown.splitlines() if line.startswith("\u2502 ")}
    assert rows["bistereo-pairs"] == "yes" and rows["dora-t2t"] == "no"


def test_doctor_refuses_a_model_that_the_study_cannot_ask(places):
    for model in ("headless", "maskless"):
        words = ["doctor", f"hf-masked:{places[model]}", "--study", "bistereo-pairs"]
        done = CliRunner().invoke(cli, words, standalone_mode=False)
        assert done.return_value == 1 and "FAIL" in done.output and "reference-masked-fair" in done.output


def test_studies_that_ask_by_an_operation_are_listed_with_their_options(catalogue):
    for study in NEEDS:
        needs = {name: {("subject", "")} & set(ways_of(catalogue, study, name)) for name in OPERATIONS.values()}
        asked = {name for name, ways in needs.items() if ways}
        assert len(asked) == 1, study
    assert ways_of(catalogue, "bistereo-tuples", "generate") == [("subject", "--set asking=generate")]
    assert ways_of(catalogue, "indicasa", "embed") == [("encoder", "")]
    assert not ways_of(catalogue, "subtle-sai", "draw")


def test_command_lists_what_can_draw(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = CliRunner().invoke(cli, ["list", "--operation", "draw"], catch_exceptions=False).output
    assert "dora-t2i" in shown and "stable-diffusion-2" in shown and "diffusers" in shown
    assert "subtle-sai" not in shown and "hf-masked" not in shown
    for conflict in (["runs"], ["--model", "gpt-4o"], ["--plugins"]):
        with raises_code(UsageError, "options.conflict"):
            CliRunner().invoke(
                cli, ["list", "--operation", "draw", *conflict], catch_exceptions=False, standalone_mode=False
            )
