"""The figure of a finding: places on its axis, round ticks, the limit; and that a phone shows all of it."""

from __future__ import annotations

import re

import pytest
from browsed import content
from msgspec.structs import replace

from prejudge.core.answer.records import Answer, Number, Reply, Row
from prejudge.core.contracts.estimates import Estimate, Verdict
from prejudge.core.contracts.sizes import State, judge_within
from prejudge.core.report.forest import MARGINS, WIDTH, forest_of
from prejudge.core.report.render import render

PHONE = 390


def row(value, low, high, about="", unit="percentage points", limit=5.0, **more):
    e = Estimate.from_flat(metric="m", group={}, value=value, low=low, high=high, unit=unit, n=90, **more)
    if e.neutral is not None:
        e = judge_within(e.replace(verdict=Verdict.OPEN), limit, significant=low is not None and low > e.neutral)
    return Row("Gap", "What it is.", about, Number.of(e), State.YES if e.shown else State.OPEN, e)


def reply(*rows):
    return Reply("Is there a gap?", State.YES, "there is", number=rows[0].number, rows=rows)


def test_places_follow_the_values():
    forest = forest_of(reply(row(30.0, 20.0, 40.0, neutral=0.0), row(-10.0, -20.0, 0.0, "b", neutral=0.0)))
    places = {0.0: forest.neutral} | {
        tick: x for x, text in forest.ticks if (tick := float(text.replace("−", "-"))) or 1
    }
    (left, x), (right, y) = (min(places.items()), max(places.items()))
    scale = (y - x) / (right - left)
    first, second = (line.plot for line in forest.lines)
    for place, value in ((first.value, 30), (first.low, 20), (first.high, 40), (second.value, -10), (second.low, -20)):
        assert place == pytest.approx(x + scale * (value - left), abs=0.2)
    low, high = forest.band
    assert (high - low) / scale == pytest.approx(10.0, abs=0.1) and (low + high) / 2 == pytest.approx(
        forest.neutral, abs=0.1
    )
    assert [line.about for line in forest.lines] == ["All", "B"]
    assert [line.value for line in forest.lines] == ["+30.0", "−10.0"]
    assert (first.apart, second.apart) == (True, False)


def test_limit_of_a_share_is_in_points():
    forest = forest_of(reply(row(0.30, 0.20, 0.40, unit="share", limit=0.05, neutral=0.0)))
    scale = (forest.ticks[1][0] - forest.ticks[0][0]) / (float(forest.ticks[1][1]) - float(forest.ticks[0][1]))
    assert (forest.band[1] - forest.band[0]) / scale == pytest.approx(10.0, abs=0.2)


@pytest.mark.parametrize("size", [1e-6, 0.03, 1.0, 47.0, 9e8])
def test_ticks_are_round_few_and_on_the_axis(size):
    forest = forest_of(reply(row(size, -size, 2 * size, unit="nats", limit=None, neutral=0.0)))
    assert 2 <= len(forest.ticks) <= 6
    assert all(MARGINS <= x <= MARGINS + WIDTH for x, _ in forest.ticks)
    assert any(text == "0" for _, text in forest.ticks)
    steps = {round(b - a, 1) for (a, _), (b, _) in zip(forest.ticks, forest.ticks[1:], strict=False)}
    assert max(steps) - min(steps) <= 0.2


def test_nothing_is_drawn_on_a_scale_of_nothing():
    bare = row(30.0, None, None, neutral=None)
    assert forest_of(reply(bare)) is None and forest_of(reply(row(None, None, None, neutral=0.0))) is None
    assert forest_of(reply(row(30.0, None, None, neutral=0.0))).lines[0].plot.low is None
    assert forest_of(reply(row(0.0, 0.0, 0.0, neutral=0.0, limit=None))) is not None


def test_phone_shows_number_verdict_and_interval_uncut(opened):
    long = "people whom a text describes as unusually tall or short, women and men"
    answer = Answer(
        question="Is there a gap?",
        model="a-model",
        replies=(reply(row(-88.88, -100.0, 99.99, long, neutral=0.0), row(3.0, 1.0, 5.0, neutral=0.0)),),
        missing="nothing.",
    )
    page = opened(render(replace(content(), answer=answer)), width=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
    beyond = "e.getBoundingClientRect().right > innerWidth || e.scrollWidth > e.clientWidth + 1"
    cut = f"all => all.filter(e => {beyond}).length"
    assert page.locator(".forest td:visible, .forest th:visible, .big, .finding .verdict").evaluate_all(cut) == 0
    value, verdict = (
        page.locator(f".forest tbody tr:first-child td.{name}").bounding_box() for name in ("value", "verdict")
    )
    assert verdict["y"] > value["y"] and verdict["x"] == pytest.approx(value["x"], abs=1)
    text = page.locator(".forest").inner_text()
    assert len(re.findall("percentage points", text)) == 1
