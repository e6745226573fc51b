"""`prejudge gate`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..answer import answer_of
from ..catalogue.study import Catalogue
from ..contracts.errors import UsageError
from ..contracts.words import counted
from ..gate import (
    Policy,
    State,
    Verdict,
    chosen_words,
    judge_run,
    junit,
    markdown,
    read_policy,
    read_requirements,
    required,
    suggested,
    summary,
    worst,
)
from ..report.export import write_bytes
from ..scoring.score import score
from ..scoring.unproved import unproved_words
from ..store import Store
from .outlet import echo
from .shared import (
    read_assignments,
    registry_option,
    run_argument,
    runs_option,
    say_own_options,
    set_option,
    store_option,
    unproved_option,
)
from .terminal import terminal

WORDS = {State.PASS: "pass", State.FAIL: "FAIL", State.OPEN: "NOT ENOUGH DATA"}
CODES = {State.PASS: 0, State.FAIL: 1, State.OPEN: 5}
"""Exit codes."""


@click.command()
@run_argument
@click.option("--policy", default=None, metavar="FILE", help="The rules, as TOML.")
@click.option(
    "--require",
    default="",
    metavar="LIST",
    help="What must hold besides: fit (half of the questions are answered or refused), verified (every answer is as it "
    "was stored), certified (the study's certificate holds). Commas part several.",
)
@click.option(
    "--suggest",
    is_flag=True,
    help="Write to standard output a policy that the run can decide, a rule for each question of its study.",
)
@click.option("--junit", "xml", default=None, metavar="FILE", help="Write the checks as JUnit XML.")
@click.option("--markdown", "brief", default=None, metavar="FILE", help="Write a summary for a pull request.")
@set_option
@unproved_option
@store_option
@runs_option
@registry_option
def gate(
    name: str,
    policy: str | None,
    require: str,
    xml: str | None,
    brief: str | None,
    assignments: tuple[str, ...],
    **where: Any,
) -> int:
    """Check the run NAME (default: the latest) against a policy, requirements, or both.

    Exit code 0 if every rule passes, 1 if one fails, 5 if none fails but data are too few for one, 2 if the policy or
    the run cannot be used. A rule that matches no estimate fails; a missing value never passes. The run is measured
    with its original options; --set changes them.
    """
    for old in filter(None, (xml, brief)):
        with contextlib.suppress(OSError):  # said when it is written
            Path(old).unlink(missing_ok=True)  # the result of an earlier gate must not look like this one's
    wanted, given = read_requirements(require), read_assignments(assignments, None)
    if where["suggest"]:
        return _suggest(name, given, where, policy is not None or bool(wanted))
    if policy is None and not wanted:
        raise UsageError("nothing is to be checked. Give --policy FILE, --require LIST, or both.", code="gate.nothing")
    rules = read_policy(policy) if policy is not None else Policy(name="required", rules=())
    with Store(where["store"], writable=False, unproved=where["unproved"]) as opened:
        scores, verdicts = judge_run(Catalogue.load(where["registry"]), opened, name, rules, given)
    verdicts += required(scores, wanted)
    say_own_options(Path(where["runs"]) / scores.run.name, given)
    title = f"{rules.name} on {scores.run.name}"
    title = unproved_words(title) if scores.unproved else title
    note = chosen_words(rules, scores.run.name)
    if xml is not None:
        write_bytes(junit(verdicts, title), Path(xml))
    if brief is not None:
        write_bytes(markdown(verdicts, title, answer_of(scores), note).encode(), Path(brief))
    code = show_verdicts(verdicts, title)
    if note:
        terminal().print(note)
    return code


def _suggest(name: str, given: dict[str, Any], where: dict[str, Any], checked: bool) -> int:
    """Print a policy that a run can decide."""
    if checked:
        raise UsageError(
            "--suggest writes a policy and checks none. Leave out --policy and --require.", code="options.conflict"
        )
    with Store(where["store"], writable=False, unproved=where["unproved"]) as opened:
        echo(*suggested(score(Catalogue.load(where["registry"]), opened, name, given)).rstrip().split("\n"))
    return 0


def show_verdicts(verdicts: Sequence[Verdict], title: str) -> int:
    """Print the checks that did not pass, grouped by rule, and return the exit code."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for head in ("", "rule, and what was checked", "required", "found"):
        table.add_column(head, overflow="fold")
    for verdict in verdicts:
        passed = sum(outcome.passed for outcome in verdict.outcomes)
        told = f"{passed} of {counted(len(verdict.outcomes), 'check')} passed"
        table.add_row(WORDS[verdict.state], verdict.rule, "", told)
        for outcome in verdict.outcomes:
            if not outcome.passed:
                table.add_row("", f"  {outcome.shown}", outcome.check, outcome.told)
    console = terminal()
    console.print(table)
    console.print(f"{summary(verdicts)}.")
    return CODES[worst(verdict.state for verdict in verdicts)]
