"""Tables of levels: what a factor can be, and how tables are made of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path

import msgspec

from ..contracts.errors import DataError, UsageError
from ..contracts.inputs import load_toml
from ..contracts.records import Scalar
from ..tables import read_table
from ..tables.decoding import decode, read_bytes

Value = Scalar | tuple[Scalar, ...]
"""A cell of a level table. Several values: the level belongs to each of them; None: it is not known, or any."""
NAME = "name"
"""Key of the name in a row of a table."""


class Levels(msgspec.Struct, frozen=True):
    """The levels of a factor: a distinct name each, and further columns.

    Example:
        >>> from prejudge import design
        >>> words = design.Levels(("kind", "rude"), {"sentiment": ("positive", "negative")})
        >>> words.where({"sentiment": ["negative"]}).names
        ('rude',)
    """

    names: tuple[str, ...]
    columns: dict[str, tuple[Value, ...]] = {}
    """A value per level, by column: texts, covariates, languages, and the levels of other factors that it goes with."""

    def __post_init__(self) -> None:
        """Refuse names that occur twice, and columns of another length."""
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise UsageError(f"two levels are named {twice!r}. Give each level its own name.", code="design.levels")
        for name, values in self.columns.items():
            if len(values) != len(self.names):
                raise UsageError(
                    f"column {name!r} has {len(values)} values for {len(self.names)} levels. Give one value per level.",
                    code="design.levels",
                )

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Value]], name: str = "{name}") -> Levels:
        """Return the table of some rows.

        Args:
            rows: A mapping per level; a column that a row lacks is None there.
            name: Pattern of the names, of the row's columns: `{name}`, `{opening}-{phrase}`.

        Raises:
            UsageError: Two levels have one name.
        """
        listed = list(rows)
        columns = dict.fromkeys(column for row in listed for column in row if column != NAME)
        return cls(
            tuple(name.format(**row) for row in listed),
            {column: tuple(row.get(column) for row in listed) for column in columns},
        )

    @classmethod
    def read(cls, path: str | Path, name: str = "{name}") -> Levels:
        """Read a table from a CSV file, or from the tables `[[levels]]` of a TOML file.

        Args:
            path: The file. An empty cell of a CSV file is None.
            name: Pattern of the names, of the columns.

        Raises:
            DataError: The file cannot be read, or has no level.
            UsageError: Two levels have one name.
        """
        where = str(path)
        if where.endswith(".toml"):
            data = load_toml(decode(where, read_bytes(where)), where)
            rows: list[dict[str, Value]] = [_row(where, row) for row in data.get("levels", ())]
        else:
            rows = [{key: cell or None for key, cell in row.cells.items()} for row in read_table(where).rows]
        if not rows:
            raise DataError(f"{where}: no levels. Give a row, or a table [[levels]], per level.", code="data.no-rows")
        try:
            return cls.of_rows(rows, name)
        except KeyError as error:
            raise DataError(f"{where}: a level has no {error.args[0]!r}. Add it.", code="data.column-missing") from None

    def __len__(self) -> int:
        """Return the number of levels."""
        return len(self.names)

    def rows(self) -> Iterator[dict[str, Value]]:
        """Yield each level as a row, its name as `name`."""
        for at, name in enumerate(self.names):
            yield {NAME: name, **{column: values[at] for column, values in self.columns.items()}}

    def column(self, name: str) -> tuple[Value, ...]:
        """Return the values of a column; `name` are the names. A table without levels has every column.

        Raises:
            UsageError: There is no such column.
        """
        if name == NAME:
            return self.names
        if not self.names:
            return ()
        if name not in self.columns:
            listed = ", ".join((NAME, *self.columns))
            raise UsageError(f"the level table has no column {name!r}. It has: {listed}.", code="design.column")
        return self.columns[name]

    def where(self, conditions: Mapping[str, Iterable[Scalar]]) -> Levels:
        """Return the levels that agree with all conditions: allowed values by column."""
        allowed = {name: tuple(values) for name, values in conditions.items()}
        return self._taken(
            at
            for at in range(len(self))
            if all(agree(self.column(name)[at], values) for name, values in allowed.items())
        )

    def with_column(self, name: str, value: Callable[[Mapping[str, Value]], Value]) -> Levels:
        """Return the table with one more column, computed from each row."""
        return Levels(self.names, self.columns | {name: tuple(value(row) for row in self.rows())})

    def _taken(self, places: Iterable[int]) -> Levels:
        taken = list(places)
        columns = {name: tuple(values[at] for at in taken) for name, values in self.columns.items()}
        return Levels(tuple(self.names[at] for at in taken), columns)


def agree(first: Value, second: Value) -> bool:
    """Return whether two values agree: they share one, or one of them is None."""
    if first is None or second is None:
        return True
    left, right = (value if isinstance(value, tuple) else (value,) for value in (first, second))
    return any(value in right for value in left)


def crossed(tables: Mapping[str, Levels], name: str) -> Levels:
    """Return every combination of the levels of some tables, the last table changing fastest.

    Columns that two tables share must agree: a table of phrases with a column `axis`, crossed with the table `axis`,
    gives each axis its own phrases; a table crossed with itself is a self-join.

    Args:
        tables: Tables by key. The key becomes the column with the names of the table's levels.
        name: Pattern of the names of the combinations, of all columns: `{axis}-{phrase}`.

    Raises:
        UsageError: Two combinations have one name.
    """
    renamed = [[{key: row.pop(NAME)} | row for row in table.rows()] for key, table in tables.items()]
    rows: list[dict[str, Value]] = [{}]
    for table in renamed:
        rows = [_joined(left, right) for left, right in product(rows, table) if _agree(left, right)]
    return Levels.of_rows(rows, name)


def stacked(*tables: Levels, distinct: bool = False) -> Levels:
    """Return the union of tables, one after the other; a column that a table lacks is None there.

    Args:
        tables: The tables.
        distinct: Whether a name that occurred before is left out; otherwise it is an error.

    Raises:
        UsageError: Two levels have one name.
    """
    rows = [row for table in tables for row in table.rows()]
    if distinct:
        first: dict[str, dict[str, Value]] = {}
        for row in rows:
            first.setdefault(str(row[NAME]), row)
        rows = list(first.values())
    return Levels.of_rows(rows)


def _agree(left: Mapping[str, Value], right: Mapping[str, Value]) -> bool:
    return all(agree(left[name], right[name]) for name in left.keys() & right.keys())


def _joined(left: dict[str, Value], right: dict[str, Value]) -> dict[str, Value]:
    """Return both rows as one; of a shared column, the narrower of the two values."""
    narrower = {
        name: left[name] if not isinstance(left[name], tuple) and left[name] is not None else right[name]
        for name in left.keys() & right.keys()
    }
    return left | right | narrower


def _row(path: str, row: object) -> dict[str, Value]:
    try:
        return msgspec.convert(row, dict[str, Value])
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: a level cannot be read ({error}).", code="data.value") from None
