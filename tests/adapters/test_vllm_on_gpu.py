"""`vllm` agrees with `hf-causal` on the same weights, with the real vLLM on a GPU."""

from __future__ import annotations

import asyncio
import importlib.util

import pytest

from prejudge.core.contracts.records import Generate, Likelihood, Message, Sampling, Text

from .checkpoints import write_causal

REQUESTS = [
    Likelihood(prompt="The tall boys are", continuations=(" lazy", " not", " unbelievably friendly")),
    Likelihood(prompt="The capital of Italy is ", continuations=("Rome", "x", "and")),
    Likelihood(prompt="", continuations=("The tall", "She")),
    *(
        Generate(messages=(Message("user", (Text(text),)),), sampling=Sampling(temperature=0.0, max_tokens=8))
        for text in ("The tall boys", "Lazy")
    ),
]


@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: its wheels are for CUDA")
def test_real_vllm_agrees_with_hf_causal(tmp_path):
    import torch

    if not torch.cuda.is_available():
        pytest.skip("vLLM runs here on a GPU only, and there is none")
    from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
    from prejudge.adapters.vllm.adapter import VLLM
    from prejudge.adapters.vllm.options import VLLMOptions

    # Attention kernels take heads of 64 numbers or more.
    folder = str(write_causal(tmp_path / "small", hidden_size=256, num_attention_heads=4, num_key_value_heads=4))

    async def ask(adapter):
        try:
            return [(await adapter.answer([request]))[0] for request in REQUESTS]
        finally:
            await adapter.aclose()

    expected = asyncio.run(ask(HFCausal(HFCausalOptions(model=folder, device="cuda"))))
    found = asyncio.run(ask(VLLM(VLLMOptions(model=folder, dtype="float32", gpu_memory=0.3))))
    for mine, theirs in zip(found, expected, strict=True):
        if isinstance(theirs, type(expected[0])):
            assert [one.log_probability for one in mine.scores] == pytest.approx(
                [one.log_probability for one in theirs.scores], abs=1e-2
            )
        else:
            assert mine.text == theirs.text
