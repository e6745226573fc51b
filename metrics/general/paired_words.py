"""Words and figures for differences between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.charts.forest import Panel, Point, forest
from ...core.contracts.estimates import Chart, Estimate
from ...core.contracts.records import Scalar
from ...core.statistics.templates import rendered

ROWS = 60
"""Rows of a forest plot that a page still holds; a longer one shows the first so many, and says so."""
NAMED = 3
"""Differences that the conclusion names."""
CAPTION = (
    "Difference from the baseline run with its interval. Full marks: shown, by a corrected test. Hollow circles: not"
    " shown. Hollow diamonds: no interval, as the runs agree in every cluster or the measure is no mean of units."
)


def conclude(estimates: Sequence[Estimate]) -> str:
    """Return one sentence: how many differences were tested, how many shown, the largest of them by effect size."""
    tested = [e for e in estimates if e.p_adjusted is not None]
    shown = sorted((e for e in tested if e.shown), key=lambda e: -abs(e.effect.value or 0.0))
    return rendered(
        str(__package__),
        "paired.conclusion.md.j2",
        tested=tested,
        shown=shown,
        least=min((e.p_adjusted for e in tested if e.p_adjusted is not None), default=None),
        named=[(e, ", ".join(_cell(e.group))) for e in shown[:NAMED]],
    )


def draw(estimates: Sequence[Estimate]) -> list[Chart]:
    """Draw one forest plot per measure."""
    measures = dict.fromkeys(e.metric for e in estimates if e.value is not None)
    return [_chart(name, [e for e in estimates if e.metric == name]) for name in measures]


def _chart(metric: str, estimates: Sequence[Estimate]) -> Chart:
    several = len({(e.group["run"], e.group["against"]) for e in estimates}) > 1
    points = [Point(_label(e, several), e.value, e.low, e.high, e.shown) for e in estimates[:ROWS]]
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
