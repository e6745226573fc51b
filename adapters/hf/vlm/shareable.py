"""Test on a model whether questions about an image may share its keys and values."""

from __future__ import annotations

from typing import Any

from ....core.contracts.errors import ModelError, ModelLoadError
from ....core.contracts.records import Image, Message, Text
from ...shared.torch import agree
from ..hub import one_line
from .cache import Unshareable, encode_stem, open_rows, select_rows, step_rows
from .engine import logits_plainly
from .model import Loaded
from .prompt import Encoded, encode, render

QUESTIONS = ("What is this?", "Is there a person to be seen in this picture, or is there nobody? Answer in one word.")


def can_share(loaded: Loaded, name: str) -> bool:
    """Compare logits after a shared image with those of whole passes; False if they differ or none are returned.

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
    stem = prompts[0].stem
    if not 0 < stem < min(len(prompt.ids) for prompt in prompts) - 2:
        return False
    if len({prompt.ids[:stem] for prompt in prompts}) != 1:
        return False
    try:
        shared = _shared(loaded, prompts)
    except (Unshareable, RuntimeError, ValueError, TypeError, LookupError, AttributeError):
        return False
    wanted = [part for table in whole for part in (table[-2], table[-1])] + [whole[1][-1]]
    return all(agree(one, other, loaded.model.dtype) for one, other in zip(shared, wanted, strict=True))


def _shared(loaded: Loaded, prompts: list[Encoded]) -> list[Any]:
    """Return the last two logits of each prompt, the last by a step of its own, and the last after dropping a row."""
    stem = encode_stem(loaded, prompts[0])
    batch = open_rows(loaded, stem, [prompt.ids[stem.length : -1] for prompt in prompts], 1)
    one = batch.logits[:, -1]
    other = step_rows(loaded, batch, [prompt.ids[-1] for prompt in prompts]).logits[:, -1]
    batch = open_rows(loaded, stem, [prompt.ids[stem.length : -1] for prompt in prompts], 1)
    alone = step_rows(loaded, select_rows(batch, [1]), [prompts[1].ids[-1]]).logits[0, -1]
    return [one[0], other[0], one[1], other[1], alone]


def _prompt(loaded: Loaded, question: str) -> Encoded:
    import numpy as np
    from PIL import Image as Pictures

    ramp = np.indices((96, 128)).transpose(1, 2, 0)
    pixels = np.concatenate([ramp * 2 % 256, ramp[..., :1] * 5 % 256], -1).astype(np.uint8)
    message = Message("user", (Image(""), Text(question)))
    return encode(loaded, render(loaded, (message,)), [Pictures.fromarray(pixels)])
