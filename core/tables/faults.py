"""Rows that cannot be used: all of them in one error, or left out and counted by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

import msgspec

from ..contracts.errors import DataError

BadRows = Literal["refuse", "skip"]
"""What happens with a file that has rows that cannot be used: it is refused, or they are left out and counted."""
MOST_SHOWN = 20
"""Rows that an error describes."""
MOST_LINES = 1_000
"""Numbers of rows in the fields of an error."""
SHOWN_PROBLEM = 200
"""Characters of the description of a row."""
SKIP = "leave such rows out: --bad-rows skip"


class RowError(DataError):
    """Report a row that cannot be used."""

    reason: str = ""
    """Why, without the values of the row: rows with equal reasons are counted together."""
    problem: str = ""
    """What is wrong with the row, with its values and how to mend it."""
    unit: str = "line"
    """What the number of the row counts."""


class RepeatedRow(RowError):
    """Report a row that says the same as an earlier one: it counts once, and refuses no file."""


E = TypeVar("E", bound=RowError)


class RowPlace(NamedTuple):
    """Where a row is."""

    path: str
    unit: str
    """What numbers of rows count: `line`, `record`, `sample` or `row`."""
    number: int


def row_error(place: RowPlace, problem: str, code: str, reason: str = "", **fields: object) -> RowError:
    """Return the error of a row.

    Args:
        place: Where it is.
        problem: What is wrong, with the value and how to mend it.
        code: Of the error.
        reason: The problem without values; empty: its first clause.
        **fields: Further fields of the error.
    """
    path, unit, number = place
    return _described(
        RowError(f"{path}, {unit} {number}: {problem}", code=code, **_at(place), **fields), place, problem, reason
    )


def repeated_row(place: RowPlace, problem: str, code: str, reason: str) -> RepeatedRow:
    """Return the error of a row that says the same as an earlier one; see `row_error`."""
    path, unit, number = place
    return _described(
        RepeatedRow(f"{path}, {unit} {number}: {problem}", code=code, **_at(place)), place, problem, reason
    )


def _at(place: RowPlace) -> dict[str, object]:
    return {"path": place.path, "line": place.number}


def _described(error: E, place: RowPlace, problem: str, reason: str) -> E:
    error.unit, error.problem = place.unit, problem
    error.reason = reason or problem.partition(": ")[0].partition(". ")[0].rstrip(".")
    return error


class LeftOut(msgspec.Struct, frozen=True):
    """Rows of a file that were left out."""

    path: str
    rows: int
    """All rows of the file."""
    reasons: Mapping[str, int]
    """Number of rows that were left out, by reason."""

    @property
    def count(self) -> int:
        """Return the number of rows that were left out."""
        return sum(self.reasons.values())

    def sentence(self) -> str:
        """Return how many rows were left out and why; empty if none was."""
        if not self.reasons:
            return ""
        were = "was" if self.count == 1 else "were"
        return f"{self.count:,} of {self.rows:,} rows of {self.path} {were} left out: {_listed(self.reasons)}."


def left_out(path: str, rows: int, faults: Sequence[RowError]) -> LeftOut:
    """Return the count of rows that were left out, by reason."""
    return LeftOut(path, rows, dict(Counter(fault.reason for fault in faults)))


def refusal(path: str, rows: int, faults: Sequence[RowError], skippable: bool) -> DataError:
    """Return one error for all rows that cannot be used.

    Args:
        path: The file.
        rows: Number of all its rows.
        faults: Of the rows, in their order, at least one.
        skippable: Whether the reader can leave rows out.
    """
    first = faults[0]
    if len(faults) == 1:
        if not skippable:
            return first
        error = row_error(
            RowPlace(path, first.unit, _line(first)), f"{first.problem} Or {SKIP}.", first.code, first.reason
        )
        error.fields = first.fields
        return error
    codes = {fault.code for fault in faults}
    reasons = Counter(fault.reason for fault in faults)
    head = f"{path}: {len(faults):,} of {rows:,} rows cannot be used: {_listed(reasons)}."
    lines = [f"{fault.unit} {_line(fault)}: {_short(fault.problem)}" for fault in faults[:MOST_SHOWN]]
    more = len(faults) - MOST_SHOWN
    lines += [f"And {more:,} more."] if more > 0 else []
    mend = f"Correct these rows, or {SKIP}." if skippable else "Correct these rows."
    several = DataError(
        " ".join([head, *lines, mend]),
        code=codes.pop() if len(codes) == 1 else "data.rows",
        path=path,
        line=_line(first),
        lines=[_line(fault) for fault in faults[:MOST_LINES]],
        rows=len(faults),
        reasons=dict(reasons),
    )
    several.listed = (head, *(f"  {line}" for line in lines), mend)
    return several


def _listed(reasons: Mapping[str, int]) -> str:
    return "; ".join(f"{reason} ({count:,})" for reason, count in reasons.items())


def _line(fault: RowError) -> int:
    return int(str(fault.fields["line"]))


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_PROBLEM else f"{text[: SHOWN_PROBLEM - 3]}..."
