"""Settings and records of what is asked in batches."""

from __future__ import annotations

from typing import Annotated

import msgspec

POLL_SECONDS = 5.0
"""Seconds between two looks at a batch, at first; each further one is half as long again, up to `LONGEST_POLL`."""
LONGEST_POLL = 300.0
SENTINELS = 20


class BatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a run asks in batches."""

    wait: bool = True
    """Whether to wait until the batches have ended; otherwise the run is left once all are handed in."""
    sentinel: Annotated[int, msgspec.Meta(ge=0)] = SENTINELS
    """Requests of a stage that are asked by calls of their own, too, and compared."""
    only: bool = False
    """Whether nothing is asked by single calls before the batches to see whether the model can do the task."""
    items: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Requests per batch at most; None: as many as the provider takes."""
    poll_seconds: float = POLL_SECONDS


class SentinelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that were asked both ways, and how their answers compare."""

    asked: int
    compared: int
    """Those with an answer both ways."""
    greedy: bool
    """Whether all were asked at temperature 0, so that equal texts are expected."""
    equal_texts: int
    equal_outcomes: int
    """Those of which the study reads the same both ways."""
    distance: float | None = None
    """Total variation distance of the distributions of outcomes, in [0, 1]."""
    p: float | None = None
    """Of the distributions of outcomes, by permuting the two ways within each request; None if nothing differs."""
    differs: bool = False
    """Whether the two ways must be said to differ."""


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage asked in batches."""

    batches: dict[str, str] = {}
    """The provider's names of the batches with answers of this stage, and how each ended."""
    answers: int = 0
    """Answers of the stage that came in them."""
    notes: tuple[str, ...] = ()
    """What was odd about their results."""
    sentinel: SentinelRecord | None = None
    """None: nothing was asked both ways."""
