"""Merge a store into a new one, and print for how long the transactions of the copy hold the write lock."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prejudge.core.store import Store, chunks
from prejudge.core.store.merge import merge


def main() -> int:
    """Print the longest times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path, help="such as filled.py makes")
    options = parser.parse_args()
    held, commit = [], chunks._commit

    def timed(store: Store, write: Callable[..., Any]) -> Any:
        began = 0.0

        def begun(here: Any) -> Any:
            nonlocal began
            began = time.perf_counter()
            return write(here)

        found = commit(store, begun)
        held.append(time.perf_counter() - began)
        return found

    chunks._commit = timed
    with tempfile.TemporaryDirectory(dir=options.store.parent) as made, Store(Path(made) / "new.db") as new:
        with Store(options.store, writable=False) as source:
            merge(new, source)
    held.sort()
    longest = ", ".join(f"{seconds:.2f}" for seconds in held[-3:])
    print(f"{len(held)} transactions, {held[len(held) // 2]:.2f} s in the middle, the longest {longest} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
