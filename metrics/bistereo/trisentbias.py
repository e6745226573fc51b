"""TriSentBias: does a model prefer the desirable description more in positive than in negative contexts?

The measure of BIStereo (2025), section 4.1.1, with the readings of what the paper leaves open:
its significance star as an exact binomial test of pairs and as a permutation test of whole templates; and the
magnitudes that its limitations section suggests. `docs/statistics.md` has every formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ...core.contracts import Metric, Options
from ...core.contracts.errors import DataError
from ...core.contracts.estimates import Chart, Estimate, Example
from ...core.statistics.observations import pair_up, with_keys
from .measures import TRISENTBIAS
from .trisentbias_contrasts import estimate_all
from .trisentbias_tally import CELL, SENTIMENTS, TriSentBiasOptions, tally, units
from .trisentbias_words import conclude, draw, examples_of, headline, methods

if TYPE_CHECKING:
    import polars as pl

__all__ = ["TriSentBias", "TriSentBiasOptions"]

SIDES = ("desirable", "undesirable")


class TriSentBias(Metric):
    """Shares of pairs beyond a threshold by axis, gender and sentiment, and the contrasts that measure bias."""

    options: ClassVar[type[Options]] = TriSentBiasOptions
    needs: ClassVar[frozenset[str]] = frozenset({"pair", "side", *CELL, "log_probability", "status"})
    """And the column that the option `cluster` names."""
    measures = TRISENTBIAS

    def columns(self, options: TriSentBiasOptions) -> frozenset[str]:
        """Return the columns of every study, and the cluster's."""
        return self.needs | set(options.ways)

    def compute(self, observations: pl.DataFrame, options: TriSentBiasOptions) -> list[Estimate]:
        """Return the estimates: contrasts by axis and gender, then every cell at every threshold.

        `observations` has two rows per pair, one per `side` (`desirable`, `undesirable`), with `axis`, `gender`,
        `sentiment` (`positive`, `negative`, `neutral`), `log_probability` in nats and the cluster column.

        Raises:
            DataError: a column is absent, a side or a sentiment has an unknown name, or a row stands twice.
        """
        pairs = self._pairs(observations, options)
        if unknown := sorted(set(pairs["sentiment"].unique().to_list()) - set(SENTIMENTS), key=str):
            raise DataError(
                f"unknown sentiment {unknown[0]!r}. Use {', '.join(map(repr, SENTIMENTS))}.", code="data.unknown-value"
            )
        return estimate_all(tally(pairs, options.ways, options.thresholds), options)

    def units(self, observations: pl.DataFrame, options: TriSentBiasOptions) -> pl.DataFrame:
        """Return the pairs behind every measure but `preference`, which is a ratio, and `missing`."""
        return units(self._pairs(observations, options), options)

    def conclude(self, estimates: Sequence[Estimate]) -> str:
        """State whether favouritism was shown; see `docs/statistics.md` for the rule."""
        return conclude(estimates)

    def headline(self, estimates: Sequence[Estimate]) -> list[Estimate]:
        """Pick favouritism and discrimination at the main threshold, and favouritism in nats."""
        return headline(estimates)

    def methods(self, options: TriSentBiasOptions) -> str:
        """Describe how the estimates were computed."""
        return methods(options)

    def figures(self, estimates: Sequence[Estimate]) -> list[Chart]:
        """Draw stacked bars per axis (BIStereo 2025, Figure 2) and forest plots, at the main threshold."""
        return draw(estimates)

    def examples(self, observations: pl.DataFrame, options: TriSentBiasOptions) -> list[Example]:
        """Pick per axis and gender pairs with the greatest D in positive and the smallest D in negative contexts."""
        return examples_of(with_keys(self._pairs(observations, options), observations, SIDES), options)

    def _pairs(self, observations: pl.DataFrame, options: TriSentBiasOptions) -> pl.DataFrame:
        return pair_up(observations, SIDES, list(dict.fromkeys([*CELL, *options.ways])))
