"""Why a run ends stands in one module, with the state and the exit code that follow from it."""

from __future__ import annotations

import ast
import asyncio
import string

import pytest

from prejudge.core.cli.exits import exits_of
from prejudge.core.contracts.errors import (
    AuthenticationError,
    BudgetError,
    DataError,
    HaltedError,
    PendingError,
    StoreError,
)
from prejudge.core.engine import ending
from prejudge.core.engine.ending import PENDING, SPENT, Stop, end_of

from ...package_parts import ROOT

ENGINE = ROOT / "core" / "engine"
STOPS = {name: value for name, value in vars(ending).items() if isinstance(value, Stop)}


def test_no_other_module_of_the_engine_words_a_reason_to_stop() -> None:
    words = [
        f"{path.relative_to(ENGINE)}:{node.lineno}"
        for path in sorted(ENGINE.rglob("*.py"))
        if path.name != "ending.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "HaltedError"
    ]
    assert words == [] and len(STOPS) > 20


@pytest.mark.parametrize("name", STOPS)
def test_each_reason_gives_an_error_with_its_code_and_values(name: str) -> None:
    stop = STOPS[name]
    fields = {
        field for text in (stop.reason, stop.remedy) for _, field, _, _ in string.Formatter().parse(text) if field
    }
    numbers = {field: place for place, field in enumerate(sorted(fields), 7001)}
    error = stop.error(**numbers)
    assert error.code == stop.code
    shown = str(error).replace(",", "")
    assert "{" not in shown and all(str(number) in shown for number in numbers.values())


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (None, "finished", 0),
        (BudgetError("spent"), "interrupted", 3),
        (PendingError("left"), "interrupted", 4),
        (HaltedError("halted", code="endpoint.down"), "interrupted", 2),
        (asyncio.CancelledError(), "interrupted", 2),
        (KeyboardInterrupt(), "interrupted", 2),
        (AuthenticationError("refused"), "failed", 2),
        (StoreError("lost"), "failed", 2),
        (DataError("odd"), "failed", 2),
    ],
)
def test_error_decides_the_state_of_the_run_and_the_exit_code(error, state, code) -> None:
    assert end_of(error) == (state, code)


def test_exit_codes_of_a_run_are_those_that_the_commands_list() -> None:
    assert {SPENT, PENDING} <= exits_of("run").keys() and {SPENT, PENDING} <= exits_of("resume").keys()
