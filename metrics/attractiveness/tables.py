"""The paper's Tables 5, 6 and 7, in its layout: means, H and stars per scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.charts.forest import GREY, MEDIUM, SMALL, new_figure
from ...core.contracts.estimates import Chart, Estimate
from .filter import FILTER, GAP, KRUSKAL, POSITIVE, STEREOTYPE
from .groups import PAIR
from .scores import VARIANTS

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""The paper's, of p that is not corrected."""
EXPLAINED = "Means are of the score s. Stars as in the paper: p of H, not corrected; *** below 0.001, ** 0.01, * 0.05. "


class _Row(NamedTuple):
    rank: float
    cells: tuple[str, ...]


def draw_tables(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return the tables for which there are estimates."""
    tables = (
        ("attractiveness-table-5", "Halo on directed traits", _halo(estimates), _HALO),
        ("attractiveness-table-6", "Gender-stereotyped jobs", _stereotyped(estimates, "gender", "gender"), _GROUPS),
        ("attractiveness-table-7", "Race-stereotyped jobs", _stereotyped(estimates, PAIR, "race"), _GROUPS),
    )
    return [_chart(name, title, rows, heads) for name, title, rows, heads in tables if rows]


_HALO = ("positive", "other", "gap", "s filtered", "s original", "H")
_GROUPS = ("option 1", "option 2", "groups", "s of group 1", "s of group 2", "H")


def _halo(estimates: Sequence[Estimate]) -> list[_Row]:
    means, h = _means(estimates), _tested(estimates, FILTER)
    rows = []
    for one in estimates:
        positive = _told(one, POSITIVE)
        if one.metric != GAP or len(one.group) > 1 or positive is None or one.value is None:
            continue
        scenario = str(one.group["scenario"])
        first, _, second = scenario.partition(" vs ")
        original, filtered = (_number(means.get((scenario, variant))) for variant in VARIANTS)
        other = first if positive == second else second
        cells = (positive, other, _number(one.value), filtered, original, _starred(h.get(scenario)))
        rows.append(_Row(one.value, cells))
    return sorted(rows, key=lambda row: -row.rank)


def _stereotyped(estimates: Sequence[Estimate], by: str, label: str) -> list[_Row]:
    means = _means(estimates, label)
    rows = []
    for scenario, one in _tested(estimates, by).items():
        named = _told(one, STEREOTYPE)
        if named is None or one.value is None:
            continue
        options, groups = scenario.split(" vs ", 1), named.split(" vs ", 1)
        shown = (_number(means.get((scenario, group))) for group in groups)
        rows.append(_Row(one.value, (*options, named, *shown, _starred(one))))
    return sorted(rows, key=lambda row: -row.rank)


def _told(estimate: Estimate, what: str) -> str | None:
    return next((part.removeprefix(what) for part in estimate.note.split("; ") if part.startswith(what)), None)


def _means(estimates: Sequence[Estimate], label: str = "variant") -> dict[tuple[str, str], float | None]:
    own = (e for e in estimates if e.metric == "score" and label in e.group)
    return {(str(e.group["scenario"]), str(e.group[label])): e.value for e in own}


def _tested(estimates: Sequence[Estimate], by: str) -> dict[str, Estimate]:
    own = (
        e for e in estimates if e.metric == KRUSKAL and e.group.get("by") == by and set(e.group) == {"scenario", "by"}
    )
    return {str(e.group["scenario"]): e for e in own}


def _number(value: float | None) -> str:
    return "no data" if value is None else f"{value:.2f}"


def _starred(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value is None or estimate.p is None:
        return "no data"
    p = estimate.p
    return f"{estimate.value:.2f} {next((mark for limit, mark in STARS if p < limit), '')}".strip()


def _chart(name: str, title: str, rows: Sequence[_Row], heads: Sequence[str]) -> Chart:
    from matplotlib.transforms import Bbox

    figure = new_figure((8.5, 0.24 * (len(rows) + 1) + 0.5))
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_title(title, fontsize=MEDIUM + 1.5, loc="left")
    cells, whole = [row.cells for row in rows], Bbox.unit()
    table = axes.table(cells, colLabels=list(heads), bbox=whole, cellLoc="left", edges="horizontal")
    table.auto_set_font_size(False)
    table.set_fontsize(SMALL)
    table.auto_set_column_width(list(range(len(heads))))
    for (row, _), cell in table.get_celld().items():
        if row == 0:
            cell.set_facecolor(GREY)
            cell.set_text_props(weight="bold")
    words = " ".join(f"{'; '.join(f'{h}: {c}' for h, c in zip(heads, row.cells, strict=True))}." for row in rows)
    return Chart(name, title, EXPLAINED + words, figure)
