"""The output of a scored run on the terminal: the answer, as the report begins, and the path of the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..answer import answer_of
from ..catalogue.study import Catalogue
from ..contracts import Estimate
from ..contracts.errors import UsageError
from ..engine.manifest import earlier_words
from ..report.place import with_said
from ..scoring.score import Scores, score
from ..scoring.unproved import UNPROVED
from ..scoring.warnings import warnings_of
from ..store import Store
from ..store.urls import option_words
from .answer import show_answer
from .ending import ended_gently
from .shared import again_words
from .terminal import terminal

UNITS = {"percentage points": "pp"}
ADJUSTED = "p: adjusted for multiple tests"
"""Legend below a table of estimates, where it applies."""


def finish(
    catalogue: Catalogue, store: Store, name: str, runs: str, assignments: Mapping[str, Any] | None = None
) -> int:
    """Score a run, write its output, show it, and return the exit code."""
    return deliver(score(catalogue, store, name, assignments), store, {"runs": runs})


def deliver(scores: Scores, store: Store | None, where: Mapping[str, Any]) -> int:
    """Show a scored run, write its output to the folder `runs` of `where`, and return the exit code.

    The exit code is 1 if no trial could be read. The report leaves out the parts that `leave_out` of `where` names, and
    sets the models that `published` names beside the run; figures are SVG and in the formats of `figures`.
    """
    scores = with_said(scores, Path(where["runs"]))
    show(scores, option_words(store.url) if store is not None else "")
    # Imported after the numbers are shown: matplotlib and the figures take longer than the numbers.
    from ..report.output import ReportParts, write_output

    parts = ReportParts(*(where.get(option, ()) for option in ("leave_out", "published", "figures")))
    report = write_output(scores, store, Path(where["runs"]), parts)
    terminal().print(f"Report: {report}", soft_wrap=True)
    return 0 if scores.answered else 1


@contextmanager
def scored_again(name: str, where: Mapping[str, Any]) -> Iterator[None]:
    """Turn an interruption of scoring into an error that names the command to continue.

    Raises:
        UsageError: scoring was interrupted.
    """
    try:
        with ended_gently():
            yield
    except KeyboardInterrupt:
        again = f"prejudge score {name}{again_words(where)}"
        raise UsageError(
            f"interrupted during scoring. All answers are stored. To score the run: {again}", code="run.interrupted"
        ) from None


def show(scores: Scores, place: str = "") -> None:
    """Print the answer in the order of the report, warnings, and the run's name.

    `place` has the options that a command needs to find the store.
    """
    console = terminal()
    show_answer(answer_of(scores), console)
    for warning in warnings_of(scores, place):
        console.print(f"Note: {warning}")
    for sentence in scores.confused:
        console.print(sentence)
    if (known := scores.manifest.calibration) is not None and all(fitness.fit for fitness in scores.fitness):
        console.print(f"Calibration: {known.told}", soft_wrap=True)
    if scores.run.state != "imported":
        console.print(f"Run:    {scores.run.name}")
    if scores.manifest.head:
        console.print(f"Head:   {scores.manifest.head}", soft_wrap=True)
    elif scores.unproved:
        console.print(f"Head:   {UNPROVED}: {scores.unproved}", soft_wrap=True)
    if earlier := earlier_words(scores.manifest):
        console.print(f"Earlier answers: {earlier}", soft_wrap=True)


def note_on_p(estimates: Iterable[Estimate]) -> str | None:
    """Return the legend for p-values below a table; None if no correction changed a p-value."""
    return ADJUSTED if any(e.test.adjusted for e in estimates) else None
