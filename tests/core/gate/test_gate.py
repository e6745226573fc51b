"""The gate: a rule holds or fails; what is missing fails; a bad policy is refused."""

from __future__ import annotations

import asyncio
import math
import re
import shlex
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from fakes import FakeModel, fake_catalogue
from hostile import HOSTILE as HOSTILE_ANSWERS
from markdown_it import MarkdownIt
from scipy import stats

from prejudge.core.answer import Answer, Reply
from prejudge.core.catalogue.questions import Question
from prejudge.core.cli.gate import show_verdicts
from prejudge.core.cli.main import cli
from prejudge.core.compare import Difference
from prejudge.core.compare.pair import key_of
from prejudge.core.contracts import Estimate
from prejudge.core.contracts.errors import (
    AuthenticationError,
    DataError,
    PermanentError,
    UnknownNameError,
    UsageError,
)
from prejudge.core.contracts.estimates import Caveat
from prejudge.core.contracts.estimates import Verdict as Verdicts
from prejudge.core.contracts.installing import ROOT
from prejudge.core.contracts.records import Generation
from prejudge.core.contracts.sizes import State as Shown
from prejudge.core.engine.runs import RunOptions, execute
from prejudge.core.gate import (
    FINISHED,
    Outcome,
    State,
    Verdict,
    chosen_words,
    judge,
    judge_run,
    junit,
    markdown,
    parse_policy,
    read_policy,
    suggested,
)
from prejudge.core.gate.checks import More
from prejudge.core.gate.policy import LIMITS, SHARES
from prejudge.core.gate.words import TWO_AIMS
from prejudge.core.scoring.score import score
from prejudge.core.store import Store
from prejudge.testing import raises_code


def policy(rule, top="finished = false"):
    return parse_policy(f"{top}\n[[rules]]\n{rule}")


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """Return a scored run, whose estimates a test replaces."""
    catalogue = fake_catalogue()
    with Store(tmp_path_factory.mktemp("gate") / "store.db") as store:
        asyncio.run(execute(catalogue, catalogue.study("count", {"subject": "fake"}, {}), store, RunOptions()))
        return score(catalogue, store, "latest")


def estimate(value=5.0, **fields):
    fields = {"metric": "bias", "group": {"axis": "height"}, "neutral": 0.0, "n": 10} | fields
    return Estimate.from_flat(value=value, **fields)


def held(scores, rule, *estimates, **baselines):
    """Return whether a rule holds for these estimates."""
    scores = msgspec.structs.replace(scores, estimates={"m": list(estimates)})
    (verdict,) = judge(scores, policy(rule), baselines)
    return verdict.passed


@pytest.mark.parametrize("check", ["max = 5", "min = 6", "equivalent_within = 8", "on = 'high'\nmax = 6"])
@pytest.mark.parametrize("value", [5.0, None])
def test_no_check_reads_a_note(scores, check, value):
    own = estimate(value, low=3.0, high=7.0, interval="i")
    notes = ("", "undefined; no interval; significant above neutral")
    passed = [held(scores, f"measure = 'bias'\n{check}", own.replace(note=note)) for note in notes]
    assert passed[0] == passed[1]


@pytest.mark.parametrize(
    ("check", "passes"),
    [
        ("on = 'value'\nmax = 5", True),
        ("on = 'value'\nmax = 4.9", False),
        ("on = 'value'\nmin = 5", True),
        ("on = 'value'\nmin = 5.1", False),
        ("on = 'value'\nbetween = [4, 6]", True),
        ("on = 'value'\nbetween = [6, 7]", False),
        ("on = 'value'\nmax_distance = 5", True),
        ("on = 'value'\nmax_distance = 4", False),
        ("max = 7", True),
        ("max = 6.9", False),
        ("on = 'high'\nmax = 6", False),
        ("on = 'high'\nmax = 7", True),
        ("on = 'low'\nmin = 3", True),
        ("on = 'low'\nmin = 3.5", False),
        ("on = 'bound_high'\nmax = 9", True),
        ("equivalent_within = 7", True),
        ("equivalent_within = 6.9", False),
        ("max = 9\nmin = 6", False),
    ],
)
def test_check_holds_or_fails(scores, check, passes):
    one = estimate(low=3.0, high=7.0, bound_low=2.0, bound_high=9.0)
    assert held(scores, f"measure = 'bias'\n{check}", one) is passes


