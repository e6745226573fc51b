import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra hf")
from prejudge.adapters.encoder_training.losses import contrastive_loss, find_pairs  # noqa: E402
from prejudge.adapters.encoder_training.settings import LOSSES, LossSettings  # noqa: E402

CONTEXTS = [0, 0, 0, 0, 1, 1, 1]
STEREO = [True, True, False, False, True, True, False]
COUNT = range(len(CONTEXTS))
VECTORS = torch.tensor(np.random.default_rng(0).normal(size=(7, 5)))
T, M = 0.7, 0.4


def cosine(i, j):
    return float(torch.nn.functional.cosine_similarity(VECTORS[i], VECTORS[j], dim=0))


def alike(i, j):
    return i != j and CONTEXTS[i] == CONTEXTS[j] and STEREO[i] == STEREO[j]


def opposed(i, j):
    return CONTEXTS[i] == CONTEXTS[j] and STEREO[i] != STEREO[j]


def log_sigmoid(x):
    return -math.log1p(math.exp(-x))


def nt_xent():
    def one(i, j):
        return -math.log(math.exp(cosine(i, j) / T) / sum(math.exp(cosine(i, k) / T) for k in COUNT if k != i))

    return np.mean([one(i, j) for i in COUNT for j in COUNT if alike(i, j)])


def nt_bxent(positive=1.0, negative=1.0):
    near = [[-log_sigmoid(cosine(i, j) / T) for j in COUNT if alike(i, j)] for i in COUNT]
    far = [[-log_sigmoid((1 - cosine(i, j)) / T) for j in COUNT if opposed(i, j)] for i in COUNT]
    return positive * np.mean([np.mean(x) for x in near if x]) + negative * np.mean([np.mean(x) for x in far if x])


def pairwise():
    near = [1 - cosine(i, j) for i in COUNT for j in COUNT if alike(i, j)]
    return np.mean(near + [max(0, cosine(i, j) - M) for i in COUNT for j in COUNT if opposed(i, j)])


def triplet():
    found = [
        max(0, cosine(i, k) - cosine(i, j) + M)
        for i in COUNT
        for j in COUNT
        for k in COUNT
        if alike(i, j) and opposed(i, k)
    ]
    return np.mean(found)


def measured(name, **more):
    pairs = find_pairs(torch.tensor(CONTEXTS), torch.tensor(STEREO))
    return float(contrastive_loss(VECTORS, pairs, LossSettings(name=name, temperature=T, margin=M, **more)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("nt-xent", nt_xent), ("nt-bxent", nt_bxent), ("pairwise", pairwise), ("triplet", triplet)],
)
def test_loss_is_that_of_the_paper(name, expected):
    assert measured(name) == pytest.approx(expected(), abs=1e-9)


def test_weights_of_pairs_count_apart():
    assert measured("nt-bxent", positive_weight=2.0, negative_weight=0.5) == pytest.approx(nt_bxent(2.0, 0.5), abs=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_loss_falls_as_types_part(name):
    mixed, apart = torch.ones(7, 2), torch.tensor([[1.0, 0.0] if kind else [0.0, 1.0] for kind in STEREO])
    pairs = find_pairs(torch.tensor(CONTEXTS), torch.tensor(STEREO))
    settings = LossSettings(name=name)
    assert contrastive_loss(apart, pairs, settings) < contrastive_loss(mixed, pairs, settings)
