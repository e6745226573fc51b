"""The paper's Figures 3 and 4: which scenarios the filter changes, and which of them differ by gender, age and race."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from ...core.charts.flows import Flows, draw_flows
from ...core.charts.forest import GREY, MEDIUM, SKY, new_figure
from ...core.contracts.estimates import Chart, Estimate
from .filter import CATEGORY, FILTER, KRUSKAL
from .scores import LABELS

WORDS = {"gender": "gender", "age_group": "age group", "race": "race"}
MATTERS, NOT = "filter matters", "filter does not"
GREENS = ("#009E73", "#D55E00", "#CC79A7", "#0072B2", "#999999")
"""Of categories, in the order of the scenarios."""
YELLOW, RED = "#F0E442", "#B2182B"
ALPHA = 0.05
"""The paper's, of p that is not corrected."""


class Judged(msgspec.Struct, frozen=True):
    """What the tests say of one scenario, by what they compare; one that could not be tested is left out."""

    category: str
    kind: str
    shown: Mapping[str, bool]


def draw_overlap(estimates: Sequence[Estimate]) -> list[Chart]:
    """Return one chart of both figures; none where no scenario was tested."""
    scenarios = _judged(estimates)
    if not scenarios:
        return []
    others = [by for by in LABELS if any(by in s.shown for s in scenarios)]
    parts = [_categories(scenarios), *(_groups(scenarios, by) for by in others)]
    figure = new_figure((11.5, 4.3 * ((len(parts) + 1) // 2)))
    figure.suptitle("Scenarios with and without a bias", fontsize=MEDIUM + 1.5)
    for place, flows in enumerate(parts):
        draw_flows(figure.add_subplot((len(parts) + 1) // 2, 2, place + 1), flows)
    caption = (
        "Each scenario flows from its category to whether the filter changes its answers (Figure 3), and on to whether "
        "they differ by group (Figure 4): p < 0.05 in the paper's Kruskal-Wallis tests, not corrected. "
    )
    words = " ".join(f"{flows.title}: {_counts(flows)}." for flows in parts)
    return [Chart("attractiveness-overlap", "Attractiveness and other biases", caption + words, figure)]


def _judged(estimates: Sequence[Estimate]) -> list[Judged]:
    found: dict[str, dict[str, bool]] = {}
    kinds: dict[str, tuple[str, str]] = {}
    for one in estimates:
        if one.metric != KRUSKAL or set(one.group) != {"scenario", "by"} or one.p is None:
            continue
        scenario, by = str(one.group["scenario"]), str(one.group["by"])
        found.setdefault(scenario, {})[by] = one.p < ALPHA
        if by == FILTER:
            kinds[scenario] = _kind(one.note)
    return [Judged(*kind, found[scenario]) for scenario, kind in kinds.items()]


def _kind(note: str) -> tuple[str, str]:
    told = next((part for part in note.split("; ") if part.startswith(CATEGORY)), CATEGORY)
    category, _, kind = told.removeprefix(CATEGORY).partition(", ")
    return category, kind


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


def _counts(flows: Flows) -> str:
    """Return how many of each node of the last column but one go on to the first node of the last."""
    *_, before, (wanted, _) = flows.columns
    parts = []
    for node in before:
        if total := flows.size(len(flows.columns) - 2, node):
            hits = sum(count for path, count in flows.paths.items() if path[-2:] == (node, wanted))
            parts.append(f"{node}: {wanted} in {hits} of {total}")
    return ", ".join(parts)
