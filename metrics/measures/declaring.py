"""`[[measures]]` of a study: what is measured.

[[measures]]
name = "gap"
difference = "gender"
of = "outcome"
levels = ["male", "female"]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from ...core.contracts.declared import LABEL, OUTCOME, measure_name
from ...core.contracts.errors import UsageError
from ...core.contracts.estimates import COLUMNS, Measure
from ...core.contracts.records import Scalar

Kind = Literal["share", "mean", "difference", "ratio", "ranks", "correlation"]
KINDS: tuple[Kind, ...] = ("share", "mean", "difference", "ratio", "ranks", "correlation")
Of = str | tuple[str, ...] | dict[str, float]
"""A column of numbers, a label or several, or a number for each label."""
NAME = re.compile(r"[a-z][a-z0-9_]*")
WORDS: dict[Kind, tuple[str, str]] = {
    "share": ("Share of {of}", "Percentage of the readable answers with {of}."),
    "mean": ("Mean of {of}", "Mean of {of} over the readable answers."),
    "difference": (
        "Difference of {of}",
        "Mean of {of} at one level of {factor} minus that at another, where the other conditions are equal.",
    ),
    "ratio": ("Ratio of the rates of {of}", "The rate of {of} at one level of {factor} over that at another."),
    "ranks": (
        "Difference of ranks of {of}",
        "How often {of} is greater at one level of {factor} than at another, less how often it is smaller.",
    ),
    "correlation": ("Correlation of {of} with {factor}", "{method} correlation of {of} with {factor}."),
}
"""Label and meaning of a measure that states none."""


class MeasureTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A measure of a study: one of `share`, `mean`, `difference`, `ratio`, `ranks` and `correlation`, and of what."""

    name: str = ""
    """By default the kind and what it is of: `difference_gender`."""
    share: str | tuple[str, ...] | None = None
    """The share of answers with this label, with one of several, or for which a column is true."""
    mean: Of | None = None
    """The mean of a column, or of a number for each label: `{ biased = 1, anti = -1, unknown = 0 }`."""
    difference: str | None = None
    """The factor whose levels are compared: the mean of `of` at one level less that at another, within equal cells."""
    ratio: str | None = None
    """The factor whose levels are compared by the share of `of`: the selection rate of each, and their ratio."""
    ranks: str | None = None
    """The factor whose levels are compared by ranks of `of`: Cliff's delta, from -1 to 1."""
    correlation: str | None = None
    """The covariate that `of` is correlated with."""
    of: Of = OUTCOME
    """What a difference, ratio, ranks or a correlation is of."""
    method: Literal["pearson", "spearman", "kendall"] = "pearson"
    """Of a correlation."""
    levels: tuple[str, ...] = ()
    """Of a comparison: the first less the second, of more than two each pair; by default in alphabetical order."""
    reference: str = ""
    """Of a ratio: the level that the others are divided by; by default the one with the greatest rate."""
    within: tuple[str, ...] | None = None
    """Of a difference or ratio: the columns that are equal where levels are compared. None: those of the metric, and
    none of a ratio."""
    where: dict[str, Scalar | tuple[Scalar, ...]] = {}
    """Levels by column of the rows that it is about."""
    by: tuple[str, ...] = ()
    """Factors for whose combinations it is also given, besides the whole."""
    neutral: float | None = None
    """What an unbiased model gives; by default 0 of a comparison or correlation, 1 of a ratio, else not known."""
    range: tuple[float, float] | None = None
    """The least and the greatest number that an answer can be; it bounds what is missing."""
    unit: str = ""
    """Of numbers; `%` says that they are 0 and 1."""
    label: str = ""
    """What it is called in tables."""
    meaning: str = ""
    """One sentence: what the number is."""

    @property
    def kind(self) -> Kind:
        """Return which measure it is."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def factor(self) -> str:
        """Return the factor whose levels are compared, or the covariate; empty: none."""
        return "" if self.kind in ("share", "mean") else str(getattr(self, self.kind))

    @property
    def value(self) -> Of:
        """Return what it is of."""
        return next((of for of in (self.share, self.mean) if of is not None), self.of)

    @property
    def words(self) -> Measure:
        """Return its label and meaning."""
        of = self.value if isinstance(self.value, str) else " or ".join(self.value)
        words = {"of": of, "factor": self.factor, "method": self.method.capitalize()}
        label, meaning = (text.format(**words) for text in WORDS[self.kind])
        return Measure(self.label or label, self.meaning or meaning)

    @property
    def columns(self) -> frozenset[str]:
        """Return the columns that it surely reads; what it is of by one other text is a column or a label."""
        of = {OUTCOME} if self.value == OUTCOME else set[str]() if isinstance(self.value, str) else {LABEL}
        return frozenset({*filter(None, [self.factor]), *self.where, *self.by, *of})


def named_measures(measures: Sequence[MeasureTable]) -> tuple[MeasureTable, ...]:
    """Return the measures with names.

    Raises:
        UsageError: a measure is of no kind or of several, or two have one name.
    """
    named = [named_measure(measure) for measure in measures]
    names = [measure.name for measure in named]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(
            f"two measures are called {twice[0]!r}. Give each a name of its own.", code="measures.name", name=twice[0]
        )
    return tuple(named)


def named_measure(table: MeasureTable) -> MeasureTable:
    """Return a measure with its name.

    Raises:
        UsageError: it is of no kind or of several, or has a name or a key that it cannot have.
    """
    kinds = [kind for kind in KINDS if getattr(table, kind) is not None]
    if len(kinds) != 1:
        listed = " and ".join(kinds) or "none of them"
        raise UsageError(
            f"a measure {f'{table.name!r} ' if table.name else ''}has {listed}. Give one of {', '.join(KINDS)}.",
            code="measures.kind",
        )
    name = table.name or measure_name(table.kind, table.factor or table.value)
    if not NAME.fullmatch(name):
        raise UsageError(
            f"a measure is called {name!r}. Use small letters, digits and _, with a letter first.", code="measures.name"
        )
    if taken := [column for column in (*table.by, table.factor) if column in COLUMNS]:
        raise UsageError(
            f"the measure {name!r} names the column {taken[0]!r}, which is a field of every estimate. Rename it.",
            code="options.reserved",
        )
    if table.kind in ("share", "ratio") and isinstance(table.value, dict):
        raise UsageError(
            f"the measure {name!r} is a {table.kind}, of labels or of a column of true and false. Numbers by label "
            "have a mean or a difference.",
            code="measures.kind",
        )
    return msgspec.structs.replace(table, name=name)
