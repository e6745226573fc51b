"""The stereotype probability as it would be if the encoder never erred (Rogan and Gladen 1978).

Of the true stereotypes the encoder finds a share Se, of the true anti-stereotypes a share Sp; so a true share q is seen
as p = q Se + (1 - q) (1 - Sp), and q = (p + Sp - 1) / (Se + Sp - 1). The uncertainty of all three is drawn: each from
the Beta distribution of its counts with Jeffreys' prior (a Dirichlet of two classes).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.statistics.arrays import Array, Flags


class Errors(NamedTuple):
    """Held-out sentences by true class, then by the class the encoder gave (s: stereotype, a: anti-stereotype)."""

    ss: int
    sa: int
    as_: int
    aa: int


class Corrected(NamedTuple):
    """A corrected share, and draws of its least and greatest value. They may lie beyond 0 and 1; means come first."""

    value: float | None
    """None where the encoder is no better than chance."""
    low: Array
    high: Array

    def ends(self, tail: float) -> tuple[float, float]:
        """Return the share's interval that leaves out `tail` at either end, from 0 to 1."""
        low, high = np.clip([np.quantile(self.low, tail), np.quantile(self.high, 1 - tail)], 0.0, 1.0)
        return float(low), float(high)


def correct_share(hits: int, n: int, errors: Errors, rng: np.random.Generator, draws: int) -> Corrected:
    """Return the corrected share of `hits` among `n`; a draw in which the encoder errs by half may be any share."""
    seen = rng.beta(hits + 0.5, n - hits + 0.5, draws)
    found = rng.beta(errors.ss + 0.5, errors.sa + 0.5, draws)
    spared = rng.beta(errors.aa + 0.5, errors.as_ + 0.5, draws)
    true, able = _invert(seen, found, spared)
    point, usable = _invert(*(np.array(x) for x in _observed(hits, n, errors)))
    value = float(point) if usable else None
    return Corrected(value, np.where(able, true, 0.0), np.where(able, true, 1.0))


def _observed(hits: int, n: int, errors: Errors) -> tuple[float, float, float]:
    return hits / n, errors.ss / (errors.ss + errors.sa), errors.aa / (errors.as_ + errors.aa)


def _invert(seen: Array, found: Array, spared: Array) -> tuple[Array, Flags]:
    better: Array = found + spared - 1
    able: Flags = better > 1e-9
    share: Array = (seen + spared - 1) / np.where(able, better, 1.0)
    return share, able
