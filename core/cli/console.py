"""The part of the command line that a study's command may import: options, tables, running a study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from ..catalogue.study import SUBJECT, Catalogue
from ..contracts.errors import UsageError
from ..engine.runs import RunOptions
from ..report.export import write_bytes
from .completing import complete_run
from .outlet import echo, visible
from .run import perform
from .shared import quiet_option, registry_option, run_argument, runs_option, store_option
from .terminal import terminal

__all__ = [
    "complete_run",
    "echo",
    "one_line",
    "quiet_option",
    "registry_option",
    "run_argument",
    "run_study",
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


def run_study(name: str, model: str, options: Mapping[str, Any], where: Mapping[str, Any], command: str) -> int:
    """Run a study on a model as `prejudge run` does, and return the exit code.

    Args:
        name: the study.
        model: the model of the role `subject`.
        options: options of the probe and of the metrics.
        where: the options of the command: `store`, `runs`, `quiet`.
        command: the command line to record in the manifest.
    """
    catalogue = Catalogue.load(where.get("registry"))
    echo(f"\n{name} on {model}: {catalogue.registry.model(model).summary}", bold=True)
    return perform(catalogue, catalogue.study(name, {SUBJECT: model}, options), RunOptions(command=command), where)[0]
