"""The jackknife over several facets, recomputed one left-out combination at a time, and against fair models."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from prejudge.core.statistics.multiway import Cells, infer, multiway_jackknife, shared_levels, shares_lost
from prejudge.core.statistics.resampling import jackknife


def mean(totals):
    with np.errstate(invalid="ignore", divide="ignore"):
        return (totals[..., 0, 1] / totals[..., 0, 0])[..., None]


def difference(totals):
    with np.errstate(invalid="ignore", divide="ignore"):
        means = totals[..., 1] / totals[..., 0]
    return means[..., :1] - means[..., 1:]


def cells_of(codes, values):
    """Return cells of one unit and one side, an answer each."""
    return Cells(codes, np.stack([np.ones(len(values)), values], axis=-1)[:, None, None])


def crossed(*counts):
    return np.stack([own.ravel() for own in np.meshgrid(*(np.arange(n) for n in counts), indexing="ij")], axis=-1)


def inclusion_and_exclusion(codes, values, sides=None):
    """Return the variance of a mean, or of a difference of sides, and what each facet adds, with Python's sets."""
    sides = [0] * len(values) if sides is None else sides
    rows = list(zip(codes.tolist(), values, sides, strict=True))

    def estimate(rows):
        means = [np.mean([value for _, value, side in rows if side == number]) for number in sorted(set(sides))]
        return means[0] - means[1] if len(means) == 2 else means[0]

    whole, total, alone = estimate(rows), 0.0, []
    facets = range(codes.shape[1])
    for size in range(1, codes.shape[1] + 1):
        for chosen in combinations(facets, size):
            gaps = {}
            for name in {tuple(levels[facet] for facet in chosen) for levels, _, _ in rows}:
                kept = [row for row in rows if tuple(row[0][facet] for facet in chosen) != name]
                on = {side for levels, _, side in rows if tuple(levels[facet] for facet in chosen) == name}
                gaps.setdefault(tuple(sorted(on)), []).append((estimate(kept) - whole) ** 2)
            if size == 1:
                shrunk = {on: sum(own) * (len(own) - 1) / len(own) for on, own in gaps.items()}
                alone.append((sum(shrunk.values()), min(len(own) for own in gaps.values()) - 1))
                total += alone[-1][0]
            else:
                total += (-1) ** (size + 1) * sum(map(sum, gaps.values()))
    return total, alone


def share_by_loops(codes, facet, sides=None):
    """Return the share of a facet's variance that is counted: a quadratic form, so by one level's effect at a time."""
    sides = np.zeros(len(codes)) if sides is None else sides
    counted, size = 0.0, 0.0
    for side in np.unique(sides):
        for level in np.unique(codes[sides == side, facet]):
            own = ((codes[:, facet] == level) & (sides == side)).astype(float)
            counted += inclusion_and_exclusion(codes, own, sides)[0]
            size += own[sides == side].mean() ** 2
    return counted / size


def by_loops(codes, values):
    """Return the variance of the mean over all facets, and its degrees of freedom."""
    total, alone = inclusion_and_exclusion(codes, values)
    if codes.shape[1] > 2:
        lost = [max(0.0, 1 - share_by_loops(codes, facet)) for facet in range(codes.shape[1])]
        total += sum(share * own for share, (own, _) in zip(lost, alone, strict=True))
    variance = max(total, *(own for own, _ in alone))
    return variance, variance**2 / sum(own**2 / freedom for own, freedom in alone)


@pytest.mark.parametrize("counts", [(15, 10, 12), (6, 6, 6), (30, 4, 9)])
def test_variance_by_three_facets_is_what_values_vary_by(counts):
    """Were what pairs subtract not given back, a sixth of the variance by 15 x 10 x 12 levels would be lost."""
    rng = np.random.default_rng(sum(counts))
    codes, found, truth = crossed(*counts), [], sum(0.25 / n for n in counts) + 1 / np.prod(counts)
    for _ in range(150):
        values = sum(rng.normal(0, 0.5, count)[codes[:, way]] for way, count in enumerate(counts))
        values = values + rng.normal(size=len(codes))
        found.append(multiway_jackknife(cells_of(codes, values), mean)[0][0, 0])
    assert np.mean(found) == pytest.approx(truth, abs=4 * np.std(found) / np.sqrt(len(found)))
    assert np.mean(found) > 0.9 * truth


