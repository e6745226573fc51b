"""A declaration and its rows: what every measure makes of an observation, by group and cluster, and their sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from ..contracts.errors import DataError
from ..contracts.records import Scalar
from .intervals import Array, Codes, Flags
from .measures import DeclaredMeasure, Derived, SummedMeasure
from .observations import ABSENT, require_columns
from .pivot import Pivot, pivoted
from .recipes import Column, Sample, roots

CLUSTERS = ("_cluster0", "_cluster1")
UNIT, ROW = "_unit", "_row"
UNDEFINED = "undefined"
"""Status of a row that is ok and gives a measure no number."""


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """What a metric declares: measures, and what their rows share."""

    measures: tuple[DeclaredMeasure, ...]
    groups: tuple[tuple[str, ...], ...] = ((),)
    """Factors that estimates are given by; `()` is the whole. A row without a level is in no group of the factor."""
    clusters: tuple[str, ...] = ()
    """Columns whose values stand or fall together: one, or two that cross; without one every row is by itself."""
    macro: str = ""
    """Column whose levels count alike, however many rows each has: the values are means of the levels' means."""
    pivot: Pivot | None = None

    def bases(self, measure: DeclaredMeasure) -> tuple[SummedMeasure, ...]:
        """Return the measures with sums of their own that a measure rests on, in their order."""
        if isinstance(measure, Derived):
            named = self.named
            found = [base for name in measure.of for base in self.bases(named[name])]
            return tuple(dict.fromkeys(found))
        assert isinstance(measure, SummedMeasure)
        return (measure,)

    @property
    def summed(self) -> tuple[SummedMeasure, ...]:
        """Return the measures with sums of their own."""
        return tuple(measure for measure in self.measures if isinstance(measure, SummedMeasure))

    @property
    def named(self) -> dict[str, DeclaredMeasure]:
        """Return the measures by name."""
        return {measure.name: measure for measure in self.measures}

    @property
    def factors(self) -> tuple[str, ...]:
        """Return the columns that rows are kept apart by."""
        return tuple(dict.fromkeys([name for by in self.groups for name in by]))

    @property
    def kept(self) -> frozenset[str]:
        """Return the columns that say where a row belongs."""
        return frozenset({*self.factors, *self.clusters, *filter(None, [self.macro])})

    @property
    def needs(self) -> frozenset[str]:
        """Return the observations' columns that are read, but for those that a function reads."""
        read = frozenset[str]().union(*(measure.needs for measure in self.summed))
        if self.pivot is not None:
            read = read - {*self.pivot.levels} | self.pivot.needs
        return read | self.kept | {"status"}

    @property
    def row(self) -> str:
        """Return what a row is called."""
        return self.pivot.index if self.pivot is not None else "answer"

    @property
    def independent(self) -> bool:
        """Return whether every row is by itself."""
        return not self.clusters and not self.macro

    @property
    def clustered_by(self) -> str:
        """Return what is drawn whole, in words."""
        return " x ".join(self.clusters) or self.macro or f"{self.row}s"

    def problems(self) -> Iterator[str]:
        """Yield what cannot be computed."""
        names = [measure.name for measure in self.measures]
        yield from (f"two measures are called {name!r}" for name in {n for n in names if names.count(n) > 1})
        known: set[str] = set()
        for measure in self.measures:
            if isinstance(measure, Derived) and (unknown := set(measure.of) - known):
                yield f"{measure.name!r} is derived from {sorted(unknown)[0]!r}, which no measure before it is called"
            known.add(measure.name)
        if len(self.clusters) > 2 or len(set(self.clusters)) < len(self.clusters):
            yield f"clusters are {self.clusters}; name one column, or two that cross"


class Part(NamedTuple):
    """The rows of one group."""

    group: dict[str, Scalar]
    frame: pl.DataFrame
    clusters: tuple[Codes, ...]
    """Of every row, one or two."""
    units: Codes | None
    """Of every row, where units count alike."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return how many clusters there are, each way."""
        return tuple(int(own.max(initial=-1)) + 1 for own in self.clusters)


