import polars as pl
import pytest

from prejudge.probes.dora.overlap import adjusted, overlap

NAMES = [f"d{i}" for i in range(20)]


def pairs(*rows):
    return pl.DataFrame(rows, schema=["descriptor", "word"], orient="row")


def own(n, shift=0):
    return pairs(*((f"d{i}", f"w{(i + shift) % n}") for i in range(n)))


def test_jaccard_is_shared_over_either():
    found = overlap(pairs(("a", "x"), ("a", "y"), ("b", "x")), pairs(("a", "x"), ("b", "z")), "ab", resamples=99)
    assert (found.first, found.second, found.shared) == (3, 2, 1)
    assert found.jaccard == pytest.approx(1 / 4)


def test_the_same_words_of_the_same_descriptors_are_no_chance():
    found = overlap(own(20), own(20), NAMES, resamples=999)
    assert found.jaccard == 1 and found.p == pytest.approx(0.001) and found.expected < 0.1


def test_words_said_of_everybody_are_shared_by_chance():
    everybody = pairs(*((f"d{i}", word) for i in range(10) for word in ("x", "y")))
    found = overlap(everybody, everybody, NAMES[:10], resamples=99)
    assert found.jaccard == 1 and found.expected == 1 and found.p == 1


def test_the_same_words_of_other_descriptors_are_not_shared():
    assert overlap(own(20), own(20, shift=1), NAMES, resamples=99).shared == 0


def test_descriptors_that_were_asked_for_one_set_only_are_left_out():
    found = overlap(own(5), own(4), NAMES[:4], resamples=99)
    assert found.descriptors == 4 and found.first == 4


def test_descriptors_without_an_association_in_one_set_count():
    # 100 descriptors of 3 associations each against 3 associations of one descriptor each, all shared.
    many = pairs(*((f"d{i}", f"w{i}-{j}") for i in range(100) for j in range(3)))
    few = pairs(*((f"d{i}", f"w{i}-0") for i in range(3)))
    found = overlap(many, few, [f"d{i}" for i in range(100)], resamples=99)
    assert (found.first, found.second, found.shared, found.jaccard) == (300, 3, 3, pytest.approx(0.01))


def test_nothing_said_is_undefined():
    found = overlap(pairs().cast(pl.String), pairs().cast(pl.String), NAMES[:3])
    assert found.jaccard is None and found.p is None


def test_p_values_are_adjusted_and_gaps_stay():
    assert adjusted([0.01, None, 0.04]) == [pytest.approx(0.02), None, pytest.approx(0.04)]
    assert adjusted([None]) == [None]