def test_share_of_levels_that_cross_is_the_product_over_the_other_facets():
    lost = shares_lost(crossed(60, 50, 40), np.ones((60 * 50 * 40, 1, 1), bool))[:, 0]
    expected = [(1 - 1 / 50) * (1 - 1 / 40), (1 - 1 / 60) * (1 - 1 / 40), (1 - 1 / 60) * (1 - 1 / 50)]
    assert 1 - lost == pytest.approx(expected, abs=1e-3)
    assert (shares_lost(crossed(60, 50), np.ones((60 * 50, 1, 1), bool)) == 0).all()


def two_sides(words=4, phrases=4, openings=3):
    """Return the cells of words with a side each, in phrases and openings that both sides have, a few left out."""
    codes = crossed(2 * words, phrases, openings)
    codes = codes[np.sort(np.random.default_rng(8).permutation(len(codes))[5:])]
    return codes, (codes[:, 0] >= words).astype(int)


def test_shares_are_of_the_cells_of_each_side_and_unit():
    codes, sides = two_sides()
    present = np.zeros((len(codes), 2, 2), bool)
    present[np.arange(len(codes)), 0, sides] = True
    some = codes[:, 2] < 2
    present[np.flatnonzero(some), 1, sides[some]] = True
    lost = shares_lost(codes, present)
    for unit, rows in enumerate((np.ones(len(codes), bool), some)):
        expected = [max(0.0, 1 - share_by_loops(codes[rows], facet, sides[rows])) for facet in range(3)]
        assert lost[:, unit] == pytest.approx(expected, abs=1e-10)
    # Of 4 words a side, not of 8: the cells of both sides together would say less.
    together = shares_lost(codes, np.ones((len(codes), 1, 1), bool))
    assert (lost[1:, 0] > 1.2 * together[1:, 0]).all()


def test_variance_of_sides_with_words_of_their_own_is_what_differences_vary_by():
    """Effects of each facet on each side: were a loss counted over both sides together, a tenth would be missing."""
    codes, found = crossed(14, 6, 6), []
    sides = (codes[:, 0] >= 7).astype(int)
    counts = (7, 6, 6)
    truth = 2 * (sum(0.25 / n for n in counts) + 1 / np.prod(counts))
    rng = np.random.default_rng(3)
    for _ in range(500):
        effects = [rng.normal(0, 0.5, (2, codes[:, way].max() + 1)) for way in range(3)]
        values = sum(effect[sides, codes[:, way]] for way, effect in enumerate(effects)) + rng.normal(size=len(codes))
        sums = np.zeros((len(codes), 1, 2, 2))
        sums[np.arange(len(codes)), 0, sides] = np.stack([np.ones(len(codes)), values], axis=-1)
        found.append(multiway_jackknife(Cells(codes, sums), difference)[0][0, 0])
    assert np.mean(found) == pytest.approx(truth, abs=4 * np.std(found) / np.sqrt(len(found)))
    assert np.std(found) / np.sqrt(len(found)) < 0.02 * truth


@pytest.mark.parametrize("counts", [(6, 5), (5, 4, 3), (4, 3, 3, 2)])
@pytest.mark.parametrize("lost", [0, 7])
def test_variance_and_freedom_by_loops(counts, lost):
    rng = np.random.default_rng(len(counts) + lost)
    codes = crossed(*counts)
    codes = codes[np.sort(rng.permutation(len(codes))[lost:])]
    values = sum(rng.normal(size=count)[codes[:, way]] for way, count in enumerate(counts)) + rng.normal(
        size=len(codes)
    )
    found, freedom = multiway_jackknife(cells_of(codes, values), mean)
    assert (found[0, 0], freedom[0, 0]) == pytest.approx(by_loops(codes, values), rel=1e-10)


def test_facet_within_another_adds_nothing_to_it():
    rng = np.random.default_rng(1)
    codes = crossed(12, 7)  # phrases and words
    places = codes[:, 0] // 2
    values = rng.normal(size=6)[places] + rng.normal(size=len(codes))
    with_phrases = np.stack([places, codes[:, 0], codes[:, 1]], axis=-1)
    without = np.stack([places, codes[:, 1]], axis=-1)
    phrases = jackknife(cells_of(with_phrases, values).by_facet[1], mean)[0]
    three, two = (multiway_jackknife(cells_of(own, values), mean)[0] for own in (with_phrases, without))
    # Single cells are those of phrases with words in one, and of places with words in the other.
    assert three[0, 0] == pytest.approx(two[0, 0], rel=0.12)
    assert three[0, 0] >= phrases[0, 0]


