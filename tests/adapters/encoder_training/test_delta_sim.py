import itertools

import numpy as np
import pytest

from prejudge.adapters.encoder_training.data import read_corpus
from prejudge.adapters.encoder_training.delta_sim import delta, deltas, pair_sums


def by_pairs(vectors, corpus, rows):
    """Return delta-sim by equations 1 and 2, pair by pair."""
    cosines = {True: [], False: []}
    for (a, one), (b, other) in itertools.combinations(enumerate(rows), 2):
        if corpus.context[one] == corpus.context[other]:
            x, y = vectors[a], vectors[b]
            alike = bool(corpus.stereotype[one] == corpus.stereotype[other])
            cosines[alike].append(x @ y / np.linalg.norm(x) / np.linalg.norm(y))
    return abs(np.mean(cosines[True]) - np.mean(cosines[False])), len(cosines[True]), len(cosines[False])


@pytest.fixture(scope="module")
def vectors(corpus):
    noise = np.random.default_rng(1).normal(size=(len(corpus.sentences), 7))
    return noise + corpus.stereotype[:, None] * np.arange(7) / 3


def test_delta_is_that_of_the_pairs(corpus, vectors):
    rows = np.random.default_rng(2).permutation(len(vectors))[:60]
    found = deltas(vectors[rows], corpus, rows)
    value, intra, inter = by_pairs(vectors[rows], corpus, rows)
    assert found["overall"].value == pytest.approx(value, abs=1e-12)
    assert (found["overall"].intra_pairs, found["overall"].inter_pairs) == (intra, inter)
    only = rows[corpus.category[rows] == 1]
    assert found["gender"].value == pytest.approx(by_pairs(vectors[only], corpus, only)[0], abs=1e-12)


def test_interval_holds_the_value(corpus, vectors):
    found = deltas(vectors, corpus, np.arange(len(vectors)))["overall"]
    assert found.low < found.value < found.high and found.contexts == 12


def test_interval_of_no_difference_begins_at_zero(corpus):
    blind = np.random.default_rng(4).normal(size=(len(corpus.sentences), 7))
    found = deltas(blind, corpus, np.arange(len(blind)))["overall"]
    assert found.low == 0.0 and found.value <= found.high


def test_without_pairs_nothing_is_claimed(write):
    corpus = read_corpus([write("0,He is poor.,stereotype", "0,He is rich.,anti_stereotype")])
    found = delta(pair_sums(np.eye(2), corpus, np.arange(2)))
    assert (found.value, found.low, found.intra, found.inter) == (None, None, None, 0.0)