def state(scores, rule, *estimates, **baselines):
    """Return the result of a rule for these estimates, and its first outcome."""
    scores = msgspec.structs.replace(scores, estimates={"m": list(estimates)})
    (verdict,) = judge(scores, policy(rule), baselines)
    return verdict.state, verdict.outcomes[0]


@pytest.mark.parametrize(
    ("check", "wanted"),
    [
        ("max = 7", State.PASS),
        ("max = 6", State.OPEN),  # the value is allowed, its interval is not
        ("max = 4", State.OPEN),  # and the other way about
        ("max = 2.9", State.FAIL),
        ("min = 3", State.PASS),
        ("min = 6", State.OPEN),
        ("min = 7.1", State.FAIL),
        ("between = [3, 7]", State.PASS),
        ("between = [4, 6]", State.OPEN),
        ("between = [8, 9]", State.FAIL),
        ("max_distance = 7", State.PASS),
        ("max_distance = 5", State.OPEN),
        ("max_distance = 2", State.FAIL),
        ("equivalent_within = 5", State.OPEN),
        ("equivalent_within = 2", State.FAIL),
        ("on = 'high'\nmax = 6", State.OPEN),
        ("on = 'high'\nmax = 2", State.FAIL),
        ("on = 'low'\nmax = 3", State.PASS),
        ("on = 'bound_high'\nmax = 8", State.OPEN),
        ("on = 'bound_high'\nmax = 1", State.FAIL),
        ("max = 6\nmin = 8", State.FAIL),  # one that fails decides
    ],
)
def test_threshold_inside_the_interval_is_open(scores, check, wanted):
    one = estimate(low=3.0, high=7.0, bound_low=2.0, bound_high=9.0)
    assert state(scores, f"measure = 'bias'\n{check}", one)[0] is wanted


@pytest.mark.parametrize(("check", "room"), [("max = 6", 1), ("max = 4.5", 0.5), ("between = [4, 6]", 1)])
def test_clusters_that_are_needed_find_the_limit_with_80_percent_power(scores, check, room):
    """Of a metric that states no units, by the interval: `room` is 2.8 standard errors away with so many clusters."""
    found, outcome = state(scores, f"measure = 'bias'\n{check}", estimate(low=3.0, high=7.0, clusters=40))
    assert found is State.OPEN and outcome.needed in outcome.told
    told = re.search(r"about ([\d,]+) independent groups of answers \(now 40\)", outcome.told)
    needed = int(told.group(1).replace(",", ""))
    error, reach = 2 / stats.norm.ppf(0.975), stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert reach * error * math.sqrt(40 / needed) <= room < reach * error * math.sqrt(40 / (needed - 1))


def test_no_number_is_named_for_a_value_on_the_limit(scores):
    found, outcome = state(scores, "measure = 'bias'\nmax = 5", estimate(low=3.0, high=7.0, clusters=40))
    assert found is State.OPEN and not outcome.needed and "not enough data" in outcome.told


@pytest.mark.parametrize(
    ("check", "more"),
    [
        ("max = 2", More.LITTLE),
        ("on = 'value'\nmax = 4", More.COULD),
        ("on = 'value'\nmax = 2", More.LITTLE),
        ("equivalent_within = 2", More.LITTLE),
        ("max_refused = 0.1", More.COULD),
    ],
)
def test_failure_says_what_more_data_could_do(scores, check, more):
    one = estimate(low=3.0, high=7.0, missing={"refused": 2})
    found, outcome = state(scores, f"measure = 'bias'\n{check}", one)
    assert found is State.FAIL and outcome.more is more and more in outcome.told
    _, bare = state(scores, "measure = 'bias'\nmax = 4", estimate())
    assert bare.more is More.UNKNOWN
    _, wrong = state(scores, "measure = 'bais'\nmax = 4", estimate())
    assert wrong.more is More.NOTHING


def test_outcome_has_labels_units_and_no_rounding_noise(scores):
    one = estimate(-8.3e-15, low=-3.0, high=7.0, unit="percentage points", label="Favouritism")
    _, outcome = state(scores, "measure = 'bias'\nmax = 6", one)
    assert outcome.shown == "Favouritism: height" and outcome.subject == "bias (axis: height)"
    assert outcome.check.endswith("6 percentage points") and "0.0 percentage points" in outcome.found
    gap = {"old": {key_of("bias", {"axis": "height"}): Difference(estimate(1e-17, low=-0.3, high=0.1), 0.1, 0.1)}}
    _, grown = state(scores, "measure = 'bias'\nbaseline = 'old'\nmax_increase = 1\non = 'value'", one, **gap)
    assert "e\N{MINUS SIGN}" not in outcome.told + grown.told


