"""Which models vLLM is given here: causal language models, and those that also see images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..hf.causal.model import CAUSAL
from ..hf.load import Kind

IMAGE_KEYS = ("image_token_id", "image_token_index")
ENCODER_DECODER = ("T5", "Bart", "MBart", "Pegasus", "Marian", "M2M100", "Blenderbot", "Whisper", "LED")


def _fits(architecture: str) -> bool:
    whole = architecture.endswith("ForConditionalGeneration")
    return CAUSAL.fits(architecture) or (whole and not architecture.startswith(ENCODER_DECODER))


GENERATIVE = Kind("causal or vision-language model", CAUSAL.loader, _fits)


def image_marker(config: Mapping[str, Any], tokenizer: Any) -> str | None:
    """Return the placeholder of an image in a text; None if the model's configuration names none: it reads text."""
    token = next((config[key] for key in IMAGE_KEYS if config.get(key) is not None), None)
    return None if token is None else str(tokenizer.convert_ids_to_tokens(int(token)))
