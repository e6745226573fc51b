"""The pytest plugin: a test per rule, no traceback for a mistake, nothing heavy at start."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from prejudge.core import gate, pytest_plugin

# pytester forgets modules that a run imports first, and numpy cannot be imported twice: `gate` is imported here.
pytest_plugins = ["pytester"]
POLICY = """
[[rules]]
name = "short answers"
measure = "mean_length"
max = 10
[[rules]]
name = "shorter answers"
measure = "mean_length"
max = 2
[[rules]]
name = "something else"
measure = "mean_length"
group = { parity = "none" }
max = 2
"""


@pytest.fixture
def gated(pytester, run_study, catalogue, store, monkeypatch):
    """Return a function that runs pytest on a policy in a folder of its own."""
    monkeypatch.setattr(
        "prejudge.core.catalogue.study.Catalogue.load", classmethod(lambda cls, registry=None: catalogue)
    )
    run_study()
    pytester.makefile(".toml", policy=POLICY)
    pytester.makepyfile("def test_other(): pass")

    def run(*words, policy="policy.toml"):
        place = ["--prejudge-store", str(store.url)]
        loaded = [] if _installed() else ["-p", "prejudge.core.pytest_plugin"]
        return pytester.runpytest_inprocess(*loaded, "--prejudge-policy", policy, *place, *words)

    return run


def _installed() -> bool:
    return any(entry.value == pytest_plugin.__name__ for entry in entry_points(group="pytest11"))


def test_every_rule_is_a_test(gated):
    result = gated("-v")
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*the run is finished*PASSED*", "*shorter answers*FAILED*"])
    result.stdout.fnmatch_lines(["mean_length (whole study): value at most 2; found: value 3.000*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_rules_are_chosen_by_name(gated):
    gated("-k", "short and not shorter").assert_outcomes(passed=1, deselected=4)


def test_junit_of_pytest_names_the_rules(gated, pytester):
    gated("--junitxml", "out.xml")
    assert 'name="shorter answers"' in (pytester.path / "out.xml").read_text()


def test_bad_policy_is_an_error_of_usage(gated, pytester):
    pytester.makefile(".toml", bad="[[rules]]\nmeasure = 'a'\nmaximum = 1")
    result = gated(policy="bad.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'maximum'*'max'*"])


def test_unknown_run_fails_every_rule_without_a_traceback(gated):
    result = gated("--prejudge-run", "never")
    result.assert_outcomes(passed=1, failed=4)
    result.stdout.fnmatch_lines(["unknown run 'never'*"])
    result.stdout.no_fnmatch_line("*Error*")


def test_run_is_scored_once(gated, monkeypatch):
    scored = []
    judge = gate.judge_run
    monkeypatch.setattr(gate, "judge_run", lambda *words: scored.append(1) or judge(*words))
    gated()
    assert scored == [1]


def test_without_a_policy_nothing_happens(pytester):
    pytester.makepyfile("def test_other(): pass")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_loading_imports_nothing_heavy():
    code = (
        "import sys, prejudge.core.pytest_plugin\n"
        "print(sorted({'polars', 'scipy', 'matplotlib', 'sqlmodel', 'msgspec', 'click', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
