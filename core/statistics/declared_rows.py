"""A declaration and its rows: what every measure makes of an observation, by group and cluster, and their sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from ..contracts import PROMPT_KEY
from ..contracts.errors import DataError
from ..contracts.records import Scalar
from .declaration import Declaration
from .intervals import Array, Codes, Flags
from .measures import DeclaredMeasure, SummedMeasure
from .multiway import Cells, joint
from .observations import ABSENT, require_columns
from .pivot import pivoted
from .recipes import Column, Sample, roots

CLUSTER = "_cluster"
"""Prefix of the columns of clusters; their number follows."""
UNIT, ROW = "_unit", "_row"
MOST_LEVELS = 62
"""Of `average`: a cluster's levels are the bits of a number."""
UNDEFINED = "undefined"
"""Status of a row that is ok and gives a measure no number."""


class Table:
    """Prepared rows, whose columns are read as arrays: each is made once, however many groups read it."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self._made: dict[str, npt.NDArray[Any]] = {}
        self._named: dict[str, list[str]] = {}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return a column; names, such as those of clusters, as their places in alphabetical order, null first."""
        if name not in self._made:
            column = self.frame[name]
            # A null is a name of its own: the empty one.
            named = column.dtype == pl.String
            self._made[name] = (column.fill_null("").rank("dense").cast(pl.Int64) - 1 if named else column).to_numpy()
        return self._made[name]

    def names(self, name: str) -> list[str]:
        """Return what the places in a column of names, counted from 0, stand for."""
        if name not in self._named:
            self._named[name] = sorted(self.frame[name].fill_null("").unique())
        return self._named[name]


class Part(NamedTuple):
    """The rows of one group."""

    group: dict[str, Scalar]
    table: Table
    rows: Codes
    """Their places in the table."""
    clusters: tuple[Codes, ...]
    """Of every row, by way; one way at least."""
    ways: tuple[str, ...]
    """What the clusters are called; none where every row is independent."""
    units: Codes | None
    """Of every row, where units count alike."""
    combined: tuple[Codes, Codes]
    """The combinations of clusters, shape (cells, ways), and the place of every row among them."""
    unknown: dict[str, int] = {}
    """By column that might have clustered them: the rows without a level, if there are any."""

    @property
    def frame(self) -> pl.DataFrame:
        """Return the rows."""
        return self.table.frame[self.rows]

    def of(self, measure: DeclaredMeasure, design: Declaration) -> Part:
        """Return the same with every row, or prompt, independent, where the measure says so."""
        if not self.ways or not design.independent(measure):
            return self
        codes = self.table[PROMPT_KEY][self.rows] if PROMPT_KEY in self.table.frame.columns else self.rows
        again = len(np.unique(codes)) < len(codes)
        clusters = (_numbered(codes) if again else np.arange(len(codes)),)
        ways = (PROMPT_KEY,) if again else ()
        return self._replace(clusters=clusters, ways=ways, units=None, combined=_combined(clusters), unknown={})


def _combined(clusters: Sequence[Codes]) -> tuple[Codes, Codes]:
    """Return the combinations of clusters that rows have, shape (cells, ways), and the place of every row among them.

    They are in the order of the first way, then the second and so on.
    """
    if len(clusters) == 1:
        return np.arange(int(clusters[0].max(initial=-1)) + 1)[:, None], clusters[0]
    cells, place = np.unique(joint(*clusters), return_inverse=True)
    codes = np.empty((len(cells), len(clusters)), dtype=np.int64)
    for way, levels in enumerate(clusters):
        codes[place.ravel(), way] = levels
    return codes, place.ravel()


class Chosen(NamedTuple):
    """The rows of a group that a measure is about."""

    rows: Codes
    """Their places in the group."""
    sample: Sample
    codes: Codes
    """Of what the row's status is, in `names`."""
    names: list[str]

    @property
    def lost(self) -> Flags:
        """Return which rows are missing."""
        found: Flags = self.codes != (self.names.index("ok") if "ok" in self.names else -1)
        return found

    def statuses(self, rows: Codes) -> list[str]:
        """Return the statuses of some of these rows: `ok`, or why it is missing."""
        return [self.names[code] for code in self.codes[rows]]


