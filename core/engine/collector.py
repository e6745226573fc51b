"""The garbage collector while a run asks: it need not walk through the program again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 50_000
"""New objects after which the collector looks for cycles among them; Python's own 700 are those of a few calls. A run
makes hardly any: what it drops is freed at once."""


@contextmanager
def spared() -> Iterator[None]:
    """Exempt what is there now from garbage collection, and let it run less often, for the time of a run.

    Modules, classes and functions are most of the objects of a program. Thousands of calls in flight let the collector
    look at all of them every second or so, which took a quarter of the processor time of a fast endpoint.
    """
    if gc.get_freeze_count():
        yield  # somebody else has exempted objects, and `unfreeze` would not know which
        return
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(max(thresholds[0], YOUNG), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
