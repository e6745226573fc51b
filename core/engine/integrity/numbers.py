"""Whether log-probabilities are a model's own: not rounded to few values, not cut off at a lowest one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator

from .records import Finding

ENOUGH, KEPT = 50, 5000
"""Values from which on they are judged, and how many are kept."""
STEPS = (1.0, 0.5, 0.25, 0.2, 0.125, 0.1, 0.0625, 0.05, 0.03125, 0.02, 0.01, 0.005, 0.001)
"""Steps of rounding, coarsest first. Finer ones change no result of a study."""
FLOORS = frozenset({-9999.0, -1000.0, -999.0, -100.0, -1e9, -1e10, -3.4028234663852886e38})
"""Values that servers write where there is none."""
MASS, REQUESTS = 0.05, 5
"""Share of the values that are exactly the lowest one, and number of requests with it, from which on it is a limit."""


class Numbers:
    """Collects log-probabilities of one stage, as many as are needed to judge them."""

    def __init__(self) -> None:
        self._values: list[float] = []
        self._key = ""
        self._lowest, self._at_lowest, self._requests = 0.0, 0, 0
        self._seen = self._floors = 0
        self._floor_key = ""

    def see(self, key: bytes, values: Iterable[float]) -> None:
        """Receive the values of one answer."""
        met = False
        for value in values:
            if value == 0.0:
                continue  # certain; it is a multiple of every step
            self._seen += 1
            if value in FLOORS:
                self._floors += 1
                self._floor_key = self._floor_key or key.hex()
                continue
            if len(self._values) < KEPT:
                self._key = self._key or key.hex()
                self._values.append(value)
            if value < self._lowest:
                self._lowest, self._at_lowest, self._requests, met = value, 0, 0, False
                self._lowest_key = key.hex()
            if value == self._lowest:
                self._at_lowest += 1
                self._requests += not met
                met = True

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong with them."""
        if self._floors:
            detail = "values such as -9999 or -100 stand for none"
            yield Finding(name="clipped", count=self._floors, key=self._floor_key, detail=detail)
        elif self._seen >= ENOUGH and self._requests >= REQUESTS and self._at_lowest >= MASS * self._seen:
            detail = f"{self._at_lowest:,} of {self._seen:,} values are {self._lowest:g}, and none is below"
            yield Finding(name="clipped", count=self._at_lowest, key=self._lowest_key, detail=detail)
        unclipped = [value for value in self._values if value != self._lowest]
        if len(unclipped) >= ENOUGH and (grid := _grid(unclipped)):
            distinct = len(set(unclipped))
            detail = f"{grid}; {distinct:,} distinct values of {len(unclipped):,}"
            yield Finding(name="rounded", count=len(unclipped), key=self._key, detail=detail)


def _grid(values: list[float]) -> str:
    for step in STEPS:
        if all(_near_whole(value / step) for value in values):
            return f"multiples of {step:g}"
    fits: dict[str, Callable[[float], bool]] = {"bfloat16": _is_bfloat16, "float16": _is_float16}
    return next((f"numbers of {name}" for name, test in fits.items() if all(map(test, values))), "")


def _near_whole(value: float) -> bool:
    return abs(value - round(value)) <= 1e-6 * max(1.0, abs(value))


def _is_bfloat16(value: float) -> bool:
    if abs(value) > 3e38:
        return False
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return bool(bits & 0xFFFF == 0)


def _is_float16(value: float) -> bool:
    try:
        (back,) = struct.unpack("<e", struct.pack("<e", value))
    except OverflowError:
        return False
    return bool(abs(back - value) <= 1e-6 * abs(value))
