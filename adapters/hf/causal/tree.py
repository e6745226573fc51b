"""Find common beginnings of texts, to run each once: continuations below a prompt, prompts below a beginning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

LEAST_SHARED = 32
"""Tokens that prompts must share for a separate pass to save time."""


class Node(NamedTuple):
    """A common beginning of texts, and its continuations."""

    ids: Sequence[int]
    length: int
    """How many of `ids` are run."""
    children: tuple[Node, ...] = ()
    """None for a continuation."""
    split: int = -1
    """Of a continuation: number of its first token."""
    slot: int = -1
    """Of a continuation: where its values stand."""


def join_leaves(leaves: Sequence[Node]) -> Node:
    """Put the continuations of one prompt, which are scored from the same token on, below their common beginning."""
    return Node(leaves[0].ids, leaves[0].split, tuple(leaves))


def share_beginnings(prompts: Sequence[Node]) -> list[Node]:
    """Put prompts that begin alike below a common beginning, where that saves most tokens; in one level.

    Returns:
        Nodes whose children are prompts. A prompt that shares nothing stands alone below an empty beginning.
    """
    ordered = sorted(prompts, key=lambda node: list(node.ids[: node.length]))
    alike = [min(_common(a.ids, b.ids), a.length - 1, b.length - 1) for a, b in pairwise(ordered)]
    nodes = []
    for start, stop, shared in _best_groups(alike, 0, len(ordered))[1]:
        group = tuple(ordered[start:stop])
        nodes.append(Node(group[0].ids, shared, group))
    return nodes


def _best_groups(alike: Sequence[int], start: int, stop: int) -> tuple[int, list[tuple[int, int, int]]]:
    """Return the tokens saved by dividing sorted prompts [start, stop), and the groups (start, stop, tokens)."""
    if stop - start < 2:
        return 0, [(start, stop, 0)] if stop > start else []
    least = min(alike[start : stop - 1])
    cuts = [place + 1 for place in range(start, stop - 1) if alike[place] == least]
    parts = [_best_groups(alike, a, b) for a, b in pairwise([start, *cuts, stop])]
    saved = sum(part[0] for part in parts)
    whole = least * (stop - start - 1)
    if least >= LEAST_SHARED and whole >= saved:
        return whole, [(start, stop, least)]
    return saved, [group for part in parts for group in part[1]]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the tokens with which both begin."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
