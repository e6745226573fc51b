"""Load a vision-language model and its processor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ....core.contracts.errors import ModelLoadError
from ...shared.sampling import Defaults
from ...shared.torch import choose_device, quiet_loading
from ..files import Source, fetch, find_file
from ..generation import SETTINGS, end_tokens, read_settings, sampling_defaults
from ..hub import one_line
from ..load import check_fast, load_weights
from ..loading import Loading
from ..text import Encoder

MAX_TOKENS = 256
"""Longest answer in tokens if neither the request nor the model sets a limit."""
PROCESSORS = ("processor_config.json", "preprocessor_config.json", "image_processor_config.json")
"""Files that say how images are prepared; every model that sees has one of them."""
MORE = (
    *PROCESSORS,
    "chat_template.*",
    SETTINGS,
)
"""Files beyond configuration, tokenizer and weights that change answers."""


class Loaded(NamedTuple):
    """A model on its device, with its processor, template and limits."""

    model: Any
    processor: Any
    encoder: Encoder
    """Of the processor's tokenizer: tells which characters a token stands for."""
    template: str
    defaults: Defaults
    answer_tokens: int
    """Longest answer if the request sets no limit."""
    ends: frozenset[int]
    """Tokens that end an answer."""
    device: str
    max_tokens: int | None
    image_token: int | None
    answer_room: int = 0
    """Tokens added to the limit of every answer, for reasoning."""
    arguments: Mapping[str, Any] = {}
    """Further arguments of the template."""
    plain_encoder: Encoder | None = None
    """Of plain texts, where a setting says what stands before them; None: what the tokenizer puts there."""


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
        f"{source.name!r} has no chat template, so the format of its prompts is unknown. "
        "Save a template in its folder as chat_template.jinja.",
        code="model.template",
    )


def load_vlm(source: Source, template: str, loading: Loading) -> Loaded:
    """Load weights and processor.

    Raises:
        ModelLoadError: no image-text-to-text model, missing weights, no usable processor, no such device.
    """
    chosen = choose_device(loading.device)
    with quiet_loading():
        folder = fetch(source)
        processor = _load_processor(str(folder), source)
        what = "a vision-language model"
        model = load_weights(folder, source, loading, chosen, "AutoModelForImageTextToText", what)
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    token = getattr(model.config, "image_token_id", None)
    if token is None:
        token = getattr(model.config, "image_token_index", None)
    settings = read_settings(source)
    return Loaded(
        model=model,
        processor=processor,
        encoder=Encoder(processor.tokenizer),
        template=template,
        defaults=sampling_defaults(settings),
        answer_tokens=int(settings.get("max_new_tokens") or MAX_TOKENS),
        ends=end_tokens(model, processor.tokenizer),
        device=chosen,
        max_tokens=limit,
        image_token=token,
    )


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
        raise ModelLoadError(
            f"cannot load the processor of {source.name!r}: {one_line(error)}", code="model.unloadable"
        ) from error
    if not (hasattr(processor, "image_processor") and hasattr(processor, "tokenizer")):
        raise ModelLoadError(
            f"{source.name!r} has no processor for images with text ({type(processor).__name__}).", code="model.kind"
        )
    check_fast(processor.tokenizer, source)
    processor.image_processor = _Remembering(processor.image_processor)
    return processor
