"""Cut the data into parts, and the training part into batches of whole contexts; everything follows from a seed."""

from __future__ import annotations

import itertools
from typing import Literal, get_args

import msgspec
import numpy as np

from ...core.contracts.errors import DataError
from .data import Corpus, Ints

SplitBy = Literal["sentence", "context"]
SPLITS: tuple[SplitBy, ...] = get_args(SplitBy)
SelectOn = Literal["inner", "validation"]
HELD_OUT, TUNING = 0.2, 0.125


class Parts(msgspec.Struct, frozen=True, eq=False):
    """Rows of the corpus; validation shares none with the rest."""

    train: Ints
    tuning: Ints
    """For early stopping and the choice within the grid."""
    validation: Ints

    @property
    def known(self) -> Ints:
        """Return the rows that are not held out."""
        return np.setdiff1d(np.concatenate([self.train, self.tuning]), self.validation)


def cut(corpus: Corpus, by: SplitBy, seed: int, select: SelectOn = "inner") -> Parts:
    """Hold out 20 % for validation, and an eighth of the rest (10 % of all) for tuning.

    `sentence` draws rows from all contexts, as the paper does: sentences of one context, often near copies, stand on
    both sides. `context` draws whole contexts, 20 % of each category. With `select` = `validation` nothing is set
    aside for tuning, and the validation part serves for it too.

    Raises:
        DataError: too few contexts or sentences to cut.
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
    """Count the validation rows whose sentence also stands in the rest, word for word."""
    texts = np.array([text.strip() for text in corpus.texts])
    return int(np.isin(texts[parts.validation], texts[parts.known]).sum())


def pack(contexts: Ints, size: int, rng: np.random.Generator, least: int = 1) -> list[list[int]]:
    """Return batches of rows: whole contexts in random order, as many as fit into `size` sentences, at least one.

    A context that is left with one sentence has no pair and is passed over. Where fewer than `least` batches come
    out, the largest are halved.
    """
    known, sizes = np.unique(contexts, return_counts=True)
    batches: list[list[int]] = [[]]
    for place in rng.permutation(np.flatnonzero(sizes > 1)):
        total = sizes[batches[-1]].sum()
        if total and total + sizes[place] > size:
            batches.append([])
        batches[-1].append(place)
    while len(batches) < least and any(len(batch) > 1 for batch in batches):
        longest = max(batches, key=len)
        half = len(longest) // 2
        batches.append(longest[half:])
        del longest[half:]
    return [np.flatnonzero(np.isin(contexts, known[batch])).tolist() for batch in batches]


def _check(corpus: Corpus, by: SplitBy, select: SelectOn) -> None:
    if by == "sentence":
        if (given := len(corpus.sentences)) < (least := _least_rows(select)):
            raise DataError(
                f"{given} sentences are too few to hold some out: it takes at least {least}. Give more.",
                code="training.too-few",
                least=least,
            )
        return
    # One context for each part.
    least = 3 if select == "inner" else 2
    for name, given in zip(corpus.categories, np.bincount(corpus.owner), strict=True):
        if given < least:
            raise DataError(
                f"category {name!r} has {given} context(s), too few to hold one out: it takes at least {least}. "
                "Give more contexts, or cut by sentence (--split sentence).",
                code="training.too-few",
                least=least,
                category=name,
            )


def _least_rows(select: SelectOn) -> int:
    def enough(count: int) -> bool:
        held = round(HELD_OUT * count)
        return held > 0 and (select == "validation" or round(TUNING * (count - held)) > 0)

    return next(filter(enough, itertools.count(1)))


def _draw_rows(corpus: Corpus, rows: Ints, share: float, rng: np.random.Generator) -> Ints:
    return np.sort(rng.permutation(rows)[: round(share * len(rows))])


def _draw_contexts(corpus: Corpus, rows: Ints, share: float, rng: np.random.Generator) -> Ints:
    drawn = []
    for place in range(len(corpus.categories)):
        contexts = np.unique(corpus.context[rows][corpus.category[rows] == place])
        drawn.append(rng.permutation(contexts)[: max(1, round(share * len(contexts)))])
    return rows[np.isin(corpus.context[rows], np.concatenate(drawn))]
