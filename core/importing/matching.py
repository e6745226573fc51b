"""Match the rows of a file of answers with the trials of a plan."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..contracts import MatchedStage, Stage, Trial
from ..contracts.canonical import encode, question_of
from ..contracts.errors import DataError
from ..contracts.records import Scalar
from .alike import differing, folded, likeness, listed, shown
from .answers import Answers, Row

TRIAL = "trial"
FEW = 3
"""Number of levels that are all listed."""
Cell = tuple[Any, ...]
"""A trial's values of the columns that rows are matched by."""


class Matched(NamedTuple):
    """Rows by the trials they answer."""

    groups: tuple[Group, ...]
    """The trials of one question each, with all rows for it; there may be more rows than trials."""
    left_out: tuple[Row, ...]
    """Rows that match no trial, or several trials."""
    loose: int
    """Number of the matched rows that are typed in another way than their trial."""


class Contradiction(NamedTuple):
    """A row that contradicts the trial it matches."""

    ordinal: int
    row: Row
    trial: str
    cells: dict[str, tuple[Any, Any]]
    """The values of the row and of the trial, by column."""
    factors: dict[str, Any]
    """What the row says of factors that its columns hold under other names."""


class Group:
    """The trials of one cell: one, or repeats of one question."""

    def __init__(self) -> None:
        self.ordinals: list[int] = []
        self.trials: list[str] = []
        self.questions: set[bytes] = set()
        self.rows: list[Row] = []


