"""A folder of a study's own data: tables of levels or rows, and what they say of themselves in `about.toml`.

The data say which levels exist. A study reads `data.csv` of the folder as it reads a file alone; a table may also be
crossed from tables of levels, each of which is a part of the design, and columns that no study knows may be declared as
parts with a role. Wordings of questions are options of the study, so that a run keeps them. What a folder does not say
is said to be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from ..contracts.errors import DataError
from ..contracts.inputs import load_toml
from ..contracts.options import plainly
from ..tables import Form, Parsed, Row, Table, TableOptions, parse_file, read_table
from ..tables.decoding import decode, read_bytes
from ..tables.names import no_column
from ..tables.options import PLAIN
from ..tables.reading import parse_rows
from .factors import AnyFactor, Fixed, Sampled
from .levels import NAME, Levels, Value, crossed

T = TypeVar("T")
ABOUT = "about.toml"
"""Name of the file in which a folder says what it is."""
DATA = "data"
"""Name of the table of a study, without its ending."""
ENDINGS = ("csv", "tsv", "json", "jsonl", "parquet", "xlsx")
"""Endings of a table that holds rows, in the order in which they are looked for."""
ROLES: Mapping[str, type[Sampled | Fixed]] = {"sampled": Sampled, "fixed": Fixed}


class Answers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of a report on one question of the study, named by its measure."""

    measure: str
    asks: str
    above: str
    below: str


class Crossing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table that is every combination of the levels of some tables; columns that two of them share must agree."""

    levels: tuple[str, ...]
    """Files of level tables in the folder, CSV or TOML. The name of each without its ending is a column."""
    columns: dict[str, str] = {}
    """Further columns, as patterns of the others: `{opening} {noun}.`."""


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a folder says of itself; empty: it does not say."""

    title: str = ""
    summary: str = ""
    """The question of the study about these data."""
    source: str = ""
    """Who wrote them, from what."""
    language: str = ""
    """Code of their language, such as `de`."""
    population: str = ""
    """Which people they are about."""
    limits: tuple[str, ...] = ()
    words: dict[str, str] = {}
    """Words of the report in place of those about the study's own data, by name; the study lists the names."""
    questions: tuple[Answers, ...] = ()
    wordings: dict[str, Any] = {}
    """Options of the study that are texts of these data, such as the question put to the model."""
    parts: dict[str, Literal["sampled", "fixed"]] = {}
    """Columns of the table `data` that are parts of its rows, with their roles."""
    tables: dict[str, Crossing] = {}
    """Tables that are crossed from levels, by name."""


def read_about(path: str) -> About | None:
    """Return what a folder says of itself; None: the path is none that says something.

    Raises:
        DataError: `about.toml` cannot be used.
    """
    place = Path(path) / ABOUT
    if not place.is_file():
        return None
    where = str(place)
    try:
        about = msgspec.convert(load_toml(decode(where, read_bytes(where)), where), About)
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: {plainly(error)}", code="data.about", path=where) from None
    return about


def parts_of(path: str | None) -> tuple[AnyFactor, ...]:
    """Return the parts that a folder declares of its rows, besides those that its study knows."""
    about = None if path is None else read_about(path)
    return () if about is None else tuple(ROLES[role](name) for name, role in about.parts.items())


def table_at(path: str, name: str = DATA) -> str | None:
    """Return the file of a table of a folder, or a path that is a file; None: the folder has no file of this name."""
    place = Path(path)
    if not place.is_dir():
        return path if name == DATA else None
    files = (place / f"{name}.{ending}" for ending in ENDINGS)
    return next((str(file) for file in files if file.is_file()), None)


def read_folder(path: str, options: TableOptions = PLAIN, name: str = DATA) -> Table:
    """Return a table of a folder as it is, or a file.

    Raises:
        DataError: The table is missing, or cannot be read.
    """
    about = read_about(path)
    if about is not None and (crossing := about.tables.get(name)) is not None:
        return _crossed_table(path, name, crossing, Form(()))
    return read_table(_present(path, name), options=options)


def parse_data(
    path: str, form: Form, convert: Callable[[Row], T], options: TableOptions | None = None, name: str = DATA
) -> Parsed[T]:
    """Return what `convert` makes of each row of a file, or of a table of a folder; see `parse_file`.

    Args:
        path: The file or the folder.
        form: What is known of the columns; those that the folder declares as parts are required too.
        convert: Called with each row.
        options: How the file is to be understood.
        name: The table of the folder.

    Raises:
        DataError: The table is missing, or cannot be used.
    """
    about = read_about(path)
    if about is not None and name == DATA:
        form = form._replace(required=(*form.required, *(part for part in about.parts if part not in form.required)))
    crossing = None if about is None else about.tables.get(name)
    if crossing is not None:
        return parse_rows(_crossed_table(path, name, crossing, form), form, convert, options)
    return parse_file(_present(path, name), form, convert, options)


def _present(path: str, name: str) -> str:
    if (file := table_at(path, name)) is None:
        raise DataError(
            f"{path} has no table {name!r}. Write {name}.csv, or [tables.{name}] in {ABOUT} for one that is crossed "
            "from levels.",
            code="data.folder",
            path=path,
            table=name,
        )
    return file


def _crossed_table(path: str, name: str, crossing: Crossing, form: Form) -> Table:
    """Return the combinations of levels as rows."""
    where = f"{Path(path) / ABOUT}, [tables.{name}]"
    tables = {Path(file).stem: _levels(path, where, file) for file in crossing.levels}
    joined = crossed(tables, "/".join(f"{{{key}}}" for key in tables)).rows() if tables else iter(())
    cells = [_filled(where, {key: row[key] for key in row if key != NAME}, crossing.columns) for row in joined]
    if not cells:
        raise DataError(f"{where}: no combination of levels agrees in all shared columns.", code="data.no-rows")
    fields = tuple(dict.fromkeys(column for row in cells for column in row))
    if missing := [column for column in form.required if column not in fields]:
        raise no_column(where, fields, missing)
    rows = [Row(where, at + 1, row, "combination", at) for at, row in enumerate(cells)]
    return Table(where, "", fields, rows)


def _levels(path: str, where: str, file: str) -> Levels:
    # A folder that came from elsewhere names no other files of yours.
    if Path(file).name != file or not (Path(path) / file).is_file():
        raise DataError(
            f"{where}: there is no file {file!r} in the folder. Name level tables that lie beside {ABOUT}.",
            code="data.folder",
            path=path,
            table=file,
        )
    return Levels.read(Path(path) / file)


def _filled(where: str, row: Mapping[str, Value], patterns: Mapping[str, str]) -> dict[str, str]:
    """Return a row with the columns that are patterns of others; each may use those before it."""
    cells = {key: "" if value is None else str(value) for key, value in row.items()}
    for column, pattern in patterns.items():
        try:
            cells[column] = pattern.format_map(cells)
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise DataError(
                f"{where}: the pattern of {column!r} cannot be filled ({error}). It may name, in braces: "
                f"{', '.join(cells)}.",
                code="data.about",
                path=where,
            ) from None
    return cells


def further(row: Row, parts: Sequence[AnyFactor]) -> dict[str, Any]:
    """Return the levels of the parts that a folder declares, in a row; an empty cell is None."""
    return {part.name: row.optional(part.name) for part in parts}
