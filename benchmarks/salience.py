"""Measure how long the salience of associations takes, and in how much memory: 2.4 million co-occurrences.

The words are drawn by Zipf's law for 688 descriptors (344 singular and as many plural), as many mentions as the longest
row of the paper's Table 4 (2,404,260). The second case is the worst: every mention is a pair of its own. The third is
the way there: as many content words out of texts. The bound is the project's promise; a broken one gives exit code 1.

`--discovery` shows instead what each method finds among 40 descriptors of 120 words each, where one word of each
descriptor was planted so many times, and where nothing was.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from prejudge.probes.dora.associations import count
from prejudge.probes.dora.salience import METHODS, Reading, measure, salient

MENTIONS = 2_404_260
DESCRIPTORS = 688
WORDS = 20_000
SECONDS, MIB = 60.0, 2048.0


def drawn(rng: np.random.Generator, mentions: int) -> pl.DataFrame:
    """Return the counts of so many mentions."""
    words = np.minimum(rng.zipf(1.3, mentions), WORDS)
    descriptors = rng.integers(0, DESCRIPTORS, mentions)
    frame = pl.DataFrame({"descriptor": descriptors, "word": words}).cast(pl.String)
    return frame.group_by("descriptor", "word").agg(count=pl.len())


def single(mentions: int) -> pl.DataFrame:
    """Return so many pairs, each mentioned once or twice."""
    place = pl.int_range(mentions, eager=True)
    columns = {"descriptor": place % DESCRIPTORS, "word": place // DESCRIPTORS, "count": place % 7 // 6 + 1}
    return pl.DataFrame(columns).with_columns(pl.col("descriptor", "word").cast(pl.String))


def texts(rng: np.random.Generator, mentions: int) -> pl.DataFrame:
    """Return descriptions of 100 words with about so many content words."""
    vocabulary = np.array([f"word{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}" for i in range(WORDS)])
    rows = mentions // 100
    chosen = vocabulary[np.minimum(rng.zipf(1.3, (rows, 100)), WORDS) - 1]
    return pl.DataFrame(
        {
            "descriptor": [str(i % DESCRIPTORS) for i in range(rows)],
            "text": [" ".join(words) for words in chosen],
            "image": [str(i) for i in range(rows)],
            "key": [i.to_bytes(4, "big") for i in range(rows)],
        }
    ).with_columns(modality=pl.lit("t2i"), setting=pl.lit("objective"), dimension=pl.lit("all"), status=pl.lit("ok"))


def timed(name: str, work: Callable[[], pl.DataFrame]) -> bool:
    """Print a row, and say whether it is within the bound."""
    began = time.perf_counter()
    found = work()
    seconds, mib = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    kept = ", ".join(
        f"{method} {found[f'salient_{column}'].sum():,}"
        for method, column in METHODS.items()
        if f"salient_{column}" in found.columns
    )
    print(f"{name:34} {found.height:>9,} pairs {seconds:7.2f} s {mib:6.0f} MiB   {kept}")
    return seconds <= SECONDS and mib <= MIB


def planted(rng: np.random.Generator, times: int) -> tuple[pl.DataFrame, set[tuple[str, str]]]:
    """Return counts, and the pairs that were planted among them."""
    chances = 1 / np.arange(1, 61)
    said = rng.choice(60, size=(40, 120), p=chances / chances.sum())
    own = rng.integers(10, 60, 40)
    said[:, :times] = own[:, None]
    frame = pl.DataFrame({"descriptor": np.repeat(np.arange(40), 120), "word": said.ravel()}).cast(pl.String)
    truth = {(str(d), str(w)) for d, w in enumerate(own)} if times else set()
    return frame.group_by("descriptor", "word").agg(count=pl.len()), truth


def discovery(runs: int) -> None:
    """Print precision and recall by method and strength, and how often anything is found where nothing is."""
    methods: list[tuple[str, str, Reading]] = [(name, name, Reading()) for name in METHODS]
    methods.insert(1, ("tf-idf, above the range", "tf-idf", Reading(keep="above")))
    for times in (0, 5, 10, 15):
        rng = np.random.default_rng(times)
        cases = [planted(rng, times) for _ in range(runs)]
        for label, method, reading in methods:
            found = [
                set(salient(pairs, method, reading=reading).select("descriptor", "word").iter_rows())
                for pairs, _ in cases
            ]
            total = sum(map(len, found))
            hits = sum(len(kept & truth) for kept, (_, truth) in zip(found, cases, strict=True))
            shares = f"precision {hits / max(total, 1):.3f}   recall {hits / max(sum(len(t) for _, t in cases), 1):.3f}"
            nothing = f"runs with any {sum(map(bool, found)) / runs:.3f}"
            print(f"planted {times:2}   {label:24} found per run {total / runs:6.2f}   {shares if times else nothing}")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mentions", type=int, default=MENTIONS)
    parser.add_argument("--discovery", type=int, metavar="RUNS", help="show what is found, in so many runs")
    options = parser.parse_args()
    if options.discovery:
        discovery(options.discovery)
        return 0
    asked = options.mentions
    rng = np.random.default_rng(0)
    drawn_pairs, single_pairs, said = drawn(rng, asked), single(asked), texts(rng, asked)
    within = [
        timed("four methods, words by Zipf", lambda: measure(drawn_pairs)),
        timed("four methods, every pair once", lambda: measure(single_pairs)),
        timed("content words of texts, counted", lambda: count(said).pairs),
    ]
    print("all within bounds" if all(within) else f"over the bound: {SECONDS:.0f} s, {MIB:.0f} MiB")
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
