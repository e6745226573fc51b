"""Which columns of a table lie within which, and which rows repeat each other: what it shows of its design."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def nested_in(frame: pl.DataFrame, inner: str, outer: str) -> bool:
    """Return whether each level of one column occurs with one level of the other, which has several."""
    if inner == outer:
        return False
    levels = frame.select(inner, outer).drop_nulls()
    if levels.is_empty() or levels[outer].n_unique() < 2:
        return False
    return levels.unique().height == levels[inner].n_unique()


def nesting(frame: pl.DataFrame, columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of a column and one that it lies within; of two that go one to one, the second in the first."""
    pairs = []
    for place, outer in enumerate(columns):
        for number, inner in enumerate(columns):
            if nested_in(frame, inner, outer) and not (number < place and nested_in(frame, outer, inner)):
                pairs.append((inner, outer))
    return pairs


def outermost(frame: pl.DataFrame, sampled: Sequence[str]) -> list[str]:
    """Return the sampled columns that lie within no other: resampling these covers what lies within them."""
    covered = {inner for inner, _ in nesting(frame, sampled)}
    return [name for name in sampled if name not in covered]


def sentences(frame: pl.DataFrame, sampled: Sequence[str], group: str) -> list[str]:
    """Return what the table shows of its design, as sentences."""
    columns = [*sampled, *([group] if group else [])]
    lines = [f"{inner} lies within {outer}." for inner, outer in nesting(frame, columns)]
    if sampled and (repeated := frame.height - frame.select(columns).unique().height):
        lines.append(
            f"{repeated:,} of {frame.height:,} rows have the same {', '.join(columns)} as a row before them: they are "
            "repeats of one condition, and no further evidence of it."
        )
    return lines
