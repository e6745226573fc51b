"""Sentences with a context and a type, from CSV files; the five that IndiCASA publishes are read as they are."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from ...core.contracts.errors import DataError

STEREOTYPE, ANTI = "stereotype", "anti-stereotype"
SPELLINGS = {STEREOTYPE: STEREOTYPE, ANTI: ANTI, "anti_stereotype": ANTI, "antistereotype": ANTI}
CONTEXT = ("context_id", "context")
CATEGORY = ("category", "bias_type")
RATER = "annotator"
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


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


def read_corpus(paths: Sequence[str]) -> Corpus:
    """Read files with the columns `context_id` (or `context`), `sentence` and `type`.

    The category is the column `category` (or `bias_type`) where there is one, else what follows the last ` - ` of the
    file's name. A context belongs to its file and category: the number 0 of two files is two contexts.

    Raises:
        DataError: a file cannot be read, a column is missing, a sentence is empty, a type is unknown, or a context
            has sentences of one type only; or a file is given twice.
    """
    sentences = [sentence for path in paths for sentence in _read(path)]
    digests = _digests(paths)
    if not sentences:
        raise DataError(f"no sentences in {', '.join(paths)}: the files have a header but no rows.")
    _check_contexts(sentences)
    keys = {key: place for place, key in enumerate(dict.fromkeys(_key(sentence) for sentence in sentences))}
    categories = tuple(dict.fromkeys(sentence.category for sentence in sentences))
    return Corpus(
        sentences=tuple(sentences),
        categories=categories,
        category=np.array([categories.index(sentence.category) for sentence in sentences]),
        context=np.array([keys[_key(sentence)] for sentence in sentences]),
        stereotype=np.array([sentence.type == STEREOTYPE for sentence in sentences]),
        digests=digests,
    )


def _digests(paths: Sequence[str]) -> dict[str, str]:
    """Return the sha256 of each file by its name.

    Raises:
        DataError: two files are the same, or have one name.
    """
    by_name: dict[str, str] = {}
    by_digest: dict[str, str] = {}
    for path in paths:
        name, digest = Path(path).name, hashlib.sha256(Path(path).read_bytes()).hexdigest()
        if digest in by_digest:
            same = "is given twice" if by_digest[digest] == path else f"holds the same as {by_digest[digest]!r}"
            raise DataError(f"{path!r} {same}. Give each file once.")
        if name in by_name:
            raise DataError(f"{path!r} and {by_name[name]!r} have one name, by which results tell them. Rename one.")
        by_digest[digest], by_name[name] = path, path
    return {Path(path).name: digest for digest, path in by_digest.items()}


def _key(sentence: Sentence) -> tuple[str, str, str]:
    return sentence.path, sentence.category, sentence.context


def _read(path: str) -> Iterator[Sentence]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            context = _column(path, rows.fieldnames or (), CONTEXT)
            for name in ("sentence", "type"):
                _column(path, rows.fieldnames or (), (name,))
            category = next((name for name in CATEGORY if name in (rows.fieldnames or ())), None)
            raters = [name for name in rows.fieldnames or () if name.lower().startswith(RATER)]
            for row in rows:
                yield _sentence(path, rows.line_num, row, (context, category, raters))
    except OSError as error:
        raise DataError(f"cannot read {path!r}: {error.strerror}. Check the path.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8. Save the file as UTF-8.") from None
    except csv.Error as error:
        raise DataError(f"{path}: no well-formed CSV ({error}). Check the quotes.") from None


def _column(path: str, header: Sequence[str], names: Sequence[str]) -> str:
    for name in names:
        if name in header:
            return name
    has = ", ".join(repr(name) for name in header) or "no header"
    raise DataError(f"{path}: no column {' or '.join(map(repr, names))}. It has: {has}. Rename the column.")


def _sentence(
    path: str, line: int, row: dict[str | None, str | None], columns: tuple[str, str | None, list[str]]
) -> Sentence:
    context, category, raters = columns
    where = f"{path}, line {line}"
    if None in row or None in row.values():
        raise DataError(f"{where}: the row has not as many cells as the header. Quote cells that contain a comma.")
    cells = {str(name): str(cell) for name, cell in row.items()}
    if not cells["sentence"].strip():
        raise DataError(f"{where}: sentence {cells['sentence']!r} is empty. Fill it in, or remove the row.")
    for name in (context, category):
        if name and not cells[name].strip():
            raise DataError(f"{where}: {name} {cells[name]!r} is empty. Fill it in, or remove the row.")
    kind = SPELLINGS.get(cells["type"].strip().lower())
    if kind is None:
        raise DataError(f"{where}: unknown type {cells['type']!r}. Write {STEREOTYPE!r} or {ANTI!r}.")
    named = cells[category].strip().lower() if category else Path(path).stem.rpartition(" - ")[2].strip().lower()
    ratings = tuple(cells[name].strip() for name in raters)
    return Sentence(named, cells[context].strip(), cells["sentence"], kind, path, line, ratings)


def _check_contexts(sentences: Sequence[Sentence]) -> None:
    there: dict[tuple[str, str, str], list[Sentence]] = {}
    for sentence in sentences:
        there.setdefault(_key(sentence), []).append(sentence)
    for group in there.values():
        kinds = {sentence.type for sentence in group}
        if len(kinds) == 1:
            other = ANTI if STEREOTYPE in kinds else STEREOTYPE
            raise DataError(
                f"{group[0].path}, line {group[0].line}: context {group[0].context!r} has {group[0].type} sentences "
                f"only ({len(group)}). Pairs need both types: add an {other} sentence, or remove the context."
            )
