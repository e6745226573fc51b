"""What the command of a study may import of the command line: options, tables, and how to run a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from rich.text import Text

from ..catalogue.study import SUBJECT, Catalogue
from ..engine.runs import RunOptions
from ..report.text import clean
from .completing import complete_run
from .run import perform
from .shared import quiet_option, registry_option, run_argument, runs_option, store_option
from .terminal import terminal

__all__ = [
    "complete_run",
    "one_line",
    "quiet_option",
    "registry_option",
    "run_argument",
    "run_study",
    "runs_option",
    "store_option",
    "terminal",
]


def one_line(text: object) -> Text:
    """Return a text that cannot steer the terminal, on one line."""
    return Text(" ".join(str(clean(str(text))).split()))


def run_study(name: str, model: str, options: Mapping[str, Any], where: Mapping[str, Any], command: str) -> int:
    """Run a study on a model as `prejudge run` does, and return the exit code.

    Args:
        name: the study.
        model: the model of the role `subject`.
        options: options of the probe and of the metrics.
        where: what the options of the command say: `store`, `runs`, `quiet`.
        command: what is recorded as the command that ran it.
    """
    catalogue = Catalogue.load(where.get("registry"))
    click.secho(f"\n{name} on {model}: {catalogue.registry.model(model).summary}", bold=True)
    return perform(catalogue, catalogue.study(name, {SUBJECT: model}, options), RunOptions(command=command), where)
