"""Names and meanings of the measures of BIStereo."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.contracts.estimates import Measure

DRAFT: Mapping[str, Measure] = {
    "drafted_tuples": Measure(
        "Drafted tuples", "Distinct tuples that the model drafted.", "distinct tuples", "more tuples"
    ),
    "dropped_lines": Measure("Dropped lines", "Share of lines without a tuple.", "%", "more lines without a tuple"),
}
