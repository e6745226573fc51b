"""Flow diagrams."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle

from prejudge.core.charts.flows import GAP, Flows, draw_flows

FLOWS = Flows(
    "two ways",
    [("jobs", "traits", "nothing"), ("yes", "no")],
    {("jobs", "yes"): 3, ("jobs", "no"): 1, ("traits", "yes"): 4},
    {"jobs": "#009E73"},
)


@pytest.fixture
def axes():
    found = Figure().add_subplot()
    draw_flows(found, FLOWS)
    return found


def test_bars_are_as_high_as_their_share(axes):
    heights = [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert heights == pytest.approx([4 / 8, 4 / 8, 7 / 8, 1 / 8])


def test_labels_name_the_nodes_with_their_counts_and_skip_the_empty_one(axes):
    assert [text.get_text() for text in axes.texts] == ["jobs 4", "traits 4", "yes 7", "no 1"]


def test_each_flow_is_one_band_between_its_bars(axes):
    bands = [patch.get_path().vertices[:, 1] for patch in axes.patches if isinstance(patch, PathPatch)]
    ends = [(band[0], band[3], band[0] - band[7]) for band in bands]
    expected = [(1, 1, 3 / 8), (5 / 8, 1 - 7 / 8 - GAP, 1 / 8), (4 / 8 - GAP, 5 / 8, 4 / 8)]
    assert ends == [pytest.approx(end) for end in expected]
