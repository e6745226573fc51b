"""Match the rows of a file of answers with the trials of a plan."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ..contracts import Stage, Trial
from ..contracts.canonical import encode
from ..contracts.errors import DataError
from ..contracts.records import AnyRequest, Draw, Generate
from .answers import Answers, Row

TRIAL = "trial"
SHOWN = 5
FEW = 3
"""Number of levels that are all listed."""
Cell = tuple[Any, ...]
"""A trial's values of the columns that rows are matched by."""


class Matched(NamedTuple):
    """Rows by the ordinals of the trials they answer."""

    rows: dict[int, Row]
    left_out: tuple[Row, ...]
    """Rows that match no trial, or several trials."""


class Contradiction(NamedTuple):
    """A row that contradicts the trial it matches."""

    row: Row
    trial: str
    cells: dict[str, tuple[Any, Any]]
    """The values of the row and of the trial, by column."""


class _Group:
    """The trials of one cell: one, or repeats of one question."""

    def __init__(self) -> None:
        self.ordinals: list[int] = []
        self.trials: list[str] = []
        self.questions: set[bytes] = set()
        self.rows: list[Row] = []


class Matcher:
    """Matches rows to a stage's trials: by `trial` (the id), or else by all factors that the file has.

    Several rows may be for one question that is asked several times: they fill its repeats in the order of both.
    """

    def __init__(self, answers: Answers, stage: Stage, trials: Callable[[], Iterable[Trial]]) -> None:
        """Index the trials, which are generated each time they are needed, since there may be many.

        Raises:
            DataError: no column of the file identifies the trials.
        """
        self._answers, self._stage, self._trials = answers, stage, trials
        factors = [name for name in stage.factors if name in answers.fields]
        self._by = [TRIAL] if TRIAL in answers.fields else factors
        if not self._by:
            known = ", ".join([TRIAL, *stage.factors])
            raise DataError(
                f"{answers.path} has no column that identifies the trials. Map one of: {known} (--columns).",
                code="import.columns",
            )
        self._rest = [name for name in factors if name not in self._by]
        self._plain = self._how_to_compare()
        self._levels: dict[str, set[Any]] = defaultdict(set)

    def match(self, rows: Iterable[Row]) -> Matched:
        """Return the rows of the trials.

        Raises:
            DataError: there are more rows for a trial than it has repeats.
        """
        groups = self._groups()
        left_out: list[Row] = []
        for row in rows:
            group = groups.get(self._cell(row.cells))
            if group is None or len(group.questions) > 1:
                left_out.append(row)
            else:
                group.rows.append(row)
        for group in groups.values():
            _ensure_room(self._answers, group)
        found = {o: row for group in groups.values() for o, row in zip(group.ordinals, group.rows, strict=False)}
        return Matched(found, tuple(left_out))

    def contradictions(self, rows: Mapping[int, Row]) -> list[Contradiction]:
        """Return the matched rows whose other columns contradict their trials."""
        if not self._rest and type(self._stage).contradicts is Stage.contradicts:
            return []
        found = []
        for ordinal, trial in enumerate(self._trials()):
            if (row := rows.get(ordinal)) is not None:
                both = [(name, row.cells.get(name), trial.factors.get(name)) for name in self._rest]
                unlike = {n: (cell, own) for n, cell, own in both if self._plain[n](cell) != self._plain[n](own)}
                if cells := unlike | self._stage.contradicts(trial.factors, row.cells):
                    found.append(Contradiction(row, trial.id, cells))
        return found

    def reasons(self, rows: Sequence[Row]) -> str:
        """Explain why rows were left out: the number for each column, and the first row.

        A row counts for the first column in which it has what no trial has, the column with the fewest levels first.
        """
        by = sorted(self._by, key=lambda name: len(self._levels[name]))
        kinds: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            new = (name for name in by if self._plain[name](row.cells.get(name)) not in self._levels[name])
            kinds[next(new, "")].append(row)
        return "; ".join(_reason(name, some) for name, some in kinds.items())

    def refusal(self, rows: Sequence[Row]) -> DataError:
        """Return an error for rows that were left out: which, why, and columns that distinguish their trials."""
        lines = ", ".join(str(row.number) for row in rows[:SHOWN])
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        first = {name: rows[0].cells.get(name) for name in self._by}
        alike = [trial for trial in self._trials() if self._cell(_named(trial)) == self._cell(rows[0].cells)]
        others = [name for name in self._stage.factors if name not in self._by]
        names = [name for name in others if len({trial.factors.get(name) for trial in alike}) > 1]
        if alike:
            why = f"{first} matches {len(alike)} trials, such as {alike[0].id!r} and {alike[-1].id!r}"
            mend = f"Map the columns that distinguish them: {', '.join(names) or TRIAL} (--columns); or skip such rows"
        else:
            why, mend = f"there is no trial with {first}", "Correct such rows, or skip them"
        share = f"{len(rows):,} of {len(self._answers.rows):,} rows"
        where = f"{self._answers.path}, line {lines}{more} ({share})"
        return DataError(f"{where}: {why}. {mend} with --allow-unmatched.", code="import.unmatched")

    def _groups(self) -> Mapping[Cell, _Group]:
        groups: dict[Cell, _Group] = defaultdict(_Group)
        for ordinal, trial in enumerate(self._trials()):
            cell = self._cell(_named(trial))
            group = groups[cell]
            for name, level in zip(self._by, cell, strict=True):
                self._levels[name].add(level)
            group.ordinals.append(ordinal)
            group.trials.append(trial.id)
            group.questions.add(hashlib.sha256(encode(_question(trial.request))).digest())
        return groups

    def _cell(self, values: Mapping[str, Any]) -> Cell:
        return tuple(self._plain[name](values.get(name)) for name in self._by)

    def _how_to_compare(self) -> dict[str, Callable[[Any], Any]]:
        """Compare a column as numbers where all levels of its factor are numbers, and as text elsewhere."""
        kinds: dict[str, set[type]] = {name: set() for name in (*self._by, *self._rest)}
        for trial in self._trials():
            values = _named(trial)
            for name in kinds:
                kinds[name].add(type(values.get(name)))
        numeric = ({int}, {float}, {int, float})
        ways: dict[str, Callable[[Any], Any]] = {}
        for name, found in kinds.items():
            own = found - {type(None)}
            ways[name] = _as_number if own in numeric else _as_flag if own == {bool} else _as_text
        return ways


