"""Overlap of two sets of associations, tested against the overlap by common words alone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import sparse

from ...core.statistics.estimates import adjust

Matrix = npt.NDArray[np.float64]


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """What two sets share, over the descriptors that were asked about for both."""

    descriptors: int
    first: int
    """Number of associations of the first set."""
    second: int
    shared: int
    jaccard: float | None
    """Jaccard's index: shared associations divided by those in either set; None if there are none."""
    expected: float | None = None
    """Mean of the index with randomly permuted descriptors of the second set: the effect of common words alone."""
    p: float | None = None
    """p: share of permutations with at least this index."""


def overlap(
    first: pl.DataFrame, second: pl.DataFrame, asked: Collection[str], resamples: int = 9999, seed: int = 0
) -> Overlap:
    """Compare two sets of `descriptor` and `word` by Jaccard's index, with a permutation test.

    A word that is said of everybody is shared by chance. So whole descriptors are permuted: the words of a descriptor
    in one set are compared with those of a random descriptor in the other. Only the descriptors `asked`, for both
    sets, count, whether they have an association or not. p = (1 + b) / (1 + resamples); None for fewer than three
    descriptors or two empty sets.
    """
    common = sorted(asked)
    words = sorted({*first["word"].to_list(), *second["word"].to_list()})
    ours, theirs = (_matrix(frame, common, words) for frame in (first, second))
    sizes = int(ours.sum()), int(theirs.sum())
    together: Matrix = np.asarray((ours @ theirs.T).todense(), dtype=np.float64) if common else np.zeros((0, 0))
    shared, total = int(np.trace(together)), sum(sizes)
    value = shared / (total - shared) if total else None
    found = Overlap(descriptors=len(common), first=sizes[0], second=sizes[1], shared=shared, jaccard=value)
    if len(common) < 3 or total == 0:
        return found
    random = _permuted(together, resamples, seed)
    return msgspec.structs.replace(
        found,
        expected=float((random / (total - random)).mean()),
        p=float((1 + (random >= shared).sum()) / (1 + resamples)),
    )


def adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values adjusted by Benjamini-Hochberg; undefined ones stay undefined and do not count as tests."""
    known = [p for p in p_values if p is not None]
    corrected = iter(adjust(known, "bh"))
    return [None if p is None else next(corrected) for p in p_values]


def _matrix(frame: pl.DataFrame, descriptors: list[str], words: list[str]) -> sparse.csr_array:
    rows, columns = ({name: place for place, name in enumerate(names)} for names in (descriptors, words))
    pairs = frame.select("descriptor", "word").unique().filter(pl.col("descriptor").is_in(descriptors)).rows()
    places = [rows[d] for d, _ in pairs], [columns[w] for _, w in pairs]
    return sparse.csr_array((np.ones(len(pairs)), places), shape=(len(descriptors), len(words)))


def _permuted(together: Matrix, resamples: int, seed: int) -> Matrix:
    """Return the index under random pairings of the descriptors."""
    rng, size = np.random.default_rng(seed), len(together)
    orders = (rng.permutation(size) for _ in range(resamples))
    shared: Matrix = np.array([together[np.arange(size), order].sum() for order in orders])
    return shared
