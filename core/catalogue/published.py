"""Published values, single or as tables, and their comparison with measured ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from ..contracts import Estimate
from ..contracts.errors import DataError, UnknownNameError, UsageError
from ..contracts.records import Scalar

SLACK = 1e-9
"""Rounding error: 60.48 - 60.47 is not 0.01 in binary. Relative, because p-values can be as small as 1e-200."""
OTHERWISE = "*"
"""Stands for all rows that are not named."""


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A published value."""

    measure: str
    value: float
    group: dict[str, Scalar] = {}
    tolerance: float | None = None
    relative: float | None = None
    """Relative tolerance, instead of `tolerance`."""
    model: str = ""
    source: str = ""
    of: Literal["value", "p"] = "value"
    """The published quantity: the value of the measure, or its p (not adjusted)."""
    reading: str = ""
    """Interpretation of an ambiguous value; without a tolerance: the reason why the value cannot be judged."""
    n: int | None = None
    """Number of units, such as tests, that a published share is of; None if it is not known."""
    reference: bool = True
    """Whether it says what the model gave, so that another model can be set beside it; false for values that only other
    answers or another reading are held against."""

    @property
    def width(self) -> float | None:
        """Return the largest difference that counts as a replication; None if there is no tolerance."""
        return self.tolerance if self.relative is None else self.relative * abs(self.value)

    def agrees(self, measured: float) -> bool | None:
        """Return whether a measured value equals the published one within its tolerance; None without a tolerance."""
        return None if self.width is None else within(self.value, measured, self.width)


def within(published: float, measured: float, width: float) -> bool:
    """Return whether two values differ by no more than a width."""
    return abs(measured - published) <= width + SLACK * abs(published)


SHARES = ("%", "percentage points")
"""Units of shares, of which n units can give only some."""
FEW_STEPS = 10
"""Up to so many units all possible shares are listed."""


def unresolved(value: Published, measured: Estimate) -> str:
    """Return why a run has too few units to reproduce a published share or to miss it; empty if it can be judged.

    n units give shares in steps of 100 / n. Where these are wider than the tolerance to both sides, the published value
    must be one that they can give, and if its own number of units is known, the run must have as many.
    """
    if value.width is None or value.of != "value" or measured.value is None or not measured.n:
        return ""
    step = 100 / measured.n
    in_steps = abs(measured.value / step - round(measured.value / step)) < SLACK * measured.n
    if measured.unit not in SHARES or not in_steps or step <= 2 * value.width * (1 + SLACK):
        return ""
    if value.n == measured.n or (
        value.n is None and within(value.value, step * round(value.value / step), value.width)
    ):
        return ""
    listed = measured.unit == SHARES[0] and measured.n <= FEW_STEPS
    steps = [f"{step * hits:.3g}" for hits in range(measured.n + 1)]
    named = f"{', '.join(steps[:-1])} and {steps[-1]}" if listed else f"steps of {step:.3g}"
    than = f"the published value is of {value.n}" if value.n else f"none within {value.width:g} of {value.value:g}"
    return f"{measured.n} {'unit gives' if measured.n == 1 else 'units give'} only {named}: {than}"


