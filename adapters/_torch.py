"""What every adapter on torch needs: the extra, the device, a silent load, out-of-memory."""

from __future__ import annotations

import gc
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Literal

from ..core.errors import MissingExtraError, ModelLoadError

DType = Literal["float32", "bfloat16", "float16"]
_LOADING = threading.Lock()


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
        raise ModelLoadError(f"device {name!r} is not available here (auto, {able}).")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise ModelLoadError(f"device {name!r} is not there: torch sees {torch.cuda.device_count()} CUDA device(s).")
    return name


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Keep Transformers' warnings and progress bars off the console while a model loads.

    What they would tell is checked and raised as an error instead. One load at a time: Transformers switches
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


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether torch failed for want of memory, on any device."""
    text = str(error)
    return "out of memory" in text or "can't allocate memory" in text


def release_memory(device: str) -> None:
    """Give cached memory back to the device."""
    import torch

    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
    elif device.startswith("mps"):
        torch.mps.empty_cache()
