"""Sentences with a context and a type, read from CSV files, and divided into parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from ...core.contracts.errors import DataError
from ...core.tables import Table, read_table
from .settings import SelectOn, SplitBy

STEREOTYPE, ANTI = "stereotype", "anti-stereotype"
SPELLINGS = {STEREOTYPE: STEREOTYPE, ANTI: ANTI, "anti_stereotype": ANTI, "antistereotype": ANTI}
RATER, SCALE = "annotator", frozenset("12345")
KEY = ("file", "category", "context_id")
"""What identifies a context: number 0 of two files is two contexts."""
HELD_OUT, TUNING = 0.2, 0.125
Texts = npt.NDArray[np.object_]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class Corpus(msgspec.Struct, frozen=True, eq=False):
    """All sentences, and their codes as arrays."""

    sentences: pl.DataFrame
    """One row each, in the order of the files; line 1 is the header, `ratings` are those of the annotators."""
    categories: tuple[str, ...]
    category: Ints
    """Index of each sentence's category: [sentences]."""
    context: Ints
    """Number of each sentence's context, over all files: [sentences]."""
    stereotype: Bools
    """Whether it is a stereotype: [sentences]."""
    digests: dict[str, str]
    """sha256 of each file, by its name."""

    @property
    def texts(self) -> Texts:
        """Return the sentences as written: [sentences]."""
        return self.sentences["text"].to_numpy()

    @property
    def contexts(self) -> int:
        """Return the number of contexts."""
        return int(self.context.max()) + 1

    @property
    def labels(self) -> Ints:
        """Return twice the context, plus 1 for a stereotype: [sentences]."""
        return 2 * self.context + self.stereotype

    @property
    def wording(self) -> Ints:
        """Return a number per text, the same for sentences that are word for word the same: [sentences]."""
        return np.unique(self.texts.astype(str), return_inverse=True)[1].astype(np.int64)

    @property
    def owner(self) -> Ints:
        """Return the index of each context's category: [contexts]."""
        return self.category[np.unique(self.context, return_index=True)[1]]


class Parts(msgspec.Struct, frozen=True, eq=False):
    """Rows of the corpus; validation shares none with the rest, unless it serves for tuning too."""

    train: Ints
    tuning: Ints
    """For early stopping and the choice among epochs and trainings."""
    validation: Ints

    @property
    def known(self) -> Ints:
        """Return the rows that are not held out."""
        return np.setdiff1d(np.concatenate([self.train, self.tuning]), self.validation)


def cut(corpus: Corpus, by: SplitBy, seed: int, select: SelectOn = "inner") -> Parts:
    """Hold out 20 % of each category for validation, and an eighth of the rest (10 % of all) for tuning.

    `context` draws whole contexts, in the order of the files, by scikit-learn's `train_test_split`: with seed 42 the
    split of Santhosh et al. (2025). `sentence` draws sentences, so that sentences of one context are in both parts.
    With `select` = `validation` the validation part is the tuning part too.

    Raises:
        DataError: too few contexts or sentences.
    """
    rest, validation = _divide(corpus, np.arange(len(corpus.sentences)), by, HELD_OUT, seed)
    train, tuning = (rest, validation) if select == "validation" else _divide(corpus, rest, by, TUNING, seed)
    return Parts(train, tuning, validation)


def read_corpus(paths: Sequence[str]) -> Corpus:
    """Read files with the columns `context_id` (or `context`), `sentence` and `type`.

    The category is the column `category` (or `bias_type`), else what follows the last ` - ` of the file's name.

    Raises:
        DataError: a file cannot be read or is given twice, a column is missing, a sentence is empty, a type is
            unknown, or a context has sentences of one type only.
    """
    digests, found = dict[str, str](), list[dict[str, Any]]()
    for table in map(read_table, paths):
        name = Path(table.path).name
        if name in digests or table.sha256 in digests.values():
            problem = f"{table.path!r} has the name or the content of a file given before it"
            raise DataError(
                f"{problem}. Give each file once, by a name of its own.", code="data.duplicate", path=table.path
            )
        digests[name] = table.sha256
        found += _rows(table)
    if not found:
        raise DataError(f"no sentences in {', '.join(paths)}: the files have a header only.", code="data.no-rows")
    rows = pl.DataFrame(found, infer_schema_length=None)
    _check_contexts(rows)
    keys = rows.select(KEY).rows()
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    categories = tuple(rows["category"].unique(maintain_order=True))
    return Corpus(
        sentences=rows,
        categories=categories,
        category=np.array([categories.index(name) for name in rows["category"]]),
        context=np.array([numbers[key] for key in keys]),
        stereotype=(rows["type"] == STEREOTYPE).to_numpy(),
        digests=digests,
    )


