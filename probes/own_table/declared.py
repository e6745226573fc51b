"""What a user says of a table: which column is the outcome, whose groups are compared, and what is sampled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ...core.contracts.declared import DeclaredQuestion
from ...core.contracts.errors import UnknownNameError, UsageError
from ...core.contracts.estimates import COLUMNS
from ...core.contracts.options import plainly

RESERVED = frozenset({*COLUMNS, "label", "status", "reason", "key", "trial", "stage"})
"""Names that factors cannot have, for the observations of a run or its estimates have them."""


class TableForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the command line, or a TOML file, says of a table."""

    outcome: str
    """The column of outcomes: numbers, or texts of which `positive` count."""
    group: str = ""
    """The column whose levels are compared."""
    between: tuple[str, ...] = ()
    """The levels that are compared: the first less the second. By default all, in alphabetical order."""
    sampled: tuple[str, ...] = ()
    """Columns whose levels are examples of a larger population: templates, names, items, raters."""
    by: tuple[str, ...] = ()
    """Columns for whose levels the measures are also given."""
    within: tuple[str, ...] = ()
    """Columns that are equal where groups are compared, besides the sampled ones and `by`."""
    positive: tuple[str, ...] = ()
    """The outcomes that count as 1, such as `hired`; all others are 0."""
    independent: bool = False
    """Whether each row is a sample of its own, where nothing is sampled."""
    limit: float | None = None
    """Distance from neutral up to which a difference does not matter, in the unit of the outcome."""
    because: str = ""
    """Why this limit."""
    title: str = ""
    measures: tuple[dict[str, Any], ...] = ()
    """Measures in place of the usual ones: see `metrics.measures`."""
    questions: tuple[DeclaredQuestion, ...] = ()

    @property
    def factors(self) -> tuple[str, ...]:
        """Return the columns that rows are kept apart by."""
        columns = [self.group, *self.sampled, *self.by, *self.within]
        for table in self.measures:
            columns += _named(table)
        return tuple(name for name in dict.fromkeys(columns) if name and name != "outcome")


def _named(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the columns that a measure names; what it is of is the outcome."""
    yield from (str(table[kind]) for kind in ("difference", "ratio", "ranks", "correlation") if kind in table)
    yield from (str(name) for key in ("where", "by", "within") for name in table.get(key) or ())


def table_form(declared: Mapping[str, Any]) -> TableForm:
    """Return what is declared of a table.

    Raises:
        UnknownNameError: a key that there is not.
        UsageError: a value of another type, or columns that contradict each other.
    """
    for name in declared:
        if name not in TableForm.__struct_fields__:
            raise UnknownNameError("key of a table", name, TableForm.__struct_fields__)
    try:
        form = msgspec.convert(declared, TableForm)
    except msgspec.ValidationError as error:
        raise UsageError(f"what is said of the table: {plainly(error)}", code="options.type") from None
    if taken := [name for name in form.factors if name in RESERVED or not re.search(r"\w", name)]:
        raise UsageError(
            f"the column {taken[0]!r} has a name that runs use themselves. Name it otherwise: --columns "
            f"my_{taken[0]}={taken[0]}, and my_{taken[0]} in its place.",
            code="options.reserved",
            column=taken[0],
        )
    for role, names in {"sampled": form.sampled, "by": form.by, "within": form.within}.items():
        if form.group and form.group in names:
            raise UsageError(
                f"{form.group!r} is the group and {role}. Give it one role.", code="options.conflict", column=form.group
            )
    if form.outcome in form.factors:
        raise UsageError(
            f"{form.outcome!r} is the outcome and a factor. Give it one role.",
            code="options.conflict",
            column=form.outcome,
        )
    if form.between and not form.group:
        raise UsageError("--between names levels of the group. Say which column: --group.", code="options.missing")
    if form.independent and form.sampled:
        raise UsageError(
            f"rows are said to be independent, and {form.sampled[0]!r} to be sampled, whose rows resemble each other. "
            "Leave out --independent.",
            code="options.conflict",
        )
    return form


def usual_measures(form: TableForm, *, yes_no: bool) -> list[dict[str, Any]]:
    """Return the measures of a table that names none: of its groups and their differences, or of all rows."""
    by, of = list(form.by), outcome_words(form)
    if not form.group:
        kind = "share" if yes_no else "mean"
        return [{"name": kind, kind: "outcome", "by": by, "label": f"{kind.capitalize()} of {of}"}]
    compared: dict[str, Any] = {"levels": list(form.between), "of": "outcome"}
    difference = {"name": "difference", "difference": form.group, "by": by, "label": f"Difference of {of}", **compared}
    if yes_no:
        ratio = {"name": "ratio", "ratio": form.group, "label": f"Ratio of the rates of {of}", **compared}
        return [difference | {"unit": "%"}, ratio]
    mean = {"name": "mean", "mean": "outcome", "by": [form.group], "label": f"Mean of {of}"}
    return [difference, mean]


def outcome_words(form: TableForm) -> str:
    """Return what the outcome is called."""
    return f"{form.outcome} ({', '.join(form.positive)})" if form.positive else form.outcome


def usual_questions(form: TableForm, levels: Sequence[str]) -> list[dict[str, Any]]:
    """Return the question of a table that asks none."""
    if not form.group or form.measures:
        return []
    of = outcome_words(form)
    compared = " and ".join(levels) if len(levels) == 2 else f"the levels of {form.group}"
    question: dict[str, Any] = {"asks": f"Does {of} differ between {compared}?", "measure": "difference"}
    question |= {"side": "either"}
    if len(levels) == 2:
        above, below = (f"{of} is greater where {form.group} is {level}" for level in levels)
        question |= {"above": above, "below": below}
    return [question if form.limit is None else question | {"limit": form.limit, "limit_reason": form.because}]
