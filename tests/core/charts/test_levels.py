"""Runs side by side: every run, every group and the neutral value are drawn; what is missing is not."""

from __future__ import annotations

from prejudge.core.charts.levels import ROWS, draw_levels
from prejudge.core.contracts.estimates import Estimate


def estimate(value, gender="women", **fields):
    return Estimate.from_flat(metric="share", group={"gender": gender}, value=value, neutral=50.0, unit="%", **fields)


def drawn(runs):
    (chart,) = draw_levels(runs)
    return chart, chart.figure.axes[0]


def test_each_run_has_its_mark_in_each_group():
    runs = {
        "a": [estimate(40.0, low=30.0, high=50.0), estimate(60.0, "men")],
        "b": [estimate(70.0, low=65.0, high=75.0)],
    }
    chart, axes = drawn(runs)
    marks = [line.get_xdata()[0] for line in axes.lines if line.get_marker() not in ("None", None, "")]
    intervals = [tuple(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 2]
    assert sorted(marks) == [40.0, 60.0, 70.0] and {(30.0, 50.0), (65.0, 75.0)} <= set(intervals)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["women", "men"]
    assert [text.get_text() for text in chart.figure.legends[0].get_texts()] == ["a", "b"]


def test_missing_value_is_not_drawn_as_zero():
    _, axes = drawn({"a": [estimate(None)], "b": [estimate(70.0)]})
    marks = [line.get_xdata()[0] for line in axes.lines if line.get_marker() not in ("None", None, "")]
    assert marks == [70.0]


def test_measure_that_no_run_has_is_not_drawn():
    assert draw_levels({"a": [estimate(None)], "b": []}) == []


def test_long_lists_are_cut():
    _, axes = drawn({"a": [estimate(float(i), f"g{i}") for i in range(ROWS + 5)]})
    assert len(axes.get_yticklabels()) == ROWS
