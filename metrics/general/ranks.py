"""Rank agreement of models between studies, by their distance from neutral.

Kendall's tau-b over the models, by scipy. With few models it can hardly be significant: the smallest two-sided p
is 1/3 with three models, 1/12 with four and 1/60 with five.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...core.charts.forest import Panel, Point, forest
from ...core.contracts import Metric, Options
from ...core.contracts.estimates import Chart, Estimate, Measure
from ...core.statistics.estimates import Correction, correct, undefined
from ...core.statistics.intervals import stats
from ...core.statistics.templates import rendered

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RankAgreement", "RankAgreementOptions"]

FEWEST = 3
FAMILY = "rank agreement, Kendall's tau"


class RankAgreementOptions(Options, frozen=True, kw_only=True):
    """Options for correction and verdicts."""

    alpha: float = 0.05
    correction: Correction = "bh"


class RankAgreement(Metric):
    """Kendall's tau between each two measures of different studies."""

    options: ClassVar[type[Options]] = RankAgreementOptions
    needs: ClassVar[frozenset[str]] = frozenset({"study", "measure", "model", "distance"})
    measures: ClassVar[Mapping[str, Measure]] = {
        "rank_agreement": Measure(
            "Rank agreement",
            "Kendall's tau-b between the models' distances from neutral under two measures.",
            direction="the same models far from neutral under both",
        )
    }

    def compute(self, observations: pl.DataFrame, options: RankAgreementOptions) -> list[Estimate]:
        """Return one estimate per two measures of different studies.

        `observations` has a row per study, measure and model with `distance`, how far the model is from neutral.
        """
        return correct(list(_estimates(observations)), options.correction, options.alpha, "pairs of measures")

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State how far the studies agree."""
        values = [e.value for e in estimates if e.value is not None]
        least = min((e.p_adjusted for e in estimates if e.p_adjusted is not None), default=None)
        models = min((e.n for e in estimates if e.value is not None), default=0)
        told = {"values": values, "least": least, "models": models}
        return rendered(str(__package__), "ranks.conclusion.md.j2", **told)

    def methods(self, options: RankAgreementOptions) -> str:
        """Describe how agreement is measured."""
        return rendered(str(__package__), "ranks.methods.md.j2")

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw tau per pair of measures."""
        points = [Point(_label(e), e.value, None, None) for e in estimates]
        if not points:
            return []
        figure = forest([Panel("Rank agreement", "Kendall's tau", points)])
        return [Chart("rank-agreement", "Rank agreement of models", "Kendall's tau; 1 is the same order.", figure)]


def _estimates(frame: pl.DataFrame) -> Iterator[Estimate]:
    measures = frame.partition_by("study", "measure", as_dict=True, maintain_order=True)
    for ((one, first), left), ((two, second), right) in combinations(measures.items(), 2):
        if one == two:
            continue
        both = left.join(right, on="model", suffix="_other")
        x, y = (both[name].to_numpy() for name in ("distance", "distance_other"))
        tau = stats.kendalltau(x, y) if _varied(x) and _varied(y) else None
        yield Estimate.from_flat(
            metric="rank_agreement",
            group={"first study": one, "first measure": first, "second study": two, "second measure": second},
            value=float(tau.statistic) if tau else None,
            neutral=None,
            n=both.height,
            test="Kendall's tau" if tau else "",
            statistic=float(tau.statistic) if tau else None,
            p=float(tau.pvalue) if tau else None,
            family=FAMILY,
            **({} if tau else undefined(f"fewer than {FEWEST} models in both, or no order among them")),
        )


def _varied(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> bool:
    return len(values) >= FEWEST and len(np.unique(values)) > 1


def _label(estimate: Estimate) -> str:
    group = estimate.group
    one, two = (f"{group[f'{place} study']}: {group[f'{place} measure']}" for place in ("first", "second"))
    return f"{one} | {two}"