class Again(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another collection of answers to compare a table's values with."""

    model: str
    tolerances: dict[str, float] = {}
    """Tolerances that replace the table's: by a row's levels (`beauty, feminine`), or by the first level."""
    readings: dict[str, str] = {}
    """Readings by the same keys, or `*` for all other rows. A row with a reading but no tolerance cannot be judged."""


class PublishedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published table: a row per group, a column per measure."""

    by: tuple[str, ...]
    """Factors whose levels are the first cells of a row."""
    measures: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]
    tolerance: float | None = None
    model: str = ""
    source: str = ""
    reading: str = ""
    n: tuple[int | tuple[int, ...], ...] = ()
    """Number of units that the values of each row are of, if it is known: one number, or one for each measure."""
    again: tuple[Again, ...] = ()

    def values(self) -> Iterator[Published]:
        """Yield the values, row by row, then those for other answers.

        Raises:
            DataError: a row does not have one cell per factor and measure, a cell of a measure is not a number, or not
                every row has its number of units.
        """
        if self.n and len(self.n) != len(self.rows):
            raise DataError(
                f"{self.source!r} has {len(self.n)} numbers of units (n) for {len(self.rows)} rows.",
                code="published.row",
            )
        printed = Published(
            measure="", value=0.0, tolerance=self.tolerance, model=self.model, source=self.source, reading=self.reading
        )
        for row, n in zip(self.rows, self.n or [None] * len(self.rows), strict=True):
            values = list(self._row(row, printed))
            of = n if isinstance(n, tuple) else [n] * len(values)
            if len(of) != len(values):
                raise DataError(
                    f"{self.source!r} has {len(of)} numbers of units (n) for {len(values)} measures of {list(row)}.",
                    code="published.row",
                )
            yield from (msgspec.structs.replace(value, n=units) for value, units in zip(values, of, strict=True))
        for again in self.again:
            for row in self.rows:
                names = (", ".join(map(str, row[: len(self.by)])), str(row[0]), OTHERWISE)
                reading = next((again.readings[name] for name in names if name in again.readings), "")
                default = None if reading else self.tolerance
                tolerance = next((again.tolerances[name] for name in names if name in again.tolerances), default)
                replaced = {"model": again.model, "tolerance": tolerance, "reading": reading, "reference": False}
                yield from self._row(row, msgspec.structs.replace(printed, **replaced))

    def _row(self, row: tuple[Scalar, ...], printed: Published) -> Iterator[Published]:
        levels, cells = row[: len(self.by)], row[len(self.by) :]
        if len(cells) != len(self.measures):
            wanted = ", ".join((*self.by, *self.measures))
            raise DataError(
                f"a row of {self.source!r} has {len(row)} cells: {list(row)}. It needs: {wanted}.", code="published.row"
            )
        for measure, cell in zip(self.measures, cells, strict=True):
            if isinstance(cell, bool) or not isinstance(cell, (int, float)):
                raise DataError(
                    f"{cell!r} in a row of {self.source!r} is not a number: {list(row)}.", code="published.row"
                )
            group = dict(zip(self.by, levels, strict=True))
            yield msgspec.structs.replace(printed, measure=measure, value=float(cell), group=group)


ALL = "all"
"""Stands for every model that has published values."""


def references(values: Iterable[Published], names: Iterable[str]) -> dict[str, list[Published]]:
    """Return the values that say what models gave, by model; `all` is every model.

    Raises:
        UsageError: no model has such values.
        UnknownNameError: a model has none.
    """
    by_model: dict[str, list[Published]] = {}
    for value in values:
        if value.model and value.reference and value.of == "value":
            by_model.setdefault(value.model, []).append(value)
    if not by_model:
        raise UsageError("the catalogue has no values that are published for a model.", code="published.none")
    chosen: list[str] = []
    for name in names:
        matches = [model for model in by_model if name == ALL or _plain(model) == _plain(name) != ""]
        if not matches:
            raise UnknownNameError("published model", name, [ALL, *by_model])
        chosen += [model for model in matches if model == name] or matches
    return {model: by_model[model] for model in by_model if model in chosen}


_NOT_A_NAME = re.compile(r"\(.*?\)|[\W_]")


def whose(values: Iterable[Published], name: str, *, imported: bool) -> list[str]:
    """Return the models with published values that match a run's model: one, none, or several.

    Case, spaces and punctuation are ignored, so `palm-2` matches `PaLM 2`. Values of `PaLM 2 (published answers)` are
    for imported answers, those of `PaLM 2` for all others; if one of them is missing, the other is used.
    """
    models = list(dict.fromkeys(value.model for value in values if value.model))
    matches = [model for model in models if same_model(model, name)]
    preferred = [model for model in matches if model.endswith(")") == imported] or matches
    return [model for model in preferred if model.lower() == name.lower()] or preferred


def same_model(one: str, other: str) -> bool:
    """Return whether two names are one but for case, spaces, punctuation and remarks in brackets."""
    return _plain(one) == _plain(other) != ""


def _plain(name: str) -> str:
    return _NOT_A_NAME.sub("", name).lower()


def expand(published: Sequence[Published], tables: Sequence[PublishedTable]) -> tuple[Published, ...]:
    """Return single values and those of tables as one list."""
    return (*published, *(value for table in tables for value in table.values()))
