"""How many answers of one study differ from those of another: whether a nuisance or a planted bias acts at all."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import polars.selectors as cs

from ...contracts import PROMPT_KEY

Answers = Mapping[str, pl.DataFrame]
"""By stage, each trial with its status and what was read of the answer."""
TOLERANCE = 1e-9
TRIAL = "trial"


def answers_of(observations: Mapping[str, pl.DataFrame]) -> Answers:
    """Return the answers of a study, without the keys of its requests, which are those of one model."""
    keys = cs.binary() | cs.by_name(PROMPT_KEY, require_all=False)
    return {name: frame.select(cs.all() - keys) for name, frame in observations.items()}


def changed_share(answers: Answers, others: Answers) -> float:
    """Return the share of answers that are not the same in both studies; a trial of one of them alone has changed.

    Numbers may differ by one constant in all answers, such as that of a likelihood, on which no measure depends.
    """
    every = sum(max(frame.height, others[name].height) for name, frame in answers.items())
    same = sum(_same(frame, others[name]) for name, frame in answers.items())
    return 1 - same / every if every else 0.0


def _same(frame: pl.DataFrame, other: pl.DataFrame) -> int:
    """Return how many trials have the same answer."""
    both = frame.join(other, on=TRIAL, suffix=" of other")
    names = [name for name in frame.columns if name != TRIAL and name in other.columns]
    columns = {name: _equal(both[name], both[f"{name} of other"]) for name in names}
    return int(pl.DataFrame(columns).select(pl.all_horizontal(pl.all()).sum()).item()) if both.height else 0


def _equal(column: pl.Series, other: pl.Series) -> pl.Series:
    if not (column.dtype.is_float() and other.dtype.is_float()):
        return column.cast(pl.String).eq_missing(other.cast(pl.String))
    difference = column - other
    near = (difference - difference.median()).abs() <= TOLERANCE
    return near.fill_null(False) | (column.is_null() & other.is_null())
