"""How often a run is stopped as unfit, by the share of questions that a model answers: the table in docs/faults.md.

python benchmarks/fitness.py [--models 2000]
"""

from __future__ import annotations

import argparse

import numpy as np

from prejudge.core.fitness import FIRST, FitAnswer, Watch

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def asked_of(answered: np.ndarray) -> tuple[bool, int]:
    """Return whether a model is stopped within its first answers, and how many were looked at."""
    watch = Watch()
    for number, hit in enumerate(answered):
        watch.see(number.to_bytes(4, "big"), "", FitAnswer(status="ok" if hit else "unreadable"))
        if watch.verdict != "watch":
            break
    return watch.verdict == "stops", watch.asked


def main() -> None:
    """Print a row per share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=2000, help="simulated models per share")
    models = parser.parse_args().models
    random = np.random.default_rng(0)
    print("| answered | prompts | stopped | mean number asked |\n| --- | --- | --- | --- |")
    for share in SHARES:
        for alike in (1, 2):
            # Twins are asked one after the other, and may fail together: the harder case for the bounds.
            drawn = [np.repeat(random.random(FIRST // alike) < share, alike) for _ in range(models)]
            stops, asked = zip(*map(asked_of, drawn), strict=True)
            kind = "independent" if alike == 1 else "twins fail together"
            print(f"| {100 * share:.0f} % | {kind} | {100 * np.mean(stops):.1f} % | {np.mean(asked):.0f} |")


if __name__ == "__main__":
    main()
