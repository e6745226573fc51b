"""How often the encoder takes a held-out sentence for the other type, as the bias evaluation would class it.

A sentence is a stereotype if its cosine to the nearest stereotype of its context exceeds that to the nearest
anti-stereotype (paper 002, equation 6, with several ground-truth texts); a tie is an anti-stereotype.
"""

from __future__ import annotations

import numpy as np

from ._data import ANTI, STEREOTYPE, Bools, Corpus, Ints
from ._similarity import Floats, unit

Table = dict[str, dict[str, dict[str, int]]]


def classify(vectors: Floats, corpus: Corpus, rows: Ints, references: Ints) -> tuple[Bools, Bools]:
    """Class each of `rows` by its cosine to the references of its context, never to itself.

    Args:
        vectors: Of the whole corpus: [sentences, width].
        corpus: All sentences.
        rows: The held-out ones.
        references: Those whose type is known. A context without any of a type takes the other held-out ones.

    Returns:
        Whether each is taken for a stereotype, and whether it could be classed at all: [rows] each.
    """
    scaled = unit(vectors)
    stereotype, anti = (_nearest(scaled, corpus, rows, references, kind) for kind in (True, False))
    return stereotype > anti, np.isfinite(stereotype) & np.isfinite(anti)


def confusion(vectors: Floats, corpus: Corpus, rows: Ints, references: Ints) -> Table:
    """Count by category: true type, then the type it is taken for."""
    taken, known = classify(vectors, corpus, rows, references)
    types = {STEREOTYPE: True, ANTI: False}
    return {
        name: {
            true: {
                given: int(
                    (
                        known
                        & (corpus.category[rows] == place)
                        & (corpus.stereotype[rows] == types[true])
                        & (taken == types[given])
                    ).sum()
                )
                for given in types
            }
            for true in types
        }
        for place, name in enumerate(corpus.categories)
    }


def _nearest(scaled: Floats, corpus: Corpus, rows: Ints, references: Ints, stereotype: bool) -> Floats:
    """Return the highest cosine of each row to the references of its context and a type; -inf where there is none."""
    of_type = references[corpus.stereotype[references] == stereotype]
    # Contexts that were held out whole have no reference: their other sentences stand in.
    others = rows[corpus.stereotype[rows] == stereotype]
    lacking = ~np.isin(corpus.context[others], corpus.context[of_type])
    pool = np.concatenate([of_type, others[lacking]])
    cosines = scaled[rows] @ scaled[pool].T
    usable = (corpus.context[rows][:, None] == corpus.context[pool][None, :]) & (rows[:, None] != pool[None, :])
    return np.asarray(np.where(usable, cosines, -np.inf).max(axis=1, initial=-np.inf))
