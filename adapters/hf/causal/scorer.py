"""Log-probabilities of continuations, where text that several share is run once.

A call is a tree: prompts that begin alike, below them the prompts, below them their continuations. Each level runs
only the tokens that are new, on the keys and values of the level above. Rows of one pass begin at the same token and
are padded at their end at most, which a causal model ignores: no mask, no gap, and the same numbers for models
with rotary, learned or no positions and with sliding windows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...shared.budget import Budget
from ...shared.torch import Stopped
from ..text import Row
from .model import FAILURES, Head, take_rows
from .tree import LEAST_SHARED, Node, join_leaves, share_beginnings

Values = npt.NDArray[np.float64]
SLACK = 16
"""One part in so many of a row may be left to the next level, or be padding, so that rows can share a pass."""


class _Ask(NamedTuple):
    place: int
    target: int
    slot: int


class CausalScorer:
    """A causal language model that scores continuations."""

    def __init__(self, head: Head, budget: int | None = None) -> None:
        self._head, self.budget, self._largest = head, Budget(head.device, head.budget, budget), 0
        self._stop = threading.Event()
        self._found: list[tuple[list[int], Any]] = []
        self.shares = True
        self.shares = self._sharing_is_exact()

    def score(
        self, requests: Sequence[Sequence[Row]], stop: threading.Event | None = None
    ) -> list[list[Values] | None]:
        """Return per request one array per continuation: the natural log-probability of each of its tokens.

        None stands for a request of which even a single row did not fit into memory.

        Raises:
            Stopped: `stop` was set between two passes.
        """
        import torch

        self._stop, self._found = stop or threading.Event(), []
        sizes = [len(row.ids) - row.split for rows in requests for row in rows]
        values = np.full(sum(sizes), np.inf)
        with torch.inference_mode():
            self._run_all(self._tree(requests, sizes))
            for slots, scores in self._found:
                values[slots] = scores.cpu().numpy()
        parts = iter(np.split(values, np.cumsum(sizes)[:-1]))
        answers = [[next(parts) for _ in rows] for rows in requests]
        # A log-probability is never +inf: such a slot was not reached.
        return [None if any(np.isposinf(part).any() for part in parts) else parts for parts in answers]

    def _tree(self, requests: Sequence[Sequence[Row]], sizes: Sequence[int]) -> list[Node]:
        starts = iter(np.cumsum([0, *sizes]).tolist())
        leaves = [[Node(row.ids, len(row.ids) - 1, (), row.split, next(starts)) for row in rows] for rows in requests]
        if not self.shares:
            return [leaf for group in leaves for leaf in group]
        return share_beginnings([join_leaves(group) for group in leaves if group])

    def _run_all(self, nodes: list[Node]) -> None:
        """Run all rows; rows that do not fit into memory are tried in smaller parts, and single ones are given up."""
        while nodes:
            chunk = next(self._chunks([(node, 0) for node in nodes], 0))
            taken = [node for node, _ in chunk]
            divisible = self.budget.tokens > max(map(_longest, taken))
            if self._try_pass(chunk, lone=not divisible):
                nodes = _without(nodes, taken)
            elif not divisible:
                for prompt in _prompts(taken):
                    self._try_pass([(prompt, 0)], lone=True)
                nodes = _without(nodes, taken)

    def _try_pass(self, chunk: list[tuple[Node, int]], *, lone: bool) -> bool:
        def run() -> bool:
            self._pass(chunk, None, 0)
            return True

        self._largest = 1
        return self.budget.attempt(run, lambda: 0 if lone else min(self._largest, self.budget.tokens)) is not None

    def _chunks(self, nodes: list[tuple[Node, int]], base: int) -> Iterator[list[tuple[Node, int]]]:
        """Divide the nodes of one level into passes of similar length with bounded tokens and logits."""
        nodes = sorted(nodes, key=lambda pair: -pair[0].length)
        start = 0
        while start < len(nodes):
            longest = nodes[start][0].length
            least = (
                longest - max(2, longest - base) // 2 if not nodes[start][0].children else longest - longest // SLACK
            )
            most, logits, end = max(1, self.budget.tokens // max(1, longest)), 0, start
            while end < len(nodes) and end - start < most and nodes[end][0].length >= least:
                logits += _logits(nodes[end][0]) * self._head.vocabulary
                if logits > self._head.most_logits * self.budget.growth and end > start:
                    break
                end += 1
            yield nodes[start:end]
            start = end

    def _pass(self, chunk: list[tuple[Node, int]], past: Any, base: int) -> None:
        """Run the new tokens of these nodes, then their children."""
        import torch

        if self._stop.is_set():
            raise Stopped
        nodes = [node for node, _ in chunk]
        inner = bool(nodes[0].children)
        end = (min if inner else max)(node.length for node in nodes)
        self._largest = max(self._largest, len(nodes) * end)
        past = take_rows(past, torch.tensor([row for _, row in chunk], device=self._head.device))
        if end > base:
            past = self._forward(nodes, past, base, end)
        below = [(child, row) for row, node in enumerate(nodes) for child in node.children if _is_open(child, end)]
        for part in self._chunks(below, end):
            self._pass(part, past, end)

    def _forward(self, nodes: list[Node], past: Any, base: int, end: int) -> Any:
        """Run tokens `base` to `end` of each node, note the scores, and return keys and values."""
        import torch

        device, width = self._head.device, end - base
        ids = np.zeros((len(nodes), width), dtype=np.int64)
        for row, node in enumerate(nodes):
            ids[row, : node.length - base] = node.ids[base : min(node.length, end)]
        asks = [ask for row, node in enumerate(nodes) for ask in _asks(node, row * width, base, end)]
        places, which = np.unique(np.array([ask.place for ask in asks], dtype=np.int64), return_inverse=True)
        wanted = torch.from_numpy(places).to(device)
        keep = bool(nodes[0].children)
        logits, kept = self._head.run(torch.from_numpy(ids).to(device), wanted, past, keep=keep)
        if asks:
            targets = torch.tensor([ask.target for ask in asks], device=device)
            scores = logits.log_softmax(-1)[torch.from_numpy(which).to(device), targets]
            self._found.append(([ask.slot for ask in asks], scores))
        return kept

    def _sharing_is_exact(self) -> bool:
        """Test the tree on this model, since a custom cache may not support sharing."""
        import torch

        one, two = self._head.trial(2, 2 * LEAST_SHARED)[:, : LEAST_SHARED + 12].tolist()
        start = one[: LEAST_SHARED + 2]
        asked = [
            [Row(one, len(one) - 3), Row([*one[:-3], *two[-2:]], len(one) - 3)],
            [Row([*start, *two[:6]], len(start) + 4), Row([*start, *two[:4], *one[:3]], len(start) + 4)],
        ]
        try:
            shared = self._flat(asked)
            self.shares = False
            return self._head.same(torch.from_numpy(shared), torch.from_numpy(self._flat(asked)))
        except FAILURES:
            return False

    def _flat(self, asked: Sequence[Sequence[Row]]) -> Values:
        return np.concatenate([part for parts in self.score(asked) for part in parts or ()])


def _asks(node: Node, first: int, base: int, end: int) -> Iterator[_Ask]:
    """Yield the scores that a pass over tokens `base` to `end` of a node gives."""
    if not node.children:
        for token in range(max(node.split, base + 1), len(node.ids)):
            yield _Ask(first + token - 1 - base, node.ids[token], node.slot + token - node.split)
    for leaf in node.children:
        if leaf.split == end:
            yield _Ask(first + end - 1 - base, leaf.ids[end], leaf.slot)


def _is_open(node: Node, end: int) -> bool:
    return bool(node.children) or node.length > end


def _prompts(nodes: Sequence[Node]) -> list[Node]:
    """Return what stands for single requests: the level above the continuations, or these where nothing is shared."""
    deep = [node for node in nodes if node.children and node.children[0].children]
    return [child for node in deep for child in node.children] if deep else list(nodes)


def _logits(node: Node) -> int:
    return 1 if node.children else len(node.ids) - node.split


def _longest(node: Node) -> int:
    return max((_longest(child) for child in node.children), default=node.length)


def _without(nodes: list[Node], taken: list[Node]) -> list[Node]:
    gone = {id(node) for node in taken}
    return [node for node in nodes if id(node) not in gone]
