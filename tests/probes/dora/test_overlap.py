import polars as pl
import pytest

from prejudge.probes.dora.overlap import adjusted, overlap


def pairs(*rows):
    return pl.DataFrame(rows, schema=["descriptor", "word"], orient="row")


def own(n, shift=0):
    return pairs(*((f"d{i}", f"w{(i + shift) % n}") for i in range(n)))


def test_jaccard_is_shared_over_either():
    found = overlap(pairs(("a", "x"), ("a", "y"), ("b", "x")), pairs(("a", "x"), ("b", "z")), resamples=99)
    assert (found.first, found.second, found.shared) == (3, 2, 1)
    assert found.jaccard == pytest.approx(1 / 4)


def test_the_same_words_of_the_same_descriptors_are_no_chance():
    found = overlap(own(20), own(20), resamples=999)
    assert found.jaccard == 1 and found.p == pytest.approx(0.001) and found.expected < 0.1


def test_words_said_of_everybody_are_shared_by_chance():
    everybody = pairs(*((f"d{i}", word) for i in range(10) for word in ("x", "y")))
    found = overlap(everybody, everybody, resamples=99)
    assert found.jaccard == 1 and found.expected == 1 and found.p == 1


def test_the_same_words_of_other_descriptors_are_not_shared():
    assert overlap(own(20), own(20, shift=1), resamples=99).shared == 0


def test_descriptors_of_one_set_only_are_left_out():
    found = overlap(own(5), own(4), resamples=99)
    assert found.descriptors == 4 and found.first == 4


def test_nothing_said_is_undefined():
    found = overlap(pairs().cast(pl.String), own(3))
    assert found.jaccard is None and found.p is None


def test_p_values_are_adjusted_and_gaps_stay():
    assert adjusted([0.01, None, 0.04]) == [pytest.approx(0.02), None, pytest.approx(0.04)]
    assert adjusted([None]) == [None]
