"""A run that may end early: its stage is asked part by part, and somebody looks at the answers after each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ..contracts import Stage, Trial

if TYPE_CHECKING:
    import polars as pl


class Look(msgspec.Struct, frozen=True):
    """What a look found."""

    units: int
    """Units that were asked by then."""
    trials: int
    """Trials."""
    state: str
    """`pass`, `fail` or `not enough data`."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a run may end before all is asked, and what was found; part of its manifest."""

    policy: str
    """The rules that decide, as TOML."""
    unit: str
    """The factor whose levels are asked whole, in random order."""
    sample: bool
    """Whether the study declares its levels to be a sample of others."""
    level: float
    """Of the confidence sequences."""
    seed: int
    """Of the order."""
    units: int
    """Levels of the whole study."""
    trials: int
    """Its trials."""
    looks: tuple[Look, ...] = ()


class Decider(Protocol):
    """Says what of a stage is asked next, and whether the run may end."""

    @property
    def ending(self) -> Ending:
        """Return the record so far."""
        ...

    def parts(self, stage: Stage, earlier: Mapping[str, pl.DataFrame]) -> Iterator[Iterator[Trial]]:
        """Yield the trials that are asked before each look."""
        ...

    def decided(self, observations: Any, trials: int) -> bool:
        """Look at the observations of all trials asked so far, and return whether the run may end."""
        ...