class Matcher:
    """Matches rows to a stage's trials: by `trial` (the id), or else by all factors that the file has.

    Where no trial has exactly the levels of a row, those count that differ only in white space, case, kinds of quotes
    and final punctuation. Several rows may be for one question that is asked several times.
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
        """Return the rows of the trials."""
        groups = self._groups()
        alike: dict[Cell, list[Group]] = defaultdict(list)
        for cell, group in groups.items():
            alike[tuple(map(folded, cell))].append(group)
        left_out: list[Row] = []
        loose = 0
        for row in rows:
            cell = self._cell(row.cells)
            exact = groups.get(cell)
            near = [exact] if exact is not None else alike.get(tuple(map(folded, cell)), [])
            if len(near) != 1 or len(near[0].questions) > 1:
                left_out.append(row)
            else:
                near[0].rows.append(row)
                loose += exact is None
        return Matched(tuple(group for group in groups.values() if group.rows), tuple(left_out), loose)

    def contradictions(self, rows: Mapping[int, Row], trials: Iterable[Trial]) -> list[Contradiction]:
        """Return the rows, by the ordinals of the trials they answer, whose other columns contradict their trials."""
        found = []
        for ordinal, trial in enumerate(trials):
            if (row := rows.get(ordinal)) is not None:
                columns = columns_of(self._stage, trial.factors).items()
                named = {column: factor for column, factor in columns if column not in self._stage.factors}
                both = [(name, name) for name in self._rest] + list(named.items())
                unlike = {column: factor for column, factor in both if self._unlike(row, trial, column, factor)}
                if unlike:
                    cells = {c: (row.cells.get(c), trial.factors.get(f)) for c, f in unlike.items()}
                    said = {f: row.cells[c] for c, f in unlike.items() if c in named}
                    found.append(Contradiction(ordinal, row, trial.id, cells, said))
        return found

    def _unlike(self, row: Row, trial: Trial, column: str, factor: str) -> bool:
        said, own = row.cells.get(column), trial.factors.get(factor)
        # An empty cell of a column with another name says nothing; of a factor, that the trial has no level.
        if column not in self._plain:
            return folded(said) not in (None, folded(own))
        return self._plain[column](said) != self._plain[column](own) and folded(said) != folded(own)

    def reasons(self, rows: Sequence[Row]) -> str:
        """Explain why rows were left out: the number for each column, and the first row.

        A row counts for the first column in which it has what no trial has, the column with the fewest levels first.
        """
        by = sorted(self._by, key=lambda name: len(self._levels[name]))
        alike = {name: set(map(folded, self._levels[name])) for name in by}
        kinds: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            new = (name for name in by if folded(self._plain[name](row.cells.get(name))) not in alike[name])
            kinds[next(new, "")].append(row)
        return "; ".join(self._reason(name, some) for name, some in kinds.items())

    def _reason(self, name: str, rows: Sequence[Row]) -> str:
        several = len(self._answers.sources) > 1
        first = f"the first on {rows[0].place if several else f'{rows[0].source.unit} {rows[0].number}'}"
        if not name:
            return f"{len(rows):,} have a combination of levels that belongs to no trial, or to more than one ({first})"
        levels = list(dict.fromkeys(row.cells.get(name) for row in rows))
        shown = ", ".join(map(repr, levels)) if len(levels) <= FEW else f"such as {levels[0]!r}"
        return f"{len(rows):,} have a {name} that no trial has: {shown} ({first})"

    def refusal(self, rows: Sequence[Row]) -> DataError:
        """Return an error for rows that were left out: which, why, and columns that distinguish their trials."""
        row = rows[0]
        cell = tuple(map(folded, self._cell(row.cells)))
        alike = [trial for trial in self._trials() if tuple(map(folded, self._cell(_named(trial)))) == cell]
        first = listed(f"{name!r} is {shown(row.cells.get(name))}" for name in self._by)
        fields: dict[str, object] = {"line": row.number, "rows": len(rows)}
        if alike:
            others = [name for name in self._stage.factors if name not in self._by]
            names = [name for name in others if len({trial.factors.get(name) for trial in alike}) > 1]
            why = f"a row whose {first} matches {len(alike)} trials, such as {alike[0].id!r} and {alike[-1].id!r}"
            mend = f"Map the columns that distinguish them: {', '.join(names) or TRIAL} (--columns); or skip such rows"
        else:
            nearest = self._nearest(row)
            unlike = [name for name in self._by if folded(row.cells.get(name)) != folded(_named(nearest).get(name))]
            apart = listed(f"{n!r} is {differing(row.cells.get(n), _named(nearest).get(n))}" for n in unlike)
            why = f"there is no such trial. The nearest is {nearest.id!r}: {apart}"
            mend = "Correct such rows, or skip them"
            fields |= {"nearest": nearest.id, "differs": unlike}
        share = f"{len(rows):,} of {len(self._answers.rows):,} rows"
        where = f"{self._answers.numbers(rows)} ({share})"
        return DataError(
            f"{where}: {why}. {mend} with --bad-rows skip, or --allow-unmatched.", code="import.unmatched", **fields
        )

    def _nearest(self, row: Row) -> Trial:
        """Return the trial that differs from a row in the fewest columns, and least in their text."""
        nearest: list[Trial] = []
        most = -1
        for trial in self._trials():
            named = _named(trial)
            equal = sum(folded(row.cells.get(name)) == folded(named.get(name)) for name in self._by)
            if equal > most:
                nearest, most = [], equal
            if equal == most:
                nearest.append(trial)

        def like(trial: Trial) -> float:
            return sum(likeness(row.cells.get(name), _named(trial).get(name)) for name in self._by)

        return max(nearest, key=like)

    def _groups(self) -> Mapping[Cell, Group]:
        groups: dict[Cell, Group] = defaultdict(Group)
        for ordinal, trial in enumerate(self._trials()):
            cell = self._cell(_named(trial))
            group = groups[cell]
            for name, level in zip(self._by, cell, strict=True):
                self._levels[name].add(level)
            group.ordinals.append(ordinal)
            group.trials.append(trial.id)
            group.questions.add(hashlib.sha256(encode(question_of(trial.request))).digest())
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


def columns_of(stage: Stage, factors: Mapping[str, Scalar]) -> Mapping[str, str]:
    """Return columns of imported answers that hold a factor under another name: {column: factor}."""
    return stage.columns(factors) if isinstance(stage, MatchedStage) else {}


def contradicted(answers: Answers, contradictions: Sequence[Contradiction], matched: int) -> DataError:
    """Count the contradicting rows by column, and describe the first."""
    row, cells = contradictions[0].row, contradictions[0].cells
    first = listed(f"{name!r} is {differing(*pair)}" for name, pair in cells.items())
    stated, expected = ({str(pair[side]).casefold() for pair in cells.values()} for side in (0, 1))
    swapped = " (the same, in other columns)" if len(cells) > 1 and stated == expected else ""
    return DataError(
        f"{answers.path}: {len(contradictions):,} of the {matched:,} matched rows contradict the data of the study: "
        f"{by_column(contradictions)}. The first is {row.place}, for trial {contradictions[0].trial!r}: "
        f"{first}{swapped}. Give the data set that these answers belong to, or correct the rows; or import them "
        "as the file states them (--disagreeing keep), or leave them out (--disagreeing drop, --bad-rows skip).",
        code="import.contradiction",
        rows=len(contradictions),
        line=row.number,
    )


def by_column(contradictions: Sequence[Contradiction]) -> str:
    """Return the number of contradictions by column."""
    columns = Counter(name for contradiction in contradictions for name in contradiction.cells)
    return ", ".join(f"{name!r} in {count:,}" for name, count in columns.items())
