"""Sentences with a context and a type, from CSV files; the five that IndiCASA publishes are read as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from ...core.contracts.csv import Table, read_table
from ...core.contracts.errors import DataError

STEREOTYPE, ANTI = "stereotype", "anti-stereotype"
SPELLINGS = {STEREOTYPE: STEREOTYPE, ANTI: ANTI, "anti_stereotype": ANTI, "antistereotype": ANTI}
CONTEXT, CATEGORY = ("context_id", "context"), ("category", "bias_type")
RATER, SCALE = "annotator", frozenset("12345")
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class Sentence(msgspec.Struct, frozen=True):
    """One row of a file."""

    category: str
    context: str
    text: str
    """As written."""
    type: str
    """`stereotype` or `anti-stereotype`."""
    path: str
    line: int
    """Line of the file; the header is line 1."""
    ratings: tuple[str, ...] = ()
    """What the annotators' columns say."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what tells its context from all others."""
        return self.path, self.category, self.context


class Corpus(msgspec.Struct, frozen=True, eq=False):
    """All sentences, and the same as columns."""

    sentences: tuple[Sentence, ...]
    categories: tuple[str, ...]
    """Names, in the order of the files."""
    category: Ints
    """Place of each sentence's category: [sentences]."""
    context: Ints
    """Number of each sentence's context, counted through all files: [sentences]."""
    stereotype: Bools
    """Whether it is a stereotype: [sentences]."""
    digests: dict[str, str]
    """sha256 of each file, by its name."""

    @property
    def texts(self) -> list[str]:
        """Return the sentences' texts."""
        return [sentence.text for sentence in self.sentences]

    @property
    def contexts(self) -> int:
        """Return how many contexts there are."""
        return int(self.context.max()) + 1

    @property
    def labels(self) -> Ints:
        """Return context and type as one number: twice the context, plus 1 for a stereotype."""
        return 2 * self.context + self.stereotype

    @property
    def owner(self) -> Ints:
        """Return the place of each context's category: [contexts]."""
        found = np.zeros(self.contexts, dtype=np.int64)
        found[self.context] = self.category
        return found


class Description(msgspec.Struct, frozen=True):
    """What one category holds, or all of them (`total`)."""

    category: str
    contexts: int
    stereotypes: int
    anti_stereotypes: int
    repeated: int
    """Rows whose sentence stood in the same context before."""
    contradicted: int
    """Different sentences that one context calls both a stereotype and an anti-stereotype."""
    off_scale: int
    """Sentences with a rating that is not on the scale from 1 to 5."""
    kappa: float | None
    """Cohen's kappa of the two annotators, unweighted; None where nobody rated."""

    @property
    def sentences(self) -> int:
        """Return the number of rows."""
        return self.stereotypes + self.anti_stereotypes


def read_corpus(paths: Sequence[str]) -> Corpus:
    """Read files with the columns `context_id` (or `context`), `sentence` and `type`.

    The category is the column `category` (or `bias_type`) where there is one, else what follows the last ` - ` of the
    file's name. A context belongs to its file and category: the number 0 of two files is two contexts.

    Raises:
        DataError: a file cannot be read, a column is missing, a sentence is empty, a type is unknown, or a context
            has sentences of one type only; or a file is given twice.
    """
    tables = [read_table(path) for path in paths]
    sentences = [sentence for table in tables for sentence in _sentences(table)]
    digests = _digests(tables)
    if not sentences:
        raise DataError(
            f"no sentences in {', '.join(paths)}: the files have a header but no rows.", code="data.no-rows"
        )
    _check_contexts(sentences)
    keys = {key: place for place, key in enumerate(dict.fromkeys(sentence.key for sentence in sentences))}
    categories = tuple(dict.fromkeys(sentence.category for sentence in sentences))
    return Corpus(
        sentences=tuple(sentences),
        categories=categories,
        category=np.array([categories.index(sentence.category) for sentence in sentences]),
        context=np.array([keys[sentence.key] for sentence in sentences]),
        stereotype=np.array([sentence.type == STEREOTYPE for sentence in sentences]),
        digests=digests,
    )


