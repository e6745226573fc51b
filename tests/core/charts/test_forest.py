"""Charts: legible, and without global state."""

from __future__ import annotations

import subprocess
import sys

from matplotlib.backends.backend_agg import FigureCanvasAgg

from prejudge.core.charts.forest import (
    Bar,
    Column,
    Layer,
    Panel,
    Point,
    columns,
    forest,
    grouped_bars,
    new_figure,
    stacked_bars,
)

LAYERS = [Layer("yes", "#000000", ".."), Layer("no", "#ffffff")]


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_stacked_bars_print_their_numbers():
    assert texts(stacked_bars("t", [Bar("a", (60.04, 39.96), "*")], LAYERS)) == ["60.0", "40.0", "*"]


def test_low_segments_stay_without_number():
    assert texts(stacked_bars("t", [Bar("a", (98.0, 2.0))], LAYERS)) == ["98.0", ""]


def test_bar_without_data_says_so():
    assert texts(stacked_bars("t", [Bar("a", (None, None), "*")], LAYERS)) == ["no data"]


def test_hatches_tell_layers_apart():
    patches = stacked_bars("t", [Bar("a", (60.0, 40.0))], LAYERS).axes[0].patches
    assert [patch.get_hatch() for patch in patches] == ["..", ""]


def test_labels_do_not_overlap():
    figure = stacked_bars("t", [Bar(f"women\nnegative{i}", (60.0, 40.0)) for i in range(9)], LAYERS)
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert all(one.x1 < other.x0 for one, other in zip(boxes, boxes[1:], strict=False))


def test_grouped_bars_stand_side_by_side_with_whiskers_marks_and_gaps():
    axes = new_figure((4, 3)).add_subplot()
    first = [Column("a b", 10.0, 5.0, 15.0, "*"), Column("c", -4.0, None, None)]
    grouped_bars(axes, "%", [(LAYERS[0], first), (LAYERS[1], [Column("c", None, None, None)])])
    one, other = axes.containers
    assert [bar.get_height() for bar in one] == [10.0, -4.0] and [bar.get_height() for bar in other] == [0.0]
    assert one[1].get_x() + one[1].get_width() < other[0].get_x() + 1e-9
    assert [text.get_text() for text in axes.texts] == ["*", "no data"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a\nb", "c"]
    assert [list(line.get_ydata()) for line in axes.lines] == [[5.0, 15.0]]


def test_forest_fills_what_was_shown():
    points = [Point("a", 1.0, 0.5, 1.5, True), Point("b", 0.1, -1.0, 1.0), Point("c", None, None, None)]
    axes = forest([Panel("t", "nats", points)]).axes[0]
    faces = [line.get_markerfacecolor() for line in axes.lines if line.get_marker() == "o"]
    assert faces == ["#0072B2", "white"]
    assert [text.get_text() for text in axes.texts] == [" no data"]


def test_forest_has_a_mark_and_a_word_for_each_state():
    ends = {(True, True): (0.5, 1.5), (True, False): (-1.0, 3.0), (False, False): (None, None)}
    points = [Point("p", 1.0, *interval, shown) for (_, shown), interval in ends.items()]
    figure = forest([Panel("t", "nats", points), Panel("u", "nats", points[:1])])
    marks = [
        (line.get_marker(), line.get_markerfacecolor()) for line in figure.axes[0].lines if line.get_marker() in "oD"
    ]
    assert marks == [("o", "#0072B2"), ("o", "white"), ("D", "white")]
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["significant after correction", "not significant", "no interval"]


def test_columns_draw_the_neutral_line():
    axes = columns("t", "%", [Column("a", 60.0, 50.0, 70.0, "*"), Column("b", None, None, None)], 50.0).axes[0]
    assert any(list(line.get_xdata()) == [50.0, 50.0] for line in axes.lines)
    assert [text.get_text() for text in axes.texts] == ["60.0", "*", "no data"]


def test_no_whisker_runs_through_a_number():
    figure = columns("t", "%", [Column("a", 5.0, 0.5, 70.0, ""), Column("b", 0.0, 0.0, 40.0, "")], 50.0)
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    whiskers = [line for line in axes.lines if len(set(line.get_ydata())) == 1]
    numbers = [text for text in axes.texts if text.get_text()]
    assert len(whiskers) == len(numbers) == 2
    for whisker, number in zip(whiskers, numbers, strict=True):
        assert not whisker.get_window_extent().overlaps(number.get_window_extent())


def test_metrics_leave_pyplot_alone():
    metrics = "prejudge.metrics.bistereo.trisentbias, prejudge.metrics.crows_pairs.metric"
    code = f"import sys, {metrics}; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