def prepared(observations: pl.DataFrame, design: Declaration) -> pl.DataFrame:
    """Return the rows with the columns that `choose` and `parts` read: per measure its inputs, side and status.

    Raises:
        DataError: a column is absent or holds no numbers, or clusters divide the units that count alike.
    """
    require_columns(observations, {"status", *design.kept, *_direct(design)})
    statuses = {"status", *(measure.status for measure in design.summed)}
    ways = [pl.col(name).cast(pl.String) for name in design.clusters]
    identity = design.identity
    named = pl.col(identity).cast(pl.String) if identity in observations.columns else pl.lit(None, dtype=pl.String)
    frame = observations.with_columns(
        *(pl.col(status).cast(pl.String).fill_null(ABSENT) for status in sorted(statuses)),
        named.alias(ROW),
        (pl.col(design.macro).cast(pl.String).fill_null("") if design.macro else pl.lit("")).alias(UNIT),
        *(way.alias(f"{CLUSTER}{number}") for number, way in enumerate(ways)),
    )
    if design.macro and design.clusters:
        _nested(frame, design)
    return frame.with_columns(column for measure in design.summed for column in _columns(frame, measure))


def _direct(design: Declaration) -> frozenset[str]:
    """Return the columns that measures read by name, of the frame as it then is."""
    return frozenset[str]().union(*(measure.needs for measure in design.summed))


def cluster_columns(design: Declaration) -> list[str]:
    """Return the columns of prepared rows that hold the levels of the clusters."""
    return [f"{CLUSTER}{number}" for number in range(len(design.clusters))]


def _nested(frame: pl.DataFrame, design: Declaration) -> None:
    ways = cluster_columns(design)
    counts = frame.group_by(UNIT).agg(pl.col(way).n_unique() for way in ways)
    if (torn := counts.filter(pl.any_horizontal(pl.col(way) > 1 for way in ways))).height:
        raise DataError(
            f"{design.macro} {torn.sort(UNIT)[UNIT][0]!r} lies in several clusters ({' x '.join(design.clusters)}). "
            "What counts as one must lie in one.",
            code="data.contradiction",
        )


def _columns(frame: pl.DataFrame, measure: SummedMeasure) -> Iterator[pl.Series]:
    recipe, key = measure.recipe(), measure.key
    inside = _flags(frame, measure.where) if measure.where is not None else np.ones(frame.height, dtype=np.bool_)
    sides = recipe.sides if measure.strata is None else (measure.strata, None)
    if sides is not None:
        one, other = sides
        first = _flags(frame, one)
        second = _flags(frame, other) if other is not None else _flags(frame, one, negated=True)
        inside = inside & (first | second)
        yield pl.Series(f"{key}.side", (~first).astype(np.int64))
    elif recipe.levels is not None:
        of, levels = recipe.levels
        side = _evaluated(frame, of).cast(pl.String).replace_strict(levels, range(len(levels)), default=-1)
        inside = inside & (side >= 0).to_numpy()
        yield side.cast(pl.Int64).alias(f"{key}.side")
    elif measure.average:
        yield frame[measure.average].cast(pl.String).fill_null("").rank("dense").cast(pl.Int64).alias(f"{key}.side")
    ok = (frame[measure.status] == "ok").to_numpy()
    there = inside if recipe.partial else ok & inside
    values = np.stack([np.where(there, _numbers(frame, own, key), np.nan) for own in recipe.inputs], axis=-1)
    if recipe.partial:
        # Of a row that is missing, one number may be known, but not all of them.
        values[~ok & ~np.isnan(values).any(axis=1)] = np.nan
    if told := recipe.wrong(values):
        raise DataError(f"measure {key!r}: {told}.", code="data.value")
    lost = ok & np.isnan(values).any(axis=1)
    yield pl.Series(f"{key}.in", inside)
    if measure.out is not None:
        yield pl.Series(f"{key}.out", _flags(frame, measure.out) & ok)
    for number, column in enumerate(values.T):
        yield pl.Series(f"{key}.{number}", column)
    status = pl.when(pl.Series(lost)).then(pl.lit(UNDEFINED)).otherwise(measure.status)
    yield frame.select(status.alias(f"{key}.status")).to_series()


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


def parts(table: Table, design: Declaration, by: tuple[str, ...]) -> Iterator[Part]:
    """Yield the groups of prepared rows in the order of their levels (of names, or of an `Enum`); all if not `by`."""
    if not by:
        yield _part({}, table, np.arange(table.frame.height), design)
        return
    places = pl.int_range(pl.len()).alias("_place")
    found = table.frame.select(*by, places).drop_nulls(by).group_by(by).agg("_place").sort(by)
    for *values, rows in found.iter_rows():
        yield _part(dict(zip(by, values, strict=True)), table, np.array(rows, dtype=np.int64), design)


def part(group: dict[str, Scalar], frame: pl.DataFrame, design: Declaration) -> Part:
    """Return all of a frame's prepared rows with their clusters numbered in the order of their names."""
    return _part(group, Table(frame), np.arange(frame.height), design)


