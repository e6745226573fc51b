"""How often the encoder takes a held-out sentence for the other type, as the bias evaluation would class it.

A sentence is a stereotype if its cosine to the stereotypes of its context exceeds that to the anti-stereotypes (paper
002, equation 6); a tie is an anti-stereotype. With several ground-truth texts of a type their mean counts, or the
greatest one: the two ways that metric `indicasa` has, and each needs the confusion of its own.
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
"""Cosines that differ by less are a tie: they come out of rounding."""


def classify(vectors: Floats, corpus: Corpus, rows: Ints, references: Ints, several: Several) -> tuple[Bools, Bools]:
    """Class each of `rows` by its cosines to the references of its context, never to itself.

    Args:
        vectors: Of the whole corpus: [sentences, width].
        corpus: All sentences.
        rows: The held-out ones.
        references: Those whose type is known. A context without any of a type takes the other held-out ones.
        several: Which cosine counts where a context has several references of a type.

    Returns:
        Whether each is taken for a stereotype, and whether it could be classed at all: [rows] each.
    """
    scaled = unit(vectors)
    stereotype, anti = (
        _cosine(scaled, corpus, rows, _pool(corpus, rows, references, kind), several) for kind in (1, 0)
    )
    return stereotype > anti + SLACK, ~np.isnan(stereotype) & ~np.isnan(anti)


def confusion(vectors: Floats, corpus: Corpus, rows: Ints, references: Ints, several: Several = "mean") -> Table:
    """Count by category: true type, then the type it is taken for."""
    from sklearn.metrics import confusion_matrix

    taken, known = classify(vectors, corpus, rows, references, several)
    found: Table = {}
    for place, name in enumerate(corpus.categories):
        own = known & (corpus.category[rows] == place)
        # scikit-learn takes no empty lists of a named label.
        counts = np.zeros((2, 2), dtype=int)
        if own.any():
            counts = confusion_matrix(corpus.stereotype[rows][own], taken[own], labels=[True, False])
        rows_of_counts = zip(TYPES, counts.tolist(), strict=True)
        found[name] = {true: dict(zip(TYPES, row, strict=True)) for true, row in rows_of_counts}
    return found


def _pool(corpus: Corpus, rows: Ints, references: Ints, stereotype: int) -> Ints:
    """Return the references of a type; contexts that were held out whole lend their other sentences."""
    of_type = references[corpus.stereotype[references] == stereotype]
    others = rows[corpus.stereotype[rows] == stereotype]
    return np.concatenate([of_type, others[~np.isin(corpus.context[others], corpus.context[of_type])]])


def _cosine(scaled: Floats, corpus: Corpus, rows: Ints, pool: Ints, several: Several) -> Floats:
    """Return the mean or greatest cosine of each row to the texts of its context in the pool; NaN where it has none."""
    usable = (corpus.context[rows][:, None] == corpus.context[pool][None, :]) & (rows[:, None] != pool[None, :])
    cosines, counts = np.where(usable, scaled[rows] @ scaled[pool].T, 0.0), usable.sum(1)
    if several == "mean":
        found = cosines.sum(1) / np.maximum(counts, 1)
    else:
        found = np.where(usable, cosines, -np.inf).max(axis=1, initial=-np.inf)
    return np.asarray(np.where(counts > 0, found, np.nan))
