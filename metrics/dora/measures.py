"""Names and meanings of the measures of the discovery studies (BiasDora: Raj et al. 2024)."""

from __future__ import annotations

from ...core.contracts.estimates import Measure
from .counts import (
    AGREEMENT,
    DISTINCT,
    IN_RANGE,
    IN_RANGE_P,
    JUDGED,
    OVERLAP,
    SALIENT,
    SHARE,
    TOTAL,
    UNDOCUMENTED,
)
from .means import EACH, LEVEL, VALENCES
from .people import ABOVE, ALPHA, AMONG, CORRECTED
from .published import REAPPEARED

_MEANS = {name: (f"Percentage of the associations that are {name}", "%") for name in VALENCES} | {
    LEVEL: ("Mean judgement of how biased the associations are, from 1 (not at all) to 5 (extremely)", "1 to 5")
}
_SIDES = {name: "percentage points" for name in VALENCES} | {LEVEL: "Cliff's delta"}
_LABELS = {name: f"{name.capitalize()} associations" for name in VALENCES} | {LEVEL: "Bias level"}
_MORE = {name: f"more {name} associations" for name in VALENCES} | {LEVEL: "more biased associations"}


def _count(label: str, meaning: str) -> Measure:
    return Measure(label, meaning, "count", "more associations")


_COUNTS = {
    TOTAL: Measure("Mentions", "Number of times that words were said of descriptors.", "count", "more mentions"),
    DISTINCT: _count("Associations", "Number of distinct pairs of a descriptor and a word that was said of it."),
    SALIENT: _count("Salient associations", "Number of the associations that this method keeps as salient."),
    IN_RANGE: _count(
        "Within the standard-deviation range",
        "Number of the associations whose tf-idf is within one standard deviation of the mean (Table 4).",
    ),
    IN_RANGE_P: _count(
        "p-value significant", "Number of these whose upper-tail p is below the level of salience (Table 4)."
    ),
}
_AVERAGED = {name: Measure(_LABELS[name], f"{meaning}.", unit, _MORE[name]) for name, (meaning, unit) in _MEANS.items()}
_BY_DESCRIPTOR = {
    name + EACH: Measure(
        f"{_LABELS[name]}, per descriptor", f"{meaning}; each descriptor counts once.", unit, _MORE[name]
    )
    for name, (meaning, unit) in _MEANS.items()
}
_DIFFERENCES = {
    f"{name}_difference": Measure(
        f"{_LABELS[name]}, difference",
        "Difference between two settings of a modality, the first minus the second.",
        unit,
        f"{_MORE[name]} in the first setting",
    )
    for name, unit in _SIDES.items()
}
_JUDGEMENTS = {
    SHARE: Measure(
        "Share of a bias level",
        "Percentage of the judgements on this step of the scale.",
        "%",
        "more such judgements",
    ),
    JUDGED: Measure(
        "Judged associations", "Percentage of the associations that count which the judge was asked about.", "%"
    ),
    AGREEMENT: Measure(
        "Agreement of the judgements",
        "Krippendorff's alpha (ordinal) of the repeated judgements of one judge; it is not a measure of validity.",
        "Krippendorff's alpha",
        "more consistent judgements",
    ),
    AMONG: Measure(
        "Agreement of people",
        "Krippendorff's alpha (ordinal) of the levels that different people gave to one association.",
        "Krippendorff's alpha",
        "more agreement",
    ),
    CORRECTED: Measure(
        "Bias level, corrected by people",
        "Mean judgement of how biased the associations are, less the judge's mean error on those that people judged.",
        "1 to 5",
        "more biased associations",
    ),
    ALPHA: Measure(
        "Agreement of the judge with people",
        "Krippendorff's alpha (interval) of the judge's mean level and that of people, over the associations that both "
        "judged.",
        "Krippendorff's alpha",
        "more agreement",
    ),
    ABOVE: Measure(
        "Difference of the judge from people",
        "Mean level of the judge minus that of people, over the associations that both judged.",
        "levels",
        "higher levels by the judge than by people",
    ),
}
MEASURES = {
    **_COUNTS,
    **_AVERAGED,
    **_BY_DESCRIPTOR,
    **_DIFFERENCES,
    **_JUDGEMENTS,
    UNDOCUMENTED: Measure(
        "Undocumented associations",
        "Percentage of the associations that are not in the list of known ones.",
        "%",
        "more new associations",
    ),
    REAPPEARED: Measure(
        "Associations of the paper found again",
        "Percentage of the associations printed in the paper that this run finds, of descriptors that were asked "
        "about; neutral is the percentage with random descriptors.",
        "%",
        "more of them are found",
    ),
    OVERLAP: Measure(
        "Overlap of settings",
        "Jaccard index of the associations of two settings, over the descriptors that were asked about in both; "
        "neutral is what pairing descriptors at random gives.",
        "Jaccard",
        "more shared associations",
    ),
}
