"""`prejudge card`."""

from __future__ import annotations

from pathlib import Path

import click

from ..card import write_card
from ..scoring import score
from ..store import Store
from ..study import Catalogue
from .shared import read_assignments, registry_option, run_argument, runs_option, set_option, store_option


@click.command()
@run_argument
@click.option("--out", default=None, metavar="FOLDER", help="Where to write. Default: the run's own folder.")
@set_option
@store_option
@runs_option
@registry_option
def card(name: str, out: str | None, assignments: tuple[str, ...], store: str, runs: str, registry: str | None) -> None:
    """Write a model card and a data sheet of the run NAME (default: the latest) in Markdown."""
    with Store(store, writable=False) as opened:
        scores = score(Catalogue.load(registry), opened, name, read_assignments(assignments, None))
    for path in write_card(scores, Path(out) if out else Path(runs) / scores.run.name):
        click.echo(f"Written: {path}")
