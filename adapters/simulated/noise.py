"""Noise that is a function of a text: equal in every process, independent of earlier requests."""

from __future__ import annotations

from hashlib import blake2b
from statistics import NormalDist
from typing import NamedTuple

LARGEST = 8.3
"""No draw of `Noise.normal` is further from 0 than this: 53 bits reach no further."""
_inverse = NormalDist().inv_cdf


class Draws(NamedTuple):
    """Three independent numbers, uniform in (0, 1)."""

    answer: float
    refusal: float
    failure: float


class Noise:
    """Draws by name: a kind of noise, and the text it belongs to."""

    def __init__(self, seed: int) -> None:
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

    def key(self, kind: str, text: str) -> int:
        """Return 128 bits, for a generator of many numbers."""
        return int.from_bytes(blake2b(self._named(kind, text), digest_size=16).digest(), "big")

    def _named(self, kind: str, text: str) -> bytes:
        return b"%b%b|%b" % (self._prefix, kind.encode(), text.encode())


def _unit(digest: bytes) -> float:
    # The half step keeps off 0 and 1, whose normal quantiles are infinite.
    return ((int.from_bytes(digest, "big") >> 11) + 0.5) * 2.0**-53
