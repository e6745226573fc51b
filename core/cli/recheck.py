"""`prejudge lab recheck`."""

from __future__ import annotations

import asyncio
import shlex
import sys
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..catalogue.study import Catalogue
from ..contracts.words import UNDEFINED, number, p_value, percent
from ..scoring.drift import Drift
from ..scoring.recheck import RecheckOptions
from ..scoring.recheck import recheck as ask_again
from ..store import Store
from ..store.urls import hide_password
from .completing import complete_run
from .ending import ended_gently
from .outlet import echo
from .results import ADJUSTED
from .shared import chosen_workers, ensure_there, registry_option, store_option, workers_options
from .terminal import terminal


@click.command()
@click.argument("run", default="latest", shell_complete=complete_run)
@click.option("--sample", default=100, show_default=True, help="Trials to ask again.")
@click.option("--seed", default=0, show_default=True, help="Seed of the sample.")
@click.option("--alpha", default=0.05, show_default=True, help="Significance level, corrected over all outcomes.")
@click.option("--tolerance", default=1e-4, show_default=True, help="Differences of numbers up to this are ignored.")
@click.option("--exact", is_flag=True, help="Fail if any answer differs; for models with reproducible answers.")
@click.option(
    "--name", default=None, metavar="NAME", help="Resume the recheck NAME; its answers are not requested again."
)
@workers_options
@store_option
@registry_option
def recheck(run: str, alpha: float, exact: bool, store: str, registry: str | None, **how: Any) -> int:
    """Ask a fixed sample of the run RUN again, and test whether the answers have changed. Exit code 1 if they have.

    The run and its scores do not change, and no other run uses the new answers.
    """
    command = hide_password(shlex.join(["prejudge", *sys.argv[1:]]))
    workers = chosen_workers(how)
    own = {name: how[name] for name in ("sample", "seed", "tolerance", "name")}
    options = RecheckOptions(command=command, workers=workers, **own)
    ensure_there(store)
    with Store(store) as opened:
        with ended_gently():
            done = asyncio.run(ask_again(Catalogue.load(registry), opened, run, options))
    drift = done.drift
    _show(drift)
    answered = drift.asked - drift.missing
    differ = answered - drift.same
    found = drift.drifted(alpha) or (exact and differ > 0) or not answered
    if not answered:
        echo("The model gave no answer, so no change can be tested.")
    elif drift.drifted(alpha):
        echo(f"The answers changed significantly (p < {alpha}, corrected over all outcomes by Holm).")
    else:
        echo(f"No significant change of the outcomes (level {alpha}, Holm); {differ} answers differ.")
    echo(f"Recheck: {done.name}")
    return 1 if found else 0


def _show(drift: Drift) -> None:
    table = Table(caption=ADJUSTED, caption_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("stage", "outcome", "test"):
        table.add_column(column)
    for column in ("n", "changed", "maximum", "effect", "p"):
        table.add_column(column, justify="right")
    for row in drift.comparisons:
        figures = (str(row.n), str(row.changed), number(row.largest), number(row.effect), p_value(row.p_adjusted))
        table.add_row(row.stage, row.outcome, row.test, *figures)
    terminal().print(table)
    low, high = percent(drift.same_low, 1), percent(drift.same_high, 1)
    share = UNDEFINED if drift.share is None else f"{percent(drift.share, 1)} ({low} to {high})"
    echo(f"Asked again: {drift.asked}. Without an answer: {drift.missing}. Same answer: {share}.")