def describe(corpus: Corpus) -> list[dict[str, Any]]:
    """Return what each category contains, and `total`: the counts of the paper's Table 1, and more.

    *repeated* counts sentences that stood in the same context before, *both types* those that one context has as a
    stereotype and as an anti-stereotype. *kappa* is Cohen's, of two annotators, unweighted; rows with a rating *off the
    scale* from 1 to 5 are left out of it.
    """
    parts = [(name, corpus.sentences.filter(pl.col("category") == name)) for name in corpus.categories]
    return [_describe(name, rows) for name, rows in [*parts, ("total", corpus.sentences)]]


def _describe(name: str, rows: pl.DataFrame) -> dict[str, Any]:
    from sklearn.metrics import cohen_kappa_score

    unique = rows.group_by(*KEY, pl.col("text").str.strip_chars()).agg(pl.col("type").n_unique())
    pairs = [pair for pair in rows["ratings"].to_list() if len(pair) == 2]
    rated = [pair for pair in pairs if SCALE.issuperset(pair)]
    # Annotators who use one rating only agree by chance alone, so kappa is undefined.
    defined = len({rating for pair in rated for rating in pair}) > 1
    return {
        "category": name,
        "contexts": rows.select(KEY).n_unique(),
        "stereotypes": (rows["type"] == STEREOTYPE).sum(),
        "anti-stereotypes": (rows["type"] == ANTI).sum(),
        "sentences": len(rows),
        "repeated": len(rows) - len(unique),
        "both types": (unique["type"] > 1).sum(),
        "off the scale": len(pairs) - len(rated),
        "kappa": float(cohen_kappa_score(*zip(*rated, strict=True))) if defined else None,
    }


def _rows(table: Table) -> Iterator[dict[str, Any]]:
    context, _, _ = table.column("context_id", "context"), table.column("sentence"), table.column("type")
    category = next((name for name in ("category", "bias_type") if name in table.columns), None)
    raters = [name for name in table.columns if name.lower().startswith(RATER)]
    for row in table.rows:
        text, place = row.filled("sentence"), row.filled(context).strip()
        kind = SPELLINGS.get(row.cells["type"].strip().lower())
        if kind is None:
            problem = f"unknown type {row.cells['type']!r}. Write {STEREOTYPE!r} or {ANTI!r}."
            raise row.fault(problem, "data.unknown-value")
        named = row.filled(category) if category else Path(table.path).stem.rpartition(" - ")[2]
        yield {
            "path": table.path,
            "file": Path(table.path).name,
            "line": row.line,
            "category": named.strip().lower(),
            "context_id": place,
            "text": text,
            "type": kind,
            "ratings": [row.cells[name].strip() for name in raters],
        }


def _check_contexts(rows: pl.DataFrame) -> None:
    """Refuse a context with sentences of one type only: it has no pair of both types."""
    alone = rows.filter(pl.col("type").n_unique().over(KEY) == 1)
    for one in alone.head(1).iter_rows(named=True):
        raise DataError(
            f"{one['path']}, line {one['line']}: context {one['context_id']!r} has {one['type']} sentences only. "
            "Add a sentence of the other type, or remove the context.",
            code="data.incomplete",
            path=one["path"],
            line=one["line"],
        )


def _divide(corpus: Corpus, rows: Ints, by: SplitBy, share: float, seed: int) -> tuple[Ints, Ints]:
    from sklearn.model_selection import train_test_split

    units, held = rows if by == "sentence" else corpus.context[rows], []
    for index, name in enumerate(corpus.categories):
        own = np.unique(units[corpus.category[rows] == index])
        try:
            held.append(train_test_split(own, test_size=share, random_state=seed)[1])
        except ValueError:
            hint = ", or split by sentence (--split sentence)" if by == "context" else ""
            raise DataError(
                f"category {name!r} has too few {by}s for a split by {by}: {len(own)} to divide. Add {by}s{hint}.",
                code="training.too-few",
                category=name,
            ) from None
    chosen = np.isin(units, np.concatenate(held))
    return rows[~chosen], rows[chosen]
