"""Flow diagrams (alluvial or Sankey): how the same units divide into the categories of each column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from .forest import GREY, INK, MEDIUM, SMALL
from .numbers import tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, GAP = 0.16, 0.03
"""Width of a bar, with columns 1 apart; gap between bars, with all bars of a column 1 high in total."""
Ends = tuple[float, float]


class Flows(msgspec.Struct, frozen=True):
    """The paths of all units; each path goes through one node per column."""

    title: str
    columns: Sequence[Sequence[str]]
    """Nodes of each column, from the top; empty nodes are left out. Names are unique."""
    paths: Mapping[tuple[str, ...], int]
    """Number of units per path."""
    colours: Mapping[str, str]

    @property
    def total(self) -> int:
        """Return the number of units."""
        return sum(self.paths.values())

    def size(self, column: int, node: str) -> int:
        """Return the number of units in a node."""
        return sum(count for path, count in self.paths.items() if path[column] == node)


def draw_flows(axes: Axes, flows: Flows) -> None:
    """Draw the nodes as bars with their names and counts, and the flows as bands between them."""
    from matplotlib.patches import Rectangle

    places = [_places(flows, column) for column in range(len(flows.columns))]
    for column in range(len(places) - 1):
        _bands(axes, flows, column, (places[column], places[column + 1]))
    for column, nodes in enumerate(places):
        for node, (low, high) in nodes.items():
            colour = flows.colours.get(node, GREY)
            axes.add_patch(Rectangle((column, low), WIDTH, high - low, facecolor=colour, edgecolor=INK, linewidth=0.6))
            label = f"{node} {flows.size(column, node)}"
            axes.text(column + WIDTH + 0.03, (low + high) / 2, label, va="center", fontsize=SMALL, color=INK)
    axes.set_xlim(-0.02, len(places) - 0.2)
    axes.set_ylim(-GAP * max(map(len, places)), 1.02)
    axes.set_axis_off()
    axes.set_title(flows.title, fontsize=MEDIUM, loc="left")
    steps = [f"step {n}" for n in range(1, len(places) + 1)]
    tell(axes.figure, flows.title, (*steps, "units"), ((*path, count) for path, count in flows.paths.items()))


def _places(flows: Flows, column: int) -> dict[str, Ends]:
    found, top = {}, 1.0
    for node in flows.columns[column]:
        if size := flows.size(column, node):
            found[node] = (top - size / flows.total, top)
            top = found[node][0] - GAP
    return found


def _bands(axes: Axes, flows: Flows, column: int, places: tuple[dict[str, Ends], dict[str, Ends]]) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for path, count in flows.paths.items():
        counts[path[column], path[column + 1]] += count
    tops = [{node: high for node, (_, high) in side.items()} for side in places]
    for source in places[0]:
        for target in places[1]:
            if share := counts[source, target] / flows.total:
                left, right = tops[0][source], tops[1][target]
                _band(axes, (column + WIDTH, column + 1), (left, right), share, flows.colours.get(source, GREY))
                tops[0][source], tops[1][target] = left - share, right - share


def _band(axes: Axes, across: Ends, tops: Ends, share: float, colour: str) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x0, x1), (left, right) = across, tops
    middle = (x0 + x1) / 2
    corners = [(x0, left), (middle, left), (middle, right), (x1, right)]
    below = [(x, y - share) for x, y in reversed(corners)]
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    outline = Path([*corners, *below, corners[0]], codes)
    axes.add_patch(PathPatch(outline, facecolor=colour, alpha=0.4, linewidth=0))
