"""`hf-classifier`: identity, what is refused, cancelling and closing."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
import time

import pytest

from prejudge.adapters.hf.classifier.scorer import ClassifierScorer
from prejudge.adapters.shared import torch as _torch
from prejudge.core.contracts.adapter import answer_one
from prejudge.core.contracts.errors import MissingExtraError, ModelLoadError, UnsupportedOperationError
from prejudge.core.contracts.installing import install_line
from prejudge.testing import raises_code

from .asking import SINGLES, ask, build, change

PRINT = """
import sys, msgspec
from prejudge.adapters.hf.classifier.adapter import HFClassifier, HFClassifierOptions
adapter = HFClassifier(HFClassifierOptions(model=sys.argv[1]))
print(msgspec.json.encode([adapter.identity, "torch" in sys.modules, "transformers" in sys.modules]).decode())
"""


def test_identity_is_stable_and_needs_no_torch(nli):
    done = subprocess.run([sys.executable, "-c", PRINT, str(nli)], capture_output=True, text=True, check=True)
    there, torch, transformers = json.loads(done.stdout)
    own = build(nli).identity
    assert (there["model"], there["digest"], there["settings"]) == (own.model, own.digest, own.settings)
    assert not torch and not transformers


def test_identity_ignores_place_device_and_batch(nli, copied):
    assert build(copied, device="cuda", token_budget=17, batch_items=3).identity == build(nli).identity


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_identity_follows_files(name, copied):
    before = build(copied).identity
    with (copied / name).open("ab") as file:
        file.write(b" ")
    assert build(copied).identity.digest != before.digest


def test_identity_follows_dtype(nli):
    assert build(nli, dtype="bfloat16").identity != build(nli).identity


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "LlamaForCausalLM", "BertModel", "BertForTokenClassification"])
def test_other_kind_of_model_is_named(kind, copied):
    change(copied, architectures=[kind])
    with raises_code(ModelLoadError, "model.kind", kind):
        build(copied)


def test_own_code_needs_trust(copied):
    change(copied, auto_map={"AutoModelForSequenceClassification": "modeling.Own"})
    with raises_code(ModelLoadError, "model.own-code", "trust_remote_code"):
        build(copied)
    assert build(copied, trust_remote_code=True).identity.settings["trust_remote_code"] is True


def test_missing_head_is_an_error(copied):
    from transformers import AutoModel

    AutoModel.from_pretrained(copied).save_pretrained(copied)
    change(copied, architectures=["BertForSequenceClassification"])
    with raises_code(UnsupportedOperationError, "model.operation", "no weights of a head"):
        ask(copied, SINGLES[:1])


def test_missing_extra_names_pip_line(nli, monkeypatch):
    monkeypatch.setattr(_torch, "find_spec", lambda name: None if name == "torch" else importlib.util.find_spec(name))
    with raises_code(MissingExtraError, "missing-extra", install_line("hf")):
        build(nli)


def test_unknown_device_is_refused(nli):
    with raises_code(ModelLoadError, "model.device", "abacus"):
        ask(nli, SINGLES[:1], device="abacus")


def test_loading_prints_nothing(nli, capfd):
    ask(nli, SINGLES)
    assert capfd.readouterr() == ("", "")


def test_cancelled_batch_stops_early(nli, monkeypatch):
    forward, passes = ClassifierScorer._forward, []

    def slow(self, texts, rows):
        passes.append(len(rows))
        time.sleep(0.02)
        return forward(self, texts, rows)

    async def cancel() -> bool:
        adapter = build(nli, token_budget=1)
        await adapter.answer(SINGLES[:1])
        monkeypatch.setattr(ClassifierScorer, "_forward", slow)
        work = asyncio.ensure_future(adapter.answer(SINGLES * 250))
        await asyncio.sleep(0.5)
        work.cancel()
        await adapter.aclose()
        return work.cancelled()

    assert asyncio.run(cancel())
    assert len(passes) < 500


def test_slow_batch_leaves_loop_free(nli):
    async def watch() -> list[float]:
        adapter = build(nli, token_budget=20)
        await adapter.answer(SINGLES[:1])
        work = asyncio.ensure_future(adapter.answer(SINGLES * 50))
        gaps, last = [], time.perf_counter()
        while not work.done():
            await asyncio.sleep(0.005)
            gaps.append(time.perf_counter() - last)
            last = time.perf_counter()
        await adapter.aclose()
        return gaps

    gaps = asyncio.run(watch())
    assert len(gaps) > 5
    assert sorted(gaps)[len(gaps) // 2] < sum(gaps) / 4


def test_closed_adapter_answers_nothing(nli):
    async def late():
        adapter = build(nli)
        await adapter.aclose()
        await adapter.aclose()
        await answer_one(adapter, SINGLES[0])

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(late())
