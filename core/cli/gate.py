"""`prejudge gate`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..catalogue.study import Catalogue
from ..gate import Verdict, judge_run, junit, markdown, read_policy
from ..report.export import write_bytes
from ..store import Store
from .shared import (
    read_assignments,
    registry_option,
    run_argument,
    runs_option,
    say_own_options,
    set_option,
    store_option,
)
from .terminal import terminal


@click.command()
@run_argument
@click.option("--policy", required=True, metavar="FILE", help="The rules, as TOML.")
@click.option("--junit", "xml", default=None, metavar="FILE", help="Write the checks as JUnit XML.")
@click.option("--markdown", "summary", default=None, metavar="FILE", help="Write a summary for a pull request.")
@set_option
@store_option
@runs_option
@registry_option
def gate(
    name: str,
    policy: str,
    xml: str | None,
    summary: str | None,
    assignments: tuple[str, ...],
    **where: Any,
) -> int:
    """Check the run NAME (default: the latest) against a policy.

    Exit code 1 if a rule fails, 2 if the policy file is invalid. A rule fails if it matches no estimate, or its value
    or limit is missing. The run is measured with its original options; --set changes them.
    """
    for old in filter(None, (xml, summary)):
        with contextlib.suppress(OSError):  # said when it is written
            Path(old).unlink(missing_ok=True)  # the result of an earlier gate must not look like this one's
    rules, given = read_policy(policy), read_assignments(assignments, None)
    with Store(where["store"], writable=False) as opened:
        scores, verdicts = judge_run(Catalogue.load(where["registry"]), opened, name, rules, given)
    say_own_options(Path(where["runs"]) / scores.run.name, given)
    title = f"{rules.name} on {scores.run.name}"
    if xml is not None:
        write_bytes(junit(verdicts, title), Path(xml))
    if summary is not None:
        write_bytes(markdown(verdicts, title).encode(), Path(summary))
    return _show(verdicts, title)


def _held(count: int) -> str:
    return "1 check passed" if count == 1 else f"{count:,} checks passed"


def _show(verdicts: Sequence[Verdict], title: str) -> int:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for head in ("", "rule", "estimate", "required", "found"):
        table.add_column(head, overflow="fold")
    for verdict in verdicts:
        for outcome in verdict.outcomes:
            if not outcome.passed:
                table.add_row("FAIL", verdict.rule, outcome.subject, outcome.check, outcome.found)
        if verdict.passed:
            table.add_row("pass", verdict.rule, "", _held(len(verdict.outcomes)), "")
    console = terminal()
    console.print(table)
    passed = sum(verdict.passed for verdict in verdicts)
    console.print(f"{passed} of {len(verdicts)} rules passed.")
    return 0 if passed == len(verdicts) else 1