class Chosen(NamedTuple):
    """The rows of a group that a measure is about."""

    rows: Codes
    """Their places in the group."""
    sample: Sample
    statuses: list[str]
    """`ok`, or why a row is missing."""


def prepared(observations: pl.DataFrame, design: Design) -> pl.DataFrame:
    """Return the rows with the columns that `choose` and `parts` read: per measure its inputs, side and status.

    Raises:
        DataError: a column is absent or holds no numbers, or clusters divide the units that count alike.
    """
    require_columns(observations, {"status", *design.kept, *_direct(design)})
    status = pl.col("status").cast(pl.String).fill_null(ABSENT)
    ways = [pl.col(name).cast(pl.String).fill_null("") for name in design.clusters]
    identity = design.pivot.index if design.pivot is not None else "trial"
    named = pl.col(identity).cast(pl.String) if identity in observations.columns else pl.lit(None, dtype=pl.String)
    frame = observations.with_columns(
        status,
        named.alias(ROW),
        (pl.col(design.macro).cast(pl.String).fill_null("") if design.macro else pl.lit("")).alias(UNIT),
        *(way.alias(name) for way, name in zip(ways, CLUSTERS, strict=False)),
    )
    if design.macro and design.clusters:
        _nested(frame, design)
    return frame.with_columns(column for measure in design.summed for column in _columns(frame, measure))


def _direct(design: Design) -> frozenset[str]:
    """Return the columns that measures read by name, of the frame as it then is."""
    return frozenset[str]().union(*(measure.needs for measure in design.summed))


def _nested(frame: pl.DataFrame, design: Design) -> None:
    ways = CLUSTERS[: len(design.clusters)]
    counts = frame.group_by(UNIT).agg(pl.col(way).n_unique() for way in ways)
    if (torn := counts.filter(pl.any_horizontal(pl.col(way) > 1 for way in ways))).height:
        raise DataError(
            f"{design.macro} {torn.sort(UNIT)[UNIT][0]!r} lies in several clusters ({design.clustered_by}). "
            "What counts as one must lie in one.",
            code="data.contradiction",
        )


def _columns(frame: pl.DataFrame, measure: SummedMeasure) -> Iterator[pl.Series]:
    recipe, name = measure.recipe(), measure.name
    inside = _flags(frame, measure.where) if measure.where is not None else np.ones(frame.height, dtype=np.bool_)
    if recipe.sides is not None:
        one, other = recipe.sides
        first = _flags(frame, one)
        second = _flags(frame, other) if other is not None else _flags(frame, one, negated=True)
        inside = inside & (first | second)
        yield pl.Series(f"{name}.side", (~first).astype(np.int64))
    ok = (frame["status"] == "ok").to_numpy()
    values = np.stack([np.where(ok & inside, _numbers(frame, own, name), np.nan) for own in recipe.inputs], axis=-1)
    if told := recipe.wrong(values):
        raise DataError(f"measure {name!r}: {told}.", code="data.value")
    lost = ok & np.isnan(values).any(axis=1)
    yield pl.Series(f"{name}.in", inside)
    for number, column in enumerate(values.T):
        yield pl.Series(f"{name}.{number}", column)
    yield frame.select(
        pl.when(pl.Series(lost)).then(pl.lit(UNDEFINED)).otherwise("status").alias(f"{name}.status")
    ).to_series()


def _evaluated(frame: pl.DataFrame, column: Column) -> pl.Series:
    if isinstance(column, str):
        return frame[column]
    if not isinstance(column, pl.Expr):
        return column(frame)
    try:
        return frame.with_columns(column.alias("_"))["_"]
    except pl.exceptions.PolarsError as error:
        # Before anybody answers, columns of answers have no type; many expressions cannot be taken of such.
        if any(frame.schema[name] == pl.Null for name in roots([column])):
            return pl.Series([None] * frame.height, dtype=pl.Float64)
        raise DataError(f"cannot compute {column}: {str(error).splitlines()[0]}.", code="data.type") from None


