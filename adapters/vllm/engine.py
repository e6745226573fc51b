"""vLLM's offline engine, fed request by request and stepped here, so that a run can be stopped between two steps.

Source: vllm 0.33.0, `vllm/entrypoints/llm.py`, `vllm/sampling_params.py`.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...core.contracts.errors import ModelError, ModelLoadError, PermanentError, TransientError
from ...core.contracts.steps import step
from ..hf.hub import one_line
from ..shared.torch import Stopped, is_out_of_memory

INVARIANT = "VLLM_BATCH_INVARIANT"
"""The environment variable that vLLM reads when it is imported, and in the processes that it starts."""
NEEDED = "logprob_token_ids"
"""The newest setting of a request that is used here."""
TOO_LONG = "longer than the maximum model length"


class Asked(NamedTuple):
    """One request to the engine."""

    ids: Sequence[int]
    params: Mapping[str, Any]
    """Fields of `SamplingParams`; `form` stands for the fields of its `structured_outputs`."""
    images: Sequence[Any] = ()


class Engine:
    """A started engine."""

    def __init__(self, folder: Path, arguments: Mapping[str, Any], *, invariant: bool) -> None:
        """Start vLLM on the model in a directory.

        Raises:
            ModelLoadError: this vLLM is too old, was imported in the other mode, or cannot load the model.
        """
        set_mode(invariant=invariant)
        try:
            import vllm
        # Its extensions fail in whatever way the libraries of the machine make them.
        except Exception as error:
            raise ModelLoadError(f"vLLM cannot be imported: {one_line(error)}", code="model.library") from error
        if NEEDED not in vllm.SamplingParams.__struct_fields__:
            raise ModelLoadError(f"this vLLM has no {NEEDED}: pip install -U 'vllm>=0.33'.", code="model.library")
        self._params = vllm.SamplingParams
        try:
            with step(f"start vLLM with {folder.name}"):
                self._llm: Any = vllm.LLM(model=str(folder), **arguments)
        # vLLM passes on what torch, Transformers and its own processes raise.
        except Exception as error:
            raise _load_error(error, invariant=invariant) from error
        self.max_tokens: int = self._llm.model_config.max_model_len
        self.vocabulary: int = self._llm.model_config.get_vocab_size()
        self.alive = True

    def run(self, asked: Sequence[Asked], stop: threading.Event) -> list[Any | ModelError]:
        """Return vLLM's output per request, or the error of one that it refuses.

        Raises:
            PermanentError: the engine ran out of memory.
            TransientError: the engine died; the next call is for a new one.
            Stopped: `stop` was set between two steps.
        """
        found: list[Any | ModelError] = []
        taken: dict[str, int] = {}
        try:
            for place, one in enumerate(asked):
                try:
                    taken[self._add(one)] = place
                    found.append(None)
                except PermanentError as error:
                    found.append(error)
            outputs = self._finish(list(taken), stop)
        except (Stopped, ModelError):
            raise
        except Exception as error:
            self.alive = False
            raise _dead(error) from error
        # Outputs come back under the number that a request was counted with, in any order.
        for place, output in zip(taken.values(), sorted(outputs, key=lambda one: int(one.request_id)), strict=True):
            found[place] = output
        return found

    def close(self) -> None:
        """End the engine's processes and free its memory."""
        llm, self._llm, self.alive = self._llm, None, False
        if llm is not None:
            llm.llm_engine.engine_core.shutdown()
            del llm
            gc.collect()

    def _add(self, one: Asked) -> str:
        prompt: dict[str, Any] = {"prompt_token_ids": list(one.ids)}
        if one.images:
            prompt["multi_modal_data"] = {"image": list(one.images)}
        from vllm.exceptions import VLLMClientError

        params = dict(one.params)
        try:
            if (form := params.pop("form", None)) is not None:
                from vllm.sampling_params import StructuredOutputsParams

                params["structured_outputs"] = StructuredOutputsParams(**form)
            (name,) = self._llm.enqueue([prompt], [self._params(**params)], use_tqdm=False)
        except (VLLMClientError, ValueError) as error:
            long = TOO_LONG in str(error)
            raise PermanentError(
                f"vLLM refuses the request: {one_line(error)}", code="request.too-long" if long else "request.refused"
            ) from error
        return str(name)

    def _finish(self, names: list[str], stop: threading.Event) -> list[Any]:
        core = self._llm.llm_engine
        done: list[Any] = []
        while core.has_unfinished_requests():
            if stop.is_set():
                core.abort_request(names, internal=True)
                raise Stopped
            done += [output for output in core.step() if output.finished]
        return done


def set_mode(*, invariant: bool) -> None:
    """Choose vLLM's batch-invariant mode before it is imported.

    Raises:
        ModelLoadError: it was imported in the other mode, which it keeps for the whole process.
    """
    wanted = "1" if invariant else "0"
    if "vllm" in sys.modules and os.environ.get(INVARIANT, "0") != wanted:
        raise ModelLoadError(
            f"vLLM runs in this process with {INVARIANT}={os.environ.get(INVARIANT, '0')} already, and cannot change "
            "it. Measure models with and without batch_invariant in separate commands.",
            code="model.process",
        )
    os.environ[INVARIANT] = wanted


def _load_error(error: Exception, *, invariant: bool) -> ModelLoadError:
    text = one_line(error)
    if is_out_of_memory(error) or "memory" in text.lower():
        return ModelLoadError(
            f"vLLM has too little GPU memory for this model: {text}. Lower max_context or gpu_memory, or raise "
            "tensor_parallel.",
            code="model.memory",
        )
    hint = " If the mode is not supported here, set batch_invariant = false." if invariant else ""
    return ModelLoadError(f"vLLM cannot load the model: {text}.{hint}", code="model.unloadable")


def _dead(error: Exception) -> ModelError:
    if is_out_of_memory(error):
        return PermanentError(
            f"vLLM ran out of GPU memory: {one_line(error)}. Lower gpu_memory or max_context.", code="request.memory"
        )
    return TransientError(f"vLLM's engine died: {one_line(error)}. It is started again.", code="engine.dead")
