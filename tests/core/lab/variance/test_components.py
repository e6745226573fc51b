"""Variance components against closed forms, printed examples and planted values."""

from __future__ import annotations

from fractions import Fraction
from math import inf, sqrt

import numpy as np
import pytest
from scipy.stats import chi2, f

from prejudge.core.lab.variance.components import ANOVA, HENDERSON, RESIDUAL, Cells, estimate
from prejudge.core.lab.variance.errors import DRAWS, ROWS, Headline, shares_of
from prejudge.core.lab.variance.limits import interval, ratio_interval


def crossed(a, b, n, seed=0):
    one, two, _ = (grid.ravel() for grid in np.meshgrid(range(a), range(b), range(n), indexing="ij"))
    rng = np.random.default_rng(seed)
    return one, two, rng.integers(-9, 10, a * b * n).astype(float)


def variances(found):
    return {one.term.name: one.variance for one in found.components}


def headline_of(facets, y, random, **kwargs):
    cells = Cells(facets, y)
    found = estimate(cells)
    shares = shares_of(found, cells)
    return Headline(components=found, shares=shares, random=frozenset(random), repeated=cells.replicated, **kwargs)


def test_balanced_two_way_is_the_textbook():
    """Expected mean squares in exact arithmetic: E + n AB, + bn A or an B (Searle and others 1992, section 4.3)."""
    a, b, n = 4, 5, 3
    one, two, y = crossed(a, b, n)
    table = {(i, j): [Fraction(int(v)) for v in y[(one == i) & (two == j)]] for i in range(a) for j in range(b)}
    mean = {key: sum(own) / n for key, own in table.items()}
    rows = [sum(mean[i, j] for j in range(b)) / b for i in range(a)]
    columns = [sum(mean[i, j] for i in range(a)) / a for j in range(b)]
    grand = sum(rows) / a
    ms_a = b * n * sum((own - grand) ** 2 for own in rows) / (a - 1)
    ms_b = a * n * sum((own - grand) ** 2 for own in columns) / (b - 1)
    both = sum((mean[i, j] - rows[i] - columns[j] + grand) ** 2 for i in range(a) for j in range(b))
    ms_ab = n * both / ((a - 1) * (b - 1))
    ms_e = sum((v - mean[key]) ** 2 for key, own in table.items() for v in own) / (a * b * (n - 1))
    expected = {"a": (ms_a - ms_ab) / (b * n), "b": (ms_b - ms_ab) / (a * n), "a x b": (ms_ab - ms_e) / n}
    found = estimate(Cells({"a": one, "b": two}, y))
    assert found.method == ANOVA
    assert variances(found) == pytest.approx({name: float(v) for name, v in expected.items()} | {RESIDUAL: float(ms_e)})


def test_nested_is_found_and_is_the_textbook():
    a, b, n = 5, 3, 4
    one, two, y = crossed(a, b, n)
    inside = np.array([7, 3, 5])[two] + 10 * one
    means = y.reshape(a, b, n)
    ms_a = b * n * ((means.mean(axis=(1, 2)) - y.mean()) ** 2).sum() / (a - 1)
    ms_b = n * ((means.mean(axis=2) - means.mean(axis=(1, 2))[:, None]) ** 2).sum() / (a * (b - 1))
    ms_e = ((means - means.mean(axis=2)[..., None]) ** 2).sum() / (a * b * (n - 1))
    found = estimate(Cells({"a": one, "b": inside}, y))
    expected = {"a": (ms_a - ms_b) / (b * n), "b (in a)": (ms_b - ms_e) / n, RESIDUAL: ms_e}
    assert found.method == ANOVA
    assert variances(found) == pytest.approx(expected)


def test_dyestuff_is_as_printed():
    """Yields of six batches (Davies 1947), whose components are printed as 1764 and 2451, such as by lme4."""
    a = [1545, 1440, 1440, 1520, 1580, 1540, 1555, 1490, 1560, 1495, 1595, 1550, 1605, 1510, 1560]
    b = [1445, 1440, 1595, 1465, 1545, 1595, 1630, 1515, 1635, 1625, 1520, 1455, 1450, 1480, 1445]
    found = estimate(Cells({"batch": np.repeat(range(6), 5)}, np.array(a + b, dtype=float)))
    assert {name: round(v, 2) for name, v in variances(found).items()} == {"batch": 1764.05, RESIDUAL: 2451.25}


