"""Encode an image once and ask many questions about it: its keys and values are copied to every question's row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ._vlm_model import Encoded, Loaded

KEPT = 2
"""Encoded images kept from one call to the next."""


class Unshareable(Exception):
    """Say that this model keeps more of a prefix than keys and values that can be copied."""


class Stem(NamedTuple):
    """A prompt up to the end of its last image, encoded."""

    layers: list[tuple[Any, Any]]
    """Keys and values per layer: [1, head, token, width]."""
    length: int


class Batch(NamedTuple):
    """Rows under way: one prompt each, padded on the left between the stem and their own tokens."""

    logits: Any
    """[row, kept position, vocabulary]; the last position is the row's last token."""
    cache: Any
    mask: Any
    """[row, token]"""
    positions: Any
    """Position of each row's last token: [row, 1]."""


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
    """Run rows of tokens after a stem; keep the logits of the last `keep` positions."""
    import torch

    longest = max(map(len, rows))
    pads = torch.tensor([[longest - len(row)] for row in rows], device=loaded.device)
    # Padding is never attended to, so any token will do; an image's placeholder would ask for pixels.
    filler = rows[0][0]
    ids = torch.tensor([[filler] * (longest - len(row)) + list(row) for row in rows], device=loaded.device)
    column = torch.arange(longest, device=loaded.device)
    own = (column >= pads).long()
    mask = torch.cat([own.new_ones(len(rows), stem.length), own], 1)
    positions = (stem.length + column - pads).clamp(min=0)
    with torch.inference_mode():
        made = loaded.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=_spread(stem, len(rows)),
            use_cache=True,
            logits_to_keep=keep,
        )
    return Batch(made.logits[:, -keep:].float(), made.past_key_values, mask, positions[:, -1:])


def step_rows(loaded: Loaded, batch: Batch, tokens: Sequence[int]) -> Batch:
    """Append one token to every row."""
    import torch

    mask = torch.cat([batch.mask, batch.mask.new_ones(len(tokens), 1)], 1)
    positions = batch.positions + 1
    with torch.inference_mode():
        made = loaded.model(
            input_ids=torch.tensor(tokens, device=loaded.device)[:, None],
            attention_mask=mask,
            position_ids=positions,
            past_key_values=batch.cache,
            use_cache=True,
        )
    return Batch(made.logits[:, -1:].float(), made.past_key_values, mask, positions)


def select_rows(batch: Batch, rows: Sequence[int]) -> Batch:
    """Keep some rows."""
    import torch

    chosen = torch.tensor(rows, device=batch.mask.device)
    batch.cache.batch_select_indices(chosen)
    return Batch(batch.logits[chosen], batch.cache, batch.mask[chosen], batch.positions[chosen])


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


def _spread(stem: Stem, rows: int) -> Any:
    from transformers import DynamicCache

    cache = DynamicCache()
    for number, (keys, values) in enumerate(stem.layers):
        cache.update(keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1), number)
    return cache
