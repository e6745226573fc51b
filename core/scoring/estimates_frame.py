"""Estimates as a table: what reports, tables and the view write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from ..contracts import Estimate
from ..contracts.corrected import PREFIX, Correction, correction_of, plain_facts
from ..contracts.words import explained


def estimates_frame(estimates: Sequence[Estimate]) -> pl.DataFrame:
    """Return estimates as a tidy frame: a column per group factor, then the fields of `Estimate`.

    `missing` becomes a column `missing_STATUS` per status that occurs; without an interval there is no `level`.
    """
    factors = list(dict.fromkeys(name for estimate in estimates for name in estimate.group))
    statuses = list(dict.fromkeys(status for estimate in estimates for status in estimate.missing.counts))
    corrected = any(correction_of(estimate) is not None for estimate in estimates)
    rows = [
        _estimate_row(estimate, factors, statuses) | (_corrected_row(estimate) if corrected else {})
        for estimate in estimates
    ]
    return pl.DataFrame(rows, infer_schema_length=None, orient="row")


def _corrected_row(estimate: Estimate) -> dict[str, Any]:
    """Return the columns of a correction: `corrected`, `corrected_low`, `corrected_high`, `corrected_method` ..."""
    fields = msgspec.structs.asdict(correction_of(estimate) or Correction(level=estimate.interval.level))
    return {PREFIX if name == "value" else f"{PREFIX}_{name}": value for name, value in fields.items()}


def _estimate_row(estimate: Estimate, factors: list[str], statuses: list[str]) -> dict[str, Any]:
    fields = estimate.flat()
    group, missing = fields.pop("group"), fields.pop("missing")
    row = {"metric": fields.pop("metric")} | {name: group.get(name) for name in factors}
    if estimate.low is None and estimate.high is None:
        fields["level"] = None
    fields["note"] = explained(estimate)
    fields["caveats"] = ", ".join(fields["caveats"])
    fields["facts"] = json.dumps(plain_facts(estimate))
    return row | fields | {f"missing_{status}": missing.get(status, 0) for status in statuses}