def test_two_numbers_of_what_it_takes_say_what_each_is_for(scores):
    """One tells the value from the limit of a rule, the other from that of the study's question."""
    needed = Outcome("m", "c", "f", State.OPEN, "about 1,555 templates")
    reply = Reply("Is there?", Shown.OPEN, "no", ("about 1,191 templates",))
    answer = Answer(question="Is there?", model="m", replies=(reply,), missing="nothing")
    page = markdown([Verdict("r", (needed,))], "t", answer)
    assert page.index("1,555") < page.index(TWO_AIMS) < page.index("1,191")
    assert TWO_AIMS not in markdown([Verdict("r", (Outcome("m", "c", "f", State.FAIL),))], "t", answer)


def test_count_of_passed_checks_is_found_not_required(capsys):
    show_verdicts([Verdict("it answers", (Outcome("m", "at most 2 %", "3 %", State.FAIL),))], "t")
    lines = capsys.readouterr().out.splitlines()
    head, rule, check = (next(line for line in lines if word in line) for word in ("required", "it answers", "2 %"))
    assert rule.index("0 of 1 check passed") == head.index("found") == check.index("3 %")
    assert check.index("at most") == head.index("required")


def test_what_more_data_cannot_mend_fails(scores):
    for rule in ("measure = 'bais'\nmax = 1", "measure = 'bias'\ngroup = { axis = 'x' }\nmax = 1"):
        assert state(scores, rule, estimate())[0] is State.FAIL
    assert state(scores, "measure = 'bias'\nmax_distance = 1", estimate(neutral=None))[0] is State.FAIL


def test_one_cluster_shows_nothing(scores):
    one = estimate(1.0, clusters=1, caveats=(Caveat.ONE_CLUSTER,))
    assert state(scores, "measure = 'bias'\nmax = 2", one)[0] is State.OPEN
    assert state(scores, "measure = 'bias'\nmax = 0", one)[0] is State.FAIL
    assert state(scores, "measure = 'bias'\nmax = 2\non = 'value'", one)[0] is State.PASS


def test_increase_that_may_be_too_large_is_open(scores):
    rule = "measure = 'bias'\nbaseline = 'old'\nmax_increase = {}"
    grown = baseline(5.0, 2.0, 1.0, 3.0)
    states = [state(scores, rule.format(most), estimate(7.0), **grown)[0] for most in (3, 2, 0.5)]
    assert states == [State.PASS, State.OPEN, State.FAIL]


def test_run_without_a_readable_answer_is_open(run_study, catalogue, store):
    FakeModel.script = lambda request, seen: Generation(text="")
    run_study()
    _, (verdict,) = judge_run(catalogue, store, "latest", policy("measure = 'mean_length'\nmax = 10"))
    assert verdict.state is State.OPEN and not verdict.passed
    _, (verdict,) = judge_run(catalogue, store, "latest", policy("max_unreadable = 0.5"))
    assert verdict.state is State.FAIL  # that they are unreadable is shown


def test_command_has_an_exit_code_for_each_result(scores, tmp_path, monkeypatch, blank):
    one = estimate(low=3.0, high=7.0, clusters=40)
    scores = msgspec.structs.replace(scores, estimates={"m": [one]})
    monkeypatch.setattr("prejudge.core.cli.gate.judge_run", lambda *given: (scores, judge(scores, given[3])))

    def gate(check):
        (tmp_path / "p.toml").write_text(f"finished = false\n[[rules]]\nmeasure = 'bias'\n{check}")
        words = ["gate", "--policy", str(tmp_path / "p.toml"), "--store", str(blank), "--runs", str(tmp_path)]
        return CliRunner().invoke(cli, words, standalone_mode=False)

    ended = {check: gate(check) for check in ("max = 7", "max = 2", "max = 6")}
    assert [done.return_value for done in ended.values()] == [0, 1, 5]
    assert "327" in ended["max = 6"].output and "(now 40)" in " ".join(ended["max = 6"].output.split())


WORKFLOW = re.findall(r"^```yaml[^\n]*\n(.*?)^```", (ROOT / "docs/gate.md").read_text("utf-8"), re.M | re.S)


