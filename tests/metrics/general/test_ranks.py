"""Rank agreement, against scipy."""

from __future__ import annotations

import polars as pl
import pytest
from scipy import stats

from prejudge.metrics.general.ranks import RankAgreement, RankAgreementOptions

METRIC = RankAgreement()


def places(**studies):
    rows = [
        {"study": study, "measure": "m", "model": f"model{i}", "distance": float(distance)}
        for study, distances in studies.items()
        for i, distance in enumerate(distances)
        if distance is not None
    ]
    return pl.DataFrame(rows)


def compute(**studies):
    return METRIC.compute(places(**studies), RankAgreementOptions())


def test_tau_is_that_of_scipy():
    one, other = [1, 2, 3, 4, 5], [1, 3, 2, 5, 4]
    (estimate,) = compute(a=one, b=other)
    theirs = stats.kendalltau(one, other)
    assert (estimate.value, estimate.p, estimate.n) == pytest.approx((theirs.statistic, theirs.pvalue, 5))


def test_only_models_of_both_count():
    (estimate,) = compute(a=[1, 2, 3, 4], b=[1, 2, None, 3])
    assert (estimate.value, estimate.n) == (1.0, 3)


@pytest.mark.parametrize("other", [[1, 2, None], [5, 5, 5]])
def test_without_order_there_is_no_tau(other):
    (estimate,) = compute(a=[1, 2, 3], b=other)
    assert estimate.value is None and estimate.caveats == ("undefined",)
    assert METRIC.conclude([estimate]) == "No rank agreement could be computed."


def test_measures_of_one_study_are_not_compared():
    frame = pl.concat([places(a=[1, 2, 3]), places(a=[1, 2, 3]).with_columns(measure=pl.lit("other"))])
    assert METRIC.compute(frame, RankAgreementOptions()) == [] and METRIC.figures([]) == []


def test_family_counts_every_pair():
    found = compute(a=[1, 2, 3], b=[3, 2, 1], c=[1, 3, 2])
    assert [e.test.family for e in found] == ["rank agreement, Kendall's tau: 3 pairs of measures"] * 3
    assert "from -1.00 to" in METRIC.conclude(found) and len(METRIC.figures(found)) == 1
