"""Verdicts of the gate as JUnit XML, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from ..report.markdown import escape, table
from ..report.text import clean
from .judge import Outcome, Verdict

HEADS = ("rule", "estimate", "required", "found")
SHOWN = 100
"""Rows of a summary: the length of a comment on a pull request is limited."""


def junit(verdicts: Sequence[Verdict], suite: str) -> bytes:
    """Return JUnit XML: a test case per check, named by its rule."""
    cases = [(verdict.rule, outcome) for verdict in verdicts for outcome in verdict.outcomes]
    counts = {"tests": str(len(cases)), "failures": str(sum(not o.passed for _, o in cases)), "errors": "0"}
    top = ElementTree.Element("testsuites", counts)
    found = ElementTree.SubElement(top, "testsuite", {"name": _plain(suite), "skipped": "0", **counts})
    for rule, outcome in cases:
        name = f"{outcome.subject}: {outcome.check}"
        case = ElementTree.SubElement(found, "testcase", {"classname": _plain(rule), "name": _plain(name), "time": "0"})
        if not outcome.passed:
            failure = ElementTree.SubElement(case, "failure", {"message": _plain(outcome.found), "type": "policy"})
            failure.text = _plain(f"{name}; found: {outcome.found}")
    ElementTree.indent(top)
    data: bytes = ElementTree.tostring(top, encoding="utf-8", xml_declaration=True)
    return data


def markdown(verdicts: Sequence[Verdict], title: str) -> str:
    """Return a summary: failed checks first, then all rules. All texts of the run are escaped."""
    failed = [(v.rule, o) for v in verdicts for o in v.outcomes if not o.passed]
    passed = sum(verdict.passed for verdict in verdicts)
    state = "passed" if passed == len(verdicts) else "failed"
    lines = [f"## prejudge gate {state}: {escape(title)}", "", f"{passed} of {len(verdicts)} rules passed.", ""]
    if failed:
        lines += ["### Failed", "", *table(HEADS, (_row(rule, outcome) for rule, outcome in failed[:SHOWN]))]
        lines += [f"{len(failed) - SHOWN} more checks failed.", ""] if len(failed) > SHOWN else []
    rules = [(v.rule, "passed" if v.passed else "failed", _count(v)) for v in verdicts]
    return "\n".join([*lines, "### Rules", "", *table(("rule", "result", "checks passed"), rules)])


def _row(rule: str, outcome: Outcome) -> tuple[str, str, str, str]:
    return rule, outcome.subject, outcome.check, outcome.found


def _count(verdict: Verdict) -> str:
    return f"{sum(outcome.passed for outcome in verdict.outcomes)} of {len(verdict.outcomes)}"


def _plain(text: str) -> str:
    return str(clean(text))
