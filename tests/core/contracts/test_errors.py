"""The tree of errors: each has a code beside its message."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prejudge.core.contracts import errors
from prejudge.core.contracts.errors import (
    DataError,
    MissingExtraError,
    PluginError,
    PrejudgeError,
    RateLimitError,
    ReplayMissError,
    UnknownNameError,
    UsageError,
)
from prejudge.testing import raises_code

CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PrejudgeError)]


@given(st.text())
def test_message_alone_is_enough(message: str) -> None:
    error = DataError(message)
    assert (str(error), error.code, dict(error.fields)) == (message, "data", {})


def test_code_and_fields_of_one_site() -> None:
    error = DataError("no column 'text'.", code="data.column-missing", column="text")
    assert (str(error), error.code, error.fields) == ("no column 'text'.", "data.column-missing", {"column": "text"})
    assert DataError("another").fields == {}


def test_code_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(UsageError("no", code="options.value", name="x")))
    assert (str(error), error.code, error.fields) == ("no", "options.value", {"name": "x"})


def test_every_class_has_a_code_of_its_own() -> None:
    assert len({kind.code for kind in CLASSES}) == len(CLASSES)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("study", "unknown-study"),
        ("option of subtle", "unknown-option"),
        ("key in 'study.toml'", "unknown-key"),
        ("skin tone", "unknown-skin-tone"),
    ],
)
def test_code_of_unknown_name_follows_kind(kind: str, code: str) -> None:
    error = UnknownNameError(kind, "sutble", ["subtle"])
    assert (error.code, error.fields) == (code, {"name": "sutble"})
    assert "subtle" in str(error)


def test_classes_with_more_arguments_have_codes() -> None:
    assert MissingExtraError("images", "images").code == "missing-extra"
    assert ReplayMissError(1, 2).code == "replay-miss"
    assert PluginError("mine", "broken").code == "plugin"
    assert PluginError("mine", "broken", code="plugin.contract").code == "plugin.contract"
    assert RateLimitError("slow", 2.0, code="endpoint.rate-limit").code == "endpoint.rate-limit"


def test_class_of_a_stranger_constructs() -> None:
    class MineError(UsageError):
        def __init__(self) -> None:
            Exception.__init__(self, "mine")

    assert (MineError().code, MineError().fields) == ("usage", {})


def test_raises_code_tells_code_and_values() -> None:
    with raises_code(UsageError, "options.value", "per_cell", 3) as caught:
        raise UsageError("per_cell is 3.", code="options.value")
    assert caught.value.code == "options.value"


@pytest.mark.parametrize(("code", "named"), [("options.other", "per_cell"), ("options.value", "seed")])
def test_raises_code_fails_on_another(code: str, named: str) -> None:
    with pytest.raises(AssertionError), raises_code(UsageError, code, named):
        raise UsageError("per_cell is 3.", code="options.value")
