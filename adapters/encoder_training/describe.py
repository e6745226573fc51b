"""What a data set holds: the counts of the paper's Table 1, repeated sentences, and how far annotators agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from .data import Corpus, Sentence

SCALE = ("1", "2", "3", "4", "5")


class Description(msgspec.Struct, frozen=True):
    """One category, or all of them."""

    category: str
    contexts: int
    stereotypes: int
    anti_stereotypes: int
    repeated: int
    """Rows whose sentence stood in the same context before."""
    contradicted: int
    """Different sentences that one context calls both a stereotype and an anti-stereotype."""
    rated: int
    """Sentences that two annotators rated within 1 to 5."""
    off_scale: int
    """Sentences with a rating that is not on the scale."""
    kappa: float | None
    """Cohen's kappa of the two annotators, unweighted; None where nobody rated."""

    @property
    def sentences(self) -> int:
        """Return the number of rows."""
        return self.stereotypes + self.anti_stereotypes


def describe(corpus: Corpus) -> list[Description]:
    """Return a description of each category, and `total` behind them."""
    rows = list(corpus.sentences)
    found = [_one(name, [row for row in rows if row.category == name]) for name in corpus.categories]
    return [*found, _one("total", rows)]


def cohen_kappa(one: Sequence[str], other: Sequence[str]) -> float | None:
    """Return Cohen's kappa of two raters; None without ratings, or where chance alone agrees always."""
    if not one:
        return None
    labels = sorted({*one, *other})
    table = np.zeros((len(labels), len(labels)))
    np.add.at(table, ([labels.index(x) for x in one], [labels.index(x) for x in other]), 1 / len(one))
    chance = float(table.sum(0) @ table.sum(1))
    return None if chance >= 1 else float((np.trace(table) - chance) / (1 - chance))


def _one(name: str, rows: Sequence[Sentence]) -> Description:
    kinds: dict[tuple[str, str, str, str], set[str]] = {}
    for row in rows:
        kinds.setdefault((row.path, row.category, row.context, row.text.strip()), set()).add(row.type)
    types = Counter(row.type for row in rows)
    pairs = [row.ratings for row in rows if len(row.ratings) == 2]
    rated = [pair for pair in pairs if set(pair) <= set(SCALE)]
    return Description(
        category=name,
        contexts=len({(row.path, row.category, row.context) for row in rows}),
        stereotypes=types["stereotype"],
        anti_stereotypes=types["anti-stereotype"],
        repeated=len(rows) - len(kinds),
        contradicted=sum(len(both) > 1 for both in kinds.values()),
        rated=len(rated),
        off_scale=len(pairs) - len(rated),
        kappa=cohen_kappa([pair[0] for pair in rated], [pair[1] for pair in rated]),
    )
