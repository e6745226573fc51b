"""Encode an image once and ask many questions about it.

The questions form a single sequence after the image, each with positions as if it directly followed the image, and a
mask limits each to the image and itself. So the image's keys and values exist once, however many
questions there are; copying them to a row per question costs more than the questions themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .model import Loaded
from .prompt import Encoded

KEPT = 2
"""Encoded images kept from one call to the next."""


class Unshareable(Exception):
    """Raised if this model keeps more of a prefix than keys and values that can be copied."""


class Stem(NamedTuple):
    """A prompt up to the end of its last image, encoded."""

    layers: list[tuple[Any, Any]]
    """Keys and values per layer: [1, head, token, width]."""
    length: int


class Batch(NamedTuple):
    """Unfinished questions, in one sequence."""

    logits: Any
    """[question, kept position, vocabulary]; the last position is the question's last token."""
    cache: Any
    owners: Any
    """The question each token of the sequence belongs to, -1 for the image's: [token]."""
    rows: Any
    """The unfinished questions: [question]."""
    positions: Any
    """Position of each question's last token: [question]."""


class Stems:
    """The last few encoded images of a model."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._kept: dict[tuple[tuple[str, ...], tuple[int, ...]], Stem] = {}

    def find(self, images: tuple[str, ...], prompt: Encoded) -> Stem:
        """Return a prompt's stem, encoding it unless it is one of the last."""
        if prompt.stem == 0:
            return Stem([], 0)
        key = (images, prompt.ids[: prompt.stem])
        stem = self._kept.pop(key, None) or encode_stem(self._loaded, prompt)
        self._kept[key] = stem
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return stem

    def clear(self) -> None:
        """Forget all, to free memory."""
        self._kept.clear()


def encode_stem(loaded: Loaded, prompt: Encoded) -> Stem:
    """Run the model over a prompt up to the end of its last image.

    Raises:
        Unshareable: the model keeps states other than plain keys and values.
    """
    import torch

    ids = torch.tensor([prompt.ids[: prompt.stem]], device=loaded.device)
    with torch.inference_mode():
        made = loaded.model(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            use_cache=True,
            logits_to_keep=1,
            **place_media(loaded, prompt.media),
        )
    return Stem(_layers(made.past_key_values, prompt.stem), prompt.stem)


def open_rows(loaded: Loaded, stem: Stem, rows: Sequence[Sequence[int]], keep: int) -> Batch:
    """Run questions after a stem; keep the logits of the last `keep` positions of each."""
    import torch

    device = loaded.device
    lengths = torch.tensor([len(row) for row in rows], device=device)
    numbers = torch.arange(len(rows), device=device)
    own = numbers.repeat_interleave(lengths)
    ends = lengths.cumsum(0)
    starts = ends - lengths
    positions = stem.length + torch.arange(len(own), device=device) - starts[own]
    owners = torch.cat([own.new_full((stem.length,), -1), own])
    kept = torch.maximum(ends[:, None] - torch.arange(keep, 0, -1, device=device), starts[:, None])
    cache = _copy(stem)
    with torch.inference_mode():
        made = loaded.model(
            input_ids=torch.tensor([[token for row in rows for token in row]], device=device),
            attention_mask=_mask(loaded, owners, own, stem.length),
            position_ids=positions[None],
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=kept.flatten(),
        )
    logits = made.logits[0].view(len(rows), keep, -1).float()
    return Batch(logits, made.past_key_values, owners, numbers, positions[ends - 1])


def step_rows(loaded: Loaded, batch: Batch, tokens: Sequence[int]) -> Batch:
    """Append one token to every unfinished question."""
    import torch

    owners, positions = torch.cat([batch.owners, batch.rows]), batch.positions + 1
    with torch.inference_mode():
        made = loaded.model(
            input_ids=torch.tensor([tokens], device=loaded.device),
            attention_mask=_mask(loaded, owners, batch.rows, len(batch.owners)),
            position_ids=positions[None],
            past_key_values=batch.cache,
            use_cache=True,
        )
    return Batch(made.logits[0][:, None].float(), made.past_key_values, owners, batch.rows, positions)


def select_rows(batch: Batch, rows: Sequence[int]) -> Batch:
    """Continue with some of the questions."""
    import torch

    chosen = torch.tensor(rows, device=batch.rows.device)
    return Batch(batch.logits[chosen], batch.cache, batch.owners, batch.rows[chosen], batch.positions[chosen])


def place_media(loaded: Loaded, media: dict[str, Any]) -> dict[str, Any]:
    """Move what the processor made to the model's device and precision."""
    import torch

    return {
        name: value.to(loaded.device, loaded.model.dtype if value.is_floating_point() else None)
        if isinstance(value, torch.Tensor)
        else value
        for name, value in media.items()
    }


def _layers(cache: Any, length: int) -> list[tuple[Any, Any]]:
    from transformers import DynamicCache

    if type(cache) is not DynamicCache:
        raise Unshareable(f"it keeps a {type(cache).__name__}")
    if hasattr(cache, "layers"):
        pairs = [(layer.keys, layer.values) for layer in cache.layers if type(layer).__name__ == "DynamicLayer"]
        whole = len(cache.layers)
    else:
        pairs, whole = list(zip(cache.key_cache, cache.value_cache, strict=True)), len(cache.key_cache)
    if len(pairs) != whole or any(keys.shape[-2] != length for keys, _ in pairs):
        raise Unshareable("some of its layers keep less than the whole prefix")
    return pairs


def _copy(stem: Stem) -> Any:
    from transformers import DynamicCache

    cache = DynamicCache()
    for number, (keys, values) in enumerate(stem.layers):
        cache.update(keys, values, number)
    return cache


def _mask(loaded: Loaded, owners: Any, own: Any, before: int) -> Any:
    """Let tokens see the image and what came before in their own question: [1, 1, new token, token]."""
    import torch

    place = torch.arange(len(owners), device=owners.device)
    past = place <= before + torch.arange(len(own), device=owners.device)[:, None]
    seen = ((owners < 0) | (owners == own[:, None])) & past
    lowest = torch.finfo(loaded.model.dtype).min
    return torch.zeros(seen.shape, dtype=loaded.model.dtype, device=owners.device).masked_fill(~seen, lowest)[
        None, None
    ]
