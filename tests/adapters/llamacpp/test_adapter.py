"""`llamacpp`: files, identity, errors, cancelling and closing."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prejudge.adapters.llamacpp.adapter import LlamaCpp, LlamaCppOptions
from prejudge.core.contracts.errors import MissingExtraError, ModelLoadError, PermanentError
from prejudge.core.contracts.installing import install_line
from prejudge.core.contracts.records import Likelihood
from prejudge.testing import raises_code

from ..gguf_files import CONTEXT
from .asking import CONTINUATIONS, FRANCE, Pair, ask, say

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("gguf", reason="gguf, which writes the tiny model, is not installed")


def test_cancelling_stops_the_work(pair: Pair) -> None:
    async def cancel() -> float:
        adapter = LlamaCpp(LlamaCppOptions(model=str(pair[0]), threads=1))
        await adapter.answer([say("one", max_tokens=1)])
        task = asyncio.create_task(adapter.answer([say("one", max_tokens=450)] * 50))  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        task.cancel()
        start = time.perf_counter()
        await adapter.answer([say("one", max_tokens=1)])
        waited = time.perf_counter() - start
        await adapter.aclose()
        return waited

    # Fifty answers of 450 tokens take far longer.
    assert asyncio.run(cancel()) < 1.0


def test_errors_stand_in_their_place(pair: Pair) -> None:
    long = Likelihood(prompt="one " * 600, continuations=(" two",))
    good = Likelihood(prompt=FRANCE, continuations=CONTINUATIONS)
    empty = Likelihood(prompt=FRANCE, continuations=("",))
    first, second, third, fourth = ask(pair[0], [good, long, empty, good])
    assert isinstance(second, PermanentError) and second.code == "request.too-long" and str(CONTEXT) in str(second)
    assert isinstance(third, PermanentError) and third.code == "request.empty"
    assert first == fourth


def test_answer_ends_where_the_context_does(pair: Pair) -> None:
    answer, whole, error = ask(
        pair[0],
        [say("one", max_tokens=most, temperature=0.0) for most in (60, 53)] + [say("one " * 70, max_tokens=1)],
        n_ctx=64,
    )
    assert answer.usage.input_tokens + answer.usage.output_tokens == 64 and answer.finish_reason == "length"
    assert whole.text == answer.text
    assert isinstance(error, PermanentError) and error.code == "request.too-long"


@pytest.mark.parametrize(
    ("make", "code", "named"),
    [
        (lambda path: None, "model.not-found", ""),
        (lambda path: path.mkdir(), "model.not-found", ""),
        (lambda path: path.write_bytes(b"PK\x03\x04"), "model.kind", ""),
        (lambda path: path.write_bytes(b""), "model.kind", ""),
        (lambda path: path.write_bytes(b"GGUF\x03\x00"), "model.damaged", ""),
        (lambda path: path.write_bytes(b"GGUF\x00\x00\x00\x03" + bytes(16)), "model.damaged", ""),
    ],
)
def test_wrong_file_is_refused(tmp_path: Path, make: Callable[[Path], object], code: str, named: str) -> None:
    make(tmp_path / "model.gguf")
    with raises_code(ModelLoadError, code, named):
        LlamaCpp(LlamaCppOptions(model=str(tmp_path / "model.gguf")))


def test_cut_weights_are_refused_at_load(pair: Pair, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(pair[0].read_bytes()[:-5000])
    with raises_code(ModelLoadError, "model.unloadable"):
        ask(cut, [say("one")])


def test_identity_follows_the_bytes(pair: Pair, tmp_path: Path) -> None:
    copy = tmp_path / pair[0].name
    shutil.copy(pair[0], copy)
    same = LlamaCpp(LlamaCppOptions(model=str(copy), threads=1, n_ctx=99, n_gpu_layers=5, batch_items=3)).identity
    assert same == LlamaCpp(LlamaCppOptions(model=str(pair[0]))).identity
    copy.write_bytes(copy.read_bytes()[:-4] + b"\x00\x00\x80\x3f")
    assert LlamaCpp(LlamaCppOptions(model=str(copy))).identity.digest != same.digest
    assert same.settings["quantisation"] == "F32"


@pytest.mark.parametrize(
    "change",
    [
        {"chat_format": "plain"},
        {"system_prompt": "two"},
        {"cache_dtype": "float16"},
        {"flash_attention": True},
        {"max_tokens": 9},
    ],
)
def test_identity_follows_settings(pair: Pair, change: dict[str, Any]) -> None:
    one, two = (LlamaCpp(LlamaCppOptions(model=str(pair[0]), **more)).identity for more in ({}, change))
    assert one != two


def test_identity_loads_no_library(pair: Pair) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from prejudge.adapters.llamacpp.adapter import *; "
        f"LlamaCpp(LlamaCppOptions(model={str(pair[0])!r})).identity; assert 'llama_cpp' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_package_names_the_extra(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prejudge.adapters.llamacpp.adapter.find_spec", lambda name: None)
    with raises_code(MissingExtraError, "missing-extra", install_line("llamacpp")):
        LlamaCpp(LlamaCppOptions(model=str(pair[0])))


def test_console_stays_silent(pair: Pair, capfd: pytest.CaptureFixture[str]) -> None:
    ask(pair[0], [say("one")])
    assert capfd.readouterr() == ("", "")


def test_closed_adapter_says_so(pair: Pair) -> None:
    async def late() -> None:
        adapter = LlamaCpp(LlamaCppOptions(model=str(pair[0])))
        await adapter.aclose()
        await adapter.aclose()
        await adapter.answer([say("one")])

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(late())


def test_event_loop_keeps_turning(pair: Pair) -> None:
    async def count() -> int:
        adapter = LlamaCpp(LlamaCppOptions(model=str(pair[0]), threads=1))
        work = asyncio.create_task(adapter.answer([say("one", max_tokens=200)]))  # type: ignore[arg-type]
        turns = 0
        while not work.done():
            turns += 1
            await asyncio.sleep(0.001)
        await adapter.aclose()
        return turns

    assert asyncio.run(count()) > 5
