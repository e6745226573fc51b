"""Common parts of the adapters on torch: the extra, the device, silent loading, passes that may exceed memory."""

from __future__ import annotations

import gc
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Literal, TypeVar

from ...core.contracts.errors import MissingExtraError, ModelLoadError

DType = Literal["float32", "bfloat16", "float16"]
BUDGET, BUDGET_CPU = 65_536, 8_192
"""Default number of tokens of one pass and its cache."""
T = TypeVar("T")
_LOADING = threading.Lock()
_TURN = threading.Condition()
_HOLDERS: dict[bool, int] = {False: 0, True: 0}
"""Calls in progress on CUDA, with and without TF32."""


class Stopped(Exception):
    """Raised when the caller no longer waits for the answers."""


def require_torch(what: str, extra: str = "hf") -> None:
    """Raise `MissingExtraError` unless torch and Transformers are installed; imports neither."""
    if any(find_spec(package) is None for package in ("torch", "transformers")):
        raise MissingExtraError(what, extra)


def choose_device(name: str) -> str:
    """Return a torch device: `auto` takes CUDA, else MPS, else the CPU.

    Raises:
        ModelLoadError: torch knows no such device, or this machine has none.
    """
    import torch

    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next(kind for kind in ("cuda", "mps", "cpu") if there[kind])
    kind, _, number = name.partition(":")
    if not there.get(kind, False) or (number and not number.isdigit()):
        able = ", ".join(kind for kind in there if there[kind])
        raise ModelLoadError(f"device {name!r} is not available here (auto, {able}).", code="model.device")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise ModelLoadError(
            f"device {name!r} does not exist: torch finds {torch.cuda.device_count()} CUDA device(s).",
            code="model.device",
        )
    return name


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Keep Transformers' warnings and progress bars off the console while a model loads.

    Their causes are checked and raised as errors instead. One load at a time: Transformers switches
    process-wide state (default dtype, verbosity) while it loads.
    """
    from transformers.utils import logging as chatter

    with _LOADING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        level, bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
        chatter.set_verbosity(logging.CRITICAL)
        chatter.disable_progress_bar()
        try:
            yield
        finally:
            chatter.set_verbosity(level)
            if bars:
                chatter.enable_progress_bar()


@contextmanager
def float32_products(device: str, *, tf32: bool) -> Iterator[None]:
    """Let CUDA multiply float32 matrices exactly, or in TF32, while a call lasts.

    Torch has one switch for the process, so models that want it differently take turns. Its default lets convolutions
    use TF32, which float32 is not to mean here.
    """
    import torch

    if not device.startswith("cuda"):
        yield
        return
    with _TURN:
        _TURN.wait_for(lambda: not _HOLDERS[not tf32])
        _HOLDERS[tf32] += 1
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        with _TURN:
            _HOLDERS[tf32] -= 1
            _TURN.notify_all()


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether torch ran out of memory, on any device."""
    text = str(error)
    return "out of memory" in text or "can't allocate memory" in text


def release_memory(device: str) -> None:
    """Release cached memory of the device."""
    import torch

    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
    elif device.startswith("mps"):
        torch.mps.empty_cache()


def attempt(call: Callable[[], T], device: str) -> T | None:
    """Return what a call returns, or None if it does not fit into memory."""
    try:
        return call()
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    # Outside the handler, whose traceback would keep the pass's tensors alive.
    release_memory(device)
    return None


def agree(one: Any, other: Any, dtype: Any) -> bool:
    """Return whether two results of the same question agree within what the precision of the weights allows."""
    import torch

    if one.shape != other.shape:
        return False
    tolerance = 1e-3 if dtype == torch.float32 else 5e-2
    # A model that gives no numbers at all is told of by the answers.
    one, other = one.nan_to_num(), other.nan_to_num()
    return bool((one - other).abs().max() <= tolerance * other.abs().max())
