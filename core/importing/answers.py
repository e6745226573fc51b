"""Answers that were collected elsewhere: the fields of a file, and what a row answers to a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from ..contracts.errors import DataError
from ..contracts.records import (
    AnyRequest,
    AnyResponse,
    Classification,
    Classify,
    Generate,
    Generation,
    Likelihood,
    Likelihoods,
    PseudoLikelihood,
    TokenScores,
)
from .alike import folded
from .files import read_records

STATUSES = ("ok", "refused", "filtered")
REQUEST = "request"
"""Field of the words that the model was asked in."""
PROBABILITY = "probability."
FIELDS: dict[type, tuple[str, ...]] = {
    Generate: ("response",),
    PseudoLikelihood: ("log_probability",),
    Likelihood: ("log_probability",),
    Classify: (PROBABILITY,),
}
"""Fields that an answer to each operation needs."""
KNOWN = ("trial", "stage", "status", "tokens", REQUEST, *(name for names in FIELDS.values() for name in names))
"""Fields of every study."""


class Source(NamedTuple):
    """A file of answers."""

    path: str
    sha256: str
    unit: str
    """What the numbers of its rows count: `line` or `record`."""


class Row(NamedTuple):
    """One record of a file."""

    number: int
    """Line of the file it starts on; of a JSON document, its number among the records."""
    cells: Mapping[str, Any]
    """Values by field, as the file has them."""
    source: Source

    @property
    def place(self) -> str:
        """Return where the row is, as text: `answers.csv, line 2`."""
        return f"{self.source.path}, {self.source.unit} {self.number}"

    def fault(self, problem: str, code: str = "import.cell") -> DataError:
        """Return an error that names the row."""
        return DataError(f"{self.place}: {problem}", code=code, line=self.number)


class Answers(NamedTuple):
    """All records of one or several files, one after another."""

    sources: tuple[Source, ...]
    fields: tuple[str, ...]
    rows: list[Row]

    @property
    def path(self) -> str:
        """Return the paths of the files, as text."""
        return ", ".join(source.path for source in self.sources)

    @property
    def digests(self) -> dict[str, str]:
        """Return the sha256 of each file by its path."""
        return {source.path: source.sha256 for source in self.sources}

    def order(self, row: Row) -> tuple[int, int]:
        """Return the place of a row among all: that of its file, and its number there."""
        return self.sources.index(row.source), row.number

    def numbers(self, rows: Sequence[Row], most: int = 5) -> str:
        """Return where rows are, as text: `answers.csv, lines 2, 7 and 3 more`."""
        shown, parts = rows[:most], []
        for source, group in groupby(shown, key=lambda row: row.source):
            numbers = [str(row.number) for row in group]
            parts.append(f"{source.path}, {source.unit}{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}")
        return "; ".join(parts) + (f" and {len(rows) - most} more" if len(rows) > most else "")


class NoAnswer(NamedTuple):
    """Why a row holds no answer."""

    reason: str


def parse_columns(texts: Iterable[str]) -> dict[str, str]:
    """Read `field=COLUMN,...` texts as columns by field.

    Raises:
        DataError: a text without `=`, or a field twice.
    """
    columns: dict[str, str] = {}
    for text in (part for whole in texts for part in whole.split(",")):
        field, equals, column = (part.strip() for part in text.partition("="))
        if not (field and equals and column):
            raise DataError(
                f"cannot read {text!r} in --columns. Write FIELD=COLUMN, such as response=answer.",
                code="import.columns",
            )
        if field in columns:
            raise DataError(
                f"--columns names two columns for {field!r}: {columns[field]!r} and {column!r}.", code="import.columns"
            )
        columns[field] = column
    return columns


def read_answers(paths: Sequence[str], columns: Mapping[str, str], known: Iterable[str] = ()) -> Answers:
    """Read files, whose rows follow each other; a column that `columns` does not name is the field of its own name.

    Names of columns may differ from those in `columns` and from the `known` fields in case, spaces and signs.

    Raises:
        DataError: there is no file, one cannot be read, is named twice, or has no such column.
    """
    if not paths:
        raise DataError("no file of answers is named.", code="data.missing")
    parts = [_read(path, columns, known) for path in paths]
    sources = tuple(source for part in parts for source in part.sources)
    first: dict[str, str] = {}
    for source in sources:
        if source.sha256 in first:
            raise DataError(
                f"{source.path} has the same content as {first[source.sha256]}: each answer would count twice. Name "
                "each file once.",
                code="import.same-file",
            )
        first[source.sha256] = source.path
    fields = tuple(dict.fromkeys(name for part in parts for name in part.fields))
    return Answers(sources, fields, [row for part in parts for row in part.rows])


def _read(path: str, columns: Mapping[str, str], known: Iterable[str]) -> Answers:
    fields = {*KNOWN, *known, *columns}
    sha256, unit, records = read_records(path, fields)
    if not records:
        raise DataError(f"{path} has no rows.", code="data.no-rows")
    names = list(dict.fromkeys(name for _, cells in records for name in cells))
    chosen = {field: _column(path, column, names) for field, column in columns.items()}
    own = [name for name in names if name not in chosen.values() and name not in chosen]
    alike = {folded(field): field for field in fields - {*own, *chosen}}
    found = chosen | {alike.pop(folded(name), name): name for name in own}
    source = Source(path, sha256, unit)
    rows = [Row(number, {f: cells[c] for f, c in found.items() if c in cells}, source) for number, cells in records]
    return Answers((source,), tuple(found), rows)


def _column(path: str, column: str, names: Sequence[str]) -> str:
    alike = [column] if column in names else [name for name in names if folded(name) == folded(column)]
    if len(alike) == 1:
        return alike[0]
    raise DataError(
        f"{path} has no column {column!r}. It has: {', '.join(map(repr, names))}.", code="data.column-missing"
    )


def read_answer(row: Row, request: AnyRequest) -> AnyResponse | NoAnswer:
    """Return what a row answers to a request.

    Raises:
        DataError: a cell that cannot be such an answer.
    """
    status = str(row.cells.get("status") or "ok").strip().lower()
    if status not in STATUSES or (status != "ok" and not isinstance(request, Generate)):
        known = ", ".join(STATUSES) if isinstance(request, Generate) else "ok"
        raise row.fault(f"status {status!r}. It may be: {known}.")
    match request:
        case Generate():
            return _generation(row, status)
        case PseudoLikelihood():
            scores = _scores(row, 1)
            return scores if isinstance(scores, NoAnswer) else scores[0]
        case Likelihood():
            scores = _scores(row, len(request.continuations))
            return scores if isinstance(scores, NoAnswer) else Likelihoods(scores=tuple(scores))
        case Classify():
            return _classification(row)
        case _:
            raise DataError("vectors and images cannot be imported from a table.", code="import.operation")


def _generation(row: Row, status: Any) -> Generation | NoAnswer:
    text = row.cells.get("response")
    if text is None:
        return Generation(text="", status=status) if status != "ok" else NoAnswer("no response")
    if isinstance(text, int | float) and not isinstance(text, bool):
        # An age in JSON: a number is what the model wrote, too.
        text = str(int(text) if text == int(text) else text)
    if not isinstance(text, str):
        raise row.fault(f"the response {text!r} is not a text.")
    return Generation(text=text, status=status)


def _scores(row: Row, count: int) -> list[TokenScores] | NoAnswer:
    values = _numbers(row, "log_probability")
    if values is None:
        return NoAnswer("no log_probability")
    tokens = _numbers(row, "tokens") or [1] * count
    if not len(values) == len(tokens) == count:
        given = f"{len(values)} log-probabilities and {len(tokens)} numbers of tokens"
        raise row.fault(f"{given} for {count} continuations. Write a JSON list of one number for each.")
    if max(values) > 0:
        raise row.fault(f"the log-probability {max(values)} is above 0.")
    if any(number < 1 or number != int(number) for number in tokens):
        raise row.fault(f"tokens {tokens} are not counts above 0.")
    return [TokenScores(log_probability=v, count=int(n)) for v, n in zip(values, tokens, strict=True)]


def _classification(row: Row) -> Classification | NoAnswer:
    labels = [name for name in row.cells if name.startswith(PROBABILITY)]
    found = {label.removeprefix(PROBABILITY): _numbers(row, label) for label in labels}
    if not all(found.values()):
        return NoAnswer("no probability")
    probabilities = {label: value[0] for label, value in found.items() if value}
    if wrong := {label: value for label, value in probabilities.items() if not 0 <= value <= 1}:
        raise row.fault(f"probabilities {wrong} are not between 0 and 1.")
    return Classification(probabilities=probabilities)


def _numbers(row: Row, field: str) -> list[float] | None:
    """Return the finite number, or the list of them, in a cell; None where it is empty."""
    cell = row.cells.get(field)
    if cell is None or cell == "":
        return None
    try:
        value = msgspec.json.decode(cell) if isinstance(cell, str) else cell
        return msgspec.convert(value if isinstance(value, list) else [value], list[float])
    except (msgspec.MsgspecError, UnicodeEncodeError):
        raise row.fault(f"{field} {cell!r} is not a finite number or a JSON list of finite numbers.") from None
