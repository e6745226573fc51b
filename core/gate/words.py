"""Verdicts of the gate as JUnit XML, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from ..answer import Answer
from ..contracts.sizes import State as Shown
from ..contracts.words import counted
from ..report.first import answer_markdown
from ..report.markdown import escape, table
from ..report.text import clean
from .checks import State, worst
from .judge import Verdict
from .policy import Policy

HEADS = ("what was checked", "required", "found")
TWO_AIMS = (
    "How many more it takes differs from what stands at the rules above: there it is told for the limit of the rule, "
    "here for the limit of the question of the study."
)
ELEMENTS = {State.FAIL: ("failure", {"type": "policy"}), State.OPEN: ("skipped", {"type": "not-enough-data"})}
"""Elements of JUnit XML by state, with their type."""
CHOSEN = (
    "The rules were chosen from this run: that it passes them shows nothing of the model. Judge other runs by them."
)
SHOWN = 100
"""Rows of a summary: the length of a comment on a pull request is limited."""


def junit(verdicts: Sequence[Verdict], suite: str) -> bytes:
    """Return JUnit XML: a test case per check, named by its rule."""
    cases = [(verdict.rule, outcome) for verdict in verdicts for outcome in verdict.outcomes]
    failures, skipped = (sum(o.state is state for _, o in cases) for state in (State.FAIL, State.OPEN))
    counts = {"tests": str(len(cases)), "failures": str(failures), "errors": "0", "skipped": str(skipped)}
    top = ElementTree.Element("testsuites", counts)
    found = ElementTree.SubElement(top, "testsuite", {"name": _plain(suite), **counts})
    for rule, outcome in cases:
        name = f"{outcome.subject}: {outcome.check}"
        case = ElementTree.SubElement(found, "testcase", {"classname": _plain(rule), "name": _plain(name), "time": "0"})
        if not outcome.passed:
            # A check without enough data neither passed nor failed; the exit code, 5, tells it apart from a pass.
            result = ElementTree.SubElement(case, *ELEMENTS[outcome.state])
            result.set("message", _plain(outcome.told))
            result.text = _plain(f"{name}; found: {outcome.told}")
    ElementTree.indent(top)
    data: bytes = ElementTree.tostring(top, encoding="utf-8", xml_declaration=True)
    return data


def markdown(verdicts: Sequence[Verdict], title: str, answer: Answer | None = None, note: str = "") -> str:
    """Return a summary: a note, all rules, the checks of each that did not pass, then the answer of the run's report.

    All texts of the run are escaped.
    """
    lines = [f"## prejudge gate: {worst(v.state for v in verdicts)}: {escape(title)}", "", f"{summary(verdicts)}.", ""]
    lines += [note, ""] if note else []
    rules = [(v.rule, str(v.state), _count(v)) for v in sorted(verdicts, key=_order)]
    lines += ["### Rules", "", *table(("rule", "result", "checks passed"), rules)]
    left = SHOWN
    for verdict in sorted(verdicts, key=_order):
        wrong = [outcome for outcome in verdict.outcomes if not outcome.passed]
        if not wrong:
            continue
        lines += [f"### {str(verdict.state).capitalize()}: {escape(verdict.rule)}", ""]
        lines += table(HEADS, ((o.shown, o.check, o.told) for o in wrong[:left]))
        lines += [f"{len(wrong) - left:,} more checks did not pass.", ""] if len(wrong) > left else []
        left = max(0, left - len(wrong))
    if answer is not None:
        lines += ["### What the run found", ""]
        needed = any(o.needed for v in verdicts for o in v.outcomes) and any(
            r.state is Shown.OPEN for r in answer.replies
        )
        lines += [TWO_AIMS, ""] if needed else []
        lines.append(answer_markdown(answer))
    return "\n".join(lines)


def chosen_words(policy: Policy, run: str) -> str:
    """Return that a policy was chosen from the run that it judges; empty where it was not."""
    return CHOSEN if policy.chosen_from and policy.chosen_from == run else ""


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return how many rules pass, fail, and lack data."""
    counts = {state: sum(verdict.state is state for verdict in verdicts) for state in State}
    told = [f"{counts[State.PASS]} of {counted(len(verdicts), 'rule')} passed"]
    told += [f"{counts[State.FAIL]} failed"] * bool(counts[State.FAIL])
    told += [f"{counts[State.OPEN]} without enough data to tell"] * bool(counts[State.OPEN])
    return ", ".join(told)


def _order(verdict: Verdict) -> int:
    return [State.FAIL, State.OPEN, State.PASS].index(verdict.state)


def _count(verdict: Verdict) -> str:
    return f"{sum(outcome.passed for outcome in verdict.outcomes)} of {len(verdict.outcomes)}"


def _plain(text: str) -> str:
    return str(clean(text))
