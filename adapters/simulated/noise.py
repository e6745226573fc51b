"""Noise that is a function of a text: equal in every process, independent of earlier requests."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from hashlib import blake2b
from statistics import NormalDist
from typing import NamedTuple

LARGEST = 8.3
"""No draw of `Noise.normal` is further from 0 than this: 53 bits reach no further."""
CACHED = 1 << 14
_inverse = NormalDist().inv_cdf
_PART = re.compile(r"\w+")


class Draws(NamedTuple):
    """Three independent numbers, uniform in (0, 1)."""

    answer: float
    refusal: float
    failure: float


class Noise:
    """Draws by name: a kind of noise, and the text it belongs to."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._prefix = f"simulated|{seed}|".encode()

    def uniform(self, kind: str, text: str) -> float:
        """Return a number in (0, 1)."""
        return _unit(blake2b(self._named(kind, text), digest_size=8).digest())

    def normal(self, kind: str, text: str) -> float:
        """Return a standard normal number, by inversion."""
        return _inverse(_unit(blake2b(self._named(kind, text), digest_size=8).digest()))

    def draws(self, request: bytes) -> Draws:
        """Return the numbers that decide about one attempt of a request."""
        digest = blake2b(b"%bdraws|%b" % (self._prefix, request), digest_size=24).digest()
        return Draws(_unit(digest[:8]), _unit(digest[8:16]), _unit(digest[16:]))

    def of(self, kind: str, request: bytes) -> float:
        """Return a number in (0, 1) that belongs to a request."""
        return _unit(blake2b(b"%b%b|%b" % (self._prefix, kind.encode(), request), digest_size=8).digest())

    def key(self, kind: str, text: str) -> int:
        """Return 128 bits, for a generator of many numbers."""
        return int.from_bytes(blake2b(self._named(kind, text), digest_size=16).digest(), "big")

    def _named(self, kind: str, text: str) -> bytes:
        return b"%b%b|%b" % (self._prefix, kind.encode(), text.encode())


class Leans:
    """Random effects of the levels of a facet: each belongs to a text, has mean 0 and variance 1, and is a nuisance."""

    def __init__(self, noise: Noise, correlation: float, unequal: float) -> None:
        """Take what levels have in common and how unequal their effects are.

        Args:
            noise: the draws.
            correlation: share of the variance that belongs to the words of a level, so that two levels correlate by
                it times the share of their words that they have in common.
            unequal: standard deviation of the logarithm of the size of an effect; 0 makes all sizes alike.
        """
        self._noise, self._correlation, self._unequal = noise, correlation, unequal
        self.of = lru_cache(CACHED)(self._of)

    def mean(self, kind: str, levels: tuple[str, ...]) -> float:
        """Return the mean effect of some levels, 0 for none."""
        return math.fsum(self.of(kind, level) for level in levels) / max(len(levels), 1)

    def _of(self, kind: str, level: str) -> float:
        """Return the effect of a level, at most `LARGEST` from 0."""
        found = self._noise.normal(kind, level)
        if self._correlation:
            words = sorted(set(_PART.findall(level.lower()))) or [""]
            shared = math.fsum(self._noise.normal(f"{kind}, part", word) for word in words) / math.sqrt(len(words))
            found = math.sqrt(1 - self._correlation) * found + math.sqrt(self._correlation) * shared
        if self._unequal:
            # The mean square of the size is 1.
            found *= math.exp(self._unequal * self._noise.normal(f"{kind}, size", level) - self._unequal**2)
        return min(max(found, -LARGEST), LARGEST)


def _unit(digest: bytes) -> float:
    # The half step keeps off 0 and 1, whose normal quantiles are infinite.
    return ((int.from_bytes(digest, "big") >> 11) + 0.5) * 2.0**-53