def describe(corpus: Corpus) -> list[Description]:
    """Return a description of each category, and `total` behind them: the counts of the paper's Table 1."""
    rows = list(corpus.sentences)
    found = [_describe(name, [row for row in rows if row.category == name]) for name in corpus.categories]
    return [*found, _describe("total", rows)]


def _describe(name: str, rows: Sequence[Sentence]) -> Description:
    types = Counter(row.type for row in rows)
    kinds: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        kinds.setdefault((*row.key, row.text.strip()), set()).add(row.type)
    pairs = [row.ratings for row in rows if len(row.ratings) == 2]
    rated = [pair for pair in pairs if SCALE.issuperset(pair)]
    return Description(
        category=name,
        contexts=len({row.key for row in rows}),
        stereotypes=types[STEREOTYPE],
        anti_stereotypes=types[ANTI],
        repeated=len(rows) - len(kinds),
        contradicted=sum(len(both) > 1 for both in kinds.values()),
        off_scale=len(pairs) - len(rated),
        kappa=_kappa(rated),
    )


def _kappa(rated: Sequence[tuple[str, ...]]) -> float | None:
    if len({rating for pair in rated for rating in pair}) < 2:
        # Chance alone agrees always, so there is nothing to measure.
        return None
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(*zip(*rated, strict=True)))


def _digests(tables: Sequence[Table]) -> dict[str, str]:
    """Return the sha256 of each file by its name.

    Raises:
        DataError: two files are the same, or have one name.
    """
    by_name: dict[str, str] = {}
    by_digest: dict[str, str] = {}
    for table in tables:
        path, name, digest = table.path, Path(table.path).name, table.sha256
        if digest in by_digest:
            same = "is given twice" if by_digest[digest] == path else f"holds the same as {by_digest[digest]!r}"
            raise DataError(f"{path!r} {same}. Give each file once.", code="data.duplicate", path=path)
        if name in by_name:
            raise DataError(
                f"{path!r} and {by_name[name]!r} have one name, by which results tell them. Rename one.",
                code="data.duplicate",
                path=path,
            )
        by_digest[digest], by_name[name] = path, path
    return {Path(path).name: digest for digest, path in by_digest.items()}


def _sentences(table: Table) -> Iterator[Sentence]:
    context, _, _ = table.column(*CONTEXT), table.column("sentence"), table.column("type")
    category = next((name for name in CATEGORY if name in table.columns), None)
    raters = [name for name in table.columns if name.lower().startswith(RATER)]
    for row in table.rows:
        text, place = row.filled("sentence"), row.filled(context).strip()
        kind = SPELLINGS.get(row.cells["type"].strip().lower())
        if kind is None:
            problem = f"unknown type {row.cells['type']!r}. Write {STEREOTYPE!r} or {ANTI!r}."
            raise row.fault(problem, "data.unknown-value")
        named = row.filled(category) if category else Path(table.path).stem.rpartition(" - ")[2]
        ratings = tuple(row.cells[name].strip() for name in raters)
        yield Sentence(named.strip().lower(), place, text, kind, table.path, row.line, ratings)


def _check_contexts(sentences: Sequence[Sentence]) -> None:
    there: dict[tuple[str, str, str], list[Sentence]] = {}
    for sentence in sentences:
        there.setdefault(sentence.key, []).append(sentence)
    for first, *others in there.values():
        if {sentence.type for sentence in others} <= {first.type}:
            problem = f"context {first.context!r} has {first.type} sentences only ({1 + len(others)})"
            remedy = "Pairs need both types: add a sentence of the other type, or remove the context."
            where = {"path": first.path, "line": first.line}
            raise DataError(f"{first.path}, line {first.line}: {problem}. {remedy}", code="data.incomplete", **where)
