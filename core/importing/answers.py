"""Answers that were collected elsewhere: the fields of a file, and what a row answers to a request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
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
from ..tables.faults import BadRows, LeftOut, RowError, RowPlace, left_out, refusal, row_error
from ..tables.inspect_log import ERROR
from ..tables.reading import read_records
from ..tables.rows import DECIMAL_COMMA

STATUSES = ("ok", "refused", "filtered")
REQUEST = "request"
"""Field of the words that the model was asked in."""
PROBABILITY = "probability."
SHOWN = 120
"""Characters of a value that a message shows."""
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

    def fault(self, problem: str, code: str = "import.cell", reason: str = "") -> RowError:
        """Return an error that names the row; `reason` is the problem without its values."""
        return row_error(RowPlace(self.source.path, self.source.unit, self.number), problem, code, reason)


class Answers(NamedTuple):
    """All records of one or several files, one after another."""

    sources: tuple[Source, ...]
    fields: tuple[str, ...]
    rows: list[Row]
    left_out: tuple[LeftOut, ...] = ()
    """By file, rows that are no records."""

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


class FileForm(NamedTuple):
    """How files of answers are understood."""

    columns: Mapping[str, str] = MappingProxyType({})
    """Column, or path within a column, of each field that has another name."""
    encoding: str = ""
    """Empty: UTF-8 or UTF-16."""
    bad_rows: BadRows = "refuse"


def read_answers(paths: Sequence[str], form: FileForm, known: Iterable[str] = ()) -> Answers:
    """Read files, whose rows follow each other; a column that is not named is the field of its own name.

    Names of columns may differ from those in `columns` and from the `known` fields in case, spaces and signs.

    Raises:
        DataError: there is no file, one cannot be read, is named twice, has no such column, or rows that cannot be
            used.
    """
    if not paths:
        raise DataError("no file of answers is named.", code="data.missing")
    fields = {*KNOWN, *known, *form.columns}
    parts = [_read(path, form, fields) for path in paths]
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
    names = tuple(dict.fromkeys(name for part in parts for name in part.fields))
    rows = [row for part in parts for row in part.rows]
    return Answers(sources, names, rows, tuple(count for part in parts for count in part.left_out))


def _read(path: str, form: FileForm, fields: Collection[str]) -> Answers:
    loaded = read_records(path, fields, form.columns, form.encoding)
    total = len(loaded.records) + len(loaded.faults)
    if loaded.faults and form.bad_rows == "refuse":
        raise refusal(path, total, loaded.faults, skippable=True)
    if not loaded.records:
        raise DataError(f"{path} has no rows.", code="data.no-rows")
    source = Source(path, loaded.sha256, loaded.unit)
    rows = [Row(number, cells, source) for number, cells in loaded.records]
    counts = (left_out(path, total, loaded.faults),) if loaded.faults else ()
    return Answers((source,), loaded.fields, rows, counts)


def read_answer(row: Row, request: AnyRequest) -> AnyResponse | NoAnswer:
    """Return what a row answers to a request.

    Raises:
        DataError: a cell that cannot be such an answer.
    """
    status = str(row.cells.get("status") or "ok").strip().lower()
    if status not in STATUSES or (status != "ok" and not isinstance(request, Generate)):
        known = ", ".join(STATUSES) if isinstance(request, Generate) else "ok"
        raise row.fault(f"status {status!r}. It may be: {known}.", reason="an unknown status")
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
        error = row.cells.get(ERROR)
        return Generation(text="", status=status) if status != "ok" else NoAnswer(str(error or "no response"))
    if isinstance(text, int | float) and not isinstance(text, bool):
        # An age in JSON: a number is what the model wrote, too.
        text = str(int(text) if text == int(text) else text)
    if not isinstance(text, str):
        within = (
            " Name the text within it, such as --columns response=COLUMN.0.0." if isinstance(text, list | dict) else ""
        )
        problem = f"the response {_short(text)} is not a text.{within}"
        raise row.fault(problem, reason="the response is not a text")
    return Generation(text=text, status=status)


def _scores(row: Row, count: int) -> list[TokenScores] | NoAnswer:
    values = _numbers(row, "log_probability")
    if values is None:
        return NoAnswer("no log_probability")
    tokens = _numbers(row, "tokens") or [1] * count
    if not len(values) == len(tokens) == count:
        given = f"{len(values)} log-probabilities and {len(tokens)} numbers of tokens"
        problem = f"{given} for {count} continuations. Write a JSON list of one number for each."
        raise row.fault(problem, reason="another number of log-probabilities than continuations")
    if max(values) > 0:
        raise row.fault(f"the log-probability {max(values)} is above 0.", reason="a log-probability above 0")
    if any(number < 1 or number != int(number) for number in tokens):
        raise row.fault(f"tokens {tokens} are not counts above 0.", reason="tokens are not counts above 0")
    return [TokenScores(log_probability=v, count=int(n)) for v, n in zip(values, tokens, strict=True)]


def _classification(row: Row) -> Classification | NoAnswer:
    labels = [name for name in row.cells if name.startswith(PROBABILITY)]
    found = {label.removeprefix(PROBABILITY): _numbers(row, label) for label in labels}
    if not all(found.values()):
        return NoAnswer("no probability")
    probabilities = {label: value[0] for label, value in found.items() if value}
    if wrong := {label: value for label, value in probabilities.items() if not 0 <= value <= 1}:
        raise row.fault(f"probabilities {wrong} are not between 0 and 1.", reason="a probability outside 0 to 1")
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
        problem = f"{field} {_short(cell)} is not a finite number or a JSON list of finite numbers."
        comma = f" Write a decimal point: {cell.strip().replace(',', '.')}." if _comma(cell) else ""
        raise row.fault(f"{problem}{comma}", reason=f"{field} is not a number") from None


def _comma(cell: Any) -> bool:
    return isinstance(cell, str) and DECIMAL_COMMA.fullmatch(cell) is not None


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 3]}..."
