"""Delta-sim: how much nearer sentences of one type lie than those of both types (Santhosh et al. 2025, equations 1, 2).

Only pairs within a context count. With vectors of length 1 the cosines of a group sum to half of the squared length of
the group's sum less its size, so nothing runs over pairs.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from .data import Corpus, Ints

Floats = npt.NDArray[np.float64]
RESAMPLES = 2000


class Sums(msgspec.Struct, frozen=True, eq=False):
    """Summed cosines and numbers of pairs of each context: [contexts]."""

    intra: Floats
    intra_pairs: Floats
    inter: Floats
    inter_pairs: Floats

    def only(self, contexts: Ints) -> Sums:
        """Return those of some contexts."""
        return Sums(*(getattr(self, name)[contexts] for name in self.__struct_fields__))


class Delta(msgspec.Struct, frozen=True):
    """Delta-sim of one category, or overall; None where a part has no pair of a kind."""

    value: float | None
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
        """Return the difference before its absolute value is taken: below 0, opposed sentences lie nearer."""
        return None if self.intra is None or self.inter is None else self.intra - self.inter


def unit(vectors: npt.ArrayLike) -> Floats:
    """Scale rows to length 1, in float64."""
    rows = np.asarray(vectors, dtype=np.float64)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def pair_sums(vectors: npt.ArrayLike, corpus: Corpus, rows: Ints) -> Sums:
    """Sum the cosines of all pairs, context by context.

    Args:
        vectors: One vector per row of `rows`: [rows, width].
        corpus: All sentences.
        rows: Which of them.
    """
    scaled = unit(vectors)
    groups = corpus.context[rows] * 2 + corpus.stereotype[rows]
    whole = np.zeros((corpus.contexts * 2, scaled.shape[1]))
    np.add.at(whole, groups, scaled)
    size = np.bincount(groups, minlength=corpus.contexts * 2).astype(np.float64)
    squares = np.bincount(groups, weights=(scaled**2).sum(1), minlength=corpus.contexts * 2)
    within = ((whole**2).sum(1) - squares) / 2
    return Sums(
        intra=within.reshape(-1, 2).sum(1),
        intra_pairs=(size * (size - 1) / 2).reshape(-1, 2).sum(1),
        inter=(whole[0::2] * whole[1::2]).sum(1),
        inter_pairs=size[0::2] * size[1::2],
    )


def delta(sums: Sums, seed: int = 0, resamples: int = RESAMPLES) -> Delta:
    """Return delta-sim with an interval over contexts; none with fewer than two contexts."""
    used = int(((sums.intra_pairs + sums.inter_pairs) > 0).sum())
    intra, inter = _mean(sums.intra, sums.intra_pairs), _mean(sums.inter, sums.inter_pairs)
    value = None if intra is None or inter is None else abs(intra - inter)
    low, high = _interval(sums, seed, resamples) if value is not None and used > 1 and resamples else (None, None)
    pairs = int(sums.intra_pairs.sum()), int(sums.inter_pairs.sum())
    return Delta(value, low, high, intra, inter, used, *pairs)


def deltas(vectors: npt.ArrayLike, corpus: Corpus, rows: Ints, resamples: int = RESAMPLES) -> dict[str, Delta]:
    """Return delta-sim by category and `overall`, which pools the pairs of all categories as the equations do."""
    sums = pair_sums(vectors, corpus, rows)
    owner = np.zeros(corpus.contexts, dtype=np.int64)
    owner[corpus.context] = corpus.category
    found = {"overall": delta(sums, resamples=resamples)}
    for place, name in enumerate(corpus.categories):
        found[name] = delta(sums.only(np.flatnonzero(owner == place)), resamples=resamples)
    return found


def fold(low: float, high: float) -> tuple[float, float]:
    """Return the interval of an absolute value, from that of the value with its sign.

    Values must be folded last: absolute ones of a difference near 0 would all lie above it.
    """
    near, far = sorted((abs(low), abs(high)))
    return (0.0 if low < 0 < high else near), far


def _mean(total: Floats, pairs: Floats) -> float | None:
    return float(total.sum() / pairs.sum()) if pairs.sum() else None


def _interval(sums: Sums, seed: int, resamples: int) -> tuple[float, float] | tuple[None, None]:
    contexts = len(sums.intra)
    drawn = np.random.default_rng(seed).multinomial(contexts, np.full(contexts, 1 / contexts), size=resamples)
    intra, inter = drawn @ sums.intra_pairs, drawn @ sums.inter_pairs
    whole = (intra > 0) & (inter > 0)
    if not whole.any():
        return None, None
    values = (drawn @ sums.intra)[whole] / intra[whole] - (drawn @ sums.inter)[whole] / inter[whole]
    low, high = np.quantile(values, [0.025, 0.975])
    return fold(float(low), float(high))