def _named(trial: Trial) -> Mapping[str, Any]:
    return trial.factors | {TRIAL: trial.id}


def _question(request: AnyRequest) -> AnyRequest:
    """Return a request without its repeat number."""
    if isinstance(request, Generate):
        sampling = msgspec.structs.replace(request.sampling, seed=None)
        return msgspec.structs.replace(request, sample=0, sampling=sampling)
    return msgspec.structs.replace(request, seed=0) if isinstance(request, Draw) else request


def _ensure_room(answers: Answers, group: _Group) -> None:
    if len(group.rows) > len(group.ordinals):
        lines = ", ".join(str(row.number) for row in group.rows[:SHOWN])
        room = "once" if len(group.ordinals) == 1 else f"{len(group.ordinals)} times"
        problem = f"{len(group.rows)} rows (lines {lines}) are for trial {group.trials[0]!r}, which is asked {room}"
        raise answers.fault(group.rows[len(group.ordinals)], f"{problem}. Remove the extra rows.", "import.too-many")


def _reason(name: str, rows: Sequence[Row]) -> str:
    first = f"the first on line {rows[0].number}"
    if not name:
        return f"{len(rows):,} have a combination of levels that belongs to no trial, or to more than one ({first})"
    levels = list(dict.fromkeys(row.cells.get(name) for row in rows))
    shown = ", ".join(map(repr, levels)) if len(levels) <= FEW else f"such as {levels[0]!r}"
    return f"{len(rows):,} have a {name} that no trial has: {shown} ({first})"


def _as_number(cell: Any) -> Any:
    try:
        return None if cell is None or cell == "" else float(cell)
    except (TypeError, ValueError):
        return cell


def _as_flag(cell: Any) -> Any:
    return None if cell is None or cell == "" else str(cell).lower()


def _as_text(cell: Any) -> Any:
    if isinstance(cell, bool):
        return str(cell).lower()
    return None if cell is None or cell == "" else str(cell)
