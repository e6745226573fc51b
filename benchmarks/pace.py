"""The constants of the limiter's pace, each made smaller and larger: what hangs on it, on a virtual clock.

    python benchmarks/pace.py [NAME ...]

Printed per value, as requests that passed (1 is all that the server allows) and the share of 429s: a limit of 5 and of
50 a second from second 25 to 60, with the 429s of the first minute; a limit that rises from 50 to 150 or falls to 10 a
second, from 40 s after the change on; and the pace that is left where 5 % and 10 % of the answers are 429s at random.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

from prejudge.core.contracts.errors import RateLimitError
from prejudge.core.engine import pace

TESTS = Path(__file__).parents[1] / "tests" / "core"
VALUES: dict[str, tuple[float, ...]] = {
    "SLACK": (0, 0.2),
    "BELOW": (0.8, 0.99),
    "BLIND": (0.4, 0.95),
    "SEARCH": (1.05, 2.0),
    "CYCLE_SECONDS": (5, 80),
    "CYCLE_REQUESTS": (20, 500),
    "FIRST": (0.1, 20),
    "BEGINNING": (0.1, 10),
    "SLOWEST": (0.001, 2.0),
    "MANY": (0.05, 0.4),
    "MANY_LEAST": (1, 20),
    "FEW": (0.005, 0.1),
    "FEW_ANSWERS": (20, 500),
    "TRIAL": (0.5, 0.95),
    "CLEAN": (20, 500),
    "ROW": (5, 30),
    "FALLEN": (0.25, 0.9),
    "BINS": (20, 400),
}


def load_simulation() -> Any:
    """Return the module of the limiter's tests, whose clients ask a simulated server."""
    sys.path.insert(0, str(TESTS))
    spec = importlib.util.spec_from_file_location("limiter_tests", TESTS / "engine" / "test_limiter.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Benchmark:
    """The situations that a constant is judged by."""

    def __init__(self) -> None:
        self._tests = load_simulation()

    def settle(self, rate: int, burst: float) -> str:
        """Ask a server with a limit that stays."""
        bucket = self._tests.Bucket(rate, rate * burst, self._tests.silent)
        self._tests.simulate(bucket, 60)
        passed, limited = bucket.share(25, 60)
        return f"{passed / rate:.2f} {limited:.3f} {bucket.share(0, 60)[1]:.3f}"

    def change(self, before: int, after: int) -> str:
        """Ask a server whose limit changes after a minute."""
        bucket = self._tests.Bucket(before, before, self._tests.whole_seconds)
        self._tests.simulate(bucket, 130, [(60, after)])
        passed, limited = bucket.share(100, 130)
        return f"{passed / after:.2f} {limited:.3f}"

    def ill(self, share: float) -> str:
        """Ask a server without a limit that turns some requests away at random."""
        chance = random.Random(2)

        class Ill(self._tests.Bucket):  # type: ignore[name-defined,misc]
            def ask(self, now: float) -> RateLimitError | None:
                error: RateLimitError | None = super().ask(now)
                return RateLimitError("slow down") if error is None and chance.random() < share else error

        bucket = Ill(100_000, 100_000)
        self._tests.simulate(bucket, 90)
        return f"{bucket.share(45, 90)[0] / ((1 - share) * 640):.2f}"

    def row(self, name: str) -> None:
        """Print what the constants come to as they are now."""
        steady = [self.settle(5, 1.0), self.settle(50, 0.2)]
        changed = [self.change(50, 150), self.change(50, 10)]
        print(f"{name:24}", *steady, *changed, self.ill(0.05), self.ill(0.1), sep=" | ", flush=True)


def main() -> None:
    """Judge the constants that are named, or all."""
    benchmark = Benchmark()
    benchmark.row("as it is")
    for name in sys.argv[1:] or VALUES:
        chosen = getattr(pace, name)
        for value in VALUES[name]:
            setattr(pace, name, value)
            benchmark.row(f"{name} = {value}")
        setattr(pace, name, chosen)


if __name__ == "__main__":
    main()
