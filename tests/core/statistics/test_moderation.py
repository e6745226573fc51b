"""Moderated variances, against limma's formulae written again with loops, and against fair models."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import optimize, special, stats

from prejudge import statistics
from prejudge.core.contracts.errors import UsageError
from prejudge.core.statistics.facets import FacetOptions
from prejudge.core.statistics.moderation import fitted, moderated, trigamma_inverse
from prejudge.testing import raises_code

RNG = np.random.default_rng(8)


def by_hand(variances, freedoms):
    """Return variances and degrees of freedom as of `squeezeVar` and `eBayes` of limma, one group at a time."""
    count = len(variances)
    e = [math.log(s) - special.psi(d / 2) + math.log(d / 2) for s, d in zip(variances, freedoms, strict=True)]
    middle = sum(e) / count
    excess = sum((one - middle) ** 2 for one in e) / (count - 1) - sum(special.zeta(2, d / 2) for d in freedoms) / count
    pooled = sum(freedoms)
    if excess <= 0:
        return [sum(variances) / count] * count, [pooled] * count
    # The trigamma function is Hurwitz's zeta of 2.
    d0 = 2 * optimize.brentq(lambda y: special.zeta(2, y) - excess, 1e-8, 1e12, xtol=1e-14, rtol=1e-14)
    s0 = math.exp(middle + special.psi(d0 / 2) - math.log(d0 / 2))
    found = [(d0 * s0 + d * s) / (d0 + d) for s, d in zip(variances, freedoms, strict=True)]
    return found, [min(d0 + d, pooled) for d in freedoms]


@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("groups", [2, 6, 40])
def test_variances_are_those_of_limma(groups, spread):
    freedom = RNG.uniform(3, 40, groups)
    variance = np.exp(RNG.normal(0, spread, groups)) * RNG.chisquare(freedom) / freedom
    (found,) = moderated([(variance[:, None], freedom[:, None])], [["one"] * groups])
    wanted = by_hand(variance.tolist(), freedom.tolist())
    assert found.variance[:, 0].tolist() == pytest.approx(wanted[0], rel=1e-7)
    assert found.freedom[:, 0].tolist() == pytest.approx(wanted[1], rel=1e-6)


def test_prior_is_found_again():
    freedom, prior = 8.0, (0.3, 12.0)
    true = prior[0] * prior[1] / RNG.chisquare(prior[1], 100_000)
    found = fitted(true * RNG.chisquare(freedom, 100_000) / freedom, np.full(100_000, freedom))
    assert found.variance == pytest.approx(prior[0], rel=0.01) and found.freedom == pytest.approx(prior[1], rel=0.05)


@pytest.mark.parametrize("value", [1e-8, 1e-3, 0.1, 1.0, 50.0, 1e6, 1e9])
def test_trigamma_is_inverted(value):
    assert float(special.polygamma(1, trigamma_inverse(value))) == pytest.approx(
        value, rel=1e-3 if value < 1e-6 else 1e-6
    )


def test_families_and_tables_are_kept_apart_and_what_is_undefined_stays():
    variance = np.array([[1.0], [3.0], [np.nan], [40.0], [0.0], [44.0]])
    freedom = np.full((6, 1), 9.0)
    names = ["a", "a", "a", "b", "b", "b"]
    tables = [(variance[:4], freedom[:4]), (variance[4:], freedom[4:])]
    first, second = moderated(tables, [names[:4], names[4:]])
    assert first.moderated.ravel().tolist() == [True, True, False, True]
    assert second.moderated.ravel().tolist() == [False, True]
    a, b = by_hand([1.0, 3.0], [9.0, 9.0]), by_hand([40.0, 44.0], [9.0, 9.0])
    assert first.variance[[0, 1, 3], 0].tolist() == pytest.approx([*a[0], b[0][0]])
    assert np.isnan(first.variance[2, 0]) and second.variance[0, 0] == 0
    assert variance[0, 0] == 1.0  # what is given stays as it is
    lone = next(moderated([(np.array([[2.0]]), np.array([[5.0]]))], [["a"]]))
    assert not lone.moderated.any() and lone.variance[0, 0] == 2.0


class Gap(statistics.DeclaredMetric):
    options = FacetOptions
    groups = ((), ("kind",))
    clusters = ("word", "place")
    measures = (
        statistics.Difference("gap", value="score", first=pl.col("sex") == "she"),
        statistics.Mean("level", value="score"),
    )


def observations(rng, *, shared):
    """Return answers of four kinds about two sexes, with preferences of words and places for one of the sexes."""
    rows = []
    common = {name: rng.normal(size=(5, 2)) for name in ("word", "place")}
    for kind in "abcd":
        own = common if shared else {name: rng.normal(size=(5, 2)) for name in common}
        rows += [
            {
                "kind": kind,
                "word": f"w{word}",
                "place": f"p{place}",
                "sex": sex,
                "status": "ok",
                "trial": str(len(rows)),
            }
            | {"score": own["word"][word, side] + own["place"][place, side] + 0.1 * rng.normal()}
            for word in range(5)
            for place in range(5)
            for side, sex in enumerate(("she", "he"))
        ]
    return pl.DataFrame([{**row, "trial": str(number)} for number, row in enumerate(rows)])


def gaps(frame, **options):
    return {e.group.get("kind"): e for e in Gap().compute(frame, FacetOptions(**options)) if e.metric == "gap"}


def test_option_moderates_the_groups_of_a_family_and_nothing_else():
    frame = observations(np.random.default_rng(1), shared=False)
    plain, drawn = gaps(frame), gaps(frame, moderated=True)
    assert drawn[None].replace(caveats=()) == plain[None].replace(caveats=())  # the whole is a family of one
    kinds = "abcd"
    halves = [(plain[kind].high - plain[kind].low) / 2 for kind in kinds]
    t = [plain[kind].test.statistic for kind in kinds]
    errors = [plain[kind].value / one for kind, one in zip(kinds, t, strict=True)]
    reach = [half / error for half, error in zip(halves, errors, strict=True)]
    freedom = [optimize.brentq(lambda d, r=r: stats.t.isf(0.025, d) - r, 0.5, 1e6) for r in reach]
    variance, more = by_hand([error**2 for error in errors], freedom)
    for kind, own, d in zip(kinds, variance, more, strict=True):
        wanted = stats.t(d, drawn[kind].value, math.sqrt(own))
        assert [drawn[kind].low, drawn[kind].high] == pytest.approx(wanted.interval(0.95), rel=1e-5)
        assert drawn[kind].p == pytest.approx(2 * wanted.sf(abs(drawn[kind].value) + drawn[kind].value), rel=1e-5)
        assert "moderated" in drawn[kind].interval.method and "moderated" not in plain[kind].interval.method


def test_shared_preferences_are_the_opponent_of_the_option():
    """Where all groups have one preference their variances are copies: with the option too much is found."""
    found = {True: 0, False: 0}
    rng = np.random.default_rng(3)
    for _ in range(150):
        frame = observations(rng, shared=True)
        for chosen in found:
            found[chosen] += gaps(frame, moderated=chosen)["a"].p <= 0.05
    assert found[False] <= stats.binom.ppf(0.99, 150, 0.05) < found[True]


def test_option_without_several_facets_is_refused():
    with raises_code(UsageError, "options.conflict"):
        FacetOptions(over="word", moderated=True)
    with raises_code(UsageError, "options.conflict"):
        Gap().settled(FacetOptions(moderated=True), lambda: ("word",))
