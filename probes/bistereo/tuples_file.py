"""Files of tuples: a descriptor, a noun and an attribute each, with the number of annotators who agreed.

The printed tuples, files of one's own, and files with the columns of the paper alone, whose other columns `prejudge
tuples complete` drafts. Headers, nouns and marks are read in any case, and spaces around cells do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources

import msgspec

from ...core.contracts.errors import DataError
from ...core.contracts.records import Scalar
from ...core.design.factors import AnyFactor
from ...core.design.folder import further, parts_of, read_folder
from ...core.tables import Row, RowError, TableOptions
from ...core.tables.faults import left_out, refusal
from ...core.tables.options import PLAIN

NEEDED = ("descriptor", "term", "attribute")
"""Columns that every file must have; without the others a file makes no test."""
COLUMNS = ("dimension", *NEEDED, "sentiment", "score", "opposite", "standing", "mirrored", "people", "meaning")
OWN = ("gender", "phrase")
"""Columns of data whose nouns are not those of the paper: whom a noun is about, and the group as a phrase."""
DIMENSIONS = ("skin complexion", "body shape", "height", "attire", "miscellaneous")
"""Dimensions of the paper, which are read in any case; others as they are written."""
NO_GENDER = "not stated"
"""Gender of a noun that has none in the file, and is none of the paper's."""
OTHER_NAMES = {
    "body image descriptor": "descriptor",
    "gender-specific term": "term",
    "gender specific term": "term",
    "noun": "term",
    "stereotypical attribute": "attribute",
    "axis": "dimension",
    "polarity": "sentiment",
}
"""Names of columns, as the paper and others call them."""
SENTIMENTS = ("positive", "negative")
STANDINGS = ("advantaged", "disadvantaged", "")
MARKS = {"yes": True, "no": False, "": None}
COUNTERPARTS = {"girl": "boy", "woman": "man", "lady": "gentleman"}
"""Nouns for women with those for men, in the paper; data may have any others."""
TERMS = (*COUNTERPARTS, *COUNTERPARTS.values())
ANNOTATORS = 5
"""Number of annotators of a tuple, if a file has no column `annotators`."""
CHOICES = {"sentiment": (*SENTIMENTS, ""), "standing": STANDINGS, "mirrored": tuple(MARKS)}


class Tuple(msgspec.Struct, frozen=True, kw_only=True):
    """An attribute of a group of people, and the number of annotators who call it a stereotype."""

    dimension: str = ""
    descriptor: str
    term: str
    attribute: str
    sentiment: str = ""
    score: int | None = None
    """None if it is not known."""
    opposite: str | None = None
    standing: str = ""
    mirrored: bool | None = None
    """Whether it can be said of the other gender; None if the file does not say."""
    people: str = ""
    """The descriptor that this one is a synonym of, or the descriptor itself."""
    meaning: str = ""
    """The attribute that this one is a synonym of, or the attribute itself."""
    about: str = ""
    """The gender that the file states; empty: that of the noun."""
    phrase: str = ""
    """The group as it is to stand in the analogy; empty: descriptor and noun."""
    parts: dict[str, Scalar] = {}
    """Levels of the parts that a folder of data declares."""
    drafted: tuple[str, ...] = ()
    """Columns whose values `prejudge study tuples complete` drafted, and nobody confirmed."""

    @property
    def gender(self) -> str:
        """Return the gender that the file states, or that of the paper's noun: `women` or `men`."""
        return self.about or gender_of(self.term)

    def agreed(self, least: int, unscored: bool) -> bool:
        """Return whether enough annotators agreed; `unscored` decides if the score is not known."""
        return unscored if self.score is None else self.score >= least


def gender_of(term: str) -> str:
    """Return the gender of a noun of the paper; `not stated` for any other."""
    return "women" if term in COUNTERPARTS else "men" if term in TERMS else NO_GENDER


def read_tuples(path: str | None) -> list[Tuple]:
    """Read tuples from a file, or the shipped ones; see `parse_tuples`."""
    return parse_tuples(path)[0]


def parse_tuples(path: str | None, options: TableOptions = PLAIN) -> tuple[list[Tuple], str]:
    """Read tuples from a file, or the shipped ones. A row that repeats another one counts once.

    Returns:
        The tuples, and which rows were left out, as a sentence; empty if none was.

    Raises:
        DataError: the file cannot be used, or rows of it, or two rows of one tuple differ; all such rows together.
    """
    if path is not None:
        return _distinct(path, tidy_rows(path, options), options)
    shipped = resources.files(__package__) / "data" / "tuples" / "tuples.csv"
    with resources.as_file(shipped) as file:
        return _distinct(str(file), tidy_rows(str(file)), PLAIN)


