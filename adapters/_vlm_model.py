"""Load a vision-language model and its processor; turn messages and images into what the model reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.errors import ModelLoadError, PermanentError
from ..core.records import Image, Message, Prompt, Text
from ._hf_files import Source, fetch, find_file, one_line
from ._hf_load import load_weights
from ._torch import DType, choose_device, quiet_loading
from ._vlm_sampling import Defaults, read_defaults

MORE = (
    "processor_config.json",
    "preprocessor_config.json",
    "image_processor_config.json",
    "chat_template.*",
    "generation_config.json",
)
"""Files beyond configuration, tokenizer and weights that change answers."""
Look = Callable[[str], Any]
"""Opens an image by its sha256."""


class Encoded(NamedTuple):
    """One prompt as the model reads it."""

    ids: tuple[int, ...]
    """Tokens, an image's placeholders included."""
    stem: int
    """Number of tokens up to the end of the last image; 0 without an image."""
    media: dict[str, Any]
    """What the processor made beside the tokens: pixel values, sizes ..."""


class Loaded(NamedTuple):
    """A model on its device, and all that goes with it."""

    model: Any
    processor: Any
    template: str
    defaults: Defaults
    device: str
    max_tokens: int | None
    image_token: int | None


class _Remembering:
    """An image processor that remembers its last result: many questions, one image, one preparation."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._images: list[Any] = []
        self._settings: str | None = None
        self._made: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, images: Any, *more: Any, **settings: Any) -> Any:
        held = [image for group in images for image in (group if isinstance(group, list | tuple) else [group])]
        chosen = repr((more, settings))
        if chosen != self._settings or not self._holds(held):
            self._made = self._inner(images, *more, **settings)
            self._images, self._settings = held, chosen
        return type(self._made)(dict(self._made))

    def _holds(self, images: list[Any]) -> bool:
        pairs = zip(self._images, images, strict=False)
        return len(self._images) == len(images) and all(one is other for one, other in pairs)


def find_template(source: Source) -> str:
    """Return the chat template from the model's files, in the order Transformers looks.

    Raises:
        ModelLoadError: the model has none.
    """
    if (path := find_file(source, "chat_template.jinja")) is not None:
        return path.read_text(encoding="utf-8")
    for name in ("chat_template.json", "processor_config.json", "tokenizer_config.json"):
        if (path := find_file(source, name)) is None:
            continue
        template = json.loads(path.read_text(encoding="utf-8")).get("chat_template")
        if isinstance(template, str):
            return template
    raise ModelLoadError(
        f"{source.name!r} has no chat template, so there is no telling how it wants to be asked. "
        "Save one beside it as chat_template.jinja."
    )


def load_vlm(source: Source, template: str, dtype: DType, device: str) -> Loaded:
    """Load weights and processor.

    Raises:
        ModelLoadError: no image-text-to-text model, missing weights, no usable processor, no such device.
    """
    chosen = choose_device(device)
    with quiet_loading():
        folder = fetch(source)
        processor = _load_processor(str(folder), source)
        what = "a vision-language model"
        model = load_weights(folder, source, dtype, "AutoModelForImageTextToText", what).to(chosen)
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    token = getattr(model.config, "image_token_id", None)
    if token is None:
        token = getattr(model.config, "image_token_index", None)
    defaults = read_defaults(model.generation_config, processor.tokenizer)
    return Loaded(model, processor, template, defaults, chosen, limit, token)


def _load_processor(folder: str, source: Source) -> Any:
    import transformers
    from packaging.version import Version

    # Pillow's way is there without torchvision, and is the one whose pixels the older releases made.
    way = {"backend": "pil"} if Version(transformers.__version__) >= Version("5") else {"use_fast": False}
    try:
        processor = transformers.AutoProcessor.from_pretrained(
            folder, trust_remote_code=source.trust_remote_code, local_files_only=True, **way
        )
    # Processor files fail in every way that their parsers can.
    except Exception as error:
        raise ModelLoadError(f"cannot load the processor of {source.name!r}: {one_line(error)}") from error
    if not (hasattr(processor, "image_processor") and hasattr(processor, "tokenizer")):
        raise ModelLoadError(f"{source.name!r} has no processor for images with text ({type(processor).__name__}).")
    processor.image_processor = _Remembering(processor.image_processor)
    return processor


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
            raise PermanentError(f"the text holds {marker!r}, this model's placeholder of an image: {text[:80]!r}.")
    prefilled = bool(prompt) and prompt[-1].role == "assistant"
    how = {"continue_final_message": True} if prefilled else {"add_generation_prompt": True}
    # Templates are programs that raise what they like.
    try:
        rendered = loaded.processor.apply_chat_template(
            [_turn(message) for message in prompt], chat_template=loaded.template, tokenize=False, **how
        )
    except Exception as error:
        raise PermanentError(f"the model's chat template refuses these messages: {one_line(error)}") from error
    return str(rendered)


def encode(loaded: Loaded, text: str, images: Sequence[Any]) -> Encoded:
    """Encode a rendered prompt with its images.

    Raises:
        PermanentError: the processor cannot bring text and images together, or the prompt is too long.
    """
    processor = loaded.processor
    start = processor.tokenizer.bos_token
    plain = {"add_special_tokens": False} if start and text.startswith(start) else {}
    try:
        made = dict(processor(text=[text], images=list(images) or None, return_tensors="pt", **plain))
    # Each processor has errors of its own for what it does not take.
    except Exception as error:
        raise PermanentError(f"the model's processor refuses text with {len(images)} image(s): {error}") from error
    ids = tuple(made.pop("input_ids")[0].tolist())
    made.pop("attention_mask", None)
    if loaded.max_tokens is not None and len(ids) > loaded.max_tokens:
        raise PermanentError(
            f"the prompt has {len(ids)} tokens with its image, the model takes at most {loaded.max_tokens}. "
            "Shorten it; cutting it here would ask another question."
        )
    if not ids:
        raise PermanentError("the prompt is empty: this model has no token to start from.")
    places = [place for place, token in enumerate(ids) if token == loaded.image_token] if images else []
    return Encoded(ids, places[-1] + 1 if places else 0, made)


def _turn(message: Message) -> dict[str, Any]:
    parts = [
        {"type": "text", "text": part.text} if isinstance(part, Text) else {"type": "image"} for part in message.parts
    ]
    return {"role": message.role, "content": parts}