def test_unbalanced_one_way_is_the_textbook():
    """n0 = (N - sum n^2 / N) / (a - 1), Searle and others 1992, section 3.6."""
    sizes = np.array([3, 5, 2, 9])
    one = np.repeat(range(4), sizes)
    y = np.random.default_rng(2).normal(size=sizes.sum()) + one
    means = np.bincount(one, y) / sizes
    between = (sizes * (means - y.mean()) ** 2).sum() / 3
    within = ((y - means[one]) ** 2).sum() / (sizes.sum() - 4)
    n0 = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / 3
    found = estimate(Cells({"a": one}, y))
    assert variances(found) == pytest.approx({"a": (between - within) / n0, RESIDUAL: within})


def test_unbalanced_two_way_solves_expectations_of_dense_matrices():
    """The same by matrices: quadratic forms y'Qy, whose expectations are traces of Q with each covariance."""
    rng = np.random.default_rng(3)
    one, two, y = crossed(4, 5, 3, seed=4)
    kept = rng.random(len(y)) < 0.7
    one, two, y = one[kept], two[kept], y[kept]
    zs = [np.eye(k.max() + 1)[k] for k in (one, two, one * 5 + two)]
    zs = [z[:, z.any(axis=0)] for z in zs]
    eye = np.eye(len(y))
    forms = [z @ np.diag(1 / z.sum(axis=0)) @ z.T for z in zs]
    grand = np.full_like(eye, 1 / len(y))
    a, b, ab = (form - grand for form in forms)
    quadratics = [a, b, ab - a - b, eye - forms[2]]
    covariances = [*(z @ z.T for z in zs), eye]
    matrix = np.array([[np.trace(q @ v) for v in covariances] for q in quadratics])
    expected = np.linalg.solve(matrix, [y @ q @ y for q in quadratics])
    found = estimate(Cells({"a": one, "b": two}, y))
    assert found.method == HENDERSON
    assert list(variances(found).values()) == pytest.approx(list(expected))


def test_one_mean_square_has_the_exact_interval():
    low, high = interval(np.array([2.0]), np.array([3.0]), np.array([7.0]))
    assert (low, high) == pytest.approx((6 * 7 / chi2.ppf(0.975, 7), 6 * 7 / chi2.ppf(0.025, 7)))


def test_ratio_of_two_mean_squares_nearly_has_that_of_f():
    squares, freedom = np.array([6.0, 2.0]), np.array([9.0, 40.0])
    found = ratio_interval(lambda ratio: interval(np.array([1.0, -ratio]), squares, freedom))
    exact = (3 / f.ppf(0.975, 9, 40), 3 / f.ppf(0.025, 9, 40))
    assert found == pytest.approx(exact, rel=1e-3)


def test_ratio_without_a_limit_is_infinite():
    assert ratio_interval(lambda ratio: (-1.0, 1.0)) == (0.0, inf)


def test_planted_components_come_back_with_their_intervals():
    planted, rng = np.array([1.0, 0.25, 0.49, 1.0]), np.random.default_rng(5)
    for lost, least in ((0.0, 0.90), (0.3, 0.88)):
        values, covered = [], []
        for _ in range(150):
            one, two, _ = crossed(8, 12, 2)
            y = rng.normal(size=8)[one] + 0.5 * rng.normal(size=12)[two] + 0.7 * rng.normal(size=(8, 12))[one, two]
            y += rng.normal(size=len(y))
            kept = rng.random(len(y)) >= lost
            found = estimate(Cells({"a": one[kept], "b": two[kept]}, y[kept]))
            values.append([c.variance for c in found.components])
            covered.append([c.low <= p <= c.high for c, p in zip(found.components, planted, strict=True)])
        errors = np.std(values, axis=0) / sqrt(len(values))
        assert (np.abs(np.mean(values, axis=0) - planted) < 4 * errors).all()
        assert (np.mean(covered, axis=0) > least).all()


