"""False-discovery rate of tests with few possible p, such as exact tests of rare words. Pure.

Benjamini-Hochberg takes every p as continuous: a test that cannot give a p below 0.01 counts as much as one that can.
The step-up procedure of Döhler, Durand and Roquain (2018, Electronic Journal of Statistics 12, HSU), after Heyse
(2011), takes the chance that each test gives a p so small, which is known here, since all margins are given.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
CLOSE = 1 + 1e-9
"""Equal p that differ by rounding are one."""
MOST = 0.5
"""Greater p are never of interest."""


class Nulls(msgspec.Struct, frozen=True):
    """What p many tests can give under their hypotheses."""

    tails: Array
    """Shape (kinds, hits): p of a kind of tests by the number of hits."""
    counts: Array
    """Tests of each kind."""
    others: float = 0.0
    """Tests of no kind: they are taken as continuous, which makes q larger, never smaller."""


def discrete_adjusted(p: Array, nulls: Nulls, level: float) -> Array:
    """Return p adjusted over all tests: q at most `level` are kept, with a false-discovery rate of at most `level`.

    Args:
        p: Of the tests that gave one below 1; NaN where there is none.
        nulls: Of all tests, those that gave none included.
        level: Of the false-discovery rate.
    """
    tails = np.sort(np.where(nulls.tails < MOST, nulls.tails, 0.0), axis=1)
    order = np.argsort(tails, axis=None, kind="stable")
    values = tails.ravel()[order]

    def expected(heights: Array, at: Array, continuous: Array) -> Array:
        """Return the sum over all tests of a function of their chance to give a p of at most `at`."""
        steps = (np.diff(heights, axis=1, prepend=0.0) * nulls.counts[:, None]).ravel()[order]
        place = np.searchsorted(values, at * CLOSE, side="right")
        found: Array = np.append(0.0, np.cumsum(steps))[place] + nulls.others * continuous
        return found

    known = np.flatnonzero(p < MOST)
    ascending = known[np.argsort(p[known])]
    small = p[ascending]
    # The largest p that could be kept if all were: `tau_m` of the source.
    odds = tails / (1 - tails)
    allowed = level * (nulls.counts.sum() + nulls.others)
    within = values[expected(odds, values, values / (1 - values)) <= allowed]
    largest = within.max(initial=0.0)
    highest = np.where(tails <= largest * CLOSE, tails, 0.0).max(axis=1, keepdims=True, initial=0.0)
    below = expected(np.minimum(tails, highest) / (1 - highest), small, small / (1 - largest))
    above = expected(odds, small, small / (1 - small))
    # Equal p are kept together, so each has the rank of the last of them.
    ranks = np.searchsorted(small, small * CLOSE, side="right")
    raw = np.where(small <= largest * CLOSE, below, above) / ranks
    adjusted = np.where(np.isnan(p), np.nan, 1.0)
    adjusted[ascending] = np.minimum(np.minimum.accumulate(raw[::-1])[::-1], 1.0)
    return adjusted
