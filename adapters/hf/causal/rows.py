"""The state from which the next tokens are computed, one row per answer; rows leave it, and others join it.

Rows are padded in front, so all end at the same place: those that join are aligned at their end, and what no row uses
any more is cut off at the front.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from .model import take_rows


class State(NamedTuple):
    """The state from which the next token of each row is computed."""

    ids: Any
    """[row, token], padded in front."""
    mask: Any
    """1 for tokens, 0 for padding: [row, token]; None where nothing is padded."""
    past: Any

    def take(self, rows: Any) -> State:
        """Return some of the rows, each as often as named."""
        mask = None if self.mask is None else self.mask[rows]
        return State(self.ids[rows], mask, take_rows(self.past, rows))


def join(one: State, other: State) -> State:
    """Return the rows of both.

    Raises:
        NotImplementedError: the model keeps more than keys and values of all tokens.
    """
    import torch

    one_mask, other_mask = (torch.ones_like(state.ids) if state.mask is None else state.mask for state in (one, other))
    longest = max(int(mask.sum(-1).max()) for mask in (one_mask, other_mask))
    ids = torch.cat([_fit(state.ids, longest, 1) for state in (one, other)])
    mask = torch.cat([_fit(mask, longest, 1) for mask in (one_mask, other_mask)])
    return State(ids, None if bool(mask.all()) else mask, _join_pasts(one.past, other.past, longest))


def _join_pasts(one: Any, other: Any, length: int) -> Any:
    import torch
    from transformers import DynamicCache

    if type(one) is not DynamicCache or any(type(layer).__name__ != "DynamicLayer" for layer in one.layers):
        raise NotImplementedError
    joined = copy.copy(one)
    joined.layers = []
    for first, second in zip(one.layers, other.layers, strict=True):
        layer = copy.copy(first)
        layer.keys = torch.cat([_fit(part.keys, length, 2) for part in (first, second)])
        layer.values = torch.cat([_fit(part.values, length, 2) for part in (first, second)])
        joined.layers.append(layer)
    return joined


def _fit(values: Any, length: int, axis: int) -> Any:
    """Return the last `length` places along an axis, zeros in front where there are fewer."""
    import torch

    there = values.shape[axis]
    if there >= length:
        return values.narrow(axis, there - length, length)
    shape = list(values.shape)
    shape[axis] = length - there
    return torch.cat([values.new_zeros(shape), values], axis)
