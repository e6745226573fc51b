import math

import polars as pl
import pytest

from prejudge.core.contracts.estimates import Estimate
from prejudge.core.report import grid as grids
from prejudge.core.report.content import Published, Table
from prejudge.core.report.fields import scale_of
from prejudge.core.report.grid import plain_grid
from prejudge.core.report.tables import (
    HEADLINE_ROWS,
    MOST_ROWS,
    OPEN_ROWS,
    answer,
    headline,
    published_grid,
    sections,
)


def estimate(**changes):
    return Estimate.from_flat(**{"metric": "z1", "group": {}, "value": 0.5, **changes})


def cells(estimates, column):
    (section,) = sections(estimates)
    index = [head.label for head in section.grid.columns].index(column)
    return [row[index] for row in section.grid.rows]


def labels(grid):
    return [column.label for column in grid.columns]


def test_sections_follow_the_metrics():
    found = sections([estimate(metric="b"), estimate(metric="a"), estimate(metric="b")])
    assert [(section.id, section.name, len(section.grid.rows)) for section in found] == [
        ("metric-1", "b", 2),
        ("metric-2", "a", 1),
    ]


def test_each_group_key_is_a_column():
    (section,) = sections([estimate(group={"axis": "height"}), estimate(group={"axis": "height", "gender": "men"})])
    assert labels(section.grid)[:2] == ["axis", "gender"]
    assert [row[1].text for row in section.grid.rows] == ["all", "men"]


def test_absent_measures_have_no_column():
    (section,) = sections([estimate()])
    assert labels(section.grid) == ["Group", "Value", "Interval", "Plot", "n", "Missing"]


def test_undefined_value_is_neither_zero_nor_sorted_as_one():
    cell = cells([estimate(value=None), estimate()], "Value")[0]
    assert cell.undefined
    assert cell.sort == ""


def test_nan_is_undefined():
    assert cells([estimate(value=math.nan, neutral=0.0)], "Value")[0].undefined


def test_full_value_stays_within_reach():
    (cell,) = cells([estimate(value=0.123456789)], "Value")
    assert (cell.text, cell.title) == ("0.123", "0.123456789")


def test_undefined_p_of_a_test_is_a_dash():
    assert cells([estimate(test="binomial")], "p")[0].undefined


def test_family_is_named_where_families_differ():
    rows = [estimate(p=0.1, p_adjusted=0.2, family=name, correction="Holm") for name in ("one", "two")]
    assert [cell.detail for cell in cells(rows, "Adjusted p")] == ["one", "two"]
    assert [cell.detail for cell in cells(rows[:1], "Adjusted p")] == [""]


def test_notes_say_how_numbers_were_made():
    row = estimate(low=0.1, high=0.9, level=0.9, interval="BCa", p_adjusted=0.1, family="axes", correction="Holm")
    assert sections([row, row])[0].notes == ("Interval: 90 % BCa", "Adjusted p: Holm within axes")


def test_worst_case_keeps_its_decimals_where_nothing_was_measured():
    (cell,) = cells([estimate(value=None, neutral=0.0, bound_low=0.0, bound_high=math.log(2))], "Worst case")
    assert cell.text == "0.000 to 0.693"
    (cell,) = cells([estimate(value=None, neutral=0.0, bound_low=0.0, bound_high=100.0)], "Worst case")
    assert cell.text == "0 to 100"


def test_missing_is_counted_by_status():
    (cell,) = cells([estimate(missing={"refused": 2, "failed": 1})], "Missing")
    assert (cell.text, cell.detail) == ("3", "2 refused, 1 failed")


def test_short_table_has_one_p_and_a_worst_case_where_something_is_missing():
    tested = estimate(p=0.01, p_adjusted=0.02, bound_low=0.1, bound_high=0.9, note="few clusters", missing={})
    assert labels(headline([tested])) == ["Measure", "Value", "Interval", "Plot", "Adjusted p", "n", "Missing"]
    lacking = tested.replace(missing={"refused": 1})
    assert "Worst case" in labels(headline([tested, lacking]))
    alone = tested.replace(p_adjusted=None)
    assert {"p", "Adjusted p"} <= set(labels(headline([tested, alone])))


@pytest.mark.parametrize(
    ("low", "neutral", "apart"), [(0.1, 0.0, True), (-0.1, 0.0, False), (-0.1, None, True), (None, None, False)]
)
def test_plot_marks_intervals_that_do_not_hold_the_neutral_value(low, neutral, apart):
    (cell,) = cells([estimate(value=0.2, low=low, high=0.3, neutral=neutral)], "Plot")
    assert cell.plot.apart is apart


def test_counts_have_no_decimals():
    counted = [estimate(value=1217.0, unit="count"), estimate(value=0.0, unit="count")]
    assert [cell.text for cell in cells(counted, "Value")] == ["1,217", "0"]
    measured = [estimate(value=3.0, low=2.0, high=4.0), estimate(value=0.0)]
    assert [cell.text for cell in cells(measured, "Value")] == ["3.000", "0.000"]


