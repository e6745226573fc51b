"""Tests of ranks and of yes-no answers, each by whole clusters and as if every answer stood alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from prejudge.core.statistics.intervals import Array, Codes
from prejudge.core.statistics.matched import mcnemar_p, signed_ranks
from prejudge.core.statistics.ranks import cliffs_delta, epsilon_squared, level_counts
from prejudge.core.statistics.resampling import Resampling, flip_test, label_test


class Tested(NamedTuple):
    """What a test says; None where it is undefined."""

    p_cluster: float | None
    p: float | None


class Answers(NamedTuple):
    """Answers with the group (numbered from 0) and the cluster of each; NaN is missing."""

    values: Array
    groups: Codes
    clusters: Codes


def wilcoxon(differences: Array, clusters: Codes, plan: Resampling) -> Tested:
    """Test that paired differences are symmetric about 0, by signed ranks; zeros are dropped."""
    kept = ~np.isnan(differences) & (differences != 0)
    d, own = differences[kept], np.unique(clusters[kept], return_inverse=True)[1]
    return Tested(_flipped(stats.rankdata(np.abs(d)) * np.sign(d), own, plan), signed_ranks(d)[1])


def mcnemar(first: Array, second: Array, clusters: Codes, plan: Resampling) -> Tested:
    """Test that yes-no answers change one way as often as the other."""
    kept = ~(np.isnan(first) | np.isnan(second))
    change, own = (first - second)[kept], np.unique(clusters[kept], return_inverse=True)[1]
    return Tested(_flipped(change, own, plan), mcnemar_p(int((change > 0).sum()), int((change < 0).sum())))


def _flipped(signed: Array, clusters: Codes, plan: Resampling) -> float:
    sums = np.stack([np.bincount(clusters), np.bincount(clusters, weights=signed)], axis=-1).astype(np.float64)
    return float(flip_test(sums[:, None, None], plan)[0, 0])


def mann_whitney(answers: Answers, plan: Resampling) -> Tested:
    """Test whether the answers of group 0 lie above or below those of group 1."""
    return Tested(*_labelled(answers, plan, cliffs_delta, stats.mannwhitneyu))


def kruskal_wallis(answers: Answers, plan: Resampling) -> Tested:
    """Test whether any group's answers lie above another's."""
    return Tested(*_labelled(answers, plan, epsilon_squared, stats.kruskal))


def _labelled(
    answers: Answers, plan: Resampling, size: Callable[[Array], Array], classic: Callable[..., Any]
) -> tuple[float, float]:
    kept = ~np.isnan(answers.values)
    values, groups, clusters = (column[kept] for column in answers)
    sums = level_counts(values, groups, np.unique(clusters, return_inverse=True)[1])[:, 0]
    p = label_test(sums, lambda totals: np.abs(size(totals[..., 1:]))[..., None], plan)[0]
    return float(p), float(classic(*(values[groups == group] for group in np.unique(groups))).pvalue)
