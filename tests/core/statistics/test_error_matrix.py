"""Error matrices: drawn rates are those of Beta distributions, and shares solve their equations."""

from __future__ import annotations

import numpy as np
import pytest

from prejudge.core.statistics.error_matrix import draw_rates, true_shares


@pytest.mark.parametrize("prior", [0.5, 1.0])
def test_rates_of_two_verdicts_are_beta_draws(prior):
    drawn = draw_rates(np.array([[40, 10], [0, 7]]), prior, np.random.default_rng(3), 500)
    random = np.random.default_rng(3)
    for label, (first, second) in enumerate(((40, 10), (0, 7))):
        assert drawn[:, label, 0] == pytest.approx(random.beta(first + prior, second + prior, 500), rel=1e-12)
    assert drawn.sum(axis=-1) == pytest.approx(np.ones((500, 2)))


def test_shares_come_back_through_their_rates():
    rates = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
    shares = np.array([[0.5, 0.2, 0.3], [0.0, 1.0, 0.0]])
    assert true_shares(shares @ rates, rates) == pytest.approx(shares)
    # Rogan and Gladen's formula, which may leave 0 to 1.
    assert true_shares(np.array([0.02, 0.98]), np.array([[0.9, 0.1], [0.05, 0.95]]))[0] == pytest.approx(-0.03 / 0.85)
