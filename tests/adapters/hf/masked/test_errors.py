from __future__ import annotations

import importlib.util
import json
import shutil

import pytest

from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions
from prejudge.adapters.shared import torch as _torch
from prejudge.core.contracts.errors import MissingExtraError, ModelLoadError, PermanentError, UnsupportedOperationError
from prejudge.core.contracts.installing import install_line
from prejudge.core.contracts.records import PseudoLikelihood, TokenScores
from prejudge.testing import raises_code

REQUEST = PseudoLikelihood(text="The tall boys are lazy.")


@pytest.fixture
def copied(tiny_bert, tmp_path):
    return shutil.copytree(tiny_bert, tmp_path / "broken")


def build(folder, **options):
    return HFMasked(HFMaskedOptions(model=str(folder), **options))


def refusal(folder, **options):
    with pytest.raises(ModelLoadError) as caught:
        build(folder, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def change(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_missing_extra_names_pip_line(tiny_bert, monkeypatch):
    monkeypatch.setattr(_torch, "find_spec", lambda name: None if name == "torch" else importlib.util.find_spec(name))
    with raises_code(MissingExtraError, "missing-extra", install_line("hf")):
        build(tiny_bert)


def test_directory_without_tokenizer_is_refused(copied):
    for path in copied.glob("tokenizer*"):
        path.unlink()
    assert "no tokenizer" in refusal(copied)


def test_directory_without_config_is_refused(copied):
    (copied / "config.json").unlink()
    assert "no config.json" in refusal(copied)


def test_directory_without_weights_is_refused(copied):
    (copied / "model.safetensors").unlink()
    assert "no weights" in refusal(copied)


def test_broken_config_is_refused(copied):
    (copied / "config.json").write_text("{")
    assert "config.json" in refusal(copied)


def test_own_code_needs_trust(copied):
    change(copied / "config.json", auto_map={"AutoModelForMaskedLM": "modeling.Own"})
    assert "trust_remote_code = true" in refusal(copied)
    assert build(copied, trust_remote_code=True).identity.settings["trust_remote_code"] is True


def test_pickled_weights_need_allowing(copied, ask_masked):
    import torch
    from transformers import AutoModelForMaskedLM

    torch.save(AutoModelForMaskedLM.from_pretrained(copied).state_dict(), copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    assert "allow_pickle = true" in refusal(copied)
    (answer,) = ask_masked(copied, [REQUEST], allow_pickle=True)
    assert isinstance(answer, TokenScores)


@pytest.mark.parametrize("name", ["/no/such/place", "a/b/c"])
def test_neither_directory_nor_hub_name_is_refused(name):
    assert "neither a directory nor a hub name" in refusal(name)


def test_unreachable_hub_name_is_refused(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert "neither cached nor reachable" in refusal("someone/nothing")


def test_revision_of_directory_is_refused(tiny_bert):
    assert "only hub names have one" in refusal(tiny_bert, revision="main")


def load_refusal(ask_masked, folder, **options):
    with pytest.raises(ModelLoadError) as caught:
        ask_masked(folder, [REQUEST], **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_missing_head_is_an_error(copied, ask_masked):
    from transformers import AutoModel

    AutoModel.from_pretrained(copied, add_pooling_layer=False).save_pretrained(copied)
    with raises_code(UnsupportedOperationError, "model.operation", "no weights of a head"):
        ask_masked(copied, [REQUEST])


def test_causal_config_without_architecture_is_refused(copied, ask_masked):
    (copied / "config.json").write_text(json.dumps({"model_type": "llama"}))
    assert "as a masked language model" in load_refusal(ask_masked, copied)


def test_tokenizer_without_mask_is_refused(copied, ask_masked):
    path = copied / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in settings.items() if key != "mask_token"}))
    (copied / "special_tokens_map.json").unlink(missing_ok=True)
    with raises_code(UnsupportedOperationError, "model.operation", "no mask token"):
        ask_masked(copied, [REQUEST])


def test_broken_weights_are_refused(copied, ask_masked):
    (copied / "model.safetensors").write_bytes(b"no tensors")
    assert "cannot load 'broken'" in load_refusal(ask_masked, copied)


@pytest.mark.parametrize("device", ["abacus", "cuda:99"])
def test_unknown_device_is_refused(device, tiny_bert, ask_masked):
    assert f"device {device!r} is not" in load_refusal(ask_masked, tiny_bert, device=device)


@pytest.mark.parametrize(("family", "limit"), [("bert", 64), ("roberta", 62)])
def test_too_long_text_says_the_limit(family, limit, tiny_masked, ask_masked):
    texts = ["lazy " * 100, "." * 60]
    long, short = ask_masked(tiny_masked(family), [PseudoLikelihood(text=text) for text in texts])
    assert isinstance(long, PermanentError) and long.code == "request.too-long" and str(limit) in str(long)
    assert isinstance(short, TokenScores)


def test_fully_given_text_is_refused(tiny_bert, ask_masked):
    (answer,) = ask_masked(tiny_bert, [PseudoLikelihood(text="lazy boys", given=((0, 9),))])
    assert isinstance(answer, PermanentError) and answer.code == "request.empty"


def test_scores_not_finite_name_the_dtype(make_masked, ask_masked):
    import safetensors.torch
    import torch

    folder = make_masked()
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    weights["cls.predictions.bias"] = torch.full_like(weights["cls.predictions.bias"], torch.nan)
    safetensors.torch.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (answer,) = ask_masked(folder, [REQUEST])
    assert isinstance(answer, PermanentError) and answer.code == "request.not-finite"
