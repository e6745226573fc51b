"""`hf-encoder`: identity, prompts, cancelling and closing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

import pytest

from prejudge.adapters.hf.encoder import adapter as hf_encoder
from prejudge.adapters.hf.encoder.model import EncoderScorer
from prejudge.core.contracts.adapter import answer_one
from prejudge.core.contracts.errors import MissingExtraError, ModelLoadError
from prejudge.core.contracts.installing import install_line
from prejudge.core.contracts.records import Embed
from prejudge.testing import raises_code

from ....installed import need
from .asking import TEXTS, ask, build

need("sentence_transformers", reason="needs the extra 'encoder'")


PRINT = """
import sys, msgspec
from prejudge.adapters.hf.encoder.adapter import HFEncoder, HFEncoderOptions
adapter = HFEncoder(HFEncoderOptions(model=sys.argv[1]))
loaded = [name for name in ("torch", "transformers", "sentence_transformers") if name in sys.modules]
print(msgspec.json.encode([adapter.identity, loaded]).decode())
"""


def test_unknown_prompt_is_refused(prompted):
    with raises_code(ModelLoadError, "model.prompt", "'passage'", "query"):
        build(prompted, prompt_name="passage")


def test_identity_is_stable_and_imports_nothing(tiny):
    done = subprocess.run([sys.executable, "-c", PRINT, str(tiny)], capture_output=True, text=True, check=True)
    there, loaded = json.loads(done.stdout)
    own = build(tiny).identity
    assert (there["model"], there["digest"], there["settings"]) == (own.model, own.digest, own.settings)
    assert loaded == []


def test_identity_ignores_place_device_and_batch(tiny, copied):
    assert build(copied, device="cuda", token_budget=17, batch_items=3).identity == build(tiny).identity


@pytest.mark.parametrize("options", [{"normalize": True}, {"dtype": "bfloat16"}, {"prompt_name": "nothing"}])
def test_identity_follows_settings(options, prompted):
    assert build(prompted, **options).identity != build(prompted).identity


def test_missing_extra_names_pip_line(tiny, monkeypatch):
    monkeypatch.setattr(hf_encoder, "find_spec", lambda name: None)
    with raises_code(MissingExtraError, "missing-extra", install_line("encoder")):
        build(tiny)


def test_loading_prints_nothing(tiny, capfd):
    ask(tiny)
    assert capfd.readouterr() == ("", "")


def test_cancelled_batch_stops_early(tiny, monkeypatch):
    forward, passes = EncoderScorer._forward, []

    def slow(self, texts):
        passes.append(len(texts))
        time.sleep(0.02)
        return forward(self, texts)

    async def cancel() -> bool:
        adapter = build(tiny, token_budget=1)
        await answer_one(adapter, Embed(text=TEXTS[0]))
        monkeypatch.setattr(EncoderScorer, "_forward", slow)
        work = asyncio.ensure_future(adapter.answer([Embed(text=text) for text in TEXTS * 250]))
        await asyncio.sleep(0.5)
        work.cancel()
        await adapter.aclose()
        return work.cancelled()

    assert asyncio.run(cancel())
    assert len(passes) < 500


def test_closed_adapter_answers_nothing(tiny):
    async def late():
        adapter = build(tiny)
        await adapter.aclose()
        await adapter.aclose()
        await answer_one(adapter, Embed(text=TEXTS[0]))

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(late())
