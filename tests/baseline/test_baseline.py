"""The numbers of the studies are those of the baseline: responses that were written down give the same estimates."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .adapters import read_case
from .cases import CASES, Case
from .designs import FILE, designs, digest_of
from .record import case_models, estimates_of, file_of, rows_of, run_case

pytestmark = pytest.mark.usefixtures("no_figures")
TOLERANCE = 1e-10
"""Sums in another order differ in their last digits, and an odds ratio of hundreds by some of them more."""
SPOILT = {"refused", "filtered", "unreadable", "failed"}
DESIGNS: dict[str, list[Any]] = json.loads(FILE.read_text("utf-8"))
LARGE = 150_000


def soak_if_large(name: str) -> list[pytest.MarkDecorator]:
    """Leave large designs of other options than those by default to `make soak`: other tests read those options."""
    return [pytest.mark.soak] if " " in name and DESIGNS[name][0] > LARGE else []


def differences(before: Any, after: Any, place: str = "") -> list[str]:
    """Return the places where two records differ: numbers by more than the tolerance, all else at all."""
    if isinstance(before, float) and isinstance(after, float):
        same = math.isclose(before, after, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or before == after
        return [] if same or (math.isnan(before) and math.isnan(after)) else [f"{place}: {before!r}, {after!r}"]
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted({*before, *after})
        return [d for n in names for d in differences(before.get(n), after.get(n), f"{place}.{n}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            d for i, (b, a) in enumerate(zip(before, after, strict=True)) for d in differences(b, a, f"{place}[{i}]")
        ]
    return [] if before == after else [f"{place}: {before!r}, {after!r}"]


def test_cases_cover_every_status_and_every_stage():
    statuses: Counter[str] = Counter()
    for case in CASES:
        statuses.update(row["status"] for row in read_case(file_of(case))["rows"])
    assert set(statuses) == SPOILT | {"ok"}
    again = [line for case in CASES for line in read_case(file_of(case))["exchanges"]["subject"]]
    assert any(line["request"].get("attempt") for line in again)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_stored_responses_give_the_estimates_of_the_baseline(case: Case, tmp_path: Path):
    file = file_of(case)
    models = {role: {"file": str(file), "role": role} for role in case_models(case)}
    run = run_case(case, tmp_path, "tests.baseline.adapters:Recorded", models)
    before = read_case(file)
    rows = [json.loads(json.dumps(row)) for row in rows_of(run.scores)]
    assert not any("baseline.unknown-request" in str(row["reason"]) for row in rows)
    assert differences(before["rows"], rows)[:10] == []
    estimates = json.loads(json.dumps(estimates_of(run.estimates)))
    assert differences(before["estimates"], estimates)[:10] == []


@pytest.fixture(scope="module")
def every_design() -> dict[str, tuple[Any, ...]]:
    return {name: tuple(design) for name, *design in designs()}


def test_every_design_is_in_the_baseline(every_design: dict[str, Any]):
    assert every_design.keys() == DESIGNS.keys()


@pytest.mark.parametrize("name", [pytest.param(name, marks=soak_if_large(name)) for name in DESIGNS])
def test_a_design_is_that_of_the_baseline(every_design: dict[str, Any], name: str):
    assert digest_of(*every_design[name]) == DESIGNS[name]


def test_a_changed_number_is_a_difference():
    assert differences([{"value": 1.0}], [{"value": 1.0 + 1e-6}]) != []
    assert differences([{"value": 1.0}], [{"value": 1.0 + 1e-14}]) == []
    assert differences([{"value": None}], [{"value": 0.0}]) != []