def test_workflow_of_the_documentation_runs_real_commands():
    (text,) = WORKFLOW
    flow = yaml.safe_load(text)
    (job,) = flow["jobs"].values()
    lines = [line for step in job["steps"] for line in step.get("run", "").splitlines()]
    asked = [shlex.split(line) for line in lines if line.startswith("prejudge ")]
    assert [words[1] for words in asked] == ["run", "gate"] and all("uses" in s or "run" in s for s in job["steps"])
    for _, name, *words in asked:
        command = cli.get_command(None, name)
        command.make_context(name, words)  # refuses an unknown option
    extras = {extra for line in lines for extra in re.findall(r"pip install 'prejudge\[(\w+)\]'", line)}
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert extras and extras <= set(known)
    written = {words[place + 1] for words in asked for place, word in enumerate(words) if word == "--markdown"}
    assert all(any(file in step.get("run", "") for step in job["steps"][-2:]) for file in written)


CHECKS = ("max = 100", "min = -100", "between = [-100, 100]", "max_distance = 100", "equivalent_within = 100")


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("value", [None, math.nan])
def test_missing_value_fails_every_check(scores, check, value):
    assert not held(scores, f"measure = 'bias'\n{check}", estimate(value, low=None, high=None))


@pytest.mark.parametrize("on", ["low", "high", "bound_low", "bound_high"])
@pytest.mark.parametrize("check", CHECKS[:4])
def test_missing_limit_fails_every_check(scores, on, check):
    assert not held(scores, f"measure = 'bias'\non = '{on}'\n{check}", estimate())


@pytest.mark.parametrize("check", CHECKS[3:])
def test_missing_neutral_value_fails(scores, check):
    assert not held(scores, f"measure = 'bias'\n{check}", estimate(neutral=None, low=4.0, high=6.0))


def test_infinite_value_is_above_every_limit(scores):
    assert not held(scores, "measure = 'bias'\nmax = 1e300", estimate(math.inf))


@pytest.mark.parametrize(
    ("selector", "passes"),
    [
        ("measure = 'bias'", False),
        ("measure = 'bias'\ngroup = { axis = 'height' }", True),
        ("measure = 'bias'\ngroup = { axis = 'h*' }", True),
        ("measure = 'bias'\ngroup = { axis = '*' }", False),
        ("measure = 'bias'\ngroup = { axis = 'shape' }", False),
        ("measure = 'b?as'\ngroup = { axis = 'height' }", True),
        ("measure = '*'\ngroup = { axis = 'height' }", True),
        ("measure = 'other'", False),
        ("measure = 'bias'\ngroup = { axes = '*' }", False),
        ("measure = 'bias'\ngroup = { axis = 'height', side = '' }", True),
        ("measure = 'bias'\ngroup = { axis = '' }", False),
    ],
)
def test_selector_takes_what_it_names(scores, selector, passes):
    assert held(scores, f"{selector}\nmax = 6", estimate(), estimate(7.0, group={"axis": "shape"})) is passes


def test_number_in_a_group_is_compared_as_a_number(scores):
    assert held(scores, "measure = 'bias'\ngroup = { threshold = 0.02 }\nmax = 6", estimate(group={"threshold": 0.02}))


def test_rule_without_a_match_says_what_there_is(scores):
    scores = msgspec.structs.replace(scores, estimates={"m": [estimate()]})
    (verdict,) = judge(scores, policy("measure = 'bais'\nmax = 1"))
    assert not verdict.passed and "measures: bias" in verdict.outcomes[0].found
    (verdict,) = judge(scores, policy("measure = 'bias'\ngroup = { axis = 'x' }\nmax = 1"))
    assert "groups: axis: height" in verdict.outcomes[0].found


def test_rule_without_a_group_is_about_the_headline(scores):
    """A natural rule checked 24 groups, and a fair model passed 9 of them for lack of data."""
    whole, group = estimate(1.0, group={}, low=0.0, high=2.0), estimate(1.0, low=-30.0, high=32.0)
    rule = "measure = 'bias'\nmax_distance = 10"
    assert held(scores, rule, whole, group) and not held(scores, rule, group)
    assert not held(scores, f"{rule}\ngroup = {{ axis = '*' }}", whole, group)
    # Of several thresholds, the one of the headline.
    low, high = (group.replace(group={"axis": "height", "threshold": t}) for t in (0.02, 0.1))
    narrow = low.replace(low=0.0, high=2.0)
    chosen = msgspec.structs.replace(scores, headline=(narrow,))
    assert held(chosen, rule, narrow, high) and not held(scores, rule, narrow, high)


