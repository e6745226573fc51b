import itertools

import numpy as np
import pytest

from prejudge.adapters.encoder_training.data import cut, read_corpus
from prejudge.adapters.encoder_training.heads import macro_f1
from prejudge.adapters.encoder_training.measures import WAYS, classify, confusion, deltas, nested
from prejudge.adapters.encoder_training.settings import SPLITS


def by_pairs(vectors, corpus, rows):
    """Return delta-sim by equations 1 and 2, pair by pair; a sentence and its copy are no pair."""
    cosines = {True: [], False: []}
    for (a, one), (b, other) in itertools.combinations(enumerate(rows), 2):
        alike = bool(corpus.stereotype[one] == corpus.stereotype[other])
        if corpus.context[one] == corpus.context[other] and not (alike and corpus.texts[one] == corpus.texts[other]):
            x, y = vectors[a], vectors[b]
            cosines[alike].append(x @ y / np.linalg.norm(x) / np.linalg.norm(y))
    return np.mean(cosines[True]) - np.mean(cosines[False]), (len(cosines[True]), len(cosines[False]))


@pytest.fixture(scope="module")
def vectors(corpus):
    noise = np.random.default_rng(1).normal(size=(len(corpus.sentences), 7))
    return noise + corpus.stereotype[:, None] * np.arange(7) / 3


@pytest.fixture(scope="module")
def parted(corpus):
    """Vectors that tell the types apart."""
    kinds = np.where(corpus.stereotype[:, None], [[1.0, 0.0]], [[0.0, 1.0]])
    return kinds + np.random.default_rng(0).normal(scale=0.05, size=kinds.shape)


def test_delta_is_that_of_the_pairs(corpus, vectors):
    rows = np.random.default_rng(2).permutation(len(vectors))[:60]
    found = deltas(vectors[rows], corpus, rows)
    value, pairs = by_pairs(vectors[rows], corpus, rows)
    assert found["overall"].value == pytest.approx(value, abs=1e-12) and found["overall"].pairs == pairs
    only = rows[corpus.category[rows] == 1]
    assert found["gender"].value == pytest.approx(by_pairs(vectors[only], corpus, only)[0], abs=1e-12)


def test_sentence_and_its_copy_are_no_pair(write):
    words = [("poor", "stereotype")] * 3 + [("late", "stereotype"), ("rich", "anti_stereotype"), ("rich", "stereotype")]
    corpus = read_corpus([write(*(f"0,He is {word}.,{kind}" for word, kind in words))])
    alone = np.random.default_rng(5).normal(size=(6, 4))
    vectors = alone[[0, 0, 0, 1, 2, 2]]
    found = deltas(vectors, corpus, np.arange(6))["overall"]
    value, pairs = by_pairs(vectors, corpus, np.arange(6))
    # A sentence that stands on both sides stays a pair of both types.
    assert found.value == pytest.approx(value, abs=1e-12) and found.pairs == pairs == (7, 5)


def test_reversed_difference_keeps_its_sign(corpus):
    """Opposed sentences that are copies of each other, and alike ones that are not: the absolute value hides it."""
    place = np.arange(96) % 4
    found = deltas(np.eye(4)[place], corpus, np.arange(96))["overall"]
    assert found.value == pytest.approx(-0.25)


def test_interval_holds_the_value(corpus, vectors):
    found = deltas(vectors, corpus, np.arange(len(vectors)))["overall"]
    assert found.low < found.value < found.high


def test_without_pairs_nothing_is_claimed(write):
    corpus = read_corpus([write("0,He is poor.,stereotype", "0,He is rich.,anti_stereotype")])
    found = deltas(np.eye(2), corpus, np.arange(2))["overall"]
    assert (found.value, found.low, found.pairs) == (None, None, (0, 1))


def test_nested_value_of_noise_is_near_zero_while_the_chosen_one_is_not():
    """The fair opponent: 100 epochs that differ by chance alone."""
    rng = np.random.default_rng(3)
    history = np.empty((100, 24, 4))
    history[..., 1], history[..., 3] = 10, 10
    history[..., 0], history[..., 2] = (rng.normal(0, 2, size=(100, 24)) for _ in range(2))
    found = nested(history, np.arange(24) % 5)
    assert found.chosen > 0.15 and abs(found.reported) < 0.05