def test_plot_spans_the_metric():
    first, second = cells([estimate(value=-1.0, neutral=0.0), estimate(value=1.0, neutral=0.0)], "Plot")
    assert (first.plot.value, first.plot.neutral, second.plot.value) == (0.0, 50.0, 100.0)


def test_infinite_value_stays_in_the_plot():
    scale = scale_of([estimate(value=math.inf), estimate(value=0.0), estimate(value=1.0)])
    assert (scale.place(math.inf), scale.place(-math.inf), scale.place(None)) == (100.0, 0.0, None)


def test_headline_takes_the_broadest_groups():
    grid = headline([estimate(value=0.7), estimate(group={"axis": "height"}), estimate(metric="z2", group={"a": 1})])
    assert [(row[0].text, row[0].detail) for row in grid.rows] == [("z1", "whole study"), ("z2", "a: 1")]


def test_headline_picks_none_of_too_many():
    assert not headline([estimate(group={"a": i}) for i in range(HEADLINE_ROWS + 1)]).rows


def test_headline_can_be_chosen():
    chosen = [estimate(metric="other", value=0.1)]
    assert [row[0].text for row in headline([estimate()], chosen).rows] == ["other"]


def test_long_reports_start_closed():
    assert sections([estimate()] * OPEN_ROWS)[0].open
    assert not sections([estimate()] * (OPEN_ROWS + 1))[0].open


@pytest.mark.parametrize(("measured", "expected"), [(60.47, "yes"), (60.46, "no"), (None, "\u2014")])
def test_published_value_is_compared(measured, expected):
    grid = published_grid([Published(metric="score", published=60.48, measured=measured, tolerance=0.01)])
    assert grid.rows[0][labels(grid).index("Replicated")].text == expected


def test_frame_becomes_a_table():
    grid = plain_grid(Table.from_frame("counts", pl.DataFrame({"stage": ["main"], "ok": [1508], "failed": [None]})))
    assert [cell.text for cell in grid.rows[0]] == ["main", "1,508", "\u2014"]
    assert [column.numeric for column in grid.columns] == [False, True, True]


@pytest.mark.parametrize(
    ("topic", "shown"), [("", ["z1"]), ("missing", ["missing"]), ("position", ["position_bias", "order"])]
)
def test_each_topic_has_its_own_sections(topic, shown):
    rows = [estimate(), *(estimate(metric=name) for name in ("missing", "position_bias"))]
    found = sections([*rows, estimate(metric="order", topic="position")], topic)
    assert [section.name for section in found] == shown


def test_anchors_of_topics_differ():
    rows = [estimate(), estimate(metric="missing"), estimate(metric="position_bias")]
    anchors = [section.id for topic in ("", "missing", "position") for section in sections(rows, topic)]
    assert len(set(anchors)) == 3


def test_headline_is_about_the_question():
    assert [row[0].text for row in headline([estimate(), estimate(metric="missing")]).rows] == ["z1"]


def test_headline_leaves_the_test_to_the_sections():
    assert "Test" not in labels(headline([estimate(test="binomial", clusters=3)]))


def test_long_list_is_cut_and_says_so():
    rows = [estimate(metric=name) for name in ("z1", "z2") for _ in range(MOST_ROWS)]
    first, second = sections(rows)
    assert len(first.grid.rows) == len(second.grid.rows) == MOST_ROWS / 2
    assert any(f"{MOST_ROWS // 2:,} of {MOST_ROWS:,}" in note for note in first.notes)


def test_short_lists_are_whole_beside_long_ones():
    sizes = {"a": 3 * MOST_ROWS, "b": 7, "c": MOST_ROWS // 4, "d": 2 * MOST_ROWS}
    found = sections([estimate(metric=name) for name, size in sizes.items() for _ in range(size)])
    shown = {section.name: len(section.grid.rows) for section in found}
    rest = (MOST_ROWS - 7 - MOST_ROWS // 4) // 2
    assert shown == {"a": rest, "b": 7, "c": MOST_ROWS // 4, "d": rest}


def test_long_plain_table_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(grids, "MOST_ROWS", 2)
    grid = plain_grid(Table("counts", ("n",), ((1,), (2,), (3,))))
    assert len(grid.rows) == 2
    assert grid.caption == "counts (the first 2 of 3 rows)"


def test_answer_has_its_uncertainty():
    row = estimate(group={"axis": "height"}, value=-0.25, low=-0.5, high=0.0, neutral=0.0, unit="nats", n=1200)
    assert answer([row]) == (
        "z1 (axis: height) is \u22120.250 nats, 95 % interval \u22120.500 to 0.000, neutral 0, n = 1,200."
    )


def test_answer_says_that_there_is_no_interval():
    assert "no interval" in answer([estimate(metric="missing"), estimate()])
    assert answer([estimate(metric="missing")]) == ""
