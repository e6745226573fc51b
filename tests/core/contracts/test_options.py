"""Options: typed, strict, and helpful."""

from __future__ import annotations

from typing import Literal

from fakes import CountOptions

from prejudge.core.contracts import Options
from prejudge.core.contracts.errors import UnknownNameError, UsageError
from prejudge.core.contracts.options import build_options, parse_assignments
from prejudge.testing import raises_code


def test_text_becomes_the_type_of_the_option():
    assert build_options("count", CountOptions, {"n": "7"}) == CountOptions(n=7)


def test_list_may_be_written_with_commas():
    assert build_options("count", CountOptions, {"words": "a b, c"}).words == ("a b", "c")


def test_unknown_option_offers_the_nearest():
    with raises_code(UnknownNameError, "unknown-option", "'distnct'", "'distinct'"):
        build_options("count", CountOptions, {"distnct": 1})


def test_wrong_type_says_which():
    with raises_code(UsageError, "options.type", "'n'", "'many'"):
        build_options("count", CountOptions, {"n": "many"})


def test_assignments_are_toml_or_text():
    read = parse_assignments(["a=3", "b=true", 'c=["x"]', "d=body shape", "e=a=b"])
    assert read == {"a": 3, "b": True, "c": ["x"], "d": "body shape", "e": "a=b"}


def test_assignment_without_equals_is_refused():
    with raises_code(UsageError, "options.assignment", "NAME=VALUE"):
        parse_assignments(["per_cell"])


def test_wrong_choice_says_what_there_is():
    class Chosen(CountOptions, frozen=True, kw_only=True):
        unit: Literal["word", "token"] = "word"

    with raises_code(UsageError, "options.choice", "'unit'", "'char'", "'word'", "'token'"):
        build_options("count", Chosen, {"unit": "char"})


class Strict(Options, frozen=True, kw_only=True):
    """One option without a default, and two that may be left open."""

    model: str
    way: Literal["echo", "tokens"] | None = None
    threads: int | None = None


def test_missing_option_is_named():
    with raises_code(UsageError, "options.missing", "'model'"):
        build_options("count", Strict, {})


def test_wrong_choice_of_an_open_option_says_what_there_is():
    with raises_code(UsageError, "options.choice", "'way'", "'guess'", "'echo'", "'tokens'"):
        build_options("count", Strict, {"model": "m", "way": "guess"})


def test_wrong_type_of_an_open_option_speaks_no_json():
    with raises_code(UsageError, "options.type"):
        build_options("count", Strict, {"model": "m", "threads": "one"})
