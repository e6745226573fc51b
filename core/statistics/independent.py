"""Tests of answers in groups: Mann-Whitney, Kruskal-Wallis, two shares, and trends over ordered groups.

Each gives scipy's p, as if every answer stood for itself, and beside it the p of permuting the labels of whole
clusters. A missing answer (NaN) is left out.
"""

from __future__ import annotations

import msgspec
import numpy as np

from .effects import ODDS_RATIO, Effect, Size, Tested, cohens_h, effects, odds_ratio, p_of, risk_difference
from .intervals import Array, Codes, stats
from .ranks import cliffs_delta, epsilon_squared, level_counts
from .resampling import Resampling, label_test


class Answers(msgspec.Struct, frozen=True):
    """Answers with the group (numbered from 0) and the cluster of each."""

    values: Array
    groups: Codes
    clusters: Codes

    def there(self) -> Answers:
        """Return the answers that are not missing, with clusters numbered from 0."""
        keep = ~np.isnan(self.values)
        own = np.unique(self.clusters[keep], return_inverse=True)[1]
        return Answers(self.values[keep], self.groups[keep], own)

    def samples(self) -> list[Array]:
        """Return the answers of each group that has any."""
        return [self.values[self.groups == group] for group in np.unique(self.groups)]


def mann_whitney(answers: Answers, plan: Resampling) -> Tested:
    """Test whether the answers of group 0 lie above those of group 1; the effect is Cliff's delta.

    Source: Mann and Whitney (1947); Cliff (1993).
    """
    found = answers.there()
    base = _base("Mann-Whitney", found)
    if len(found.samples()) != 2:
        return _undefined(base, "Cliff's delta", "a group has no answer")
    test = stats.mannwhitneyu(*found.samples())
    return _ranked(base, found, {"Cliff's delta": cliffs_delta}, plan, float(test.statistic), test.pvalue)


def kruskal_wallis(answers: Answers, plan: Resampling) -> Tested:
    """Test whether any group's answers lie above another's; the effect is epsilon squared.

    Source: Kruskal and Wallis (1952); Tomczak and Tomczak (2014).
    """
    found = answers.there()
    base = _base("Kruskal-Wallis", found)
    if len(found.samples()) < 2 or len(np.unique(found.values)) < 2:
        return _undefined(base, "epsilon squared", "fewer than two groups or two different answers")
    test = stats.kruskal(*found.samples())
    # H decides the permutation, epsilon squared is shown; they rise together.
    return _ranked(base, found, {"epsilon squared": epsilon_squared}, plan, float(test.statistic), test.pvalue)


def two_shares(answers: Answers, plan: Resampling) -> Tested:
    """Test whether yes (1) is likelier in group 0 than in group 1: Fisher's exact test, and whole clusters permuted.

    Effects are the risk difference, the odds ratio and Cohen's h. Source: Fisher (1935).
    """
    found = answers.there()
    base = _base("Fisher exact", found)
    if len(found.samples()) != 2:
        return _undefined(base, "risk difference", "a group has no answer")
    sums = _hits(found)
    n, hits = sums.sum(axis=0).T
    sizes = {"risk difference": risk_difference, ODDS_RATIO: odds_ratio, "Cohen's h": cohens_h}
    p = label_test(sums, lambda totals: np.abs(risk_difference(totals))[..., None], plan)[0]
    return msgspec.structs.replace(
        base,
        statistic=float(hits[0] / n[0] - hits[1] / n[1]),
        p=p_of(stats.fisher_exact([hits.astype(int), (n - hits).astype(int)]).pvalue),
        p_cluster=p_of(p),
        effects=effects(sums, sizes, plan),
    )


def _base(test: str, answers: Answers) -> Tested:
    return Tested(test=test, n=len(answers.values), clusters=len(np.unique(answers.clusters)))


def _undefined(base: Tested, effect: str, why: str) -> Tested:
    return msgspec.structs.replace(base, effects=(Effect(effect, None),), undefined=why)


def _ranked(base: Tested, answers: Answers, sizes: dict[str, Size], plan: Resampling, *classic: float) -> Tested:
    statistic, p = classic
    sums = level_counts(answers.values, answers.groups, answers.clusters)[:, 0]
    first = next(iter(sizes.values()))
    by_cluster = label_test(sums, lambda totals: np.abs(first(totals[..., 1:]))[..., None], plan)[0]
    tables = {name: _of_levels(size) for name, size in sizes.items()}
    return msgspec.structs.replace(
        base, statistic=statistic, p=p_of(p), p_cluster=p_of(by_cluster), effects=effects(sums, tables, plan)
    )


def _of_levels(size: Size) -> Size:
    return lambda totals: size(totals[..., 1:])


def _hits(answers: Answers) -> Array:
    """Return count and hits, shape (clusters, groups, 2)."""
    place = answers.clusters * 2 + answers.groups
    size = 2 * (int(answers.clusters.max()) + 1)
    columns = [np.bincount(place, weights=w, minlength=size) for w in (np.ones(len(place)), answers.values)]
    return np.stack(columns, axis=-1).astype(np.float64).reshape(-1, 2, 2)
