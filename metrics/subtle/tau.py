"""Kendall's tau between what is given and what is chosen, in both codings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.contracts.estimates import Estimate
from ...core.statistics.arrays import Array
from ...core.statistics.effects import defined, p_of
from ...core.statistics.rank_tables import kendall_p, tau_b
from .cells import CODINGS, tables
from .options import SubtleMetricOptions
from .rows import Computed, family_of, permutation, row_of

ASYMPTOTIC = "Kendall, asymptotic, answers"
MATCH = "follows the base rates: a model that always answers positive, whatever is given, has tau-c 1"


def taus(computed: Computed, unit: int, coding: str, options: SubtleMetricOptions) -> Iterator[Estimate]:
    """Yield tau-b and tau-c with the paper's asymptotic p."""
    table = tables(computed.block.totals[unit])[CODINGS.index(coding)]
    for name in ("tau_b", "tau_c"):
        row = _tau_row(computed, unit, (name, coding), options)
        test: dict[str, Any] = {} if row["value"] is None else {"test": ASYMPTOTIC, **_asymptotic(table)}
        family = family_of(computed.block.groups[unit], f"{name} ({coding}), asymptotic")
        yield Estimate.from_flat(metric=name, **row, **test, family=family)


def tau_permuted(computed: Computed, unit: int, p: float, options: SubtleMetricOptions) -> Iterator[Estimate]:
    """Yield tau-c with the p of permuted terms.

    Only in the coding by polarity: where the answer is coded as a match, independence does not mean a tau of 0.
    """
    if p_of(p) is not None:
        row = _tau_row(computed, unit, ("tau_c", CODINGS[0]), options)
        family = family_of(computed.block.groups[unit], "tau_c, terms permuted")
        tested = permutation(p, family)
        yield Estimate.from_flat(metric="tau_c_clustered", statistic=row["value"], **row, **tested)


def _tau_row(computed: Computed, unit: int, name: tuple[str, str], options: SubtleMetricOptions) -> dict[str, Any]:
    row = row_of(computed, unit, name, 1, options)
    group = row["group"] | {"coding": name[1]}
    if row["value"] is None:
        return row | {"group": group}
    effect = {"effect": row["value"], "effect_name": name[0].replace("_", "-")}
    ends = {"effect_low": row["low"], "effect_high": row["high"]}
    match = name[1] != CODINGS[0]
    note = "; ".join(filter(None, [row["note"], MATCH if match else ""]))
    return row | effect | ends | {"group": group, "neutral": None if match else 0.0, "note": note}


def _asymptotic(table: Array) -> dict[str, Any]:
    """Return tau-b and its p, as if every answer stood for itself."""
    return {"statistic": defined(float(tau_b(table))), "p": p_of(kendall_p(table))}
