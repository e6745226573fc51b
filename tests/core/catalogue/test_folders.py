"""`--model ./folder`: the adapter follows from what the folder says, or one coded line says why it does not."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import prejudge
from prejudge.core.catalogue.folders import candidates
from prejudge.core.catalogue.registry import ModelEntry
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.shared import read_models
from prejudge.core.contracts.errors import DataError, ModelLoadError, UnknownNameError, UnsupportedOperationError
from prejudge.core.contracts.model_files import MOST_JSON
from prejudge.core.contracts.options import build_options
from prejudge.testing import raises_code

from ...model_folders import WORDS, write_kinds, write_model

READ_BY = {
    "masked": "hf-masked",
    "causal": "hf-causal",
    "classifier": "hf-classifier",
    "encoder": "hf-encoder",
    "vlm": "hf-vlm",
    "pipeline": "diffusers",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.chdir(tmp_path)
    return write_kinds(tmp_path)


@pytest.fixture
def catalogue() -> Catalogue:
    return Catalogue.load()


def names(place: str, catalogue: Catalogue) -> list[str]:
    return [one.name for one in candidates(place, catalogue.plugins)]


@pytest.mark.parametrize("kind", READ_BY)
def test_each_kind_of_folder_finds_its_adapter(here, catalogue, kind):
    assert names(f"./{kind}", catalogue) == [f"{READ_BY[kind]}:./{kind}"]
    assert names(str(here[kind]), catalogue) == [f"{READ_BY[kind]}:{here[kind]}"]


def test_gguf_is_found_as_file_and_in_its_folder(here, catalogue):
    assert names("./gguf", catalogue) == names("./gguf/tiny.gguf", catalogue) == ["llamacpp:./gguf/tiny.gguf"]
    (here["gguf"].parent / "mmproj-tiny.gguf").write_bytes(b"GGUF")
    for number in (1, 2):
        (here["gguf"].parent / f"big-0000{number}-of-00002.gguf").write_bytes(b"GGUF")
    here["gguf"].unlink()
    assert names("./gguf", catalogue) == ["llamacpp:./gguf/big-00001-of-00002.gguf"]


def test_trailing_slashes_dots_and_links_change_nothing(here, catalogue, monkeypatch):
    Path("link").symlink_to(here["masked"])
    assert names("./masked///", catalogue) == ["hf-masked:./masked"]
    assert names("./link", catalogue) == ["hf-masked:./link"]
    monkeypatch.chdir(here["masked"])
    assert names(".", catalogue) == ["hf-masked:."]
    assert names("../masked", catalogue) == ["hf-masked:../masked"]
    monkeypatch.setenv("HOME", str(here["masked"].parent))
    assert names("~/masked", catalogue) == ["hf-masked:~/masked"]


def test_study_keeps_the_adapter_and_the_reason(here, catalogue):
    study = catalogue.study("bistereo-pairs", {"subject": "./causal"}, {})
    assert study.roles == {"subject": "hf-causal:./causal"} and study.options == {"scoring": "joint-minus-marginal"}
    assert "LlamaForCausalLM" in study.recognised["subject"]
    assert any("hf-causal:./causal" in note for note in study.notes)
    (stage,) = prejudge.plan("bistereo-pairs", "./masked")
    assert stage.model == "hf-masked:./masked" and study.notes[0] not in stage.notes
    assert any("BertForMaskedLM" in note for note in stage.notes)


def test_study_decides_between_two_ways_to_read_a_folder(here, catalogue):
    """A sentence encoder on a whole masked model: which of the two it is follows from what the study asks."""
    both = here["encoder"]
    write_model(both, "BertForMaskedLM", WORDS)
    assert len(names("./encoder", catalogue)) == 2
    assert catalogue.study("bistereo-pairs", {"subject": "./encoder"}, {}).roles["subject"] == "hf-masked:./encoder"
    with raises_code(ModelLoadError, "model.ambiguous", "hf-encoder:./encoder", "hf-masked:./encoder") as told:
        catalogue.study("indicasa", {"subject": "simulated-fair", "encoder": "./encoder"}, {})
    assert told.value.fields["candidates"] == ["hf-encoder:./encoder", "hf-masked:./encoder"]
    with raises_code(UnsupportedOperationError, "study.operation", "hf-encoder:./encoder"):
        prejudge.plan("subtle-sai", "./encoder")


def test_several_checkpoints_in_a_folder_are_listed(here, catalogue):
    shutil.copy(here["gguf"], here["gguf"].with_name("other.gguf"))
    for study in ("dora-t2t", "bistereo-tuples"):
        with raises_code(ModelLoadError, "model.ambiguous", "llamacpp:./gguf/other.gguf", "llamacpp:./gguf/tiny.gguf"):
            prejudge.plan(study, "./gguf")
    shutil.copy(here["gguf"], here["causal"] / "copy.gguf")
    with raises_code(ModelLoadError, "model.ambiguous", "hf-causal:./causal", "llamacpp:./causal/copy.gguf"):
        prejudge.plan("dora-t2t", "./causal")
    run = Path("training")
    for step in (100, 200):
        shutil.copytree(here["masked"], run / f"checkpoint-{step}")
    with raises_code(ModelLoadError, "model.unrecognised", "./training/checkpoint-100", "./training/checkpoint-200"):
        prejudge.plan("bistereo-pairs", "./training")


@pytest.mark.parametrize(
    ("content", "error", "code"),
    [
        (b"{broken", DataError, "model.config"),
        (b"\xff\xfe\x00", DataError, "model.config"),
        (b"[" * 100_000, DataError, "model.config"),
        (b'{"a": ' * 60 + b"1" + b"}" * 60, DataError, "model.config"),
        (b"[]", ModelLoadError, "model.unrecognised"),
        (b"{}", ModelLoadError, "model.unrecognised"),
        (b'{"architectures": "BertForMaskedLM"}', ModelLoadError, "model.unrecognised"),
        (b'{"architectures": [7, null]}', ModelLoadError, "model.unrecognised"),
    ],
)
def test_untidy_configuration_is_one_coded_line(here, content, error, code):
    (here["masked"] / "config.json").write_bytes(content)
    with raises_code(error, code) as told:
        prejudge.plan("bistereo-pairs", "./masked")
    assert "\n" not in str(told.value)


def test_huge_configuration_is_not_read(here):
    with (here["masked"] / "config.json").open("wb") as file:
        file.truncate(MOST_JSON + 1)
    with raises_code(DataError, "model.config"):
        prejudge.plan("bistereo-pairs", "./masked")


def test_places_without_a_model_say_what_is_there(here, catalogue):
    os.mkfifo("pipe")
    Path("empty").mkdir()
    for place, code in (
        ("./nowhere", "model.not-found"),
        ("./" + "x" * 5000, "model.not-found"),
        ("./a\0b", "model.not-found"),
        ("~nobody-of-this-name/model", "model.not-found"),
        ("./pipe", "model.unrecognised"),
        ("./empty", "model.unrecognised"),
        ("./seq2seq", "model.unrecognised"),
        ("./masked/config.json", "model.unrecognised"),
    ):
        with raises_code(ModelLoadError, code):
            candidates(place, catalogue.plugins)
    with pytest.raises(ModelLoadError, match="--model ./masked"):
        candidates("./masked/model.safetensors", catalogue.plugins)
    with pytest.raises(ModelLoadError, match="T5ForConditionalGeneration"):
        candidates("./seq2seq", catalogue.plugins)


@pytest.mark.parametrize(
    ("base", "task", "adapter"),
    [
        ("meta-llama/Llama-3.1-8B", "CAUSAL_LM", "hf-causal"),
        ("owner/classifier", "SEQ_CLS", "hf-classifier"),
        ("./masked", None, "hf-masked"),
        ("./causal", "CAUSAL_LM", "hf-causal"),
    ],
)
def test_peft_folder_is_read_as_its_base(here, catalogue, base, task, adapter):
    Path("lora").mkdir()
    Path("lora/adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base, "task_type": task}))
    (found,) = candidates("./lora", catalogue.plugins)
    assert found.name == f"{adapter}:./lora" and base in found.because
    entry = catalogue.registry.model(found.name)
    options = build_options("model", catalogue.adapter_class(found.name).options, entry.settings)
    assert (options.model, options.peft) == (base, "./lora")


def test_peft_folder_of_an_unknown_kind_names_its_base(here, catalogue):
    Path("lora").mkdir()
    Path("lora/adapter_config.json").write_text('{"base_model_name_or_path": "owner/base", "task_type": null}')
    with raises_code(ModelLoadError, "model.unrecognised", "owner/base"):
        candidates("./lora", catalogue.plugins)


def test_name_of_the_registry_wins_unless_it_is_written_as_a_path(here, catalogue):
    catalogue.registry.models["masked"] = ModelEntry(adapter="simulated", settings={"model": "masked"})
    assert catalogue.study("bistereo-pairs", {"subject": "masked"}, {}).roles == {"subject": "masked"}
    assert catalogue.study("bistereo-pairs", {"subject": "./masked"}, {}).roles == {"subject": "hf-masked:./masked"}
    with raises_code(UnknownNameError, "unknown-model", "./causal"):
        catalogue.study("bistereo-pairs", {"subject": "causal"}, {})


def test_roles_and_paths_with_equals_signs():
    assert read_models(("./a=b",)) == {"subject": "./a=b"}
    assert read_models(("judge=./a=b", "/c=d")) == {"judge": "./a=b", "subject": "/c=d"}


def test_broken_adapter_of_a_stranger_hides_no_folder(here, catalogue, monkeypatch):
    monkeypatch.setattr("prejudge.adapters.lexicon.Lexicon.recognise", classmethod(lambda cls, files: 1 / 0))
    assert names("./masked", catalogue) == ["hf-masked:./masked"]
