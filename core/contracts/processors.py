"""How many processors there are."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

TOPOLOGY = Path("/sys/devices/system/cpu")
"""Where Linux says which processors are threads of one core."""


def usable_cores() -> int:
    """Return how many processors this process may use."""
    return len(_usable())


def physical_cores() -> int:
    """Return how many cores the processors that this process may use belong to.

    Where the system does not say it, every processor counts as a core.
    """
    cores = set[str]()
    for number in _usable():
        try:
            cores.add((TOPOLOGY / f"cpu{number}" / "topology" / "thread_siblings_list").read_text().strip())
        except OSError:
            return usable_cores()
    return max(1, len(cores))


def _usable() -> Collection[int]:
    """Return the numbers of the processors that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
