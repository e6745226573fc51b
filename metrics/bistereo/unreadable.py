"""What could not be read, by cell, and each kind of it by one factor."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ...core.contracts.estimates import Estimate
from ...core.statistics.missing import Group, missing_estimates
from ...core.statistics.pairs import missing_by_status
from ...core.statistics.unreadable import unreadable_kinds_by


def missing(frame: pl.DataFrame, cell: Sequence[str], factor: str, level: float) -> list[Estimate]:
    """Return what is missing by `cell`, and the share of each kind of unreadable answer by `factor`."""
    groups = [
        Group(dict(zip(cell, values, strict=True)), int((part["status"] == "ok").sum()), missing_by_status(part))
        for values, part in frame.partition_by(*cell, as_dict=True, maintain_order=True).items()
    ]
    return [*missing_estimates(groups, level), *unreadable_kinds_by(frame, factor, level)]