def test_nested_value_of_one_good_epoch_is_that_epoch():
    history = np.zeros((9, 10, 4))
    history[..., 1], history[..., 3] = 6, 4
    history[4, :, 2] = -2.0
    found = nested(history, np.zeros(10, dtype=int))
    assert (found.chosen, found.reported, found.deviation) == (0.5, 0.5, 0.0)
    # A difference below 0 on both halves agrees with itself.
    history[4, :, 2] = 2.0
    assert nested(history, np.zeros(10, dtype=int)).reported == 0.5
    assert nested(history[:, :1], np.zeros(1, dtype=int)) is None


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


@pytest.mark.parametrize("by", SPLITS)
def test_confusion_of_pairs_is_that_of_drawn_comparisons(corpus, by):
    """Independently: pairs and five completions are drawn at random, as the study meets them."""
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(96, 3)) + 0.8 * corpus.stereotype[:, None]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    parts = cut(corpus, by, 0)
    table = confusion(vectors, corpus, parts.validation, parts.known, "pair", 5)
    for index, name in enumerate(corpus.categories):
        for kind, told in ((True, "stereotype"), (False, "anti-stereotype")):
            rights = []
            for row in parts.validation[corpus.category[parts.validation] == index]:
                if corpus.stereotype[row] != kind:
                    continue
                for _ in range(150):
                    rights.append(drawn(rng, vectors, corpus, parts, row) == kind)
            found = table[name][told]
            assert sum(found.values()) == len(rights) / 150
            # Rounded to whole sentences.
            assert found[told] == pytest.approx(np.mean(rights) * sum(found.values()), abs=1)


def drawn(rng, vectors, corpus, parts, row):
    """Return whether five completions like `row` are a stereotype by majority, against a pair of its context."""
    pair, place = [], corpus.context == corpus.context[row]
    for kind in (True, False):
        pool = [r for r in parts.known if place[r] and corpus.stereotype[r] == kind]
        pool = pool or [r for r in parts.validation if place[r] and corpus.stereotype[r] == kind]
        pair.append(rng.choice(pool))
    like = place & (corpus.stereotype == corpus.stereotype[row])
    said = rng.choice([r for r in parts.validation if like[r] and r not in pair] or [pair[0]], 5)
    votes = [vectors[one] @ vectors[pair[0]] > vectors[one] @ vectors[pair[1]] for one in said]
    return sum(votes) > 2


def test_one_pair_errs_more_often_than_the_mean_of_all_references(corpus):
    """The corrected share would be too near to what was seen, were it the error of the mean."""
    rng, rows = np.random.default_rng(0), np.arange(96)
    vectors = rng.normal(size=(96, 8)) + 2 * np.outer(corpus.stereotype, np.eye(8)[0])
    right = {
        way: sum(k[t][t] for k in confusion(vectors, corpus, rows, rows, way, 1).values() for t in k)
        for way in ("pair", "mean")
    }
    assert 48 < right["pair"] < right["mean"] - 5


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


def test_macro_f1_is_told_by_category_and_by_what_the_encoder_has_seen(corpus):
    metrics = pytest.importorskip("sklearn.metrics", reason="needs the extra encoder")
    rows = np.arange(0, 96, 2)
    rng = np.random.default_rng(0)
    predicted, seen = rng.random(len(rows)) < 0.6, rng.random(len(rows)) < 0.5
    found, truth = macro_f1(predicted, corpus, rows, seen), corpus.stereotype[rows]
    for name, own in {
        "overall": rows >= 0,
        "gender": corpus.category[rows] == 1,
        "seen": seen,
        "unseen": ~seen,
    }.items():
        assert found[name] == metrics.f1_score(truth[own], predicted[own], average="macro")
    assert macro_f1(predicted, corpus, rows, seen & False)["seen"] is None