def tidy_rows(path: str, options: TableOptions = PLAIN) -> list[Row]:
    """Return the rows of a file with this module's names of columns, without spaces around cells or rows of blanks.

    Raises:
        DataError: the file cannot be used: see `read_table`.
    """
    table = read_folder(path, options)
    names = {column: _named(column) for column in table.columns}
    if twice := sorted(name for name in {*names.values()} if [*names.values()].count(name) > 1):
        raise DataError(f"{path}: two columns are {twice[0]!r}. Rename or remove one.", code="data.column-twice")
    if missing := [name for name in NEEDED if name not in names.values()]:
        has = ", ".join(map(repr, table.columns))
        raise DataError(
            f"{path}: no column {', '.join(map(repr, missing))}. It has: {has}.",
            code="data.column-missing",
            path=path,
            column=missing[0],
        )
    rows = []
    for row in table.rows:
        cells = {names[column]: " ".join(cell.split()) for column, cell in row.cells.items()}
        cells |= {name: cells[name].lower() for name in CHOICES if name in cells}
        of_the_paper = {"dimension": DIMENSIONS, "term": TERMS}
        cells |= {
            name: low for name in of_the_paper if name in cells and (low := cells[name].lower()) in of_the_paper[name]
        }
        if any(cells.values()):
            rows.append(msgspec.structs.replace(row, cells=cells))
    if not rows:
        raise DataError(f"{path}: the file has a header but no rows.", code="data.no-rows")
    return rows


def _named(column: str) -> str:
    plain = " ".join(column.lower().replace("_", " ").split())
    return OTHER_NAMES.get(plain, plain)


def _distinct(path: str, rows: list[Row], options: TableOptions) -> tuple[list[Tuple], str]:
    tuples: dict[tuple[str, ...], Tuple] = {}
    faults: list[RowError] = []
    parts = parts_of(path)
    for row in rows:
        try:
            read = _tuple(row, parts)
            name = (read.dimension, read.descriptor, read.term, read.attribute)
            if tuples.setdefault(name, read) != read:
                problem = f"({', '.join(name[1:])}) is here again with other values. Keep one of the rows."
                raise row.fault(problem, "data.contradiction", "a tuple that is here again with other values")
        except RowError as fault:
            faults.append(fault)
    if faults and (options.bad_rows == "refuse" or not tuples):
        raise refusal(path, len(rows), faults, skippable=options is not PLAIN and bool(tuples))
    return list(tuples.values()), left_out(path, len(rows), faults).sentence()


def _tuple(row: Row, own: Sequence[AnyFactor]) -> Tuple:
    marks = {name: row.choice(name, known) for name, known in CHOICES.items() if name in row.cells}
    score, asked = (None if row.optional(name) is None else _count(row, name) for name in ("score", "annotators"))
    asked = ANNOTATORS if asked is None else asked
    if score is not None and not 0 <= score <= asked:
        raise row.fault(f"score {score} is not from 0 to {asked}: it counts annotators.", "data.value")
    descriptor, attribute = row.filled("descriptor"), row.filled("attribute")
    return Tuple(
        dimension=row.optional("dimension") or "",
        descriptor=descriptor,
        term=row.filled("term"),
        attribute=attribute,
        sentiment=marks.get("sentiment", ""),
        score=score,
        opposite=row.optional("opposite"),
        standing=marks.get("standing", ""),
        mirrored=MARKS[marks.get("mirrored", "")],
        people=row.optional("people") or descriptor,
        meaning=row.optional("meaning") or attribute,
        drafted=tuple((row.optional("drafted") or "").split()),
        about=row.optional("gender") or "",
        phrase=row.optional("phrase") or "",
        parts=further(row, own),
    )


def _count(row: Row, column: str) -> int:
    """Return a whole number, also where a spreadsheet wrote `4.0`."""
    if (value := row.number(column)) != int(value):
        raise row.fault(f"{column} {row.cells[column]!r} is not a whole number.", "data.value")
    return int(value)


def shortage(tuples: list[Tuple], least: int, unscored: bool) -> Iterator[str]:
    """Yield in sentences what keeps tuples from making tests, with the number of tuples that each concerns."""
    agreed = [one for one in tuples if one.agreed(least, unscored)]
    if len(agreed) < len(tuples):
        yield f"{len(tuples) - len(agreed)} of {len(tuples)} tuples have a score below {least}, or none."
    negative = [one for one in agreed if one.sentiment == "negative"]
    below = [one for one in negative if one.standing == "disadvantaged"]
    above = {(o.dimension, o.gender) for o in agreed if o.sentiment == "positive" and o.standing == "advantaged"}
    for lacking, what in (
        ([one for one in agreed if not one.dimension], "have no `dimension`"),
        ([one for one in agreed if not one.sentiment], "have no `sentiment` (positive or negative)"),
        ([one for one in agreed if not one.standing], "have no `standing` (advantaged or disadvantaged)"),
        ([one for one in negative if not one.opposite], "are negative and have no `opposite`"),
        (
            [one for one in below if one.opposite and (one.dimension, one.gender) not in above],
            "are of a dimension and gender without an advantaged group that a positive tuple names",
        ),
    ):
        if lacking:
            yield f"{len(lacking)} of {len(agreed)} tuples {what}, such as ({', '.join(_name(lacking[0]))})."
    if agreed and not below:
        yield "No negative tuple is of a disadvantaged group."


def _name(one: Tuple) -> tuple[str, str, str]:
    return one.descriptor, one.term, one.attribute
