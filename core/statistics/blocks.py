"""Blocks of statistics that share their clusters, their interval and what is missing; parts of an estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from ..contracts.records import Scalar
from .arrays import Array
from .options import TriSentBiasOptions
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
            "note": self._note(unit, value, low),
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

    def _note(self, unit: int, value: float | None, low: float | None) -> str:
        if value is None:
            return "undefined: no readable pair"
        if low is not None:
            return few_clusters(self.clusters[unit])
        few = self.clusters[unit] < 2
        return "no interval: fewer than two clusters" if few else "no interval: no variation between clusters"


def few_clusters(clusters: int) -> str:
    """Warn of an interval that rests on so few clusters that it may be too narrow (`docs/calibration.md`)."""
    return f"few clusters ({clusters}): the interval may be too narrow" if clusters < FEW else ""


def number(value: float) -> float | None:
    """Return a float, or None for what is undefined."""
    return float(value) if math.isfinite(value) else None


def tested(p: float, clusters: int, options: TriSentBiasOptions) -> dict[str, Any]:
    """Return the test of an estimate; nothing where it is undefined."""
    if not math.isfinite(p):
        return {}
    test = f"sign-flip permutation ({options.cluster})"
    return {"test": test, "p": float(p), "note": _too_few(clusters, options)}


def swap_tested(p: float, clusters: int, options: TriSentBiasOptions) -> dict[str, Any]:
    """Return the test of a contrast; nothing where it is undefined."""
    if not math.isfinite(p):
        return {}
    test = f"permutation of positive and negative within cluster ({options.cluster})"
    return {"test": test, "p": float(p), "note": _too_few(clusters, options)}


def _too_few(clusters: int, options: TriSentBiasOptions) -> str:
    least = smallest_p(clusters, options.resamples)
    return f"too few clusters: p cannot be below {least:.3g}" if least > options.alpha else ""


def merge(*parts: dict[str, Any]) -> dict[str, Any]:
    """Merge parts of an estimate; notes are kept side by side."""
    merged = {key: value for part in parts for key, value in part.items()}
    return {**merged, "note": "; ".join(filter(None, (part.get("note", "") for part in parts)))}
