"""Artefacts beside the association: positions of options, missing answers, kinds of unreadable answers."""

from __future__ import annotations

import polars as pl

from ...core.contracts.estimates import POSITION, Estimate
from ...core.statistics.effects import p_of
from ...core.statistics.estimates import correct
from ...core.statistics.intervals import binomial_test, exact_interval
from ...core.statistics.observations import Group, missing_estimates, unreadable_kinds
from .options import SubtleMetricOptions

EXACT = "exact (Clopper-Pearson), answers"
PLACES = (1, 2, 3)


def positions(observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Estimate]:
    """Return how often each place in the order of options was chosen, where the order is known."""
    if "position" not in observations.columns:
        return []
    chosen = observations.filter((pl.col("status") == "ok") & pl.col("position").is_not_null())
    n = chosen.height
    found = []
    for place in PLACES if n else ():
        hits = int((chosen["position"] == place).sum())
        low, high = exact_interval(hits, n, options.level)
        found.append(
            Estimate.from_flat(
                metric="position_bias",
                group={"position": place},
                value=100 * hits / n,
                neutral=100 / len(PLACES),
                unit="%",
                low=100 * low,
                high=100 * high,
                level=options.level,
                interval=EXACT,
                n=n,
                test="exact binomial against a third, answers",
                statistic=hits / n,
                p=p_of(binomial_test(hits, n, 1 / len(PLACES))),
                family="places of the options",
                effect=hits / n - 1 / len(PLACES),
                effect_name="risk difference",
                effect_low=low - 1 / len(PLACES),
                effect_high=high - 1 / len(PLACES),
                topic=POSITION,
            )
        )
    return correct(found, options.correction, options.alpha, "places")


def missing(observations: pl.DataFrame, options: SubtleMetricOptions) -> list[Estimate]:
    """Return how many answers are missing, by domain and what was given."""
    cells = observations.partition_by("domain", "given", as_dict=True, maintain_order=True)
    groups = []
    for (domain, given), part in cells.items():
        lost = part.filter(pl.col("status") != "ok").group_by("status").len().sort("status")
        groups.append(
            Group({"domain": domain, "given": given}, int((part["status"] == "ok").sum()), dict(lost.iter_rows()))
        )
    return [*missing_estimates(groups, options.level), *unreadable_kinds(observations, options.level)]
