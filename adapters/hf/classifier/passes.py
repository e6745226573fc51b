"""Run rows through a model in passes of bounded size; only rows of equal length share a pass.

Nothing is padded, so the numbers of a row cannot depend on the other rows of its pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby

import numpy as np
import numpy.typing as npt

from ...shared.budget import Budget
from ...shared.torch import BUDGET, BUDGET_CPU, Stopped

Row = npt.NDArray[np.float64]
Forward = Callable[[Sequence[int]], npt.NDArray[np.float64]]
"""Row numbers to values: [row, value]."""
Key = tuple[int, ...]
"""The length in tokens, and other properties that the rows of one pass must share."""


class Passes:
    """Cuts rows into passes of bounded size."""

    def __init__(self, device: str, budget: int | None = None, max_rows: int | None = None) -> None:
        self._max_rows = max_rows
        self.budget = Budget(device, BUDGET_CPU if device == "cpu" else BUDGET, budget)

    def run(self, keys: Sequence[Key], forward: Forward, stop: threading.Event | None = None) -> list[Row | None]:
        """Return the values of every row, in order; None for a row that alone did not fit into memory.

        Raises:
            Stopped: `stop` was set between two passes.
        """
        found: list[Row | None] = [None] * len(keys)
        # The longest first, so that memory runs out at once or not at all.
        order = sorted(range(len(keys)), key=lambda row: keys[row], reverse=True)
        for key, alike in groupby(order, key=lambda row: keys[row]):
            self._run_alike(list(alike), max(1, key[0]), forward, found, stop or threading.Event())
        return found

    def _run_alike(
        self, rows: list[int], length: int, forward: Forward, found: list[Row | None], stop: threading.Event
    ) -> None:
        start = 0
        while start < len(rows):
            if stop.is_set():
                raise Stopped
            most = max(1, self.budget.tokens // length)
            part = rows[start : start + min(most, self._max_rows or most)]
            size = len(part) * length if len(part) > 1 else 0
            values = self.budget.attempt(partial(forward, part), partial(int, size))
            if values is not None:
                for row, value in zip(part, values, strict=True):
                    found[row] = value
            elif len(part) > 1:
                continue
            start += len(part)
