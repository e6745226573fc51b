"""The figures of the attractiveness study: shares by category, and the strength of the filter by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from ...core.charts.flows import Flows, draw_flows
from ...core.charts.forest import GREY, INK, MEDIUM, SKY, SMALL, Column, columns, new_figure
from ...core.charts.numbers import tell
from ...core.contracts.estimates import Chart, Estimate
from ...probes.attractiveness.terms import BETWEEN, TRAITS, VARIANTS
from .measures import FILTER, GAP, JUDGED, KRUSKAL, PAIR, PAPER, POSITIVE, SCORE, SHARE, STEREOTYPE

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""The paper's level for uncorrected p-values."""
EXPLAINED = "Means are of the score s. Stars as in the paper: p of H, not corrected; *** below 0.001, ** 0.01, * 0.05."


Row = tuple[float, tuple[str, ...]]
"""What rows are ordered by, the largest first, and their cells."""
_HALO = ("positive", "other", "gap", "s filtered", "s original", "H")
_GROUPS = ("option 1", "option 2", "groups", "s of group 1", "s of group 2", "H")


def draw_tables(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return the tables for which there are estimates."""
    tables = (
        ("attractiveness-table-5", "Halo on directed traits", _halo(estimates), _HALO),
        ("attractiveness-table-6", "Gender-stereotyped jobs", _stereotyped(estimates, "gender", "gender"), _GROUPS),
        ("attractiveness-table-7", "Race-stereotyped jobs", _stereotyped(estimates, PAIR, "race"), _GROUPS),
    )
    return [_chart(name, title, rows, heads) for name, title, rows, heads in tables if rows]


def _halo(estimates: Sequence[Estimate]) -> list[Row]:
    means, h = _means(estimates, "variant"), _tested(estimates, FILTER)
    rows: list[Row] = []
    for one in estimates:
        positive = one.facts.get(POSITIVE)
        if one.metric == GAP and len(one.group) == 1 and positive is not None and one.value is not None:
            scenario = str(one.group["scenario"])
            (other,) = {*scenario.split(BETWEEN, 1)} - {positive} or {str(positive)}
            original, filtered = (_number(means.get((scenario, variant))) for variant in VARIANTS)
            cells = (str(positive), other, _number(one.value), filtered, original, _starred(h.get(scenario)))
            rows.append((one.value, cells))
    return sorted(rows, key=lambda row: -row[0])


def _stereotyped(estimates: Sequence[Estimate], by: str, label: str) -> list[Row]:
    means = _means(estimates, label)
    rows: list[Row] = []
    for scenario, one in _tested(estimates, by).items():
        if (named := one.facts.get(STEREOTYPE)) is not None and one.value is not None:
            shown = (_number(means.get((scenario, group))) for group in str(named).split(BETWEEN, 1))
            rows.append((one.value, (*scenario.split(BETWEEN, 1), str(named), *shown, _starred(one))))
    return sorted(rows, key=lambda row: -row[0])


def _means(estimates: Sequence[Estimate], label: str) -> dict[tuple[str, str], float | None]:
    own = (e for e in estimates if e.metric == SCORE and label in e.group)
    return {(str(e.group["scenario"]), str(e.group[label])): e.value for e in own}


def _tested(estimates: Sequence[Estimate], by: str) -> dict[str, Estimate]:
    own = (e for e in estimates if e.metric == KRUSKAL and e.group == {"scenario": e.group.get("scenario"), "by": by})
    return {str(e.group["scenario"]): e for e in own}


def _number(value: float | None) -> str:
    return "no data" if value is None else f"{value:.2f}"


def _starred(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value is None or estimate.p is None:
        return "no data"
    p = estimate.p
    return f"{estimate.value:.2f} {next((mark for limit, mark in STARS if p < limit), '')}".strip()


def _chart(name: str, title: str, rows: Sequence[Row], heads: Sequence[str]) -> Chart:
    from matplotlib.transforms import Bbox

    figure = new_figure((8.5, 0.24 * (len(rows) + 1) + 0.5))
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_title(title, fontsize=MEDIUM + 1.5, loc="left")
    cells, whole = [row[1] for row in rows], Bbox.unit()
    table = axes.table(cells, colLabels=list(heads), bbox=whole, cellLoc="left", edges="horizontal")
    table.auto_set_font_size(False)
    table.set_fontsize(SMALL)
    table.auto_set_column_width(list(range(len(heads))))
    for (row, _), cell in table.get_celld().items():
        if row == 0:
            cell.set_facecolor(GREY)
            cell.set_text_props(weight="bold")
    tell(figure, "", heads, cells)
    return Chart(name, title, EXPLAINED, figure)


WORDS = {"gender": "gender", "age_group": "age group", "race": "race"}
MATTERS, NOT = "filter matters", "filter does not"
GREENS = ("#009E73", "#D55E00", "#CC79A7", "#0072B2", "#999999")
"""Of categories, in the order of the scenarios."""
YELLOW, RED = "#F0E442", "#B2182B"
ALPHA = 0.05
"""The paper's level for uncorrected p-values."""


class Judged(msgspec.Struct, frozen=True):
    """What the tests say of one scenario, by what they compare; scenarios without a test are left out."""

    category: str
    kind: str
    shown: Mapping[str, bool]


def draw_overlap(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return one chart of both figures; none where no scenario was tested."""
    scenarios = _judged(estimates)
    if not scenarios:
        return []
    others = [by for by in TRAITS if any(by in s.shown for s in scenarios)]
    parts = [_categories(scenarios), *(_groups(scenarios, by) for by in others)]
    figure = new_figure((11.5, 4.3 * ((len(parts) + 1) // 2)))
    figure.suptitle("Scenarios with and without a bias", fontsize=MEDIUM + 1.5)
    for place, flows in enumerate(parts):
        draw_flows(figure.add_subplot((len(parts) + 1) // 2, 2, place + 1), flows)
    caption = (
        "Each scenario flows from its category to whether the filter changes its answers (Figure 3), and on to whether "
        "they differ by group (Figure 4): p < 0.05 in the paper's Kruskal-Wallis tests, not corrected."
    )
    return [Chart("attractiveness-overlap", "Attractiveness and other biases", caption, figure)]


def _judged(estimates: Sequence[Estimate]) -> list[Judged]:
    found: dict[str, dict[str, bool]] = {}
    kinds: dict[str, tuple[str, str]] = {}
    for one in estimates:
        if one.metric != KRUSKAL or set(one.group) != {"scenario", "by"} or one.p is None:
            continue
        scenario, by = str(one.group["scenario"]), str(one.group["by"])
        found.setdefault(scenario, {})[by] = one.p < ALPHA
        if by == FILTER:
            kinds[scenario] = str(one.facts["category"]), str(one.facts["kind"])
    return [Judged(*kind, found[scenario]) for scenario, kind in kinds.items()]


def _categories(scenarios: Sequence[Judged]) -> Flows:
    paths: Counter[tuple[str, ...]] = Counter((s.category, f"{s.category}, {s.kind}", _filter(s)) for s in scenarios)
    columns = [list(dict.fromkeys(path[column] for path in paths)) for column in range(2)]
    colours = _colours(scenarios) | {f"{s.category}, {s.kind}": _colours(scenarios)[s.category] for s in scenarios}
    return Flows("Figure 3: categories and kinds", [*columns, (MATTERS, NOT)], paths, colours)


def _groups(scenarios: Sequence[Judged], by: str) -> Flows:
    there, without = f"{WORDS[by]} bias", f"no {WORDS[by]} bias"
    own = [s for s in scenarios if by in s.shown]
    paths: Counter[tuple[str, ...]] = Counter((s.category, _filter(s), there if s.shown[by] else without) for s in own)
    columns = [list(dict.fromkeys(s.category for s in own)), (MATTERS, NOT), (there, without)]
    return Flows(f"Figure 4: {WORDS[by]}", columns, paths, _colours(scenarios) | {there: RED, without: GREY})


def _filter(scenario: Judged) -> str:
    return MATTERS if scenario.shown[FILTER] else NOT


def _colours(scenarios: Sequence[Judged]) -> dict[str, str]:
    categories = dict.fromkeys(s.category for s in scenarios)
    return {name: GREENS[n % len(GREENS)] for n, name in enumerate(categories)} | {MATTERS: YELLOW, NOT: SKY}


COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
MARKS = "os^Dv*"


def draw(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return the paper's Figures 3, 4, 5 and 6 and its Tables 5, 6 and 7, as far as there are estimates for them."""
    strength = (chart for by in TRAITS for chart in _strength(by, estimates))
    return [*_shares(estimates), *draw_overlap(estimates), *strength, *draw_tables(estimates)]


def _shares(estimates: Sequence[Estimate]) -> list[Chart]:
    own = [e for e in estimates if e.metric == SHARE and e.group["by"] == FILTER and e.group[JUDGED] == PAPER]
    bars = [Column(_label(e), e.value, e.low, e.high) for e in own]
    if not any(bar.value is not None for bar in bars):
        return []
    figure = columns("Scenarios whose answers the filter changes", "% of scenarios", bars, 0.0)
    caption = (
        "Percentage of scenarios with p < 0.05 in the paper's Kruskal-Wallis test, not corrected; chance alone "
        "gives 5 %. Lines are exact intervals."
    )
    return [Chart("attractiveness-shares", "Attractiveness bias by category", caption, figure)]


def _label(estimate: Estimate) -> str:
    group = estimate.group
    return ", ".join(str(group[name]) for name in ("category", "kind") if name in group) or "all"


def _strength(by: str, estimates: Sequence[Estimate]) -> list[Chart]:
    own = [e for e in estimates if e.metric == KRUSKAL and e.group.get("by") == FILTER and by in e.group]
    levels = list(dict.fromkeys(str(e.group[by]) for e in own))
    values = {(str(e.group[by]), str(e.group["scenario"])): e.value for e in own if e.value is not None}
    scenarios = list(dict.fromkeys(str(e.group["scenario"]) for e in own))
    if not values:
        return []
    scenarios.sort(key=lambda scenario: values.get((levels[0], scenario), -1.0))
    figure = new_figure((max(6.0, 0.13 * len(scenarios) + 2.5), 5.4))
    axes = figure.add_subplot()
    for place, level in enumerate(levels):
        at = [x for x, scenario in enumerate(scenarios) if (level, scenario) in values]
        heights = [values[level, scenarios[x]] for x in at]
        colour, mark = COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)]
        axes.plot(at, heights, mark, color=colour, markersize=4.5, label=level)
    axes.set_xticks(range(len(scenarios)), scenarios, rotation=90, fontsize=5.5)
    axes.set_ylabel("Kruskal-Wallis H, filtered against original", fontsize=MEDIUM)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="x", color=INK)
    axes.legend(frameon=False, fontsize=SMALL, title=WORDS[by])
    told = [(scenario, *(values.get((level, scenario)) for level in levels)) for scenario in scenarios]
    tell(figure, "", ("scenario", *levels), told)
    caption = (
        f"Strength of the filter's effect by {WORDS[by]}: H of filtered against original images of the group, a point "
        f"per scenario and group, in increasing order for {levels[0]}. H depends on the size of the group."
    )
    name = f"attractiveness-by-{by.replace('_', '-')}"
    return [Chart(name, f"Attractiveness bias by {WORDS[by]}", caption, figure)]
