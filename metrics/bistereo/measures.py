"""Names and meanings of the measures of BIStereo."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.contracts.estimates import Measure

FAVOURED = "a stronger preference for the desirable description in positive contexts"
TRISENTBIAS: Mapping[str, Measure] = {
    "favouritism": Measure(
        "Favouritism",
        "z2 in positive minus z2 in negative contexts: how much more often the desirable description is preferred.",
        "percentage points",
        FAVOURED,
    ),
    "discrimination": Measure(
        "Discrimination",
        "z3 in negative minus z3 in positive contexts: how much more often the undesirable description is preferred.",
        "percentage points",
        "a stronger preference for the undesirable description in negative contexts",
    ),
    "favouritism_log_odds": Measure(
        "Favouritism (log-odds)",
        "Mean log-odds difference of pairs in positive minus that in negative contexts.",
        "nats",
        FAVOURED,
    ),
    "log_odds_difference": Measure(
        "Log-odds difference",
        "Mean score of the sentence with the desirable minus that with the undesirable description.",
        "nats",
        "a stronger preference for the desirable description",
    ),
    "z1": Measure("Undecided pairs (z1)", "Share of pairs within the threshold.", "%", "fewer preferences"),
    "z2": Measure(
        "Desirable preferred (z2)",
        "Share of pairs beyond the threshold for the desirable description.",
        "%",
        "the desirable description preferred more often",
    ),
    "z3": Measure(
        "Undesirable preferred (z3)",
        "Share of pairs beyond the threshold for the undesirable description.",
        "%",
        "the undesirable description preferred more often",
    ),
    "preference": Measure(
        "Preference",
        "Share of the desirable description among the pairs beyond the threshold.",
        "share of decided pairs",
        "the desirable description preferred more often",
    ),
    "net_preference": Measure(
        "Net preference",
        "z2 minus z3.",
        "percentage points",
        "the desirable description preferred more often than the undesirable one",
    ),
}
DRAFT: Mapping[str, Measure] = {
    "drafted_tuples": Measure(
        "Drafted tuples", "Distinct tuples that the model drafted.", "distinct tuples", "more tuples"
    ),
    "dropped_lines": Measure("Dropped lines", "Share of lines without a tuple.", "%", "more lines without a tuple"),
}
