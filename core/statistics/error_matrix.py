"""Shares corrected by an error matrix: how often each verdict is given, by what is true (Rogan and Gladen 1978).

The share of each verdict is the sum over labels of the label's share times how often it gets that verdict: the labels'
shares solve these equations. The matrix itself was counted, so its rates are drawn from a Dirichlet distribution.
"""

from __future__ import annotations

import numpy as np

from .intervals import Array


def draw_rates(counts: Array, prior: float, random: np.random.Generator, draws: int) -> Array:
    """Return draws of how often each verdict is given by label, shape (draws, labels, verdicts).

    Args:
        counts: Shape (labels, verdicts), answers.
        prior: Answers that are added to each count: 0.5 by Jeffreys, 1 as Lang and Reiczigel (2014) add them.
        random: Gives the draws.
        draws: How many.
    """
    return np.stack([random.dirichlet(label_counts + prior, draws) for label_counts in counts], axis=1)


def true_shares(shares: Array, rates: Array) -> Array:
    """Return the shares of the labels by those of the verdicts, both of shape (..., labels); they may leave 0 to 1.

    Args:
        shares: Of the verdicts.
        rates: Shape (..., labels, verdicts); not singular.
    """
    return np.asarray(np.linalg.solve(np.swapaxes(rates, -1, -2), shares[..., None])[..., 0])
