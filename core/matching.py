"""Which row of somebody's file answers which trial of a plan."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from .answers import Answers, Row
from .canonical import encode
from .contracts import Stage, Trial
from .errors import DataError
from .records import AnyRequest, Draw, Generate

TRIAL = "trial"
SHOWN = 5
Cell = tuple[Any, ...]
"""A trial's values of the columns that rows are matched by."""


class Matched(NamedTuple):
    """Rows by the ordinals of the trials they answer."""

    rows: dict[int, Row]
    left_out: tuple[Row, ...]
    """Rows that no trial, or no single trial, is for."""


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
        """Look at the trials, which are made anew each time they are needed: there may be many.

        Raises:
            DataError: the file says of no row which trial it is for.
        """
        self._answers, self._stage, self._trials = answers, stage, trials
        factors = [name for name in stage.factors if name in answers.fields]
        self._by = [TRIAL] if TRIAL in answers.fields else factors
        if not self._by:
            known = ", ".join([TRIAL, *stage.factors])
            raise DataError(f"{answers.path} says of no row which trial it is for. Map one of: {known} (--columns).")
        self._plain = self._how_to_compare()

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

    def refusal(self, rows: Sequence[Row]) -> DataError:
        """Return an error for rows that were left out: which, why, and what would tell their trials apart."""
        lines = ", ".join(str(row.number) for row in rows[:SHOWN])
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        first = {name: rows[0].cells.get(name) for name in self._by}
        alike = [trial for trial in self._trials() if self._cell(_named(trial)) == self._cell(rows[0].cells)]
        others = [name for name in self._stage.factors if name not in self._by]
        names = [name for name in others if len({trial.factors.get(name) for trial in alike}) > 1]
        if alike:
            why = f"{first} stands for {len(alike)} trials, such as {alike[0].id!r} and {alike[-1].id!r}"
            mend = f"Map what tells them apart: {', '.join(names) or TRIAL} (--columns); or leave such rows out"
        else:
            why, mend = f"there is no trial with {first}", "Correct such rows, or leave them out"
        return DataError(f"{self._answers.path}, line {lines}{more}: {why}. {mend} with --allow-unmatched.")

    def _groups(self) -> Mapping[Cell, _Group]:
        groups: dict[Cell, _Group] = defaultdict(_Group)
        for ordinal, trial in enumerate(self._trials()):
            group = groups[self._cell(_named(trial))]
            group.ordinals.append(ordinal)
            group.trials.append(trial.id)
            group.questions.add(hashlib.sha256(encode(_question(trial.request))).digest())
        return groups

    def _cell(self, values: Mapping[str, Any]) -> Cell:
        return tuple(self._plain[name](values.get(name)) for name in self._by)

    def _how_to_compare(self) -> dict[str, Callable[[Any], Any]]:
        """Compare a column as numbers where all levels of its factor are numbers, and as text elsewhere."""
        kinds: dict[str, set[type]] = {name: set() for name in self._by}
        for trial in self._trials():
            values = _named(trial)
            for name in self._by:
                kinds[name].add(type(values.get(name)))
        numeric = ({int}, {float}, {int, float})
        return {name: _as_number if found - {type(None)} in numeric else _as_text for name, found in kinds.items()}


def _named(trial: Trial) -> Mapping[str, Any]:
    return trial.factors | {TRIAL: trial.id}


def _question(request: AnyRequest) -> AnyRequest:
    """Return a request without what makes it one of several repeats."""
    if isinstance(request, Generate):
        sampling = msgspec.structs.replace(request.sampling, seed=None)
        return msgspec.structs.replace(request, sample=0, sampling=sampling)
    return msgspec.structs.replace(request, seed=0) if isinstance(request, Draw) else request


def _ensure_room(answers: Answers, group: _Group) -> None:
    if len(group.rows) > len(group.ordinals):
        lines = ", ".join(str(row.number) for row in group.rows[:SHOWN])
        room = "once" if len(group.ordinals) == 1 else f"{len(group.ordinals)} times"
        problem = f"{len(group.rows)} rows (lines {lines}) are for trial {group.trials[0]!r}, which is asked {room}"
        raise answers.fault(group.rows[len(group.ordinals)], f"{problem}. Remove what is too much.")


def _as_number(cell: Any) -> Any:
    try:
        return None if cell is None or cell == "" else float(cell)
    except (TypeError, ValueError):
        return cell


def _as_text(cell: Any) -> Any:
    if isinstance(cell, bool):
        return str(cell).lower()
    return None if cell is None or cell == "" else str(cell)