def test_facet_twice_is_that_facet_once():
    rng = np.random.default_rng(2)
    codes = crossed(9, 5)
    cells, twice = cells_of(codes, rng.normal(size=len(codes))), codes[:, [0, 1, 0]]
    expected = multiway_jackknife(cells, mean)[0]
    assert multiway_jackknife(Cells(twice, cells.sums), mean)[0] == pytest.approx(expected, rel=1e-12)


def test_each_combination_is_counted_once():
    codes = crossed(3, 4, 2)
    signs = {labels.max() + 1: sign for sign, labels, _ in shared_levels(codes)}
    assert signs == {12: -1, 6: -1, 8: -1, 24: 1}
    nested = np.stack([codes[:, 0], codes[:, 0] * 4 + codes[:, 1]], axis=-1)
    ((sign, _, own),) = shared_levels(nested)
    assert (sign, own) == (-1, 1)


def test_units_leave_out_facets_of_which_they_have_one_level():
    rng = np.random.default_rng(3)
    codes = crossed(6, 5, 4)
    values = rng.normal(size=len(codes))
    sums = np.zeros((len(codes), 2, 1, 2))
    sums[:, 0, 0] = np.stack([np.ones(len(codes)), values], axis=-1)
    one = codes[:, 2] == 1
    sums[one, 1, 0] = sums[one, 0, 0]
    variance, freedom = multiway_jackknife(Cells(codes, sums), mean)
    assert (variance[0, 0], freedom[0, 0]) == pytest.approx(by_loops(codes, values), rel=1e-10)
    assert (variance[1, 0], freedom[1, 0]) == pytest.approx(by_loops(codes[one][:, :2], values[one]), rel=1e-10)


def test_no_facet_with_two_levels_has_no_variance():
    cells = cells_of(np.zeros((1, 3), dtype=np.int64), np.array([1.0]))
    assert np.isnan(multiway_jackknife(cells, mean)).all()


def found_biased(rng, facets, *, by_phrase, by_opening, effect=0.0):
    """Ask a model that prefers one of two sides by its phrase and opening, alike in good and bad words."""
    words, phrases, openings = 14, 15, 5
    codes = crossed(words, phrases, openings)
    sign = np.where(codes[:, 0] < 7, 1.0, -1.0)
    prefers = rng.normal(0, by_phrase, phrases)[codes[:, 1]] + rng.normal(0, by_opening, openings)[codes[:, 2]]
    # Preferences that depend on what the words say are what a contrast of words sees.
    prefers = prefers * sign + rng.normal(0, 0.3, words)[codes[:, 0]] + effect * sign / 2
    values = prefers + rng.normal(0, 0.5, len(codes))
    side = (sign < 0).astype(int)
    sums = np.zeros((len(codes), 1, 2, 2))
    sums[np.arange(len(codes)), 0, side] = np.stack([np.ones(len(codes)), values], axis=-1)
    template = codes[:, 1] * openings + codes[:, 2]
    every = {"word": codes[:, 0], "template": template, "phrase": codes[:, 1], "opening": codes[:, 2]}
    cells = Cells(np.stack([every[name] for name in facets], axis=-1), sums)

    def gap(totals):
        return (totals[..., 0, 1] / totals[..., 0, 0] - totals[..., 1, 1] / totals[..., 1, 0])[..., None]

    return infer(cells, gap, 0.95).p[0, 0] < 0.05


@pytest.mark.parametrize("by", ["by_phrase", "by_opening"])
def test_parts_of_templates_that_lean_are_rarely_found_biased(by):
    lean = {"by_phrase": 0.0, "by_opening": 0.0, by: 0.3}
    rng, templates, parts, studies = np.random.default_rng(4), 0, 0, 200
    for _ in range(studies):
        state = rng.bit_generator.state
        templates += found_biased(rng, ("template", "word"), **lean)
        rng.bit_generator.state = state
        parts += found_biased(rng, ("word", "phrase", "opening"), **lean)
    # 200 studies: at 5 % more than 17 have a chance of 1 %.
    assert parts <= 17
    assert templates > parts


def test_power_against_planted_bias_is_not_lost():
    rng = np.random.default_rng(5)
    facets = ("word", "phrase", "opening")
    found = sum(found_biased(rng, facets, by_phrase=0.1, by_opening=0.1, effect=0.8) for _ in range(100))
    assert found >= 90
