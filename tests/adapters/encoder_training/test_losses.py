import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra hf")
from prejudge.adapters.encoder_training.losses import contrastive_loss  # noqa: E402
from prejudge.adapters.encoder_training.settings import LOSSES  # noqa: E402

CONTEXTS = [0, 0, 0, 0, 0, 1, 1, 1, 2]
STEREO = [1, 1, 1, 0, 0, 1, 1, 0, 1]
TEXTS = "abacdefgh"
"""Sentences 0 and 2 are word for word the same, and no pair; context 2 has no pair at all."""
COUNT = range(len(CONTEXTS))
VECTORS = torch.tensor(np.random.default_rng(0).normal(size=(9, 5)))
T, M = 0.7, 0.4


def cosine(i, j):
    return float(torch.nn.functional.cosine_similarity(VECTORS[i], VECTORS[j], dim=0))


def pairs(kind, context):
    """Return the cosines of unordered pairs of one context: of one type, or of both."""
    rows = [i for i in COUNT if CONTEXTS[i] == context]
    found = [(i, j) for i, j in itertools.combinations(rows, 2) if (STEREO[i] == STEREO[j]) == (kind == "alike")]
    return [cosine(i, j) for i, j in found if TEXTS[i] != TEXTS[j]]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def nt_xent(near, far):
    below = sum(math.exp(s / T) for s in far)
    return np.mean([-math.log(math.exp(s / T) / (math.exp(s / T) + below)) for s in near])


def nt_bxent(near, far):
    return np.mean([-math.log(sigmoid(s / T)) for s in near]) + np.mean([-math.log(1 - sigmoid(s / T)) for s in far])


def pairwise(near, far):
    return np.mean([1 - s for s in near]) + np.mean([max(0, s - M) for s in far])


def triplet(near, far):
    return np.mean([max(0, other - s + M) for s in near for other in far])


def nt_xent_printed():
    def one(i, j):
        return -math.log(math.exp(cosine(i, j) / T) / sum(math.exp(cosine(i, k) / T) for k in COUNT if k != i))

    alike = [
        (i, j)
        for i, j in itertools.permutations(COUNT, 2)
        if CONTEXTS[i] == CONTEXTS[j] and STEREO[i] == STEREO[j] and TEXTS[i] != TEXTS[j]
    ]
    return np.mean([one(i, j) for i, j in alike])


def nt_bxent_printed():
    near, far = (pairs(kind, 0) + pairs(kind, 1) for kind in ("alike", "opposed"))
    return np.mean([-math.log(sigmoid(s / T)) for s in near]) + np.mean([-math.log(sigmoid((1 - s) / T)) for s in far])


def measured(name, vectors=VECTORS, value=None):
    labels = 2 * torch.tensor(CONTEXTS) + torch.tensor(STEREO)
    equal = torch.tensor([[a == b for b in TEXTS] for a in TEXTS])
    parameter = {"temperature": T, "margin": M}[LOSSES[name][0]] if value is None else value
    return float(contrastive_loss(vectors, labels, equal, name, parameter))


@pytest.mark.parametrize("formula", [nt_xent, nt_bxent, pairwise, triplet])
def test_loss_is_that_of_the_authors_program(formula):
    expected = np.mean([formula(pairs("alike", context), pairs("opposed", context)) for context in (0, 1)])
    assert measured(formula.__name__.replace("_", "-")) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("formula", [nt_xent_printed, nt_bxent_printed])
def test_loss_is_the_printed_formula(formula):
    assert measured(formula.__name__.replace("_", "-")) == pytest.approx(formula(), abs=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_loss_falls_as_types_part(name):
    mixed, apart = torch.ones(9, 2), torch.tensor([[1.0, 0.0] if kind else [0.0, 1.0] for kind in STEREO])
    assert measured(name, apart, LOSSES[name][1]) < measured(name, mixed, LOSSES[name][1])


def test_printed_bxent_at_low_temperature_hardly_moves_opposed_pairs():
    """Why the default is 10: at 0.1 the printed formula has next to no gradient for negative pairs."""
    gradients = {}
    for name in ("nt-bxent", "nt-bxent-printed"):
        vectors = torch.tensor([[1.0, 0.1], [1.0, -0.1], [0.9, 0.6]], requires_grad=True)
        labels, equal = torch.tensor([1, 1, 0]), torch.eye(3, dtype=torch.bool)
        contrastive_loss(vectors, labels, equal, name, 0.1).backward()
        gradients[name] = float(vectors.grad[2].norm())
    assert gradients["nt-bxent"] > 3 * gradients["nt-bxent-printed"]
