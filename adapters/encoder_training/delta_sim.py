"""Delta-sim: mean cosine of sentences of one type less that of both types (Santhosh et al. 2025, equations 1, 2).

Only pairs within a context count. With vectors of length 1 the cosines of a group sum to half of the squared length of
the group's sum less its size, so nothing runs over pairs.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from .data import Corpus, Floats, Ints

RESAMPLES = 2000
Ends = tuple[float, float] | tuple[None, None]


class Delta(msgspec.Struct, frozen=True):
    """Delta-sim of one category, or overall; None where there is no pair of a kind."""

    value: float | None
    """Absolute value of the difference."""
    low: float | None
    """Lower end of the 95 % percentile interval of the signed difference, contexts resampled, folded at 0."""
    high: float | None
    intra: float | None
    inter: float | None
    contexts: int
    """Contexts with at least one pair."""
    intra_pairs: int
    inter_pairs: int

    @property
    def signed(self) -> float | None:
        """Return the difference with its sign: below 0, sentences of both types are the more similar ones."""
        return None if self.intra is None or self.inter is None else self.intra - self.inter


def unit(vectors: npt.ArrayLike) -> Floats:
    """Scale rows to length 1, in float64."""
    rows = np.asarray(vectors, dtype=np.float64)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def pair_sums(vectors: npt.ArrayLike, corpus: Corpus, rows: Ints) -> Floats:
    """Sum the cosines of all pairs of some sentences, by context.

    Returns:
        Summed cosines of intra pairs, their number, the same of inter pairs: [contexts, 4].
    """
    scaled, groups, count = unit(vectors), corpus.labels[rows], 2 * corpus.contexts
    whole = np.zeros((count, scaled.shape[1]))
    np.add.at(whole, groups, scaled)
    size = np.bincount(groups, minlength=count).astype(np.float64)
    squares = np.bincount(groups, weights=(scaled**2).sum(1), minlength=count)
    within = ((whole**2).sum(1) - squares) / 2
    intra, intra_pairs = (values.reshape(-1, 2).sum(1) for values in (within, size * (size - 1) / 2))
    inter, inter_pairs = (whole[0::2] * whole[1::2]).sum(1), size[0::2] * size[1::2]
    return np.stack([intra, intra_pairs, inter, inter_pairs], axis=1)


def delta(sums: Floats, resamples: int = RESAMPLES) -> Delta:
    """Return delta-sim with an interval over contexts; none with fewer than two contexts."""
    used = int((sums[:, 1] + sums[:, 3] > 0).sum())
    total, intra_pairs, other, inter_pairs = sums.sum(0)
    intra = float(total / intra_pairs) if intra_pairs else None
    inter = float(other / inter_pairs) if inter_pairs else None
    known = intra is not None and inter is not None
    low, high = _interval(sums, resamples) if known and used > 1 and resamples else (None, None)
    found = Delta(None, low, high, intra, inter, used, int(intra_pairs), int(inter_pairs))
    return found if found.signed is None else msgspec.structs.replace(found, value=abs(found.signed))


def deltas(vectors: npt.ArrayLike, corpus: Corpus, rows: Ints, resamples: int = RESAMPLES) -> dict[str, Delta]:
    """Return delta-sim by category and `overall`, which pools the pairs of all categories as the equations do."""
    sums = pair_sums(vectors, corpus, rows)
    parts = {name: sums[corpus.owner == index] for index, name in enumerate(corpus.categories)}
    return {name: delta(part, resamples) for name, part in {"overall": sums, **parts}.items()}


def fold(low: float, high: float) -> tuple[float, float]:
    """Return the interval of an absolute value, from that of the signed value.

    Values are folded last: absolute ones of a difference near 0 would all lie above it.
    """
    near, far = sorted((abs(low), abs(high)))
    return (0.0 if low < 0 < high else near), far


def draw_contexts(contexts: int, resamples: int = RESAMPLES) -> Ints:
    """Return how often each context is drawn in each resample: [resamples, contexts]."""
    drawn: Ints = np.random.default_rng(0).multinomial(contexts, np.full(contexts, 1 / contexts), size=resamples)
    return drawn


def _interval(sums: Floats, resamples: int) -> Ends:
    drawn = draw_contexts(len(sums), resamples) @ sums
    whole = drawn[(drawn[:, 1] > 0) & (drawn[:, 3] > 0)]
    if not len(whole):
        return None, None
    low, high = np.quantile(whole[:, 0] / whole[:, 1] - whole[:, 2] / whole[:, 3], [0.025, 0.975])
    return fold(float(low), float(high))
