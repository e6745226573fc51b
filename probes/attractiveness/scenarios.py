"""The scenarios: the paper's 91 as a data file, and a user's own in the same format."""

from __future__ import annotations

from importlib.resources import files

import msgspec

from ...core.contracts.errors import DataError
from ...core.tables import Form, Repeats, Row, parse_file
from .terms import BETWEEN

REQUIRED = ("first", "second", "category", "kind")
ARTICLES = ("", "a", "an")
POSITIVES = ("", "first", "second")


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Two options, of which a model must choose one for a face."""

    first: str
    second: str
    category: str
    """`jobs`, `traits`, `conditions`, or a user's own."""
    kind: str
    """Sub-category, such as `gender` of jobs."""
    positive: str | None = None
    """`first` or `second`, if one option is positive."""
    stereotype: str | None = None
    """The group that a stereotype associates with each option: `male vs female`, `Latino vs Black`."""
    rating: str | None = None
    """Name of the corresponding human ratings, such as `trustworthiness`."""
    article: str = ""
    """Article before the options in the question: `a` for jobs."""

    @property
    def id(self) -> str:
        """Return the name as in the paper: `Doctor vs Nurse`."""
        return f"{self.first}{BETWEEN}{self.second}"


def load_scenarios(own: str | None = None, built_in: bool = True) -> list[Scenario]:
    """Return the paper's 91 scenarios, then a user's own.

    Raises:
        DataError: the file cannot be used, or a scenario occurs twice.
    """
    shipped = str(files(__package__).joinpath("data/scenarios.csv"))
    paths = ([shipped] if built_in else []) + ([own] if own is not None else [])
    if not paths:
        raise DataError(
            "the study has no scenario. Give a file with scenarios=FILE, or omit built_in.",
            code="data.no-rows",
        )
    form = Form(REQUIRED, ("positive", "stereotype", "rating", "article"))
    repeats = Repeats((*form.required, *form.optional))

    def unique(row: Row) -> Scenario:
        scenario = _scenario(row)
        repeats.check(row, scenario.id, f"scenario {scenario.id!r}")
        return scenario

    return [scenario for path in paths for scenario in parse_file(path, form, unique).values]


def _scenario(row: Row) -> Scenario:
    first, second = row.filled("first").strip(), row.filled("second").strip()
    if first.casefold() == second.casefold():
        raise row.fault(f"both options are {first!r}. Give two different ones.", "data.text")
    choices = {
        column: row.choice(column, known) if column in row.cells else ""
        for column, known in (("positive", POSITIVES), ("article", ARTICLES))
    }
    stereotype = row.optional("stereotype")
    if stereotype is not None and stereotype.count(BETWEEN) != 1:
        raise row.fault(
            f"stereotype {stereotype!r} does not name two groups. Write `male vs female`, or leave it empty.",
            "data.value",
        )
    return Scenario(
        first=first,
        second=second,
        category=row.filled("category").strip(),
        kind=row.filled("kind").strip(),
        positive=choices["positive"] or None,
        stereotype=stereotype,
        rating=row.optional("rating"),
        article=choices["article"],
    )
