"""Known associations: a table of descriptors and words, or sentences in pairs that differ in the group or in the word.

Columns are found by their names: those of a plain table, of SeeGULL (`identity`, `attribute`), of CrowS-Pairs
(`sent_more`, `sent_less`) and of StereoSet (its `dev.json`, or a table with `target`, `stereotype`, `anti-stereotype`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import polars as pl

from ...core.contracts.errors import DataError
from ...core.contracts.inputs import file_bytes
from ...core.tables import Row, read_rows
from .content_words import content_forms, content_words, lemmas

PEOPLE = frozenset({"person", "people", "man", "woman"})
"""Words that many descriptors end in; a sentence need not have them."""
DESCRIPTORS = ("descriptor", "identity", "group")
WORDS = ("word", "attribute", "association")
SENTENCES = (("sent_more", "sent_less"), ("stereotype", "anti-stereotype"))
"""A sentence with the stereotype, and the same with another group or another word."""
DENIALS = frozenset({"no", "not", "never", "nor", "without", "n't"})


class Entry(msgspec.Struct, frozen=True):
    """A row of the list."""

    where: str
    people: frozenset[str]
    """Lemmas that the descriptor must be among."""
    words: frozenset[str]
    differs: frozenset[str] | None
    """Lemmas by which a sentence differs from its counterpart; None in a table, whose descriptor must be all of it."""

    def has(self, descriptor: frozenset[str], word: str) -> bool:
        """Say whether this row states an association, given as lemmas."""
        if word not in self.words:
            return False
        if self.differs is None:
            return descriptor == self.people
        # What both sentences of a pair say of both groups is no association with one of them.
        return (
            word not in descriptor
            and descriptor <= self.people
            and (descriptor <= self.differs or word in self.differs)
        )


def mark_documented(pairs: pl.DataFrame, path: str) -> pl.DataFrame:
    """Add `documented`, whether the association stands in the list of this file, and `documented_by`, where.

    Raises:
        DataError: the file cannot be read, or its columns are none of those above.
    """
    found = defaultdict[str, list[Entry]](list)
    for entry in read_documented(path):
        for word in entry.words:
            found[word].append(entry)
    named = zip(names_of(pairs["descriptor"].to_list()), pairs["word"].to_list(), strict=True)
    where = [next((e.where for e in found.get(word, ()) if e.has(names, word)), None) for names, word in named]
    column = pl.Series("documented_by", where, dtype=pl.String)
    return pairs.with_columns(column, documented=column.is_not_null())


def read_documented(path: str) -> list[Entry]:
    """Read a list; of CrowS-Pairs the pairs that are not `antistereo`. Raises `DataError`."""
    if path.endswith(".json"):
        return list(_stereoset(path))
    rows = read_rows(path, ())
    columns = rows[0].cells
    descriptor, word = (next((name for name in names if name in columns), None) for names in (DESCRIPTORS, WORDS))
    if descriptor and word:
        return list(_table(rows, descriptor, word))
    for more, less in SENTENCES:
        if more in columns and less in columns:
            told = [row for row in rows if row.cells.get("stereo_antistereo") != "antistereo"]
            where = [f"line {row.line}: {row.cells[more]}" for row in told]
            cells = [(row.cells[more], row.cells[less], row.cells.get("target", "")) for row in told]
            return [_sentence(*one) for one in zip(where, *zip(*cells, strict=True), strict=True)] if cells else []
    wanted = (
        f"{' or '.join(DESCRIPTORS)} with {' or '.join(WORDS)}, nor {' nor '.join(' and '.join(s) for s in SENTENCES)}"
    )
    raise DataError(
        f"{path}: neither columns {wanted}. It has: {', '.join(columns)}.",
        code="data.column-missing",
    )


def _table(rows: Sequence[Row], descriptor: str, word: str) -> Iterator[Entry]:
    names = names_of([row.cells[descriptor] for row in rows])
    for row, people in zip(rows, names, strict=True):
        said = row.cells[word].strip()
        words = frozenset(lemmas([said]) if len(said.split()) == 1 else _stated(said))
        yield Entry(f"line {row.line}: {row.cells[descriptor]}, {said}", people, words, None)


def _sentence(where: str, more: str, less: str, target: str) -> Entry:
    one, other, named = (frozenset(words) for words in content_words([more, less, target]))
    return Entry(where, one | named, frozenset(_stated(more)), one - other)


def _stated(text: str) -> Iterator[str]:
    """Yield the lemmas of the content words that are not denied by the word before them, as in `up to no good`."""
    tokens = text.replace("n't", " not").split()
    for before, token in zip(["", *tokens], tokens, strict=False):
        if before.lower().strip(".,;:!?\"'") not in DENIALS:
            yield from (lemma for lemma, _ in content_forms([token])[0])


def _stereoset(path: str) -> Iterator[Entry]:
    try:
        data: Any = msgspec.json.decode(file_bytes(path))["data"]
        for item in (item for part in data.values() for item in part):
            said = {one["gold_label"]: one["sentence"] for one in item["sentences"]}
            where = f"{item['id']}: {said['stereotype']}"
            yield _sentence(where, said["stereotype"], said["anti-stereotype"], f"{item['target']} {item['context']}")
    except (
        OSError,
        msgspec.MsgspecError,
        UnicodeDecodeError,
        RecursionError,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:
        raise DataError(f"{path!r} is not StereoSet's dev.json: {error!r}.", code="data.syntax") from None


def names_of(descriptors: Sequence[str]) -> list[frozenset[str]]:
    """Return the lemmas of descriptors, equal for singular and plural, in upper and lower case, without `person`."""
    split = content_words(descriptors)
    names = zip(split, descriptors, strict=True)
    return [frozenset(words) - PEOPLE or frozenset(words) or frozenset({name.casefold()}) for words, name in names]
