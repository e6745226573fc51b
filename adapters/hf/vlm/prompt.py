"""Turn messages and images into the inputs of a vision-language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....core.contracts.errors import PermanentError
from ....core.contracts.records import Generate, Image, Message, Prompt, Text
from ...shared.sampling import answer_length, choose
from ..hub import one_line
from .answers import Wish
from .model import Loaded


class Encoded(NamedTuple):
    """One prompt as the model reads it."""

    ids: tuple[int, ...]
    """Tokens, an image's placeholders included."""
    stem: int
    """Number of tokens up to the end of the last image; 0 without an image."""
    media: dict[str, Any]
    """Other outputs of the processor: pixel values, sizes ..."""


class Scored(NamedTuple):
    """What of a text is scored."""

    start: int
    """Number of the first token, the same token for all continuations of a prompt."""
    overlap: int
    """Characters at the end of the prompt that are scored with the continuation."""


def images_of(prompt: Prompt) -> tuple[str, ...]:
    """Return the sha256 of a prompt's images, in order."""
    if isinstance(prompt, str):
        return ()
    return tuple(part.sha256 for message in prompt for part in message.parts if isinstance(part, Image))


def render(loaded: Loaded, prompt: Prompt) -> str:
    """Return a prompt as one text with a placeholder per image; plain text stays as it is.

    Raises:
        PermanentError: the model's template does not take such messages, or the text holds an image placeholder.
    """
    if isinstance(prompt, str):
        return prompt
    marker = getattr(loaded.processor, "image_token", None)
    for text in (part.text for message in prompt for part in message.parts if isinstance(part, Text)):
        if marker and marker in text:
            raise PermanentError(
                f"the text contains {marker!r}, this model's placeholder for an image: {text[:80]!r}.",
                code="request.placeholder",
            )
    prefilled = bool(prompt) and prompt[-1].role == "assistant"
    how = {**loaded.arguments, "continue_final_message" if prefilled else "add_generation_prompt": True}
    # Templates are programs that raise what they like.
    try:
        rendered = loaded.processor.apply_chat_template(
            [_turn(message) for message in prompt], chat_template=loaded.template, tokenize=False, **how
        )
    except Exception as error:
        raise PermanentError(
            f"the model's chat template refuses these messages: {one_line(error)}", code="request.template"
        ) from error
    return str(rendered)


def encode(loaded: Loaded, text: str, images: Sequence[Any], *, bare: bool = False) -> Encoded:
    """Encode a rendered prompt with its images; a `bare` one without the tokenizer's own tokens.

    Raises:
        PermanentError: the processor cannot bring text and images together, or the prompt is too long.
    """
    processor = loaded.processor
    plain = {} if _adds_special(loaded, text) and not bare else {"add_special_tokens": False}
    try:
        made = dict(processor(text=[text], images=list(images) or None, return_tensors="pt", **plain))
    # Each processor has errors of its own for what it does not take.
    except Exception as error:
        raise PermanentError(
            f"the model's processor refuses text with {len(images)} image(s): {error}", code="request.refused"
        ) from error
    ids = tuple(made.pop("input_ids")[0].tolist())
    made.pop("attention_mask", None)
    if loaded.max_tokens is not None and len(ids) > loaded.max_tokens:
        raise PermanentError(
            f"the prompt has {len(ids)} tokens with its image, but the model takes at most {loaded.max_tokens}. "
            "Shorten it; it is not cut here, since that would ask another question.",
            code="request.too-long",
        )
    if not ids:
        raise PermanentError("the prompt is empty: this model has no token to start from.", code="request.empty")
    places = [place for place, token in enumerate(ids) if token == loaded.image_token] if images else []
    return Encoded(ids, places[-1] + 1 if places else 0, made)


def plan_answer(loaded: Loaded, request: Generate, prompt: Encoded, images: Sequence[str]) -> Wish:
    """Return how an answer is written.

    Raises:
        PermanentError: a setting out of range.
    """
    room = None if loaded.max_tokens is None else loaded.max_tokens - len(prompt.ids)
    return Wish(
        choice=choose(request, loaded.defaults, prompt.ids, images),
        most=answer_length(request, loaded.answer_tokens, room, loaded.answer_room),
        stops=request.sampling.stop,
        top=max(0, request.top_logprobs),
        ends=loaded.ends,
    )


def plan_scores(
    loaded: Loaded, text: str, continuations: Sequence[str], pictures: Sequence[Any], *, plain: bool = False
) -> list[tuple[Encoded, Scored]]:
    """Return each continuation encoded behind the text, and what of it is scored. `plain`: no template wrote the text.

    Counted from the end: in front the processor writes an image as many tokens, but behind it the text stays as it is.

    Raises:
        PermanentError: no or an empty continuation, one with nothing before it, or a processor that changes the text.
    """
    encoder = loaded.plain_encoder if plain else None
    rows = (encoder or loaded.encoder).rows(text, continuations, _adds_special(loaded, text))
    planned = []
    for row, continuation in zip(rows, continuations, strict=True):
        own = tuple(row.ids[row.split :])
        whole = encode(loaded, text + continuation, pictures, bare=encoder is not None)
        if encoder is not None or (plain and len(whole.ids) == len(own)):
            whole = _led(whole, row.ids)
        start = len(whole.ids) - len(own)
        if whole.ids[start:] != own:
            raise PermanentError(
                f"the model's processor writes {continuation[:40]!r} differently from its tokenizer, so where the "
                "continuation begins is unknown. Ask for an answer instead of a likelihood.",
                code="request.border",
            )
        if start < 1:
            raise PermanentError(
                "the prompt has no token before the continuation to be conditioned on. Give a prompt.",
                code="request.no-context",
            )
        planned.append((whole, Scored(start, row.overlap)))
    return planned


def _led(bare: Encoded, ids: Sequence[int]) -> Encoded:
    """Return a text without images behind the tokens that `ids` has before it; inputs by token are 0 there."""
    count = len(ids) - len(bare.ids)

    def padded(values: Any) -> Any:
        if getattr(values, "ndim", 0) != 2 or values.shape[1] != len(bare.ids):
            return values
        wider = values.new_zeros((values.shape[0], count + values.shape[1]))
        wider[:, count:] = values
        return wider

    if count <= 0:
        return bare
    return bare._replace(
        ids=(*ids[:count], *bare.ids), media={name: padded(values) for name, values in bare.media.items()}
    )


def _adds_special(loaded: Loaded, text: str) -> bool:
    """Return whether the tokenizer adds its own tokens; a template may have written them itself."""
    start = loaded.processor.tokenizer.bos_token
    return not (start and text.startswith(start))


def _turn(message: Message) -> dict[str, Any]:
    parts = [
        {"type": "text", "text": part.text} if isinstance(part, Text) else {"type": "image"} for part in message.parts
    ]
    return {"role": message.role, "content": parts}