def test_measure_is_named_as_in_files_or_as_on_a_report(scores):
    one = estimate(1.0, group={}, label="Gap between groups")
    assert held(scores, "measure = 'Gap between groups'\nmax = 2", one) and held(
        scores, "measure = 'bias'\nmax = 2", one
    )
    assert held(scores, "measure = 'Gap*'\nmax = 2", one)


def test_measure_that_a_study_does_not_have_is_no_finding(run_study, catalogue, store):
    run_study()
    with raises_code(UnknownNameError, "unknown-measure", "'mean_lenght'", "mean_length"):
        judge_run(catalogue, store, "latest", policy("measure = 'mean_lenght'\nmax = 9"))


def test_what_more_would_tell_is_said_once_a_rule(scores, monkeypatch):
    monkeypatch.setattr(sys.modules[Outcome.__module__], "_needed", lambda *_: "about 1,555 templates")
    groups = [estimate(1.0, group={"axis": axis}, low=-9.0, high=11.0) for axis in "abc"]
    several = msgspec.structs.replace(scores, estimates={"m": groups})
    (verdict,) = judge(several, policy("measure = 'bias'\nmax = 5"))
    assert [outcome.state for outcome in verdict.outcomes] == [State.OPEN] * 3
    assert [outcome.needed for outcome in verdict.outcomes] == ["about 1,555 templates", "", ""]


def test_not_enough_data_is_skipped_in_junit_and_a_finding_is_a_failure(scores):
    checks = {State.PASS: "passes", State.FAIL: "fails", State.OPEN: "lacks"}
    verdicts = [Verdict("r", tuple(Outcome(name, "c", "f", s) for s, name in checks.items()))]
    suites = ElementTree.fromstring(junit(verdicts, "t"))
    assert (suites.get("tests"), suites.get("failures"), suites.get("skipped")) == ("3", "1", "1")
    children = {case.get("name"): [child.tag for child in case] for case in suites.iter("testcase")}
    assert children == {"passes: c": [], "fails: c": ["failure"], "lacks: c": ["skipped"]}


@pytest.mark.parametrize(("most", "passes"), [(0.2, True), (0.19, False)])
def test_share_of_an_estimate(scores, most, passes):
    one = estimate(n=8, missing={"refused": 2})
    assert held(scores, f"measure = 'bias'\nmax_refused = {most}", one) is passes
    assert held(scores, f"measure = 'bias'\nmax_missing = {most}", one) is passes
    assert held(scores, "measure = 'bias'\nmax_failed = 0", one)


def test_share_of_nothing_fails(scores):
    assert not held(scores, "measure = 'bias'\nmax_refused = 1", estimate(None, n=0))


def test_shares_of_the_answers(run_study, catalogue, store):
    FakeModel.script = lambda request, seen: PermanentError("no") if "q 3" in str(request) else None
    run_study()
    scores = score(catalogue, store, "latest")

    def passes(rule):
        (verdict,) = judge(scores, policy(rule))
        return verdict.passed

    assert passes("max_failed = 0.1") and not passes("max_failed = 0.09") and passes("max_refused = 0")
    assert passes("max_failed = 0.0\ngroup = { parity = 'even' }")
    assert not passes("max_failed = 0.1\ngroup = { parity = '*' }")
    assert not passes("max_failed = 1\ngroup = { parity = 'neither' }")
    assert not passes("max_failed = 1\ngroup = { nothing = '*' }")
    (verdict,) = judge(scores, policy("max_failed = 0.1\ngroup = { parity = '*' }"))
    assert [one.shown for one in verdict.outcomes] == ["answers: even", "answers: odd"]


def baseline(first, value, low, high, **fields):
    """Return the differences from a baseline whose value was `first`."""
    e = estimate(value, low=low, high=high, clusters=9, **fields)
    return {"old": {key_of("bias", {"axis": "height"}): Difference(e, first, first + value)}}


