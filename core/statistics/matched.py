"""Tests of paired answers: Wilcoxon's signed ranks, the sign test, McNemar's.

Each gives the classic p, as if every pair stood for itself, and beside it the p of flipping the signs of whole
clusters. A pair with a missing side (NaN) is left out.
"""

from __future__ import annotations

import numpy as np
from msgspec import structs

from .effects import ODDS_RATIO, Effect, Tested, cohens_g, effects, matched_difference, matched_odds_ratio, p_of
from .intervals import Array, Codes, Flags, stats
from .ranks import level_counts, places, rank_biserial, signed_places
from .resampling import Resampling, flip_test

FEW = 13
"""Up to so many differences scipy tries every pattern of signs if any are tied: one call each, up to 8,192 of them."""
SLACK = 1e-9


def signed_ranks(differences: Array) -> tuple[float, float]:
    """Return the statistic and the two-sided p of `scipy.stats.wilcoxon`; differences of 0 are dropped.

    Sizes that differ by rounding alone share a rank; without any difference the statistic is 0 and p is 1. Up to `FEW`
    of them all patterns of signs are tried at once, which gives the same p in a thousandth of the time.
    """
    moved = signed_places(differences)
    moved = moved[moved != 0]
    if len(moved) > FEW:
        found = stats.wilcoxon(moved)
        return float(found.statistic), float(found.pvalue)
    ranks = stats.rankdata(np.abs(moved))
    signs = (np.arange(1 << len(ranks))[:, None] >> np.arange(len(ranks))) & 1
    above, whole = float(ranks[moved > 0].sum()), float(ranks.sum())
    statistic = min(above, whole - above)
    beyond = float((signs @ ranks <= statistic + SLACK).mean())
    return statistic, min(1.0, 2 * beyond)


def wilcoxon(differences: Array, clusters: Codes, plan: Resampling) -> Tested:
    """Test that paired differences are symmetric about 0, by signed ranks; zeros are dropped, ties share ranks.

    The effect is the matched-pairs rank-biserial correlation. Source: Wilcoxon (1945); Kerby (2014).
    """
    d, own = _kept(differences, clusters)
    base = Tested(test="Wilcoxon signed-rank", n=len(d), clusters=len(np.unique(own)))
    if not len(d):
        return _undefined(base, "matched-pairs rank-biserial", "no difference other than 0")
    statistic, p = signed_ranks(d)
    sizes = level_counts(np.abs(d), (d < 0).astype(np.int64), own)
    return structs.replace(
        base,
        statistic=statistic,
        p=p_of(p),
        p_cluster=_flipped(stats.rankdata(places(np.abs(d))) * np.sign(d), own, plan),
        # Both signs stand on one side: a cluster is drawn with whatever signs it has.
        effects=effects(_one_side(sizes), {"matched-pairs rank-biserial": lambda t: rank_biserial(_by_sign(t))}, plan),
    )


def mcnemar(first: Array, second: Array, clusters: Codes, plan: Resampling) -> tuple[Tested, Tested]:
    """Test that yes-no answers (1, 0) change one way as often as the other: exact, and mid-p.

    Source: McNemar (1947); mid-p: Fagerland, Lydersen and Laake (2013). The mid-p is less cautious than the exact p,
    which never rejects more often than it says.
    """
    there = ~(np.isnan(first) | np.isnan(second))
    one, other, own = first[there], second[there], _numbered(clusters[there])
    b, c = (one > other), (one < other)
    sizes = {"matched-pairs risk difference": matched_difference, "Cohen's g": cohens_g}
    sizes[f"matched {ODDS_RATIO}"] = matched_odds_ratio
    base = Tested(test="McNemar", n=len(one), clusters=len(np.unique(own)))
    if not len(one):
        missing = _undefined(base, "matched-pairs risk difference", "no complete pair")
        return missing, missing
    exact, middle = mcnemar_p(int(b.sum()), int(c.sum()))
    found = structs.replace(
        base,
        statistic=float(b.sum()),
        p_cluster=_flipped(b.astype(float) - c, own, plan),
        effects=effects(_discordant(b, c, own), sizes, plan),
    )
    return structs.replace(found, test="McNemar, exact", p=exact), structs.replace(
        found, test="McNemar, mid-p", p=middle
    )


def mcnemar_p(b: int, c: int) -> tuple[float | None, float | None]:
    """Return the exact and the mid-p of b changes one way and c the other; None without any change."""
    if b + c == 0:
        return None, None
    exact = stats.binomtest(b, b + c).pvalue
    middle = 1.0 if b == c else exact - stats.binom.pmf(b, b + c, 0.5)
    return p_of(exact), p_of(middle)


def _undefined(base: Tested, effect: str, why: str) -> Tested:
    return structs.replace(base, effects=(Effect(effect, None),), undefined=why)


def _kept(differences: Array, clusters: Codes) -> tuple[Array, Codes]:
    there = ~np.isnan(differences)
    d, own = differences[there], clusters[there]
    moved = signed_places(d) != 0
    return d[moved], _numbered(own[moved])


def _numbered(clusters: Codes) -> Codes:
    codes: Codes = np.unique(clusters, return_inverse=True)[1]
    return codes


def _flipped(signed: Array, clusters: Codes, plan: Resampling) -> float | None:
    sums = np.stack([np.bincount(clusters), np.bincount(clusters, weights=signed)], axis=-1).astype(np.float64)
    return p_of(flip_test(sums[:, None, None], plan)[0, 0])


def _discordant(b: Flags, c: Flags, clusters: Codes) -> Array:
    counts = [np.bincount(clusters, weights=column) for column in (np.ones(len(b)), b, c)]
    return np.stack(counts, axis=-1).astype(np.float64)[:, None]


def _one_side(sizes: Array) -> Array:
    """Put count, levels above 0 and levels below 0 side by side as one side."""
    above, below = sizes[:, 0, 0], sizes[:, 0, 1] if sizes.shape[2] > 1 else 0 * sizes[:, 0, 0]
    return np.concatenate([above[:, :1] + below[:, :1], above[:, 1:], below[:, 1:]], axis=1)[:, None]


def _by_sign(totals: Array) -> Array:
    levels = (totals.shape[-1] - 1) // 2
    one = totals[..., 0, 1:]
    return np.stack([one[..., :levels], one[..., levels:]], axis=-2)
