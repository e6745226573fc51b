"""Draw images in batches that fit the memory: one seeded generator per image, pixels as PNG."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.contracts.errors import ModelError, PermanentError
from ...core.contracts.records import Draw
from ..hf.hub import one_line
from ..shared.torch import is_out_of_memory, release_memory
from .model import Loaded, quiet_diffusers

_SEEDS = range(-(1 << 63), 1 << 64)


class Style(NamedTuple):
    """Settings of every image of a model."""

    steps: int | None
    guidance: float | None
    suffix: str
    negative: str | None
    batch: int


class Filtered(NamedTuple):
    """The safety checker's verdict on an image, which is discarded."""


Outcome = bytes | Filtered | ModelError


class _StoppedError(Exception):
    """The caller no longer waits."""


class Drawer:
    """Draws on one loaded pipeline; not thread-safe."""

    def __init__(self, loaded: Loaded, style: Style) -> None:
        self._loaded, self._style = loaded, style
        self._most = style.batch

    def draw(self, requests: Sequence[Draw], stop: threading.Event) -> list[Outcome]:
        """Return a PNG, a verdict or an error per request, in order; errors only if `stop` is set meanwhile."""
        outcomes: dict[int, Outcome] = {}
        groups: dict[tuple[Any, ...], list[int]] = {}
        for number, request in enumerate(requests):
            if problem := self._problem(request):
                outcomes[number] = problem
            else:
                key = (request.width, request.height, request.steps, request.guidance)
                groups.setdefault(key, []).append(number)
        for numbers in groups.values():
            drawn = self._draw_alike([requests[number] for number in numbers], stop)
            outcomes |= dict(zip(numbers, drawn, strict=True))
        return [outcomes[number] for number in range(len(requests))]

    def _draw_alike(self, requests: list[Draw], stop: threading.Event) -> list[Outcome]:
        drawn: list[Outcome] = []
        while len(drawn) < len(requests):
            chunk = requests[len(drawn) : len(drawn) + self._most]
            done = self._attempt(chunk, stop)
            if done is None and len(chunk) > 1:
                self._most = len(chunk) // 2
            else:
                drawn += done if done is not None else [self._too_large(chunk[0])]
        return drawn

    def _attempt(self, chunk: list[Draw], stop: threading.Event) -> Sequence[Outcome] | None:
        try:
            return self._call(chunk, stop)
        except _StoppedError:
            return [PermanentError("the drawing was cancelled.", code="request.cancelled")] * len(chunk)
        except (RuntimeError, MemoryError) as error:
            if not isinstance(error, MemoryError) and not is_out_of_memory(error):
                raise
        # Schedulers refuse a number of steps by either.
        except (ValueError, IndexError) as error:
            return [
                PermanentError(f"the pipeline does not take this request: {one_line(error)}", code="request.refused")
            ] * len(chunk)
        # Freed here, outside the handler, for the traceback holds the tensors.
        release_memory(self._loaded.device)
        return None

    def _call(self, chunk: list[Draw], stop: threading.Event) -> list[Outcome]:
        import torch

        if stop.is_set():
            raise _StoppedError
        # A not-finite image warns when it is cast for the safety checker; `_encode` tells of it.
        with warnings.catch_warnings(), quiet_diffusers(), torch.inference_mode():
            warnings.simplefilter("ignore")
            output = self._loaded.pipeline(**self._arguments(chunk, stop))
        verdicts = getattr(output, "nsfw_content_detected", None) or [False] * len(chunk)
        images = [self._encode(r, image) for r, image in zip(chunk, np.asarray(output.images), strict=True)]
        return [Filtered() if bad else image for bad, image in zip(verdicts, images, strict=True)]

    def _arguments(self, chunk: list[Draw], stop: threading.Event) -> dict[str, Any]:
        import torch

        first, style = chunk[0], self._style
        chosen = {
            "num_inference_steps": first.steps if first.steps is not None else style.steps,
            "guidance_scale": first.guidance if first.guidance is not None else style.guidance,
            "negative_prompt": None if style.negative is None else [style.negative] * len(chunk),
        }

        def watch(pipeline: Any, step: int, time: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            if stop.is_set():
                raise _StoppedError
            return tensors

        return {
            **{name: value for name, value in chosen.items() if value is not None},
            **({"callback_on_step_end": watch} if "callback_on_step_end" in self._loaded.accepts else {}),
            "prompt": [request.prompt + style.suffix for request in chunk],
            "width": first.width,
            "height": first.height,
            # On the processor, so that noise does not depend on the device's own generator.
            "generator": [torch.Generator("cpu").manual_seed(request.seed) for request in chunk],
            "output_type": "np",
        }

    def _problem(self, request: Draw) -> PermanentError | None:
        factor = int(getattr(self._loaded.pipeline, "vae_scale_factor", 8))
        if min(request.width, request.height) < 1 or request.width % factor or request.height % factor:
            return PermanentError(
                f"width {request.width} and height {request.height} must be positive multiples of {factor} "
                "for this pipeline.",
                code="request.size",
            )
        if request.seed not in _SEEDS:
            return PermanentError(
                f"seed {request.seed} is out of range: torch takes -2**63 to 2**64 - 1.", code="request.value"
            )
        if request.steps is not None and request.steps < 1:
            return PermanentError(f"steps = {request.steps}: at least 1 is needed.", code="request.value")
        return self._too_long(request.prompt + self._style.suffix) or self._too_long(self._style.negative or "")

    def _too_long(self, text: str) -> PermanentError | None:
        parts = self._loaded.pipeline.components
        tokenizers = [part for name, part in parts.items() if name.startswith("tokenizer") and part is not None]
        sizes = [
            (len(part(text, truncation=False, verbose=False).input_ids), part.model_max_length) for part in tokenizers
        ]
        # Pipelines with a short and a long encoder give the short one a cut text by design.
        if not sizes or any(size <= most for size, most in sizes):
            return None
        size, most = max(sizes, key=lambda pair: pair[1])
        return PermanentError(
            f"the prompt has {size} tokens, but the pipeline takes at most {most}, suffix included. Shorten it; "
            "cutting it here would draw another prompt.",
            code="request.too-long",
        )

    def _encode(self, request: Draw, image: NDArray[Any]) -> bytes | ModelError:
        if not np.isfinite(image).all():
            return PermanentError(
                "the image has values that are not finite in this dtype. Use dtype = 'bfloat16' or 'float32', "
                "or a vae made for float16.",
                code="request.not-finite",
            )
        if image.shape[:2] != (request.height, request.width):
            height, width = image.shape[:2]
            return PermanentError(
                f"the pipeline drew {width} x {height} pixels in place of {request.width} x {request.height}; "
                "ask for a size it keeps.",
                code="request.size",
            )
        return to_png(image)

    def _too_large(self, request: Draw) -> ModelError:
        return PermanentError(
            f"one image of {request.width} x {request.height} does not fit into this device's memory. "
            "Ask for a smaller one, or use device = 'cpu' or a smaller dtype.",
            code="request.memory",
        )


def to_png(image: NDArray[Any]) -> bytes:
    """Encode an image (height, width, 3; values 0 to 1) as PNG, without metadata."""
    from PIL import Image

    # Rounded as diffusers itself does, so that the pixels are those that it shows.
    pixels = (image * 255).round().clip(0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()
