"""What the files of a checkpoint say of its head, beside what Transformers itself finds missing when it loads it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from prejudge.adapters.hf.causal.adapter import HFCausal
from prejudge.adapters.hf.checkpoint import lacks_classes, lacks_mask, lacks_words_head
from prejudge.adapters.hf.classifier.adapter import HFClassifier
from prejudge.adapters.hf.masked.adapter import HFMasked, HFMaskedOptions
from prejudge.core.contracts.abilities import methods_of
from prejudge.core.contracts.errors import ModelLoadError
from prejudge.core.contracts.model_files import ModelFiles
from prejudge.core.contracts.records import PseudoLikelihood
from prejudge.testing import raises_code

from ..checkpoints import write_causal, write_classifier, write_masked

FAMILIES = ("bert", "roberta", "distilbert", "albert", "electra", "deberta-v2", "modernbert", "xlm-roberta")


def bodies(whole: Path, folder: Path) -> Path:
    """Save a model again without its head, but with the configuration of the whole."""
    from transformers import AutoModel

    AutoModel.from_pretrained(whole).save_pretrained(folder)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((whole / name).read_bytes())
    return folder


@pytest.mark.parametrize("family", FAMILIES)
def test_head_for_words_is_seen(family, tmp_path):
    whole = write_masked(tmp_path / "whole", family)
    body = bodies(whole, tmp_path / "body")
    other = write_classifier(tmp_path / "other", family)
    assert [lacks_words_head(ModelFiles(str(path))) for path in (whole, body)] == [False, True]
    # ModernBERT's classifier has a part of the same name; its configuration tells it, and loading does.
    assert lacks_words_head(ModelFiles(str(other))) == (family != "modernbert")
    assert not lacks_mask(ModelFiles(str(whole)))
    assert [HFMasked.recognise(ModelFiles(str(path))) != [] for path in (whole, other)] == [True, False]
    with raises_code(ModelLoadError, "model.weights-missing"):
        asyncio.run(HFMasked(HFMaskedOptions(model=str(body))).pseudo_likelihood_batch([PseudoLikelihood(text="He.")]))


@pytest.mark.parametrize("family", [*FAMILIES, "gpt2", "bart"])
def test_head_for_classes_is_seen(family, tmp_path):
    whole = write_classifier(tmp_path / "whole", family)
    body = bodies(whole, tmp_path / "body")
    assert [lacks_classes(ModelFiles(str(path))) for path in (whole, body)] == [False, True]
    assert HFClassifier.recognise(ModelFiles(str(whole)))


@pytest.mark.parametrize("family", ["llama", "gpt2", "gpt_neox", "qwen2"])
def test_causal_model_has_no_mask_and_is_no_other_kind(family, tmp_path):
    files = ModelFiles(str(write_causal(tmp_path / "causal", family)))
    assert lacks_mask(files) and HFCausal.recognise(files)
    assert not HFMasked.recognise(files) and not HFClassifier.recognise(files)
    assert HFMasked.abilities(HFMaskedOptions(model=files.path)).reasons.keys() == methods_of(HFMasked)


def test_pretrained_body_saved_with_its_head_is_a_masked_model(tmp_path):
    """Some published configurations name the body alone, such as `BertModel`."""
    whole = write_masked(tmp_path / "whole")
    config = whole / "config.json"
    config.write_text(config.read_text().replace("BertForMaskedLM", "BertModel"))
    assert HFMasked.recognise(ModelFiles(str(whole)))
    assert not HFMasked.recognise(ModelFiles(str(bodies(whole, tmp_path / "body"))))


@pytest.mark.parametrize("damage", [b"", b"\xff" * 8, b"\x02" + b"\x00" * 7 + b"[]", b"\x05" + b"\x00" * 7 + b"{bad}"])
def test_damaged_weights_are_left_to_loading(tmp_path, damage):
    whole = write_masked(tmp_path / "whole")
    (whole / "model.safetensors").write_bytes(damage)
    assert not HFMasked.abilities(HFMaskedOptions(model=str(whole))).reasons
