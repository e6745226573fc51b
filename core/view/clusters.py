"""The clusters of a run's answers: prompts, persons, scenarios or other columns of the index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .columns import Rows
from .shelf import Index

PROMPT = "the same request"
"""Stands for the texts of the requests, where no column makes clusters."""
FEWEST_PROMPTS = 10
MOST_WAYS = 3


def offered(index: Index, rows: Rows, declared: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns that can make clusters of these rows, and those that do unless somebody says otherwise.

    Args:
        index: Of the run.
        rows: That a sample is drawn from.
        declared: Columns by which the study's measures make clusters.
    """
    usual = [name for name in declared if 1 < _number(index, rows, name) < len(rows)][:MOST_WAYS]
    factors = [c.name for c in index.columns.values() if c.role == "factor"]
    others = [name for name in factors if name not in usual and 1 < _number(index, rows, name) < len(rows)]
    prompts = _number(index, rows, PROMPT)
    if prompts < len(rows) and prompts >= FEWEST_PROMPTS:
        others = [PROMPT, *others]
        usual = usual or [PROMPT]
    return [*usual, *(name for name in others if name not in usual)], usual


def codes_of(index: Index, rows: Rows, name: str) -> NDArray[np.int64]:
    """Return the cluster of each row, from 0."""
    values = index.asked.numbers if name == PROMPT else index.columns[name].own
    return np.asarray(np.unique(np.asarray(values[rows]), return_inverse=True)[1], dtype=np.int64)


def _number(index: Index, rows: Rows, name: str) -> int:
    return int(codes_of(index, rows, name).max()) + 1 if len(rows) else 0
