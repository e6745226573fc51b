"""Templates beside a metric: filters, one paragraph, nothing undefined."""

import jinja2
import pytest

from prejudge.core.contracts.estimates import Estimate, Interval
from prejudge.core.statistics import templates
from prejudge.core.statistics.estimates import TestingOptions
from prejudge.core.statistics.templates import rendered, spread


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes a template and fills it in."""
    monkeypatch.setattr(templates.resources, "files", lambda package: tmp_path)
    templates._environment.cache_clear()
    yield lambda text, **fields: (tmp_path / "t.j2").write_text(text) and rendered("own", "t.j2", **fields)
    templates._environment.cache_clear()


def test_a_text_is_one_paragraph(write):
    assert write("one\n  two {{ x|fixed(1) }},\n{{ y|signed(2) }} {{ n|counted }}", x=0.26, y=1, n=1234) == (
        "one two 0.3, +1.00 1,234"
    )


def test_p_is_never_zero(write):
    assert write("{{ p|p }}", p=1e-9) == "< 0.001"


def test_what_nobody_gives_is_an_error(write):
    with pytest.raises(jinja2.UndefinedError, match="gone"):
        write("{{ gone }}")


def test_spread_is_empty_without_an_interval():
    whole = Estimate(metric="m", group={}, value=1.0, interval=Interval(0.0, 2.0, 0.9))
    assert spread(whole) == ", 90 % interval 0.0 to 2.0" and spread(whole.replace(low=None)) == ""


@pytest.mark.parametrize(
    ("intervals", "units", "named"),
    [
        ("percentile", ["face"], ["95 %", "each face whole", "below 10 clusters", "9,999", "seed 0"]),
        ("bca", ["face"], ["95 %", "each face whole", "BCa", "9,999"]),
        ("jackknife", ["face"], ["95 %", "each face in turn", "Student's t"]),
        ("percentile", ["template", "term"], ["95 %", "template crossed with term", "9,999", "Student's t"]),
        ("jackknife", ["template", "term"], ["95 %", "template crossed with term", "Student's t"]),
    ],
)
def test_every_metric_can_say_how_intervals_are_made(intervals, units, named):
    text = '{% from "intervals.md.j2" import intervals %}{{ intervals(options, units) }}'
    template = templates._environment("prejudge.metrics.subtle").from_string(text)
    said = " ".join(template.render(options=TestingOptions(intervals=intervals), units=units).split())
    assert all(words in said for words in named) and "( " not in said