@pytest.mark.parametrize(
    ("on", "most", "passes"),
    [
        ("high", 3.0, True),
        ("high", 2.9, False),
        ("value", 2.0, True),
        ("value", 1.9, False),
        ("low", 1.0, True),
        ("low", 0.9, False),
    ],
)
def test_increase_since_the_baseline(scores, on, most, passes):
    rule = f"measure = 'bias'\nbaseline = 'old'\nmax_increase = {most}\non = '{on}'"
    assert held(scores, rule, estimate(7.0), **baseline(5.0, 2.0, 1.0, 3.0)) is passes


def test_increase_is_of_the_distance_from_neutral(scores):
    rule = "measure = 'bias'\nbaseline = 'old'\nmax_increase = 0"
    assert held(scores, rule, estimate(-4.0), **baseline(-5.0, 1.0, 0.5, 1.5))
    assert not held(scores, rule, estimate(-6.0), **baseline(-5.0, -1.0, -1.5, -0.5))
    # From 1 to somewhere between -3 and 1: the far end is further away, however near the value is.
    assert not held(scores, rule, estimate(0.0), **baseline(1.0, -1.0, -4.0, 0.0))


def test_least_increase_counts_a_run_that_may_be_neutral(scores):
    rule = "measure = 'bias'\nbaseline = 'old'\nmax_increase = -1\non = 'low'"
    assert held(scores, rule, estimate(-2.0), **baseline(1.0, -3.0, -5.0, 0.5))


def test_increase_without_interval_or_baseline_fails(scores):
    rule = "measure = 'bias'\nbaseline = 'old'\nmax_increase = 100"
    assert not held(scores, rule, estimate(7.0), **baseline(5.0, 2.0, None, None))
    assert not held(scores, rule, estimate(7.0), old={})
    assert not held(scores, rule, estimate(7.0, neutral=None), **baseline(5.0, 2.0, 1.0, 3.0))


def test_runs_that_agree_in_every_cluster_did_not_grow(scores):
    rule = "measure = 'bias'\nbaseline = 'old'\nmax_increase = 0"
    assert held(scores, rule, estimate(5.0), **baseline(5.0, 0.0, None, None, p=1.0))
    assert not held(scores, rule, estimate(5.0), **baseline(5.0, 0.0, None, None))


def test_unfinished_run_fails(run_study, catalogue, store):
    run_study()
    rules = policy("measure = 'mean_length'\nmax = 10", top="")
    scores, verdicts = judge_run(catalogue, store, "latest", rules)
    assert [(v.rule, v.passed) for v in verdicts] == [(FINISHED, True), ("rule 1: mean_length", True)]
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM run_trial WHERE ordinal = 9")
    with raises_code(DataError, "store.row-damaged"):
        judge_run(catalogue, store, "latest", rules)
    store.unproved = True
    _, verdicts = judge_run(catalogue, store, "latest", rules)
    assert not verdicts[0].passed and "9 of 10 answers" in verdicts[0].outcomes[0].found
    assert len(judge(scores, policy("measure = 'mean_length'\nmax = 10"))) == 1


@pytest.mark.parametrize("top", ["", "finished = false"])
def test_run_that_recorded_nothing_yet_fails_every_rule(run_study, catalogue, store, top):
    whole, _ = run_study(n=4)
    FakeModel.script = lambda request, seen: AuthenticationError("no")
    with pytest.raises(AuthenticationError):
        run_study("other", n=10)
    FakeModel.script = None
    rules = parse_policy(
        f"{top}\n[[rules]]\nmeasure = '*'\nmin = 0\n[[rules]]\nmax_failed = 1\n[[rules]]\nmax_failed = 1\n"
        f"group = {{ parity = '*' }}\n[[rules]]\nmeasure = '*'\nbaseline = '{whole}'\nmax_increase = 100"
    )
    scores, verdicts = judge_run(catalogue, store, "latest", rules)
    assert len(verdicts) == len(rules.names) and not any(verdict.passed for verdict in verdicts)
    assert all(verdict.outcomes for verdict in verdicts)
    found = [outcome.found for verdict in verdicts for outcome in verdict.outcomes]
    assert ("failed; 0 of 10 answers are recorded" in found) is (not top)
    assert found.count("the run has no estimates") == 2
    suites = ElementTree.fromstring(junit(verdicts, "t"))
    assert int(suites.get("failures")) + int(suites.get("skipped")) == len(found)


def test_policy_for_another_study_is_refused(run_study, catalogue, store):
    run_study()
    with raises_code(UsageError, "policy.study", "'other'", "'count'"):
        judge_run(catalogue, store, "latest", policy("max_failed = 0", top="study = 'other'"))


