"""The levels of a column in words, as filters, strata and indices of answers name them."""

from __future__ import annotations

import polars as pl

NOTHING = ""
"""The word of a missing value."""
EMPTY = '""'
"""The word of an empty text."""


def as_words(values: pl.Series) -> pl.Series:
    """Return the values as words: texts as they are, `""` for an empty one, nothing for a missing one."""
    if values.dtype == pl.Null:
        return pl.Series([NOTHING] * len(values), dtype=pl.String)
    if values.dtype == pl.String:
        values = values.replace("", EMPTY)
    elif values.dtype.is_nested() or values.dtype == pl.Binary:
        values = pl.Series([None if value is None else repr(value) for value in values], dtype=pl.String)
    return values.cast(pl.String).fill_null(NOTHING)
