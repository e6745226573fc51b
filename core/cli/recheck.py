"""`prejudge recheck`."""

from __future__ import annotations

import asyncio
import shlex
import sys

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..catalogue.study import Catalogue
from ..contracts.words import number, p_value
from ..scoring.drift import Drift
from ..scoring.recheck import RecheckOptions
from ..scoring.recheck import recheck as ask_again
from ..store import Store
from ..store.urls import hide_password
from .completing import complete_run
from .shared import ensure_there, registry_option, store_option
from .terminal import terminal


@click.command()
@click.argument("run", default="latest", shell_complete=complete_run)
@click.option("--sample", default=100, show_default=True, help="Trials to ask again.")
@click.option("--seed", default=0, show_default=True, help="Another seed draws other trials.")
@click.option("--alpha", default=0.05, show_default=True, help="Level of the tests, over all outcomes together.")
@click.option("--tolerance", default=1e-4, show_default=True, help="Numbers that differ by no more are the same.")
@click.option("--exact", is_flag=True, help="Any answer that is not the same is drift: for models that answer alike.")
@click.option(
    "--name", default=None, metavar="NAME", help="Take up the recheck NAME; what it asked is not asked again."
)
@store_option
@registry_option
def recheck(run: str, alpha: float, exact: bool, store: str, registry: str | None, **how: int) -> int:
    """Ask a fixed sample of the run RUN again, and test whether the model answers as it did. Exit code 1 if not.

    What the run is scored from stays as it is, and no other run takes these answers for its own.
    """
    command = hide_password(shlex.join(["prejudge", *sys.argv[1:]]))
    options = RecheckOptions(command=command, **how)  # type: ignore[arg-type]
    ensure_there(store)
    with Store(store) as opened:
        done = asyncio.run(ask_again(Catalogue.load(registry), opened, run, options))
    drift = done.drift
    _show(drift)
    answered = drift.asked - drift.missing
    differ = answered - drift.same
    found = drift.drifted(alpha) or (exact and differ > 0) or not answered
    if not answered:
        click.echo("Nothing was answered, so nothing can be said.")
    elif drift.drifted(alpha):
        click.echo(f"The answers changed (p < {alpha} over all outcomes, Holm).")
    else:
        click.echo(f"No change was found in what the study reads (level {alpha}, Holm); {differ} answers differ.")
    click.echo(f"Recheck: {done.name}")
    return 1 if found else 0


def _show(drift: Drift) -> None:
    table = Table(caption="p: adjusted over all rows", caption_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("stage", "outcome", "test"):
        table.add_column(column)
    for column in ("n", "changed", "largest", "effect", "p"):
        table.add_column(column, justify="right")
    for row in drift.comparisons:
        figures = (str(row.n), str(row.changed), number(row.largest), number(row.effect), p_value(row.p_adjusted))
        table.add_row(row.stage, row.outcome, row.test, *figures)
    terminal().print(table)
    share = "–" if drift.share is None else f"{drift.share:.1%} ({drift.same_low:.1%} to {drift.same_high:.1%})"
    click.echo(f"Asked again: {drift.asked}. Not answered now: {drift.missing}. The same answer: {share}.")
