"""Answers that were collected elsewhere: the fields of a file, and what a row answers to a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
PROBABILITY = "probability."
FIELDS: dict[type, tuple[str, ...]] = {
    Generate: ("response",),
    PseudoLikelihood: ("log_probability",),
    Likelihood: ("log_probability",),
    Classify: (PROBABILITY,),
}
"""Fields that an answer to each operation needs."""
KNOWN = ("trial", "stage", "status", "tokens", *(name for names in FIELDS.values() for name in names))
"""Fields of every study."""


class Row(NamedTuple):
    """One record of a file."""

    number: int
    """Line of the file it starts on; of a JSON document, its number among the records."""
    cells: Mapping[str, Any]
    """Values by field, as the file has them."""


class Answers(NamedTuple):
    """All records of a file."""

    path: str
    sha256: str
    """Of the file."""
    fields: tuple[str, ...]
    rows: list[Row]
    unit: str = "line"
    """What the numbers of rows count."""

    def fault(self, row: Row, problem: str, code: str = "import.cell") -> DataError:
        """Return an error that names a row."""
        return DataError(f"{self.path}, {self.unit} {row.number}: {problem}", code=code, line=row.number)

    def numbers(self, rows: Sequence[Row], most: int = 5) -> str:
        """Return where rows are, as text: `lines 2, 7 and 3 more`."""
        shown = ", ".join(str(row.number) for row in rows[:most])
        more = f" and {len(rows) - most} more" if len(rows) > most else ""
        return f"{self.unit}{'s' if len(rows) > 1 else ''} {shown}{more}"


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


def read_answers(path: str, columns: Mapping[str, str], known: Iterable[str] = ()) -> Answers:
    """Read a file; a column that `columns` does not name is the field of its own name.

    Names of columns may differ from those in `columns` and from the `known` fields in case, spaces and signs.

    Raises:
        DataError: the file cannot be read, or has no such column.
    """
    fields = {*KNOWN, *known, *columns}
    sha256, unit, records = read_records(path, fields)
    if not records:
        raise DataError(f"{path} has no rows.", code="data.no-rows")
    names = list(dict.fromkeys(name for _, cells in records for name in cells))
    chosen = {field: _column(path, column, names) for field, column in columns.items()}
    own = [name for name in names if name not in chosen.values() and name not in chosen]
    alike = {folded(field): field for field in fields - {*own, *chosen}}
    found = chosen | {alike.pop(folded(name), name): name for name in own}
    rows = [Row(number, {f: cells[c] for f, c in found.items() if c in cells}) for number, cells in records]
    return Answers(path, sha256, tuple(found), rows, unit)


def _column(path: str, column: str, names: Sequence[str]) -> str:
    alike = [column] if column in names else [name for name in names if folded(name) == folded(column)]
    if len(alike) == 1:
        return alike[0]
    raise DataError(
        f"{path} has no column {column!r}. It has: {', '.join(map(repr, names))}.", code="data.column-missing"
    )


def read_answer(answers: Answers, row: Row, request: AnyRequest) -> AnyResponse | NoAnswer:
    """Return what a row answers to a request.

    Raises:
        DataError: a cell that cannot be such an answer.
    """
    status = str(row.cells.get("status") or "ok").strip().lower()
    if status not in STATUSES or (status != "ok" and not isinstance(request, Generate)):
        known = ", ".join(STATUSES) if isinstance(request, Generate) else "ok"
        raise answers.fault(row, f"status {status!r}. It may be: {known}.")
    match request:
        case Generate():
            return _generation(answers, row, status)
        case PseudoLikelihood():
            scores = _scores(answers, row, 1)
            return scores if isinstance(scores, NoAnswer) else scores[0]
        case Likelihood():
            scores = _scores(answers, row, len(request.continuations))
            return scores if isinstance(scores, NoAnswer) else Likelihoods(scores=tuple(scores))
        case Classify():
            return _classification(answers, row)
        case _:
            raise DataError("vectors and images cannot be imported from a table.", code="import.operation")


def _generation(answers: Answers, row: Row, status: Any) -> Generation | NoAnswer:
    text = row.cells.get("response")
    if text is None:
        return Generation(text="", status=status) if status != "ok" else NoAnswer("no response")
    if isinstance(text, int | float) and not isinstance(text, bool):
        # An age in JSON: a number is what the model wrote, too.
        text = str(int(text) if text == int(text) else text)
    if not isinstance(text, str):
        raise answers.fault(row, f"the response {text!r} is not a text.")
    return Generation(text=text, status=status)


def _scores(answers: Answers, row: Row, count: int) -> list[TokenScores] | NoAnswer:
    values = _numbers(answers, row, "log_probability")
    if values is None:
        return NoAnswer("no log_probability")
    tokens = _numbers(answers, row, "tokens") or [1] * count
    if not len(values) == len(tokens) == count:
        given = f"{len(values)} log-probabilities and {len(tokens)} numbers of tokens"
        raise answers.fault(row, f"{given} for {count} continuations. Write a JSON list of one number for each.")
    if max(values) > 0:
        raise answers.fault(row, f"the log-probability {max(values)} is above 0.")
    if any(number < 1 or number != int(number) for number in tokens):
        raise answers.fault(row, f"tokens {tokens} are not counts above 0.")
    return [TokenScores(log_probability=v, count=int(n)) for v, n in zip(values, tokens, strict=True)]


def _classification(answers: Answers, row: Row) -> Classification | NoAnswer:
    labels = [name for name in row.cells if name.startswith(PROBABILITY)]
    found = {label.removeprefix(PROBABILITY): _numbers(answers, row, label) for label in labels}
    if not all(found.values()):
        return NoAnswer("no probability")
    probabilities = {label: value[0] for label, value in found.items() if value}
    if wrong := {label: value for label, value in probabilities.items() if not 0 <= value <= 1}:
        raise answers.fault(row, f"probabilities {wrong} are not between 0 and 1.")
    return Classification(probabilities=probabilities)


def _numbers(answers: Answers, row: Row, field: str) -> list[float] | None:
    """Return the finite number, or the list of them, in a cell; None where it is empty."""
    cell = row.cells.get(field)
    if cell is None or cell == "":
        return None
    try:
        value = msgspec.json.decode(cell) if isinstance(cell, str) else cell
        return msgspec.convert(value if isinstance(value, list) else [value], list[float])
    except (msgspec.MsgspecError, UnicodeEncodeError):
        raise answers.fault(row, f"{field} {cell!r} is not a finite number or a JSON list of finite numbers.") from None
