"""Options of every study that reads a file of a user: how the file is to be understood, and what its bad rows cost."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..contracts.effects import harmless
from ..contracts.errors import DataError
from ..contracts.options import Options
from .faults import BadRows
from .names import parse_columns


class TableOptions(Options, frozen=True, kw_only=True):
    """How the file of `data` is read.

    Example:
        >>> from prejudge import tables
        >>> tables.TableOptions(columns=("sent_more=Sentence A",)).renamed
        {'sent_more': 'Sentence A'}
    """

    option_effects = harmless("columns values encoding")

    bad_rows: BadRows = "refuse"
    """Whether a file with unusable rows is refused, or such rows are left out and counted (`skip`)."""
    columns: tuple[str, ...] = ()
    """Columns of fields with other names, as `FIELD=COLUMN`, or paths: `text=messages.0.content`."""
    values: tuple[str, ...] = ()
    """What codes of the file mean, as `FIELD.CODE=VALUE`, such as `stereo_antistereo.0=stereo`."""
    encoding: str = ""
    """Encoding of the file, such as `cp1252`; empty: UTF-8 or UTF-16."""

    @property
    def renamed(self) -> dict[str, str]:
        """Return the column of each field that has another name; raises `DataError`."""
        return parse_columns(self.columns)

    @property
    def codes(self) -> dict[str, dict[str, str]]:
        """Return what codes mean, by field; raises `DataError`."""
        return parse_values(self.values)


def parse_values(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Read `FIELD.CODE=VALUE` texts as values by code, by field.

    Raises:
        DataError: a text of another form, or a code twice.
    """
    by_field: dict[str, dict[str, str]] = {}
    for text in texts:
        (field, dot, code), equals, value = text.partition("=")[0].partition("."), "=" in text, text.partition("=")[2]
        field, code, value = field.strip(), code.strip(), value.strip()
        if not (dot and equals and field and code and value):
            raise DataError(
                f"cannot read {text!r} in values. Write FIELD.CODE=VALUE, such as stereo_antistereo.0=stereo.",
                code="data.values",
            )
        if code in by_field.setdefault(field, {}):
            raise DataError(f"values names two meanings of {code!r} in {field!r}.", code="data.values")
        by_field[field][code] = value
    return by_field


PLAIN = TableOptions()
"""Of a reader whose options have nothing of it: no row may be unusable."""


def table_options(options: msgspec.Struct | None) -> TableOptions:
    """Return the options of a table among those of a study."""
    return options if isinstance(options, TableOptions) else PLAIN
