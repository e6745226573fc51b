"""How often held-out sentences are predicted as the other type, by the rule of study `indicasa`.

A sentence is predicted as a stereotype if its cosine to the stereotypes of its context exceeds that to the
anti-stereotypes (Santhosh et al. 2025, equation 6); a tie is an anti-stereotype. With several references of a type
their mean or the greatest cosine counts: the metric has both ways, and each needs its own confusion.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from .data import ANTI, STEREOTYPE, Bools, Corpus, Floats, Ints
from .delta_sim import unit

Table = dict[str, dict[str, dict[str, int]]]
Several = Literal["mean", "nearest"]
WAYS: tuple[Several, ...] = get_args(Several)
TYPES = (STEREOTYPE, ANTI)
SLACK = 1e-12
"""Cosines that differ by less are a tie: rounding makes the difference."""


def classify(vectors: Floats, corpus: Corpus, rows: Ints, references: Ints, several: Several) -> tuple[Bools, Bools]:
    """Predict the type of each of `rows` from the references of its context, never from itself.

    Args:
        vectors: Of the whole corpus: [sentences, width].
        corpus: All sentences.
        rows: The held-out ones.
        references: Those whose type is known. A context without any of a type uses its other held-out ones.
        several: Which cosine counts where a context has several references of a type.

    Returns:
        Whether each is predicted as a stereotype, and whether it has references of both types: [rows] each.
    """
    scaled = unit(vectors)
    stereotype, anti = (
        _cosine(scaled, corpus, rows, _pool(corpus, rows, references, kind), several) for kind in (True, False)
    )
    return stereotype > anti + SLACK, ~np.isnan(stereotype) & ~np.isnan(anti)


def confusion(vectors: Floats, corpus: Corpus, rows: Ints, references: Ints, several: Several = "mean") -> Table:
    """Count by category, true type and predicted type."""
    from sklearn.metrics import confusion_matrix

    predicted, known = classify(vectors, corpus, rows, references, several)
    found = {}
    for index, name in enumerate(corpus.categories):
        own = known & (corpus.category[rows] == index)
        # scikit-learn refuses labels that do not occur in empty data.
        counts = np.zeros((2, 2), dtype=int)
        if own.any():
            counts = confusion_matrix(corpus.stereotype[rows][own], predicted[own], labels=[True, False])
        found[name] = {
            true: dict(zip(TYPES, row, strict=True)) for true, row in zip(TYPES, counts.tolist(), strict=True)
        }
    return found


def _pool(corpus: Corpus, rows: Ints, references: Ints, stereotype: bool) -> Ints:
    """Return the references of a type, and the held-out sentences of contexts that have none."""
    of_type = references[corpus.stereotype[references] == stereotype]
    others = rows[corpus.stereotype[rows] == stereotype]
    return np.concatenate([of_type, others[~np.isin(corpus.context[others], corpus.context[of_type])]])


def _cosine(scaled: Floats, corpus: Corpus, rows: Ints, pool: Ints, several: Several) -> Floats:
    """Return the mean or greatest cosine of each row to the pool's texts of its context; NaN where it has none."""
    usable = (corpus.context[rows][:, None] == corpus.context[pool][None, :]) & (rows[:, None] != pool[None, :])
    cosines, counts = np.where(usable, scaled[rows] @ scaled[pool].T, 0.0), usable.sum(1)
    if several == "mean":
        found = cosines.sum(1) / np.maximum(counts, 1)
    else:
        found = np.where(usable, cosines, -np.inf).max(axis=1, initial=-np.inf)
    return np.asarray(np.where(counts > 0, found, np.nan))
