"""Split the data into parts, and the training part into batches of whole contexts; a seed decides both."""

from __future__ import annotations

import math
from typing import Literal, get_args

import msgspec
import numpy as np

from ...core.contracts.errors import DataError
from .data import Corpus, Ints

SplitBy = Literal["sentence", "context"]
SPLITS: tuple[SplitBy, ...] = get_args(SplitBy)
SelectOn = Literal["inner", "validation"]
HELD_OUT, TUNING = 0.2, 0.125
LEAST = {
    ("sentence", "inner"): 6,
    ("sentence", "validation"): 3,
    ("context", "inner"): 3,
    ("context", "validation"): 2,
}
"""How many sentences of all, or contexts of each category, leave no part empty."""


class Parts(msgspec.Struct, frozen=True, eq=False):
    """Rows of the corpus; validation shares none with the rest."""

    train: Ints
    tuning: Ints
    """For early stopping and the choice among trainings."""
    validation: Ints

    @property
    def known(self) -> Ints:
        """Return the rows that are not held out."""
        return np.setdiff1d(np.concatenate([self.train, self.tuning]), self.validation)


def cut(corpus: Corpus, by: SplitBy, seed: int, select: SelectOn = "inner") -> Parts:
    """Hold out 20 % for validation, and an eighth of the rest (10 % of all) for tuning.

    `sentence` draws sentences from all contexts, so that sentences of one context are in both parts. `context` draws
    whole contexts, 20 % of each category. With `select` = `validation` the validation part is the tuning part too.

    Raises:
        DataError: too few contexts or sentences.
    """
    _check(corpus, by, select)
    rng = np.random.default_rng([seed, 20])
    draw = _draw_rows if by == "sentence" else _draw_contexts
    everything = np.arange(len(corpus.sentences))
    validation = draw(corpus, everything, HELD_OUT, rng)
    rest = np.setdiff1d(everything, validation)
    tuning = validation if select == "validation" else draw(corpus, rest, TUNING, rng)
    return Parts(np.setdiff1d(rest, tuning), tuning, validation)


def repeated_across(corpus: Corpus, parts: Parts) -> int:
    """Count the validation sentences that are also, word for word, among the others."""
    texts = np.array([text.strip() for text in corpus.texts])
    return int(np.isin(texts[parts.validation], texts[parts.known]).sum())


def pack(contexts: Ints, size: int, rng: np.random.Generator, processes: int = 1) -> list[list[int]]:
    """Return batches of rows: whole contexts in random order, as many in each batch, `size` sentences on average.

    Every epoch has the same number of batches, a multiple of `processes`. A context with one sentence has no pair and
    is left out.
    """
    known, sizes = np.unique(contexts, return_counts=True)
    order = rng.permutation(known[sizes > 1])
    count = processes * math.ceil(sizes[sizes > 1].sum() / size / processes)
    batches = np.array_split(order, min(count, len(order)))
    return [np.flatnonzero(np.isin(contexts, batch)).tolist() for batch in batches]


def _check(corpus: Corpus, by: SplitBy, select: SelectOn) -> None:
    by_category = dict(zip(corpus.categories, np.bincount(corpus.owner).tolist(), strict=True))
    counts = {"all": len(corpus.sentences)} if by == "sentence" else by_category
    least = LEAST[by, select]
    for category, given in counts.items():
        if given < least:
            raise DataError(
                f"category {category!r} has {given} {by}(s); a split by {by} needs at least {least}. Add {by}s"
                + (", or split by sentence (--split sentence)." if by == "context" else "."),
                code="training.too-few",
                least=least,
                category=category,
            )


def _draw_rows(corpus: Corpus, rows: Ints, share: float, rng: np.random.Generator) -> Ints:
    return np.sort(rng.permutation(rows)[: round(share * len(rows))])


def _draw_contexts(corpus: Corpus, rows: Ints, share: float, rng: np.random.Generator) -> Ints:
    drawn = []
    for category in range(len(corpus.categories)):
        contexts = np.unique(corpus.context[rows][corpus.category[rows] == category])
        drawn.append(rng.permutation(contexts)[: max(1, round(share * len(contexts)))])
    return rows[np.isin(corpus.context[rows], np.concatenate(drawn))]