def _numbers(frame: pl.DataFrame, column: Column, name: str) -> Array:
    found = _evaluated(frame, column)
    try:
        numbers = found.cast(pl.Float64).fill_null(np.nan).to_numpy()
    except pl.exceptions.PolarsError:
        raise DataError(f"measure {name!r} reads {found.dtype}, not numbers.", code="data.type") from None
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _flags(frame: pl.DataFrame, column: Column, *, negated: bool = False) -> Flags:
    found = _evaluated(frame, column).cast(pl.Boolean)
    flags: Flags = (~found if negated else found).fill_null(False).to_numpy().astype(np.bool_)
    return flags


def parts(frame: pl.DataFrame, design: Design, by: tuple[str, ...]) -> Iterator[Part]:
    """Yield the groups of prepared rows in the order of their names; the whole where `by` is empty."""
    if not by:
        yield part({}, frame, design)
        return
    for values in sorted(frame.select(by).drop_nulls().unique().rows(), key=str):
        same = [pl.col(name) == pl.lit(value) for name, value in zip(by, values, strict=True)]
        yield part(dict(zip(by, values, strict=True)), frame.filter(*same), design)


def part(group: dict[str, Scalar], frame: pl.DataFrame, design: Design) -> Part:
    """Return rows with their clusters numbered in the order of their names."""
    units = _codes(frame[UNIT]) if design.macro else None
    ways = tuple(_codes(frame[name]) for name in CLUSTERS[: len(design.clusters)])
    return Part(group, frame, ways or (np.arange(frame.height) if units is None else units,), units)


def _codes(names: pl.Series) -> Codes:
    found: Codes = np.unique(names.to_numpy().astype(str), return_inverse=True)[1]
    return found


def choose(measure: SummedMeasure, part: Part) -> Chosen:
    """Return what the measure makes of the rows it is about."""
    frame, name = part.frame, measure.name
    rows: Codes = np.flatnonzero(frame[f"{name}.in"].to_numpy())
    inputs = range(len(measure.recipe().inputs))
    values = np.stack([frame[f"{name}.{number}"].to_numpy() for number in inputs], axis=-1)[rows]
    two = measure.recipe().sides is not None
    sides = frame[f"{name}.side"].to_numpy()[rows] if two else np.zeros(len(rows), dtype=np.int64)
    units = np.zeros(len(rows), dtype=np.int64) if part.units is None else part.units[rows]
    return Chosen(rows, Sample(values, sides, units), frame[f"{name}.status"].gather(rows).to_list())


def table(measure: SummedMeasure, part: Part, chosen: Chosen) -> Array:
    """Return the sums of the readable rows, shape (*clusters, 1 unit, sides, columns)."""
    recipe = measure.recipe()
    there = chosen.sample.there
    values, sides = chosen.sample.values[there], chosen.sample.sides[there]
    clusters = [own[chosen.rows[there]] for own in part.clusters]
    if part.units is not None:
        key = part.units[chosen.rows[there]] * 2 + sides
        _, first, own = np.unique(key, return_index=True, return_inverse=True)
        sizes = np.bincount(own, minlength=len(first))
        values = np.stack([np.bincount(own, column, len(first)) / sizes for column in values.T], axis=-1)
        sides, clusters = sides[first], [codes[first] for codes in clusters]
    width = 1 if recipe.sides is None else 2
    place = clusters[0] if len(clusters) < 2 else clusters[0] * part.shape[1] + clusters[1]
    found = recipe.table(values, place * width + sides, int(np.prod(part.shape)) * width)
    return found.reshape(*part.shape, 1, width, found.shape[-1])


def widened(observations: pl.DataFrame, design: Design) -> pl.DataFrame:
    """Return the observations, pivoted where the design says so."""
    return observations if design.pivot is None else pivoted(observations, design.pivot, sorted(design.kept))
