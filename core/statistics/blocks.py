"""Blocks of statistics that share their clusters, their interval and what is missing; parts of an estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from ..contracts.estimates import Caveat
from ..contracts.records import Scalar
from ..contracts.words import SMALLEST_P
from .arrays import Array
from .options import TestingOptions
from .permutation import smallest_p
from .proportions import scaled

POINTS = "percentage points"
FEW = 10
"""Below so many clusters, 95 % intervals cover as little as 90 %."""


class Block(msgspec.Struct, frozen=True):
    """Statistics of some units (cells or contrasts) with all that their estimates share."""

    groups: Sequence[dict[str, Scalar]]
    value: Array
    low: Array
    high: Array
    n: Sequence[int]
    clusters: Sequence[int]
    missing: Sequence[dict[str, int]]
    interval: str
    level: float
    nothing: str = "no readable pair"
    """Why a unit has no value."""

    def row(self, unit: int, column: int, scale: float = 1.0) -> dict[str, Any]:
        """Return what an estimate says about its value, its interval and its base."""
        value, low, high = (number(a[unit, column]) for a in (self.value, self.low, self.high))
        return {
            "value": scaled(value, scale),
            "low": scaled(low, scale),
            "high": scaled(high, scale),
            "level": self.level,
            "interval": self.interval if low is not None else "",
            "n": self.n[unit],
            "clusters": self.clusters[unit],
            "missing": self.missing[unit],
            **self._caveats(unit, value, low),
        }

    def effect(self, unit: int, column: int, name: str) -> dict[str, Any]:
        """Return an effect size with its interval; no name without a value."""
        value, low, high = (number(a[unit, column]) for a in (self.value, self.low, self.high))
        return {
            "effect": value,
            "effect_name": name if value is not None else "",
            "effect_low": low,
            "effect_high": high,
        }

    def _caveats(self, unit: int, value: float | None, low: float | None) -> dict[str, Any]:
        if value is None:
            return undefined(self.nothing)
        return {"caveats": interval_caveats(self.clusters[unit], low)}


def undefined(why: str) -> dict[str, Any]:
    """Return the caveat of an estimate without a value, and the note that says why."""
    return {"caveats": (Caveat.UNDEFINED,), "note": why}


def interval_caveats(clusters: int, low: float | None) -> tuple[Caveat, ...]:
    """Return what to know of an interval over so many clusters, or why there is none (`docs/calibration.md`)."""
    if low is not None:
        return (Caveat.FEW_CLUSTERS,) if clusters < FEW else ()
    return (Caveat.ONE_CLUSTER if clusters < 2 else Caveat.NO_VARIATION,)


def floor_of_p(clusters: int, resamples: int, alpha: float) -> dict[str, Any]:
    """Return the caveat of a permutation test that so few clusters keep from ever being significant."""
    least = smallest_p(clusters, resamples)
    return {"caveats": (Caveat.P_FLOOR,), "facts": {SMALLEST_P: least}} if least > alpha else {}


def number(value: float) -> float | None:
    """Return a float, or None for what is undefined."""
    return float(value) if math.isfinite(value) else None


def tested(name: str, p: float, clusters: int, options: TestingOptions) -> dict[str, Any]:
    """Return a permutation test of whole clusters; nothing where it is undefined."""
    return (
        {"test": name, "p": float(p), **floor_of_p(clusters, options.resamples, options.alpha)}
        if math.isfinite(p)
        else {}
    )


def merge(*parts: dict[str, Any]) -> dict[str, Any]:
    """Merge parts of an estimate; caveats and facts are kept side by side."""
    merged = {key: value for part in parts for key, value in part.items()}
    caveats = tuple(caveat for part in parts for caveat in part.get("caveats", ()))
    facts = {name: value for part in parts for name, value in part.get("facts", {}).items()}
    return {**merged, "caveats": caveats, "facts": facts}
