"""The part of the command line that a study's command may import: options, tables, running studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from ..catalogue.study import SUBJECT, Catalogue
from ..contracts.errors import UsageError
from ..engine.runs import RunOptions
from ..report.export import write_bytes
from ..report.output import ensure_writable
from ..report.together import Together, card_of, write_together
from ..scoring.score import Scores, score
from ..store import Store
from .completing import complete_run
from .outlet import echo, single_line, visible
from .run import ask
from .shared import again_words, quiet_option, registry_option, run_argument, runs_option, store_option
from .terminal import terminal

__all__ = [
    "Scores",
    "Together",
    "card_of",
    "complete_run",
    "echo",
    "one_line",
    "quiet_option",
    "registry_option",
    "run_argument",
    "run_together",
    "runs_option",
    "store_option",
    "terminal",
    "write_new",
]


def one_line(text: object) -> Text:
    """Return a text on one line, without control characters."""
    return Text(" ".join(visible(str(text)).split()))


def write_new(text: str, out: str) -> None:
    """Write a new file and say so; an existing sheet may contain hours of work.

    Raises:
        UsageError: there is such a file, or it cannot be written.
    """
    if Path(out).exists():
        raise UsageError(
            f"the file {out!r} exists already. Name another file with --out, or move it.", code="file.exists"
        )
    write_bytes(text.encode(), Path(out))
    echo(f"Written: {out}")


def run_together(
    name: str,
    models: Mapping[str, str],
    options: Mapping[str, Any],
    where: Mapping[str, Any],
    *,
    title: str,
    command: str,
    tell: Callable[[Mapping[str, Scores]], Together],
) -> int:
    """Run a study on several models, write one page with the answer of each, and return the exit code.

    Args:
        name: the study.
        models: the models of the role `subject`, by what the page calls them.
        options: options of the probe and of the metrics.
        where: the options of the command: `store`, `runs`, `quiet`.
        title: of the page.
        command: the command line to record in the manifests.
        tell: returns what the page says of the models, from their scores by label.
    """
    catalogue = Catalogue.load(where.get("registry"))
    ensure_writable(Path(where["runs"]))
    runs: dict[str, Scores] = {}
    for label, model in models.items():
        code, run = ask(catalogue, catalogue.study(name, {SUBJECT: model}, options), RunOptions(command=command), where)
        if run is None:
            return code
        with Store(where["store"], writable=False) as store:
            runs[label] = score(catalogue, store, run)
    page = tell(runs)
    path = write_together(title, page, runs, Path(where["runs"]))
    for card, scores in zip(page.cards, runs.values(), strict=True):
        terminal().print(f"{card.label}: {card.reply.verdict}", style="bold")
        for line in (card.size, *card.notes):
            terminal().print(single_line(line))
        again = f"Run: {scores.run.name}; its whole report: prejudge score {scores.run.name}{again_words(where)}"
        terminal().print(again, soft_wrap=True)
    for name, fact in page.facts.items():
        terminal().print(f"{name}: {single_line(fact)}")
    terminal().print(f"Report: {path}", soft_wrap=True)
    return 0 if all(scores.answered for scores in runs.values()) else 1