def test_factor_that_no_estimate_has_is_named(run_study, catalogue, store):
    run_study()
    _, (*_, verdict) = judge_run(catalogue, store, "latest", policy("measure = '*'\ngroup = { treshold = 1 }\nmin = 0"))
    assert "there are no groups by 'treshold', but by" in verdict.outcomes[0].found


def test_run_is_no_baseline_of_itself(run_study, catalogue, store):
    run_study()
    with raises_code(UsageError, "policy.baseline"):
        judge_run(catalogue, store, "latest", policy("measure='*'\nbaseline='latest'\nmax_increase=1"))


@pytest.mark.parametrize(
    ("text", "error", "code", "named"),
    [
        ("", UsageError, "policy.no-rules", ""),
        ("rule = 1", UnknownNameError, "unknown-key", "'rules'"),
        ("[[rules]]\nmeasure = 'a'\nmaximum = 3", UnknownNameError, "unknown-key", "'maximum' of rule 1 in"),
        ("[[rules]]\nmeasure = 'a'", UsageError, "policy.rule-empty", "rule 1"),
        ("[[rules]]\nmax = 3", UsageError, "policy.no-metric", "max"),
        ("[[rules]]\nmeasure = 'a'\nmax = 'much'", UsageError, "policy.number", "'much'"),
        ("[[rules]]\nmeasure = 'a'\nbetween = 3", UsageError, "policy.number", "between"),
        ("[[rules]]\nmeasure = 3\nmax = 3", UsageError, "options.type", "'measure'"),
        ("finished = 'false'\n[[rules]]\nmeasure = 'a'\nmax = 3", UsageError, "options.type", "'finished'"),
        ("[[rules]]\nmeasure = 'a'\nmax = nan", UsageError, "policy.number", "nan"),
        ("[[rules]]\nmeasure = 'a'\nmax = inf", UsageError, "policy.number", "inf"),
        ("[[rules]]\nmeasure = 'a'\nbetween = [3, 1]", UsageError, "policy.range", "between"),
        ("[[rules]]\nmeasure = 'a'\nbetween = [3]", UsageError, "options.type", "'between'"),
        ("[[rules]]\nmeasure = 'a'\nmax_distance = -1", UsageError, "policy.range", "max_distance"),
        ("[[rules]]\nmeasure = 'a'\nmax_refused = 10", UsageError, "policy.range", "max_refused"),
        ("[[rules]]\nmeasure = 'a'\nbaseline = 'x'\nmax = 1", UsageError, "policy.baseline", "max_increase"),
        ("[[rules]]\nmeasure = 'a'\nmax_increase = 1", UsageError, "policy.baseline", "max_increase"),
        ("[[rules]]\nmeasure = 'a'\non = 'p'\nmax = 1", UsageError, "options.choice", "'value'"),
        (
            "[[rules]]\nname='a'\nmeasure = 'x'\nmax=1\n[[rules]]\nname='a'\nmeasure = 'x'\nmax=1",
            UsageError,
            "policy.rule-twice",
            "'a'",
        ),
        ("[[rules", DataError, "data.syntax", ""),
    ],
)
def test_bad_policy_is_refused(text, error, code, named):
    with raises_code(error, code, named):
        parse_policy(text)


@pytest.mark.parametrize("name", [*LIMITS, *SHARES])
@pytest.mark.parametrize("given", ["'10'", "true"])
def test_threshold_that_is_no_number_is_refused(name, given):
    value = f"[0, {given}]" if name == "between" else given
    with raises_code(UsageError, "policy.number", name):
        policy(f"measure = 'a'\nbaseline = 'b'\n{name} = {value}")


def test_policy_of_the_documentation_can_be_read():
    page = Path(__file__).resolve().parents[3] / "docs" / "gate.md"
    (text,) = re.findall(r"^```toml[^\n]*\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    assert [rule.limits or rule.shares for rule in parse_policy(text).rules][:3] == [
        ("max",),
        ("equivalent_within",),
        ("max_increase",),
    ]


def test_policy_that_is_not_there(tmp_path):
    with raises_code(DataError, "file.unreadable"):
        read_policy(tmp_path / "none.toml")


HOSTILE = "</testcase>|<img src=x onerror=alert(1)> @team #1 \x00\x1b[31m `x`"


