"""Read answers that were collected elsewhere from a CSV or JSONL file, independently of study and store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..contracts.csv import decode, read_bytes, read_table
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

STATUSES = ("ok", "refused", "filtered")
PROBABILITY = "probability."
FIELDS: dict[type, tuple[str, ...]] = {
    Generate: ("response",),
    PseudoLikelihood: ("log_probability",),
    Likelihood: ("log_probability",),
    Classify: (PROBABILITY,),
}
"""Fields that an answer to each operation needs."""
JSON_LINES = (".jsonl", ".ndjson")


class Row(NamedTuple):
    """One record of a file."""

    number: int
    """Line of the file it starts on."""
    cells: Mapping[str, Any]
    """Values by field, as the file has them."""


class Answers(NamedTuple):
    """All records of a file."""

    path: str
    sha256: str
    """Of the file."""
    fields: tuple[str, ...]
    rows: list[Row]

    def fault(self, row: Row, problem: str, code: str = "import.cell") -> DataError:
        """Return an error that names a row."""
        return DataError(f"{self.path}, line {row.number}: {problem}", code=code, line=row.number)


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


def read_answers(path: str, columns: Mapping[str, str]) -> Answers:
    """Read a file; a column that `columns` does not name is the field of its own name.

    Raises:
        DataError: the file cannot be read, or has no such column.
    """
    sha256, records = _json_lines(path) if Path(path).suffix.lower() in JSON_LINES else _csv(path)
    if not records:
        raise DataError(f"{path} has no rows.", code="data.no-rows")
    names = list(dict.fromkeys(name for _, cells in records for name in cells))
    if missing := [column for column in columns.values() if column not in names]:
        raise DataError(
            f"{path} has no column {missing[0]!r}. It has: {', '.join(map(repr, names))}.", code="data.column-missing"
        )
    fields = {name: name for name in names if name not in columns.values()} | dict(columns)
    rows = [Row(line, {f: cells[c] for f, c in fields.items() if c in cells}) for line, cells in records]
    return Answers(path, sha256, tuple(fields), rows)


def read_answer(answers: Answers, row: Row, request: AnyRequest) -> AnyResponse | NoAnswer:
    """Return what a row answers to a request.

    Raises:
        DataError: a cell that cannot be such an answer.
    """
    status = row.cells.get("status") or "ok"
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


def _csv(path: str) -> tuple[str, list[tuple[int, dict[str, Any]]]]:
    table = read_table(path)
    return table.sha256, [(row.line, dict(row.cells)) for row in table.rows]


def _json_lines(path: str) -> tuple[str, list[tuple[int, dict[str, Any]]]]:
    raw, records = read_bytes(path), []
    # Not splitlines: JSON may hold other line ends within a text.
    for line, record in enumerate(decode(path, raw).split("\n"), start=1):
        if record.strip():
            try:
                records.append((line, msgspec.json.decode(record, type=dict[str, Any])))
            except (msgspec.MsgspecError, UnicodeEncodeError) as error:
                raise DataError(f"{path}, line {line}: not a JSON object ({error}).", code="data.syntax") from None
    return hashlib.sha256(raw).hexdigest(), records
