"""The size of a pass in tokens: it grows while memory allows, halves when memory runs out, and is never below one.

What fits depends on model, device and neighbours, so it is measured: a pass that filled its budget tells how much
memory its tokens took. The next budget is twice as large where twice that is free, with a reserve. Where a pass does
not fit, the budget is half of it, and from then on no pass is as large as that one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from .torch import attempt

RESERVE = 0.8
"""Share of the free memory that a larger pass may be expected to take."""
FULL = 0.5
"""Share of the budget from which on a pass says something about a larger one."""
MOST_GROWTH = 64
"""Times the first budget: beyond, a pass takes seconds and is no faster by the token."""
T = TypeVar("T")


class Meter(Protocol):
    """Measures the memory of a device."""

    def start(self) -> int:
        """Begin to measure a pass, and return the bytes that are free for it."""

    def peak(self) -> int:
        """Return the most bytes that were in use since, beyond those before."""


class CudaMeter:
    """Measures the memory of a CUDA device, by torch's own counts."""

    def __init__(self, device: str) -> None:
        self._device, self._before = device, 0

    def start(self) -> int:
        """Begin to measure a pass; memory that torch has reserved and does not use is free."""
        import torch

        torch.cuda.reset_peak_memory_stats(self._device)
        self._before = torch.cuda.memory_allocated(self._device)
        free, _ = torch.cuda.mem_get_info(self._device)
        return int(free) + int(torch.cuda.memory_reserved(self._device)) - self._before

    def peak(self) -> int:
        """Return the most bytes that were in use since."""
        import torch

        return int(torch.cuda.max_memory_allocated(self._device)) - self._before


class Budget:
    """Tokens of one pass, on one device."""

    def __init__(
        self, device: str, tokens: int, fixed: int | None = None, meter: Meter | None = None, growth: int = MOST_GROWTH
    ) -> None:
        """Begin with `tokens`, or stay with what a user has `fixed`; without a meter it never grows.

        Args:
            device: Name of the device, as torch has it.
            tokens: Tokens of the first pass.
            fixed: Tokens of every pass that fits.
            meter: Measures memory; by default that of a CUDA device.
            growth: Largest budget, in times the first.
        """
        self._device = device
        self.tokens = self._first = fixed or tokens
        self._most = self._first if fixed else self._first * growth
        self._meter = meter or (CudaMeter(device) if device.startswith("cuda") else None)

    @property
    def growth(self) -> int:
        """How many times the first budget this one is, at least 1."""
        return max(1, self.tokens // self._first)

    def attempt(self, run: Callable[[], T], size: Callable[[], int]) -> T | None:
        """Return what a pass returns, or None if it does not fit into memory; then the budget is smaller.

        Args:
            run: The pass.
            size: Tells its tokens when it is over, since it may have grown on its way; 0 where it cannot be divided, so
                that its failure says nothing about others.
        """
        grows = self._meter is not None and self.tokens < self._most
        free = self._meter.start() if grows and self._meter else 0
        made = attempt(run, self._device)
        if made is None:
            self._shrink(size())
        elif grows and self._meter and self._may_grow(free, self._meter.peak(), size()):
            self.tokens = min(self._most, 2 * self.tokens)
        return made

    def _shrink(self, size: int) -> None:
        # Half of the pass that did not fit; and from now on, none of its size.
        if not size:
            return
        self.tokens = max(1, min(self.tokens, size // 2))
        self._most = max(1, min(self._most, size - 1))

    def _may_grow(self, free: int, peak: int, size: int) -> bool:
        return size >= FULL * self.tokens and peak * 2 * self.tokens <= RESERVE * free * size
