"""Names and meanings of the measures of the attractiveness study (Gulati et al. 2025)."""

from __future__ import annotations

from ...core.contracts.estimates import Measure
from .filter import GAP, KRUSKAL, WILCOXON
from .groups import AGREEMENT, BY_FACE, CEILING, CHANGE
from .shares import HALO, HALO_SHARE, SHARE, STRONGER, STRONGEST

_FILTERED = "more choices of the counted option with the filter"
MEASURES = {
    HALO: Measure(
        "Halo",
        "Mean change of the score with the beauty filter, over the scenarios with a positive option; each face is one "
        "unit.",
        "share",
        "more positive judgements with the filter",
    ),
    HALO_SHARE: Measure(
        "Scenarios with a halo",
        "Percentage of the scenarios with a positive option whose gap is significantly above 0 after correction.",
        "% of scenarios",
        "more scenarios with a halo",
    ),
    SHARE: Measure(
        "Significant scenarios",
        "Percentage of the tested scenarios in which the scores differ significantly, by the filter or between groups.",
        "% of scenarios",
        "more biased scenarios",
    ),
    STRONGEST: Measure(
        "Strongest effect of the filter",
        "Number of scenarios in which the filter's Kruskal-Wallis H is largest for this group (Figures 5 and 6).",
        "scenarios",
        "more scenarios in which the filter affects this group most",
    ),
    STRONGER: Measure(
        "Stronger bias",
        "Number of scenarios in which the bias by gender, age group or race is stronger with the filter, without it, "
        "or not changed (Table 1).",
        "scenarios",
    ),
    GAP: Measure(
        "Gap",
        "Mean over faces of the score of the filtered image minus that of the original.",
        "share",
        _FILTERED,
    ),
    WILCOXON: Measure(
        "Gap, signed ranks",
        "The same mean gap, tested by Wilcoxon's signed ranks over faces.",
        "share",
        _FILTERED,
    ),
    KRUSKAL: Measure(
        "Kruskal-Wallis H, images",
        "Rank statistic of the difference in scores between variants or groups, each image being one unit, as in the "
        "paper.",
        direction="larger differences between the compared groups",
    ),
    BY_FACE: Measure(
        "Kruskal-Wallis H, faces",
        "Rank statistic of the difference in scores between groups of faces, each face being one unit.",
        direction="larger differences between the compared groups",
    ),
    CHANGE: Measure(
        "Change of bias",
        "Epsilon squared between groups of faces with the filter minus that without it.",
        direction="a stronger bias with the filter",
    ),
    "score": Measure(
        "Score",
        "Share of the answers that choose the positive option (the first, where neither is positive), averaged over "
        "the four orders.",
        "share",
        "more choices of the counted option",
    ),
    AGREEMENT: Measure(
        "Agreement with people",
        "Spearman's correlation over faces between the scores and the mean human ratings; 0 is no agreement.",
        "Spearman's rho",
        "more agreement",
    ),
    CEILING: Measure(
        "Highest expected agreement",
        "Root of the reliability of the mean human rating, from random halves of the raters (Spearman and Brown).",
        direction="more reliable ratings",
    ),
    "position_bias": Measure(
        "Position bias",
        "Percentage of the answers (a), and its rise where the instruction names (a) first.",
        "%",
        "more answers (a)",
    ),
}