def test_negative_estimates_stay_and_count_as_nothing():
    one, two, y = crossed(3, 4, 2)
    y = np.tile([5.0, -5.0], len(y) // 2)  # within a cell all differ, between cells nothing does
    found = estimate(Cells({"a": one, "b": two}, y))
    by = {c.term.name: c for c in found.components}
    assert by["a x b"].variance < 0 == by["a x b"].bounded
    assert found.total == pytest.approx(by[RESIDUAL].variance)


def test_error_of_a_balanced_mean_is_that_of_generalizability_theory():
    """A person x item x rater universe's error: A/a + B/b + AB/ab + E/abn (Brennan 2001, chapter 4)."""
    a, b, n = 6, 5, 3
    one, two, y = crossed(a, b, n, seed=8)
    y = y + 5 * one + 3 * two
    whole = headline_of({"a": one, "b": two}, y, "ab")
    v = {c.term.name: c.bounded for c in whole.components.components}
    expected = v["a"] / a + v["b"] / b + v["a x b"] / (a * b) + v[RESIDUAL] / (a * b * n)
    assert whole.error.value == pytest.approx(sqrt(expected))
    fixed = headline_of({"a": one, "b": two}, y, "a")
    assert fixed.error.value == pytest.approx(sqrt(expected - v["b"] / b))
    more = whole.planned({"b": 4.0})
    expected = v["a"] / a + v["b"] / (4 * b) + v["a x b"] / (4 * a * b) + v[RESIDUAL] / (4 * a * b * n)
    assert (more.error, more.times, more.levels["b"]) == (pytest.approx(sqrt(expected)), 4, 20)


def test_object_has_the_coefficients_of_persons_by_items():
    """Cronbach's alpha is that of persons crossed with items (Brennan 2001, section 2.2)."""
    persons, items = 9, 4
    one, two, y = crossed(persons, items, 1, seed=6)
    y = y + 4.0 * one + 5.0 * two
    cells = Cells({"p": one, "i": two}, y, np.full(len(y), 1 / items))
    found = estimate(cells)
    headline = Headline(components=found, shares=shares_of(found, cells, "p"), random=frozenset("i"), object="p")
    table = y.reshape(persons, items)
    alpha = items / (items - 1) * (1 - table.var(axis=0, ddof=1).sum() / table.sum(axis=1).var(ddof=1))
    assert headline.relative.value == pytest.approx(alpha)
    # Feldt's exact interval of alpha.
    ends = [1 - (1 - alpha) * f.ppf(q, persons - 1, (persons - 1) * (items - 1)) for q in (0.975, 0.025)]
    assert (headline.relative.low, headline.relative.high) == pytest.approx(ends, abs=2e-3)
    assert headline.dependable.value < headline.relative.value


def test_cheapest_design_beats_every_other():
    one, two, y = crossed(6, 5, 3, seed=8)
    headline = headline_of({"a": one, "b": two}, y + 5 * one + 3 * two, "ab")
    wanted = headline.error.value / 1.5
    best = headline.cheapest(wanted)
    assert best.error <= wanted
    grid = [
        headline.planned({"a": a / 6, "b": b / 5, DRAWS: n / 3})
        for a in range(2, 40)
        for b in range(2, 40)
        for n in range(1, 8)
    ]
    assert best.times == pytest.approx(min(one.times for one in grid if one.error <= wanted))


def test_rows_alone_need_four_times_as_many_for_half_the_error():
    y = np.random.default_rng(1).normal(size=50)
    headline = headline_of({}, y, ())
    assert headline.error.value == pytest.approx(y.std(ddof=1) / sqrt(50))
    assert headline.cheapest(headline.error.value / 2).levels == {ROWS: 200}


@pytest.mark.parametrize(
    ("make", "code", "left"),
    [
        (lambda a, b: {"a": a, "b": b}, "variance.one-answer", ["a", "b"]),
        (lambda a, b: {"a": a, "b": (a + b) % 4, "c": b}, "variance.one-answer", ["a", "b", "c"]),
    ],
)
def test_what_shares_cells_is_named(make, code, left):
    one, two, y = crossed(4, 4, 1)
    found = estimate(Cells(make(one, two), y))
    assert [note.code for note in found.notes] == [code]
    assert [c.term.name for c in found.components] == [*left, RESIDUAL]


def test_latin_square_with_draws_names_what_is_confounded():
    one, two, y = crossed(4, 4, 2)
    found = estimate(Cells({"a": one, "b": (one + two) % 4, "c": two}, y))
    (note,) = found.notes
    assert note.code == "variance.confounded"
    assert all(name in note.text for name in ("a x b", "a x c", "b x c"))


def test_cells_that_do_not_connect_are_said():
    one = np.repeat([0, 0, 1, 1], 3)
    two = np.repeat([0, 1, 2, 3], 3)
    found = estimate(Cells({"a": one, "b": two}, np.arange(12.0)))
    assert [c.term.name for c in found.components] == ["a", "b (in a)", RESIDUAL]
