"""Runs side by side: every run, every group and the neutral value are drawn; what is missing is not."""

from __future__ import annotations

from prejudge.core.charts.levels import PAPER, ROWS, draw_levels
from prejudge.core.charts.numbers import numbers_of
from prejudge.core.contracts.estimates import Estimate

from ...captions import long_captions


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


def test_long_lists_are_cut_and_say_so_and_the_numbers_have_all():
    chart, axes = drawn({"a": [estimate(float(i), f"g{i}") for i in range(ROWS + 5)]})
    assert len(axes.get_yticklabels()) == ROWS and f"first {ROWS} of {ROWS + 5} groups" in chart.caption
    (numbers,) = numbers_of(chart.figure)
    assert numbers.columns == ("group", "model", "value") and len(numbers.rows) == ROWS + 5


def labels(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def test_forty_models_have_a_row_each_the_greatest_first_and_printed_ones_are_grey():
    runs = {f"model {n}": [estimate(float(n)), estimate(90.0 - n, "men", low=1.0, high=99.0)] for n in range(40)}
    printed = {"M (published)": [estimate(20.5, note="Table 2")], "N (published)": [estimate(1.0, "children")]}
    (chart,) = draw_levels(runs, printed)
    women, men = chart.figure.axes
    assert labels(women)[:2] == ["model 39", "model 38"] and "M (published)" in labels(women)
    assert "N (published)" not in labels(women) and len(labels(women)) == 41 and not any(labels(men))
    grey = [line for line in women.lines if line.get_color() == PAPER]
    assert [line.get_xdata()[0] for line in grey] == [20.5]
    (numbers,) = numbers_of(chart.figure)
    assert ("women", "M (published)", 20.5, None, None, "Table 2") in numbers.rows and len(numbers.rows) == 81
    chart.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in women.get_yticklabels()]
    assert all(not one.overlaps(other) for one, other in zip(boxes, boxes[1:], strict=False))


def test_factor_with_one_level_is_in_the_numbers_alone():
    own = [estimate(1.0), estimate(2.0, "men")]
    chart, axes = drawn({"a": [e.replace(group={**e.group, "threshold": 0.02}) for e in own]})
    assert labels(axes) == ["women", "men"]
    assert [row[0] for row in numbers_of(chart.figure)[0].rows] == ["women, 0.02", "men, 0.02"]


def test_one_model_and_the_printed_ones_have_a_row_each():
    e = Estimate.from_flat(metric="share", group={}, value=40.0, neutral=50.0, label="Share of women")
    (chart,) = draw_levels({"a": [e]}, {"P": [e.replace(value=60.0)]})
    (axes,) = chart.figure.axes
    assert labels(axes) == ["a", "P"] and chart.title == "Share of women by model" and "Grey" in chart.caption


def test_caption_is_short_also_where_the_figure_is_cut():
    runs = {"a": [estimate(float(i), f"g{i}") for i in range(ROWS + 5)]}
    (chart,) = draw_levels(runs, {"P (published)": [estimate(1.0, "g1")]})
    assert "Grey" in chart.caption and "The first" in chart.caption and long_captions([chart]) == []


NAMES = ("$\\frac{$", "_hidden", "<b>bold</b> & co", "a\nb", "x" * 300 + "1", "x" * 300 + "2", "")


def test_names_are_drawn_as_they_are_short_and_apart():
    (chart,) = draw_levels({name: [estimate(1.0), estimate(2.0, "men")] for name in NAMES})
    chart.figure.draw_without_rendering()
    shown = [text.get_text() for text in chart.figure.legends[0].get_texts()]
    assert len(set(shown)) == len(NAMES) and max(map(len, shown)) <= 40
    assert shown[2] == NAMES[2] and shown[1].strip() == "_hidden" and shown[4].endswith("x1")
    assert {row[1] for row in numbers_of(chart.figure)[0].rows} == {*NAMES}
    width = chart.figure.get_size_inches()[0] * chart.figure.dpi
    assert chart.figure.legends[0].get_window_extent().x1 <= width + 1
