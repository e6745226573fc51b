"""Encode an image once and ask many questions about it.

Images and questions form a single sequence, each question with positions as if it directly followed its image, and a
mask limits each to its image and itself. So an image's keys and values exist once, however many questions there are;
copying them to a row per question costs more than the questions themselves. Whoever joins is appended. Questions that
join together with equal words, as the repeats of a study do, are encoded once and answered apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, Literal, NamedTuple

from .model import Loaded
from .prompt import Encoded

KEPT = 2
"""Encoded images kept from one call to the next."""


Sharing = Literal["none", "whole", "refilled"]
"""How a model takes questions: each on its own, in whole batches after an image, or in batches that others join."""


class Unshareable(Exception):
    """Raised if this model keeps more of a prefix than keys and values that can be copied."""


class Stem(NamedTuple):
    """A prompt up to the end of its last image, encoded."""

    layers: list[tuple[Any, Any]]
    """Keys and values per layer: [1, head, token, width]."""
    length: int


NO_STEM = Stem([], 0)
"""Of a prompt without an image."""


class Stems:
    """The last few encoded images of a model."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._kept: dict[tuple[tuple[str, ...], tuple[int, ...]], Stem] = {}

    def find(self, images: tuple[str, ...], prompt: Encoded) -> Stem:
        """Return a prompt's stem, encoding it unless it is one of the last."""
        if prompt.stem == 0:
            return NO_STEM
        key = (images, prompt.ids[: prompt.stem])
        stem = self._kept.pop(key, None) or encode_stem(self._loaded, prompt)
        self._kept[key] = stem
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return stem


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


class Strip:
    """Unfinished questions and what they follow, in one sequence."""

    def __init__(self, loaded: Loaded) -> None:
        """Start with none."""
        import torch

        self._loaded, self._cache, self._opened = loaded, _cache(()), 0
        self._stems = set[int]()
        """Numbers of those that are there, below 0."""
        none = torch.empty(0, dtype=torch.int64, device=loaded.device)
        self._owners = none
        """Number of the question or the stem that each token of the sequence belongs to."""
        self._rows = self._prompts = self._begins = self._positions = none
        """Of each unfinished question: the numbers of its answer, words and stem, the position of its last token."""

    def open(self, asked: Sequence[tuple[int, Stem, Sequence[int]]], keep: int = 1) -> Any:
        """Add questions, and return the logits of the last `keep` positions of each: [question, position, token].

        Each comes with its stem and the stem's number, from 0 on.
        """
        import torch

        device = self._loaded.device
        self._drop_finished()
        places: dict[tuple[int, tuple[int, ...]], int] = {}
        which = [places.setdefault((number, tuple(ids)), len(places)) for number, _, ids in asked]
        stems = {number: stem for number, stem, _ in asked}
        begins = torch.tensor([self._place(number, stems[number]) for number, _ in places], device=device)
        before = torch.tensor([stems[number].length for number, _ in places], device=device)
        lengths = torch.tensor([len(ids) for _, ids in places], device=device)
        numbers = torch.arange(len(places), device=device)
        own, ends, prompts = numbers.repeat_interleave(lengths), lengths.cumsum(0), self._opened + numbers
        starts = ends - lengths
        kept = torch.maximum(ends[:, None] - torch.arange(keep, 0, -1, device=device), starts[:, None])
        logits = self._run(
            torch.tensor([token for _, ids in places for token in ids], device=device),
            (prompts[own], begins[own]),
            before[own] + torch.arange(len(own), device=device) - starts[own],
            logits_to_keep=kept.flatten(),
        )
        row = torch.tensor(which, device=device)
        self._opened += len(places) + len(asked)
        self._rows = torch.cat([self._rows, self._opened - len(asked) + torch.arange(len(asked), device=device)])
        self._prompts, self._begins = torch.cat([self._prompts, prompts[row]]), torch.cat([self._begins, begins[row]])
        self._positions = torch.cat([self._positions, (before + lengths - 1)[row]])
        return logits.view(len(places), keep, -1)[row]

    def step(self, tokens: Any) -> Any:
        """Append one token to every question, and return the logits after it: [question, token]."""
        self._positions = self._positions + 1
        return self._run(tokens, (self._rows, self._prompts, self._begins), self._positions)

    def take(self, rows: Any) -> None:
        """Continue with some of the questions."""
        self._rows, self._prompts = self._rows[rows], self._prompts[rows]
        self._begins, self._positions = self._begins[rows], self._positions[rows]

    def _run(self, ids: Any, seen: tuple[Any, ...], positions: Any, **more: Any) -> Any:
        """Run tokens, each of which sees those of some owners: its own, and what they follow."""
        import torch

        owners = torch.cat([self._owners, seen[0]])
        with torch.inference_mode():
            made = self._loaded.model(
                input_ids=ids[None],
                attention_mask=_mask(self._loaded, owners, seen),
                position_ids=positions[None],
                past_key_values=self._cache,
                use_cache=True,
                **more,
            )
        self._cache, self._owners = made.past_key_values, owners
        return made.logits[0].float()

    def _place(self, number: int, stem: Stem) -> int:
        """Append a stem if it is not there, and return the number below 0 that its tokens have."""
        import torch

        owner = -1 - number
        if owner not in self._stems:
            self._stems.add(owner)
            _extend(self._cache, stem.layers)
            self._owners = torch.cat([self._owners, self._owners.new_full((stem.length,), owner)])
        return owner

    def _drop_finished(self) -> None:
        """Remove what no unfinished question needs."""
        import torch

        kept = torch.isin(self._owners, torch.cat([self._rows, self._prompts, self._begins])).nonzero()[:, 0]
        if len(kept) == len(self._owners):
            return
        layers = _layers(self._cache, len(self._owners))
        # Layers may be on several devices.
        self._cache = _cache([tuple(part.index_select(2, kept.to(part.device)) for part in pair) for pair in layers])
        self._owners = self._owners[kept]
        self._stems &= {*self._begins.tolist()}


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


def _cache(layers: Iterable[tuple[Any, ...]]) -> Any:
    from transformers import DynamicCache

    cache = DynamicCache()
    _extend(cache, layers)
    return cache


def _extend(cache: Any, layers: Iterable[tuple[Any, ...]]) -> None:
    for number, (keys, values) in enumerate(layers):
        cache.update(keys, values, number)


def _mask(loaded: Loaded, owners: Any, seen: Sequence[Any]) -> Any:
    """Let new tokens see what came before of the owners they follow: [1, 1, new token, token]."""
    import torch

    place = torch.arange(len(owners), device=owners.device)
    past = place <= place[len(owners) - len(seen[0]) :, None]
    visible = reduce(torch.logical_or, [owners == each[:, None] for each in seen]) & past
    lowest = torch.finfo(loaded.model.dtype).min
    return torch.zeros(visible.shape, dtype=loaded.model.dtype, device=owners.device).masked_fill(~visible, lowest)[
        None, None
    ]
