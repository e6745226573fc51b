import math

import pytest

from prejudge.core.contracts.words import decimals_for, number, p_value
from prejudge.core.report.text import MOST_CHARACTERS, clean, group_words, label, scalar, shorten, web_link


@pytest.mark.parametrize("value", [None, math.nan])
def test_undefined_number_is_a_dash(value):
    assert number(value) == p_value(value) == "\u2014"


@pytest.mark.parametrize(
    ("value", "decimals", "expected"),
    [
        (0.604821, 3, "0.605"),
        (-1.5, 2, "\u22121.50"),
        (-0.0, 3, "0.000"),
        (1508, 3, "1,508"),
        (math.inf, 3, "\u221e"),
        (0, 3, "0"),
    ],
)
def test_number_is_readable(value, decimals, expected):
    assert number(value, decimals) == expected


def test_small_number_never_reads_as_zero():
    assert number(-0.00004, 3) == "\u22124.0e\u221205"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "< 0.001"), (0.00099, "< 0.001"), (0.05, "0.050"), (0.9995, "> 0.999"), (1.0, "1.000")],
)
def test_p_value_has_bounds(value, expected):
    assert p_value(value) == expected


def test_decimals_follow_the_largest():
    assert [decimals_for(values) for values in ([], [0.1, None], [0.1, 65.9], [math.inf, 2000.0])] == [3, 3, 2, 1]


def test_factor_is_not_a_quantity():
    assert (label(1990), label(0.02), label(True), label(None)) == ("1990", "0.02", "yes", "\u2014")


def test_count_has_separators():
    assert (scalar(44080), scalar(False)) == ("44,080", "no")


def test_group_is_written_out():
    assert group_words({"axis": "height", "threshold": 0.02}) == "axis: height, threshold: 0.02"
    assert group_words({}) == "whole study"


def test_clean_replaces_what_utf8_cannot_carry():
    assert clean("a\x00b\ud800c\x1b[2J\n\t") == "a\ufffdb\ufffdc\ufffd[2J\n\t"


def test_clean_shows_reordering_characters():
    assert clean("ab\u202edc\u2066") == "ab[U+202E]dc[U+2066]"


def test_clean_keeps_every_other_script():
    text = "naïve \u0928\u092e\u0938\u094d\u0924\u0947 \u05e9\u05dc\u05d5\u05dd\u200f \U0001f642"
    assert clean(text) == text


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "JaVaScRiPt:x", "//evil", "http://[", ""])
def test_other_schemes_are_no_links(url):
    assert web_link(url) == ""


def test_web_address_is_a_link():
    assert web_link("https://example.org/a?b=c") == "https://example.org/a?b=c"


def test_shortened_text_says_how_much_is_gone():
    assert shorten("abcdef", 4) == "abcd \u2026 [2 characters left out]"
    assert shorten("abcd", 4) == "abcd"


def test_no_text_of_a_page_is_endless():
    assert str(clean("x" * 2_000_000)).endswith(f"[{2_000_000 - MOST_CHARACTERS:,} characters left out]")


def test_clean_shows_line_separators():
    assert clean("a\u2028b\u2029") == "a[U+2028]b[U+2029]"