def _part(group: dict[str, Scalar], table: Table, rows: Codes, design: Declaration) -> Part:
    units = _numbered(table[UNIT][rows]) if design.macro else None
    named = dict(zip(design.clusters, cluster_columns(design), strict=True))
    unknown: dict[str, int] = {}
    if design.unknown == "left out":
        lost = {name: table.frame[own].gather(rows).null_count() for name, own in named.items()}
        unknown = {name: count for name, count in lost.items() if count}
    ways = tuple(name for name in named if name not in unknown)
    clusters = tuple(_numbered(table[named[name]][rows]) for name in ways)
    if units is not None and not clusters:
        clusters, ways = (units,), (design.macro,)
    clusters = clusters or (np.arange(len(rows)),)
    return Part(group, table, rows, clusters, ways, units, _combined(clusters), unknown)


def _numbered(codes: Codes) -> Codes:
    """Return the places of codes among those that there are, from 0 up."""
    there = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.bool_)
    there[codes] = True
    found: Codes = (np.cumsum(there) - 1)[codes]
    return found


def choose(measure: SummedMeasure, part: Part) -> Chosen:
    """Return what the measure makes of the rows it is about."""
    whole, name = part.table, measure.key
    inside = whole[f"{name}.in"] if measure.out is None else whole[f"{name}.in"] & ~whole[f"{name}.out"]
    rows: Codes = np.flatnonzero(inside[part.rows])
    places, inputs = part.rows[rows], range(len(measure.recipe().inputs))
    values = np.stack([whole[f"{name}.{number}"][places] for number in inputs], axis=-1)
    several = f"{name}.side" in whole.frame.columns
    sides = whole[f"{name}.side"][places] if several else np.zeros(len(rows), dtype=np.int64)
    if measure.average:
        sides = _numbered(sides)
        if (most := int(sides.max(initial=0)) + 1) > MOST_LEVELS:
            raise DataError(
                f"{measure.average} has {most} levels, and at most {MOST_LEVELS} can weigh alike.", code="data.value"
            )
    units = np.zeros(len(rows), dtype=np.int64) if part.units is None else part.units[rows]
    status = f"{name}.status"
    return Chosen(rows, Sample(values, sides, units), whole[status][places], whole.names(status))


def table(measure: SummedMeasure, part: Part, chosen: Chosen) -> Cells:
    """Return the sums of the readable rows by the clusters, of one unit; every measure of a part has the same cells."""
    recipe = measure.recipe()
    there = chosen.sample.there
    values, sides = chosen.sample.values[there], chosen.sample.sides[there]
    codes, cell_of = part.combined
    place = cell_of[chosen.rows[there]]
    width = 1 if recipe.sides is None and measure.strata is None else 2
    if recipe.levels is not None:
        width = len(recipe.levels[1])
    if measure.average:
        width = int(chosen.sample.sides.max(initial=0)) + 1
    if part.units is not None:
        key = part.units[chosen.rows[there]] * width + sides
        _, first, own = np.unique(key, return_index=True, return_inverse=True)
        sizes = np.bincount(own, minlength=len(first))
        values = np.stack([np.bincount(own, column, len(first)) / sizes for column in values.T], axis=-1)
        sides, place = sides[first], place[first]
    found = recipe.table(values, place * width + sides, len(codes) * width)
    return Cells(codes, found.reshape(len(codes), 1, width, found.shape[-1]))


def settled(design: Declaration, rows: pl.DataFrame) -> Declaration:
    """Return the design over prompts, where it has no clusters and several rows are samples of one prompt."""
    alone = not design.clusters and not design.macro
    return msgspec.structs.replace(design, clusters=(PROMPT_KEY,)) if alone and repeated(rows) else design


def repeated(rows: pl.DataFrame) -> bool:
    """Return whether several rows are samples of one prompt."""
    return PROMPT_KEY in rows.columns and bool(rows[PROMPT_KEY].is_duplicated().any())


def widened(observations: pl.DataFrame, design: Declaration) -> pl.DataFrame:
    """Return the observations, pivoted where the design says so."""
    if design.pivot is None:
        return observations
    read = (_direct(design) | design.kept) - {*design.pivot.levels, "status"}
    if PROMPT_KEY in observations.columns:
        read |= {PROMPT_KEY}
        observations = observations.with_columns(pl.col(PROMPT_KEY).min().over(design.pivot.index))
    return pivoted(observations, design.pivot, sorted(read & set(observations.columns) | design.kept))
