"""How many of the associations that the paper prints (Tables 1 to 3, Figures 12 and 13) does a run find again?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.resources import files

import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.contracts.words import HITS, OF
from ...core.tables import read_rows
from ...probes.dora import terms
from ...probes.dora.content_words import lemmas
from ...probes.dora.documented import names_of
from .counts import Associations
from .measures import REAPPEARED

ANY = "any"
Pair = tuple[frozenset[str], str]


def reappeared(found: Associations) -> Iterator[Estimate]:
    """Yield, by list and setting, the share of the printed pairs that count in this run; neutral is that of chance.

    Of the printed pairs count those of descriptors that were asked about. By chance a pair counts as often as its word
    does with a random descriptor that was asked about.
    """
    rows = read_rows(str(files(terms.__package__).joinpath("data/published.csv")), ())
    people = names_of([row.cells["descriptor"] for row in rows])
    words = lemmas([row.cells["word"] for row in rows])
    lists: dict[tuple[str, str], dict[Pair, None]] = {}
    for row, pair in zip(rows, zip(people, words, strict=True), strict=True):
        name = f"{row.cells['model']}, {row.cells['source']}"
        lists.setdefault((name, row.cells["setting"] or ANY), {})[pair] = None
    for (name, setting), printed in lists.items():
        cell = {"modality": "t2t"} | ({} if setting == ANY else {"setting": setting})
        asked = set(names_of(sorted(found.counts.descriptors(cell))))
        if listed := [pair for pair in printed if pair[0] in asked]:
            kept, said = (_pairs(frame.filter(**cell)) for frame in (found.kept, found.every))
            with_word = Counter(word for _, word in kept)
            hits = sum(pair in kept for pair in listed)
            chance = sum(with_word[word] for _, word in listed) / len(asked)
            yield Estimate(
                metric=REAPPEARED,
                group={"modality": "t2t", "setting": setting, "list": name},
                value=100 * hits / len(listed),
                neutral=100 * chance / len(listed),
                unit="%",
                n=len(listed),
                facts={HITS: hits, OF: len(listed), "said": sum(pair in said for pair in listed)},
            )


def _pairs(frame: pl.DataFrame) -> set[Pair]:
    return set(zip(names_of(frame["descriptor"].to_list()), frame["word"].to_list(), strict=True))
