import numpy as np
import pytest

from prejudge.adapters.encoder_training.confusion import WAYS, classify, confusion
from prejudge.adapters.encoder_training.heads import macro_f1
from prejudge.adapters.encoder_training.splits import SPLITS, cut


@pytest.fixture(scope="module")
def parted(corpus):
    """Vectors that tell the types apart."""
    kinds = np.where(corpus.stereotype[:, None], [[1.0, 0.0]], [[0.0, 1.0]])
    return kinds + np.random.default_rng(0).normal(scale=0.05, size=kinds.shape)


@pytest.mark.parametrize("several", WAYS)
@pytest.mark.parametrize("by", SPLITS)
def test_parted_vectors_are_never_confused(corpus, parted, by, several):
    parts = cut(corpus, by, 0)
    table = confusion(parted, corpus, parts.validation, parts.known, several)
    assert all(kinds["stereotype"]["anti-stereotype"] == 0 for kinds in table.values())
    counted = sum(n for kinds in table.values() for given in kinds.values() for n in given.values())
    assert counted == len(parts.validation)


def test_mistakes_stand_off_the_diagonal(corpus, parted):
    parts = cut(corpus, "sentence", 0)
    wrong = parts.validation[corpus.stereotype[parts.validation]][0]
    vectors = parted.copy()
    vectors[wrong] = [0.0, 1.0]
    table = confusion(vectors, corpus, parts.validation, parts.known)
    assert sum(kinds["stereotype"]["anti-stereotype"] for kinds in table.values()) == 1


def test_sentence_is_not_its_own_ground_truth(corpus):
    rows = np.flatnonzero(corpus.context == 0)
    # Every vector is orthogonal to all others: only to itself would it be near.
    table = confusion(np.eye(96), corpus, rows, rows)
    assert table["caste"]["stereotype"] == {"stereotype": 0, "anti-stereotype": 4}


def test_nearest_and_mean_can_differ(corpus):
    members = np.flatnonzero(corpus.context == 0)
    row, friend = members[corpus.stereotype[members]][:2]
    vectors = np.tile([[1.0, 1.0]], (96, 1))
    vectors[members[corpus.stereotype[members]]] = [0.0, 1.0]
    vectors[[row, friend]] = [1.0, 0.0]
    references = np.setdiff1d(members, [row])
    predicted = {way: classify(vectors, corpus, np.array([row]), references, way)[0].item() for way in WAYS}
    # One stereotype is its twin, two are orthogonal; every anti-stereotype lies half-way.
    assert predicted == {"nearest": True, "mean": False}


def test_macro_f1_is_that_of_scikit_learn(corpus):
    metrics = pytest.importorskip("sklearn.metrics", reason="needs the extra encoder")
    rows = np.arange(0, 96, 2)
    predicted = np.random.default_rng(0).random((3, len(rows))) < 0.6
    found = {row.category: row for row in macro_f1(predicted, corpus, rows)}
    truth = corpus.stereotype[rows]
    expected = [metrics.f1_score(truth, one, average="macro") for one in predicted]
    assert found["overall"].value == pytest.approx(np.mean(expected))
    assert found["overall"].deviation == pytest.approx(np.std(expected, ddof=1))
    chosen = corpus.category[rows] == 1
    by_seed = [metrics.f1_score(truth[chosen], one[chosen], average="macro") for one in predicted]
    assert found["gender"].value == pytest.approx(np.mean(by_seed))
    assert found["gender"].low < found["gender"].value < found["gender"].high
