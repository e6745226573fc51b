"""Ranks of scores and of their changes are those of fractions, whatever was answered and whatever is missing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

from prejudge.core.statistics.matched import signed_ranks
from prejudge.core.statistics.ranks import epsilon_squared, level_counts, places, signed_places
from prejudge.metrics.attractiveness.metric import Attractiveness, AttractivenessMetricOptions

QUICK = AttractivenessMetricOptions(resamples=99, effect_resamples=0)


def answered(seed, faces, seeds, lost):
    """Return answers of one scenario, some of them unreadable, and the score of each face and variant as a fraction."""
    rng = np.random.default_rng(seed)
    rows, exact = [], {}
    for face in range(faces):
        lean = rng.random()
        for variant in ("original", "filtered"):
            means = []
            for first_is, asked in (("a", "ab"), ("a", "ba"), ("b", "ab"), ("b", "ba")):
                given = [int(rng.random() < lean) if rng.random() >= lost else None for _ in range(seeds)]
                there = [one for one in given if one is not None]
                means.append(Fraction(sum(there), len(there)) if there else None)
                rows += [
                    {
                        "scenario": "Kind vs Rude",
                        "category": "traits",
                        "kind": "directed",
                        "positive": "first",
                        "stereotype": None,
                        "face": f"f{face:03d}",
                        "variant": variant,
                        "gender": "male" if face % 2 else "female",
                        "race": None,
                        "age_group": None,
                        "human": None,
                        "first_is": first_is,
                        "asked": asked,
                        "score": one,
                        "p_a": one,
                        "status": "unreadable" if one is None else "ok",
                    }
                    for one in given
                ]
            exact[face, variant] = None if None in means else sum(means) / 4
    frame = pl.DataFrame(rows, infer_schema_length=None).sample(fraction=1.0, shuffle=True, seed=seed)
    return frame, exact


def codes(fractions):
    """Return the place of each fraction among the different ones."""
    order = {value: place for place, value in enumerate(sorted(set(fractions)))}
    return np.array([order[value] for value in fractions])


@pytest.mark.parametrize("case", range(24))
def test_p_and_effects_are_those_of_fractions(case):
    rng = np.random.default_rng([7, case])
    seeds = int(rng.choice([1, 2, 3, 5, 7]))
    frame, exact = answered(case, int(rng.integers(8, 60)), seeds, float(rng.choice([0.0, 0.05, 0.2])))
    found = {(e.metric, *sorted(e.group.items())): e for e in Attractiveness().compute(frame, QUICK)}
    one = ("scenario", "Kind vs Rude")
    both = sorted({face for face, _ in exact if None not in (exact[face, "original"], exact[face, "filtered"])})
    changes = [exact[face, "filtered"] - exact[face, "original"] for face in both]
    moved = [change for change in changes if change]
    signed = found["gap_signed_ranks", one]
    if moved:
        ranks = codes([abs(change) for change in moved]) + 1
        own = ranks * np.array([1 if change > 0 else -1 for change in moved])
        expected = stats.wilcoxon(own)
        assert (signed.test.statistic, signed.p) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-12)
        above, below = (stats.rankdata(np.abs(own))[own * side > 0].sum() for side in (1, -1))
        assert signed.effect.value == pytest.approx((above - below) / (above + below), abs=1e-12)
    if changes:
        assert signed.value == pytest.approx(float(sum(changes) / len(changes)), abs=1e-12)
    groups = np.array([face % 2 for face in both])
    if len(set(changes)) > 1 and len(set(groups)) == 2:
        between = stats.kruskal(*(codes(changes)[groups == side] for side in (0, 1)))
        row = found["filter_between_groups", ("by", "gender"), one]
        # Near 0, p falls with the root of H: scipy's H of 1e-15 for 0 moves it by 1e-7.
        assert row.value == pytest.approx(between.statistic, abs=1e-9)
        assert row.p == pytest.approx(between.pvalue, abs=1e-6)
        means = codes([exact[face, "original"] + exact[face, "filtered"] for face in both])
        row = found["kruskal_wallis_faces", ("by", "gender"), one]
        assert row.value == pytest.approx(
            stats.kruskal(*(means[groups == side] for side in (0, 1))).statistic, abs=1e-9
        )
        sides = [codes([exact[face, variant] for face in both]) for variant in ("original", "filtered")]
        sizes = [stats.kruskal(*(s[groups == g] for g in (0, 1))).statistic / (len(s) - 1) for s in sides]
        assert found["bias_change", ("by", "gender"), one].value == pytest.approx(sizes[1] - sizes[0], abs=1e-12)


def test_places_of_floats_are_those_of_fractions():
    rng = np.random.default_rng(3)
    for _ in range(200):
        below = int(rng.choice([3, 7, 12, 20, 60, 84]))
        first, second = rng.integers(0, below + 1, (2, 40))
        fractions = [Fraction(int(a), below) - Fraction(int(b), below) for a, b in zip(first, second, strict=True)]
        floats = first / below - second / below
        assert places(floats).tolist() == codes(fractions).tolist()
        signs = [(one > 0) - (one < 0) for one in fractions]
        assert signed_places(floats).tolist() == [
            int(sign * size) for sign, size in zip(signs, codes([Fraction(0), *map(abs, fractions)])[1:], strict=True)
        ]
        moved = [one for one in fractions if one]
        expected = stats.wilcoxon((codes([abs(one) for one in moved]) + 1) * [(one > 0) - (one < 0) for one in moved])
        assert signed_ranks(floats) == pytest.approx((expected.statistic, expected.pvalue), abs=1e-12)
        table = level_counts(floats, np.arange(40) % 2, np.zeros(40, dtype=np.int64))[0, 0, :, 1:]
        h = stats.kruskal(codes(fractions)[::2], codes(fractions)[1::2]).statistic
        assert float(epsilon_squared(table)) == pytest.approx(h / 39, abs=1e-12)


def test_equal_changes_of_twelfths_share_a_rank():
    # 5/12 - 4/12 and 4/12 - 3/12: as floats, and rounded twice to twelve decimals, they differ.
    changes = np.array([5 / 12 - 4 / 12, 4 / 12 - 3 / 12, 1 / 12])
    assert len(set(changes)) > 1 and set(places(changes)) == {0}


def test_values_far_from_zero_and_infinite_keep_their_order():
    assert places(np.array([np.inf, 1e9, 1e9 + 1, -np.inf, 0.0])).tolist() == [4, 2, 3, 0, 1]
    assert places(np.array([])).tolist() == []
