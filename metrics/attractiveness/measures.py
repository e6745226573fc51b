"""Options of the metric of the attractiveness study, and names and meanings of its measures (Gulati et al. 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...core.contracts.errors import UsageError
from ...core.contracts.estimates import Measure
from ...core.statistics.facets import FacetOptions

LEAST = 99
"""Minimum number of resamples for an interval."""
FACETS = ("scenario", "face")


class AttractivenessMetricOptions(FacetOptions, frozen=True, kw_only=True):
    """Options for the effects of a filter."""

    cluster: str | tuple[str, ...] = FACETS
    """What the halo is to hold for beyond those at hand: other scenarios, other faces, or both.

    What is said of one scenario, of their number and of the labels is for these scenarios and other faces.
    """
    former: ClassVar[Mapping[str, Any]] = {"cluster": "face"}
    effect_resamples: int = 999
    """Resamples behind the intervals of rank statistics (epsilon squared, rank-biserial, rank correlations).

    0 makes no such intervals.
    """
    splits: int = 200
    """Number of random splits of the human raters for the highest expected agreement."""

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        super().__post_init__()
        if unknown := [way for way in self.ways if way not in FACETS]:
            raise UsageError(f"cluster is {unknown[0]!r}. Use 'scenario', 'face' or both.", code="options.choice")
        if self.effect_resamples and self.effect_resamples < LEAST:
            raise UsageError(
                f"effect_resamples is {self.effect_resamples}. Give at least {LEAST}, or 0 for none.",
                code="options.value",
            )
        if self.splits < 1:
            raise UsageError(f"splits is {self.splits}. Give at least 1.", code="options.value")


GAP, WILCOXON, SCORE = "gap", "gap_signed_ranks", "score"
HALO, POSITIONS = "halo", "position_bias"
KRUSKAL, BY_FACE, CHANGE, MOVED = "kruskal_wallis", "kruskal_wallis_faces", "bias_change", "filter_between_groups"
AGREEMENT, CEILING, CHECK = "human_agreement", "human_ceiling", "rated_more_attractive"
SHARE, HALO_SHARE, STRONGEST, STRONGER = "share_significant", "halo_scenarios", "strongest_group", "stronger_bias"
FILTER, PAIR = "filter", "race pair"
"""Values of the group `by`: what Kruskal and Wallis's test compares."""
JUDGED = "judged by"
PAPER, ADJUSTED = "Kruskal-Wallis, p as in the paper", "Kruskal-Wallis, adjusted p"
ROBUST = "paired or by face, adjusted p"
POSITIVE, STEREOTYPE = "positive_option", "stereotype"
"""Facts: which option the score counts, and whom a stereotype sets apart."""

_FILTERED = "more choices of the counted option with the filter"
MEASURES = {
    HALO: Measure(
        "Halo",
        "Mean change of the score with the beauty filter, over the scenarios with a positive option and the faces.",
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
        "Percentage of the scenarios with answers in which the scores differ significantly, by the filter or between "
        "groups.",
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
        "or not shown to change (Table 1).",
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
    MOVED: Measure(
        "Effect of the filter between groups",
        "Rank statistic of the difference between groups of faces in what the filter changes, each face being one "
        "unit; their bias need not become stronger by it.",
        direction="larger differences in the effect of the filter",
    ),
    CHECK: Measure(
        "Faces rated more attractive",
        "Percentage of the rated faces whose filtered image people rate more attractive than the original.",
        "%",
        "a filter that makes more faces attractive",
    ),
    SCORE: Measure(
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
    POSITIONS: Measure(
        "Position bias",
        "Percentage of the answers (a), and its rise where the instruction names (a) first.",
        "%",
        "more answers (a)",
    ),
}
