"""How much is missing, by group, and whether it differs between groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from ..contracts.estimates import Estimate
from ..contracts.records import Scalar
from .binomial import wilson_interval
from .proportions import LEAST_P, scaled
from .scipy_stats import stats


class Group(msgspec.Struct, frozen=True):
    """How many pairs of a group were answered, and how many were not, by status."""

    labels: dict[str, Scalar]
    answered: int
    missing: dict[str, int]

    @property
    def absent(self) -> int:
        """Return the count of missing pairs."""
        return sum(self.missing.values())


def missing_estimates(groups: Sequence[Group], level: float) -> list[Estimate]:
    """Return the share missing in all, tested for a difference between groups, and per group if any is missing."""
    everything = Group(
        {}, sum(g.answered for g in groups), dict(sum((Counter(g.missing) for g in groups), Counter[str]()))
    )
    whole = _estimate(everything, level)
    if not everything.absent:
        return [whole]
    return [_tested(whole, groups), *(_estimate(group, level) for group in groups)]


def _estimate(group: Group, level: float) -> Estimate:
    total = group.answered + group.absent
    low, high = wilson_interval(group.absent, total, level) if total else (None, None)
    return Estimate.from_flat(
        metric="missing",
        group=dict(group.labels),
        value=100 * group.absent / total if total else None,
        unit="%",
        low=scaled(low, 100),
        high=scaled(high, 100),
        level=level,
        interval="Wilson, pairs" if total else "",
        n=total,
        missing=group.missing,
    )


def _tested(whole: Estimate, groups: Sequence[Group]) -> Estimate:
    table = np.array([[group.absent, group.answered] for group in groups if group.absent + group.answered])
    if len(table) < 2 or not table.sum(axis=0).all():
        return whole
    test = stats.chi2_contingency(table, correction=False)
    return whole.replace(
        test="chi-square of missing by group, pairs",
        statistic=float(test.statistic),
        p=max(float(test.pvalue), LEAST_P),
        effect=float(stats.contingency.association(table, method="cramer")),
        effect_name="Cramér's V",
    )
