"""What all adapters on Transformers share: settings, and the refusal of a model of another kind."""

from __future__ import annotations

import msgspec
import pytest

from prejudge.adapters.hf.base import HFAdapter, HFOptions, Naming
from prejudge.adapters.hf.causal.adapter import HFCausal
from prejudge.adapters.hf.causal.model import CAUSAL
from prejudge.adapters.hf.classifier.adapter import HFClassifier
from prejudge.adapters.hf.classifier.labels import CLASSIFIER
from prejudge.adapters.hf.encoder.adapter import HFEncoder
from prejudge.adapters.hf.load import check_kind
from prejudge.adapters.hf.masked.adapter import HFMasked
from prejudge.adapters.hf.masked.model import MASKED
from prejudge.adapters.hf.vlm.adapter import HFVLM, KIND
from prejudge.core.contracts.errors import ModelLoadError
from prejudge.testing import raises_code

ADAPTERS = (HFCausal, HFClassifier, HFEncoder, HFMasked, HFVLM)
OWN = {
    "LlamaForCausalLM": CAUSAL,
    "GPT2LMHeadModel": CAUSAL,
    "BertForMaskedLM": MASKED,
    "FlaubertWithLMHeadModel": MASKED,
    "BertForSequenceClassification": CLASSIFIER,
    "LlavaForConditionalGeneration": KIND,
}
WORDS = {
    "LlamaForCausalLM": "hf-causal",
    "GPT2LMHeadModel": "hf-causal",
    "BertForMaskedLM": "hf-masked",
    "FlaubertWithLMHeadModel": "hf-masked",
    "BertForSequenceClassification": "hf-classifier",
    "LlavaForConditionalGeneration": "hf-vlm",
    "T5ForConditionalGeneration": "encoder-decoder",
    "LlamaModel": "without a head",
    "WhateverForThings": "another kind",
}
# A masked model may be saved without its head being named.
OTHERS = [
    (architecture, kind)
    for architecture in WORDS
    for kind in (CAUSAL, MASKED, CLASSIFIER)
    if OWN.get(architecture) is not kind and (architecture, kind) != ("LlamaModel", MASKED)
]


class Pinned(msgspec.Struct):
    name: str
    digest: str
    config: dict[str, object] = {}


class Fragile(HFAdapter[list[int]]):
    loads = 0

    def _load(self) -> list[int]:
        self.loads += 1
        if self.loads == 1:
            raise ModelLoadError("not yet")
        return [self.loads]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_common_settings_are_there(adapter):
    common = set(HFOptions.__struct_fields__)
    assert issubclass(adapter.options, HFOptions)
    assert common <= set(adapter.options.__struct_fields__)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_settings_are_strict(adapter):
    for wrong in ({"modle": "x"}, {"token_budget": 0}, {"dtype": "int8"}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"model": "x", **wrong}, adapter.options)


@pytest.mark.parametrize(("architecture", "kind"), OTHERS)
def test_other_kind_of_model_is_named(architecture, kind):
    with raises_code(ModelLoadError, "model.kind", kind.what, architecture, WORDS[architecture]):
        check_kind(kind, {"architectures": [architecture]}, "m", trust_remote_code=False)


@pytest.mark.parametrize("architecture", OWN)
def test_own_kind_is_taken(architecture):
    check_kind(OWN[architecture], {"architectures": [architecture]}, "m", trust_remote_code=False)


def test_failed_load_is_tried_again_and_a_good_one_kept():
    adapter = Fragile()
    adapter._open(Naming("fragile", "1"), HFOptions(model="x"), Pinned("x", "sha256:0"), {"own": 1})
    with pytest.raises(ModelLoadError):
        adapter._ready()
    assert adapter._ready() is adapter._ready() == [2]
    assert adapter.identity.settings == {"dtype": "float32", "trust_remote_code": False, "own": 1}
