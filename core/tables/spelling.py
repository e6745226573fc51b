"""Levels that look misspelt: a rare value of a column that is one sign away from a frequent one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

FREQUENT = 10
"""Rows that a level has at least, and times the rows of a value that may be a misspelling of it."""
LEVELS = 50
"""Values of a column of levels at most: one with more holds names or texts."""
SHORTEST = 4
"""Signs of a misspelt value at least: of shorter ones, one sign is much of the word."""


def misspelt_levels(path: str, rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield a sentence per value that is rare in its column and differs from a frequent one by one letter.

    Args:
        path: the file, as messages name it.
        rows: the cells of each row, by column.

    Yields:
        Such as "data.csv, column 'gender': 'femal' is in 1 row. Did you mean 'female' (312 rows)?"
    """
    for column in rows[0] if rows else ():
        counts = Counter(value for row in rows if (value := row.get(column, "").strip()))
        if len(counts) > LEVELS:
            continue
        levels = [level for level, count in counts.most_common() if count >= FREQUENT]
        for value, count in counts.items():
            likely = (level for level in levels if counts[level] >= FREQUENT * count)
            if (intended := next((level for level in likely if is_near(value, level)), None)) is not None:
                times = f"{count} row" if count == 1 else f"{count:,} rows"
                yield (
                    f"{path}, column {column!r}: {value!r} is in {times}. "
                    f"Did you mean {intended!r} ({counts[intended]:,} rows)?"
                )


def is_near(value: str, level: str) -> bool:
    """Return whether two words differ by one letter: one more, one less, another, or two exchanged.

    Case and outer marks do not count; words that differ by a digit are different levels.
    """
    short, long = sorted((value.casefold(), level.casefold()), key=len)
    if short == long:
        return value != level
    if len(short) < SHORTEST or len(long) - len(short) > 1:
        return False
    start = next((at for at, (left, right) in enumerate(zip(short, long, strict=False)) if left != right), len(short))
    left, right = short[start:], long[start:]
    if len(short) < len(long):
        return left == right[1:] and right[0].isalpha()
    if left[1:] == right[1:]:
        return left[0].isalpha() and right[0].isalpha()
    return left[:2] == right[1::-1] and left[2:] == right[2:] and left[:2].isalpha()
