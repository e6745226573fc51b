"""What stands before a plain text: hf-causal, vllm and llamacpp do the same, compared with Transformers alone."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from prejudge.adapters.hf.causal.adapter import HFCausal, HFCausalOptions
from prejudge.adapters.llamacpp.adapter import LlamaCpp, LlamaCppOptions
from prejudge.adapters.shared.start import first_token
from prejudge.adapters.vllm.adapter import VLLM
from prejudge.adapters.vllm.engine import INVARIANT
from prejudge.adapters.vllm.options import VLLMOptions
from prejudge.core.contracts.errors import PermanentError
from prejudge.core.contracts.records import Likelihood, Likelihoods

from .gguf_files import write_pair

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("gguf", reason="gguf, which writes the tiny model, is not installed")

CHAT, SEPARATOR = "<|im_start|>", "<|endoftext|>"
KINDS = {
    "adds it": {},
    "has it": {"add_bos": False},
    "has a chat mark and a separator": {"add_bos": False, "bos": CHAT, "more": SEPARATOR},
    "has a chat mark": {"add_bos": False, "bos": CHAT},
    "has a separator": {"add_bos": False, "bos": None, "more": SEPARATOR},
    "has none": {"add_bos": False, "bos": None},
}
"""What the tokenizer has for the beginning of a text."""
TEXT, PROMPT = "The capital of France is Paris", "The capital of"
ADAPTERS = ("hf-causal", "vllm", "llamacpp")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    return {kind: write_pair(tmp_path_factory.mktemp("start"), **form) for kind, form in KINDS.items()}  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the stand-in in the place of vLLM."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "vllm" / "fake"))
    yield
    os.environ.pop(INVARIANT, None)
    for name in [name for name in sys.modules if name == "vllm" or name.startswith("vllm.")]:
        del sys.modules[name]


def build(adapter: str, pair: tuple[Path, Path], start: str) -> Any:
    if adapter == "llamacpp":
        return LlamaCpp(LlamaCppOptions(model=str(pair[0]), threads=1, start=start))
    if adapter == "vllm":
        return VLLM(VLLMOptions(model=str(pair[1]), dtype="float32", start=start))
    return HFCausal(HFCausalOptions(model=str(pair[1]), device="cpu", threads=1, start=start))


def ask(adapter: str, pair: tuple[Path, Path], start: str, prompt: str, text: str) -> Any:
    async def once() -> Any:
        model = build(adapter, pair, start)
        try:
            return (await model.answer([Likelihood(prompt=prompt, continuations=(text,))]))[0]
        finally:
            await model.aclose()

    return asyncio.run(once())


@cache
def load(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()


def scores(folder: Path, before: list[str], text: str, scored: str) -> list[float]:
    """Score the end of a text behind some special tokens, by one pass of Transformers."""
    import torch

    tokenizer, model = load(folder)
    ids = [*tokenizer.convert_tokens_to_ids(before), *tokenizer(text, add_special_tokens=False)["input_ids"]]
    count = len(tokenizer(scored, add_special_tokens=False)["input_ids"])
    with torch.inference_mode():
        rows = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    return [float(rows[place - 1, ids[place]]) for place in range(len(ids) - count, len(ids))]


@pytest.mark.parametrize(
    ("kind", "start", "alone", "behind"),
    [
        ("adds it", "auto", ["<s>"], ["<s>"]),
        ("adds it", "none", None, []),
        ("adds it", "</s>", ["</s>"], ["</s>"]),
        ("adds it", "<s></s>", ["<s>", "</s>"], ["<s>", "</s>"]),
        ("has it", "auto", ["<s>"], []),
        ("has it", "bos", ["<s>"], ["<s>"]),
        ("has a chat mark and a separator", "auto", [SEPARATOR], []),
        ("has a chat mark and a separator", "bos", [CHAT], [CHAT]),
        ("has a chat mark", "auto", None, []),
        ("has a separator", "auto", [SEPARATOR], []),
        ("has a separator", "bos", None, []),
        ("has none", "auto", None, []),
        ("has none", "</s>", ["</s>"], ["</s>"]),
        ("has none", "eos", ["</s>"], ["</s>"]),
    ],
)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_start_stands_before_a_text(adapter, kind, start, alone, behind, pairs):
    pair, rest = pairs[kind], TEXT.removeprefix(PROMPT)
    first = ask(adapter, pair, start, "", TEXT)
    if alone is None:
        assert isinstance(first, PermanentError) and first.code == "request.no-context"
    else:
        assert isinstance(first, Likelihoods), first
        assert first.scores[0].values == pytest.approx(scores(pair[1], alone, TEXT, TEXT), abs=1e-4)
    second = ask(adapter, pair, start, PROMPT, rest)
    assert second.scores[0].values == pytest.approx(scores(pair[1], behind, TEXT, rest), abs=1e-4)


@pytest.mark.parametrize(
    ("kind", "start", "recorded"),
    [
        ("adds it", "auto", "auto (<s>)"),
        ("has a chat mark and a separator", "auto", f"auto ({SEPARATOR})"),
        ("has a chat mark and a separator", "bos", f"bos ({CHAT})"),
        ("has a chat mark and a separator", "none", "none"),
        ("has a chat mark and a separator", "eos", "eos"),
        ("has a chat mark and a separator", "\n", "\n"),
    ],
)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_start_is_in_the_identity(adapter, kind, start, recorded, pairs):
    model = build(adapter, pairs[kind], start)
    assert model.identity.settings["start"] == recorded
    asyncio.run(model.aclose())


def test_error_names_the_settings_that_mend_it(pairs):
    error = ask("hf-causal", pairs["has none"], "auto", "", TEXT)
    assert "start =" in str(error) and "before" in str(error)


@pytest.mark.parametrize(
    ("bos", "separates", "token"),
    [
        ("<bos>", True, "<bos>"),
        (CHAT, True, SEPARATOR),
        (CHAT, False, None),
        (None, True, SEPARATOR),
        ("", False, None),
        (SEPARATOR, True, SEPARATOR),
    ],
)
def test_first_token_is_no_mark_of_a_chat(bos, separates, token):
    assert first_token(bos, separates) == token
