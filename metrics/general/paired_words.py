"""Words and figures for differences between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.charts.forest import Panel, Point, forest
from ...core.contracts.estimates import Chart, Estimate
from ...core.contracts.records import Scalar
from ...core.contracts.words import p_value

ROWS = 60
"""Rows of a forest plot that a page still holds; a longer one shows the first so many, and says so."""
NAMED = 3
"""Differences that the conclusion names."""
CAPTION = (
    "Difference from the baseline run with its interval. Full marks: shown, by a corrected test. Hollow circles: not"
    " shown. Hollow diamonds: no interval, as the runs agree in every cluster or the measure is no mean of units."
)


def shown(estimate: Estimate) -> bool:
    """Say whether a difference was shown."""
    return estimate.shown


def conclude(estimates: Sequence[Estimate]) -> str:
    """Return one sentence: how many differences were tested, how many shown, the largest of them by effect size."""
    tested = [e for e in estimates if e.p_adjusted is not None]
    if not tested:
        return "No difference between the runs could be tested."
    found = sorted(filter(shown, tested), key=lambda e: -abs(e.effect.value or 0.0))
    if not found:
        least = min(e.p_adjusted for e in tested if e.p_adjusted is not None)
        none = f"None of {len(tested)} tested differences is" if len(tested) > 1 else "The one tested difference is not"
        return f"{none} significant (least adjusted p {p_value(least)}). {NOT_EQUAL}"
    named = "; ".join(_in_words(estimate) for estimate in found[:NAMED])
    some = f"{len(found)} of {len(tested)} tested differences" if len(tested) > 1 else "The one tested difference"
    verb, which = ("is", "It is") if len(found) == 1 else ("are", "The largest by effect size")
    return f"{some} {verb} significant after correction. {which}: {named}."


NOT_EQUAL = "That does not show that the runs are alike: see the intervals."


def draw(estimates: Sequence[Estimate]) -> list[Chart]:
    """Draw one forest plot per measure."""
    measures = dict.fromkeys(e.metric for e in estimates if e.value is not None)
    return [_chart(name, [e for e in estimates if e.metric == name]) for name in measures]


def _chart(metric: str, estimates: Sequence[Estimate]) -> Chart:
    several = len({(e.group["run"], e.group["against"]) for e in estimates}) > 1
    points = [Point(_label(e, several), e.value, e.low, e.high, shown(e)) for e in estimates[:ROWS]]
    unit = estimates[0].unit
    panel = Panel(metric, f"difference{f' ({unit})' if unit else ''}", points)
    rest = f" The first {ROWS} of {len(estimates)}." if len(estimates) > ROWS else ""
    runs = "" if several else f": {_runs(estimates[0])}"
    return Chart(f"differences-{metric}", f"Differences in {metric}{runs}", CAPTION + rest, forest([panel]))


def _label(estimate: Estimate, several: bool) -> str:
    return ", ".join([*([_runs(estimate)] if several else []), *_cell(estimate.group)]) or estimate.metric


def _runs(estimate: Estimate) -> str:
    return f"{estimate.group['run']} less {estimate.group['against']}"


def _cell(group: Mapping[str, Scalar]) -> list[str]:
    return [str(level) for name, level in group.items() if name not in ("run", "against")]


def _in_words(estimate: Estimate) -> str:
    group = estimate.group
    where = f" ({', '.join(cell)})" if (cell := _cell(group)) else ""
    ends = (
        f", {100 * estimate.interval.level:g} % interval {estimate.low:.3g} to {estimate.high:.3g}"
        if _has_ends(estimate)
        else ""
    )
    p = f"adjusted p {p_value(estimate.p_adjusted)}"
    return f"{estimate.metric}{where}, {group['run']} less {group['against']}: {estimate.value:+.3g}{ends}, {p}"


def _has_ends(estimate: Estimate) -> bool:
    return estimate.low is not None and estimate.high is not None
