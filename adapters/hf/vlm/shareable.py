"""Test on a model whether questions about an image may share its keys and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ....core.contracts.errors import ModelError, ModelLoadError
from ....core.contracts.records import Image, Message, Text
from ...shared.torch import agree
from ..hub import one_line
from .cache import Sharing, Stem, Strip, Unshareable, encode_stem
from .engine import logits_plainly
from .model import Loaded
from .prompt import Encoded, encode, render

QUESTIONS = ("What is this?", "Is there a person to be seen in this picture, or is there nobody? Answer in one word.")

_Ask = Callable[[Loaded, Stem, list[Encoded], list[Any]], Iterator[tuple[Any, Any]]]


def try_sharing(loaded: Loaded, name: str) -> Sharing:
    """Compare logits after a shared image, and of questions that join others, with those of whole passes.

    Raises:
        ModelLoadError: the model cannot even take an image and a question.
    """
    try:
        prompts = [_prompt(loaded, question) for question in QUESTIONS]
        whole = [logits_plainly(loaded, prompt) for prompt in prompts]
    # What a model raises on its own processor's inputs is not foreseeable.
    except (ModelError, RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ModelLoadError(
            f"{name!r} cannot take an image and a question: {one_line(error)}", code="model.kind"
        ) from error
    length = prompts[0].stem
    if not 0 < length < min(len(prompt.ids) for prompt in prompts) - 2:
        return "none"
    if len({prompt.ids[:length] for prompt in prompts}) != 1:
        return "none"
    best: Sharing = "none"
    try:
        stem = encode_stem(loaded, prompts[0])
        ways: tuple[tuple[Sharing, _Ask], ...] = (("whole", _ask_together), ("refilled", _ask_joining))
        for better, asked in ways:
            if not all(agree(one, other, loaded.model.dtype) for one, other in asked(loaded, stem, prompts, whole)):
                break
            best = better
    except (Unshareable, RuntimeError, ValueError, TypeError, LookupError, AttributeError):
        pass
    return best


def _ask_together(loaded: Loaded, stem: Stem, prompts: list[Encoded], whole: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the last two logits of each prompt, the last by a step of its own, and the last after dropping a row."""
    import torch

    asked = [(0, stem, prompt.ids[stem.length : -1]) for prompt in prompts]
    last = torch.tensor([prompt.ids[-1] for prompt in prompts], device=loaded.device)
    strip = Strip(loaded)
    for logits, table in zip(strip.open(asked)[:, -1], whole, strict=True):
        yield logits, table[-2]
    for logits, table in zip(strip.step(last), whole, strict=True):
        yield logits, table[-1]
    strip = Strip(loaded)
    strip.open(asked)
    strip.take([1])
    yield strip.step(last[1:])[0], whole[1][-1]


def _ask_joining(loaded: Loaded, stem: Stem, prompts: list[Encoded], whole: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield logits of a prompt that another joins after a step, of both, and of one that takes a place."""
    import torch

    first, second = prompts
    strip = Strip(loaded)
    last = torch.tensor([second.ids[-1], first.ids[-1]], device=loaded.device)
    yield strip.open([(0, stem, second.ids[stem.length : -2])])[0, -1], whole[1][-3]
    yield strip.step(torch.tensor([second.ids[-2]], device=loaded.device))[0], whole[1][-2]
    yield strip.open([(1, stem, first.ids[stem.length : -1])])[0, -1], whole[0][-2]
    for logits, table in zip(strip.step(last), reversed(whole), strict=True):
        yield logits, table[-1]
    strip.take([1])
    yield strip.open([(0, stem, second.ids[stem.length : -1])])[0, -1], whole[1][-2]


def _prompt(loaded: Loaded, question: str) -> Encoded:
    import numpy as np
    from PIL import Image as Pictures

    ramp = np.indices((96, 128)).transpose(1, 2, 0)
    pixels = np.concatenate([ramp * 2 % 256, ramp[..., :1] * 5 % 256], -1).astype(np.uint8)
    message = Message("user", (Image(""), Text(question)))
    return encode(loaded, render(loaded, (message,)), [Pictures.fromarray(pixels)])
