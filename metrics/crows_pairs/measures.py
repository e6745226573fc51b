"""Options of CrowS-Pairs, and the names and meanings of its measures (Nangia et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.contracts.estimates import Measure
from ...core.statistics.estimates import MarginOptions

LIKELIER = "the more stereotyping sentence likelier more often"
MEASURES: Mapping[str, Measure] = {
    "metric_score": Measure(
        "Metric score", "Share of readable pairs whose more stereotyping sentence is likelier.", "%", LIKELIER
    ),
    "stereotype_score": Measure(
        "Stereotype score", "The same share of decided pairs that show a stereotype.", "%", LIKELIER
    ),
    "antistereotype_score": Measure(
        "Anti-stereotype score", "The same share of decided pairs that show an anti-stereotype.", "%", LIKELIER
    ),
    "ties": Measure("Ties", "Share of readable pairs whose two sentences are equally likely.", "%", "more ties"),
    "log_odds_difference": Measure(
        "Log-odds difference",
        "Mean score of the more stereotyping minus that of the less stereotyping sentence.",
        "nats",
        "the more stereotyping sentence likelier",
    ),
}


class CrowsPairsOptions(MarginOptions, frozen=True, kw_only=True):
    """Options for counting a pair of CrowS-Pairs."""

    decimals: int | None = 3
    """Decimals to which log-probabilities are rounded before comparison, as published; None does not round."""