@pytest.fixture
def verdicts(scores):
    bad = estimate(group={"axis": HOSTILE})
    scores = msgspec.structs.replace(scores, estimates={"m": [bad, estimate(1.0)]})
    return judge(scores, parse_policy("[[rules]]\nname = 'low bias'\nmeasure = 'bias'\nmax = 2"))


def test_junit_has_a_case_per_check(verdicts):
    top = ElementTree.fromstring(junit(verdicts, "release"))
    (suite,) = top
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    failed = [case for case in suite if case.find("failure") is not None]
    assert [case.get("classname") for case in failed] == ["low bias"]
    assert "<img src=x" in failed[0].get("name")


@pytest.mark.parametrize("said", HOSTILE_ANSWERS)
def test_junit_of_hostile_answers_is_xml_with_the_same_cases(said):
    outcome = Outcome(said, said, said, State.FAIL)
    top = ElementTree.fromstring(junit([Verdict(said, (outcome, outcome))], said))
    assert [element.tag for element in top.iter()] == ["testsuites", "testsuite", *["testcase", "failure"] * 2]
    names = {name for element in top.iter() for name in element.keys()}
    assert names <= {"name", "classname", "time", "tests", "failures", "errors", "skipped", "message", "type"}


@pytest.mark.parametrize("said", HOSTILE_ANSWERS)
def test_summary_of_hostile_answers_keeps_its_tables(said):
    text = markdown([Verdict(said, (Outcome(said, said, said, State.FAIL),))], said)
    page = MarkdownIt("commonmark").enable("table").render(text)
    assert page.count("<td") == 3 + 3 and not re.search("<(script|img|svg|a|iframe|base|meta|form|i|link)\\b", page)


def test_markdown_escapes_what_a_run_says(verdicts):
    text = markdown(verdicts, "release")
    assert text.startswith("## prejudge gate: fail: release")
    assert "<img" not in text and "@team" not in text and "#1" not in text
    (row,) = (line for line in text.splitlines() if "onerror" in line)
    assert row.replace(r"\|", "").count("|") == 4


def test_markdown_of_a_pass_lists_the_rules(scores):
    text = markdown(judge(scores, policy("measure = 'mean_length'\nmax = 10")), "release")
    assert "gate: pass" in text and "### Fail" not in text and "1 of 1" in text


def asking(scores, *estimates):
    """Return a scored run whose study asks for one measure, with a limit of 5."""
    question = Question(asks="Is there a bias?", measure="bias", limit=5.0)
    study = msgspec.structs.replace(scores.manifest.study, questions=(question,))
    manifest = msgspec.structs.replace(scores.manifest, study=study)
    shown = tuple(e.replace(verdict=Verdicts.OPEN) for e in estimates)
    return msgspec.structs.replace(scores, manifest=manifest, estimates={"m": list(shown)}, headline=shown)


@pytest.mark.parametrize(
    ("low", "high", "limit", "result"),
    [
        (-2.0, 3.0, 5.0, "pass"),  # within the limit of the study
        (6.0, 9.0, 5.0, "fail"),  # outside it
        (-2.0, 7.3, 7.4, "pass"),  # neither: the least round limit that decides
        (-0.31, 6.0, 6.1, "pass"),
    ],
)
def test_suggested_rules_can_be_decided_by_the_run_that_they_are_from(scores, low, high, limit, result):
    chosen = asking(scores, estimate((low + high) / 2, group={}, low=low, high=high))
    rules = parse_policy(suggested(chosen))
    (rule,) = rules.rules
    assert (rule.measure, rule.max_distance, rules.chosen_from) == ("bias", limit, scores.run.name)
    assert [str(verdict.state) for verdict in judge(chosen, rules)[1:]] == [result]


def test_a_gate_on_the_run_that_its_rules_are_from_says_so(run_study, catalogue, store):
    run, _ = run_study()
    assert "nothing of the model" in chosen_words(
        parse_policy(f"chosen_from = '{run}'\n[[rules]]\nmax_failed = 0"), run
    )
    assert chosen_words(policy("max_failed = 0"), run) == ""
    assert chosen_words(parse_policy("chosen_from = 'other'\n[[rules]]\nmax_failed = 0"), run) == ""


def test_nothing_is_suggested_without_an_interval(scores):
    with raises_code(UsageError, "gate.suggest"):
        suggested(asking(scores, estimate(3.0, group={})))
