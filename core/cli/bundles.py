"""`prejudge cache export|import|merge`: sharing runs and merging stores."""

from __future__ import annotations

from pathlib import Path

import click

from ..contracts.errors import UsageError
from ..engine.manifest import PUBLISHED_STATE
from ..store import Store, get_run
from ..store.bundle import export_run
from ..store.checks import secrets_in
from ..store.merge import merge
from ..store.unbundle import Bundle, import_bundle
from ..store.urls import option_words
from .outlet import echo
from .shared import processes_option, run_argument, store_option


@click.command("export")
@run_argument
@click.option(
    "--out", default=None, metavar="FILE", help="The file to write. Default: NAME.db.gz in the working directory."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@processes_option
@store_option
def export(name: str, out: str | None, force: bool, processes: int, store: str) -> None:
    """Write the run NAME as one file that anyone can import and score again, without keys or models."""
    with Store(store, writable=False) as opened:
        run = get_run(opened, name)
        path = Path(out) if out else Path(f"{run.name}.db.gz")
        if path.exists() and not force:
            raise UsageError(
                f"the file {str(path)!r} exists already. Name another file with --out, or replace it with --force.",
                code="file.exists",
            )
        done, held = export_run(opened, run, path, processes), secrets_in(opened)
    echo(", ".join(f"{count:,} {kind}" for kind, count in done.counts.items()))
    if done.absent:
        echo(f"Note: {done.absent:,} images of requests are not in the store, so they are not in the bundle.")
    for note in held:
        echo(f"Note: {note}")
    if run.state not in ("finished", PUBLISHED_STATE):
        echo(f"Note: the run is not finished (state: {run.state}).")
    echo(f"Bundle: {done.path}", f"sha256: {done.sha256}", f"Head:   {done.head}")


@click.command("import")
@click.argument("file")
@click.option("--as", "name", default=None, metavar="NAME", help="Import the run under another name.")
@processes_option
@store_option
def import_(file: str, name: str | None, processes: int, store: str) -> None:
    """Import the run in the bundle FILE after checking all its content."""
    with Bundle(file) as bundle, Store(store, later=True) as opened:
        done = import_bundle(opened, bundle, name, processes)
    if not done.new:
        echo(f"The store already has this run as {done.run}")
        return
    echo(f"Imported {done.exchanges:,} new exchanges and {done.images:,} new images.")
    echo(f"Run:    {done.run}", f"Score it: prejudge score {done.run}{option_words(store)}")


@click.command("merge")
@click.argument("other")
@processes_option
@store_option
def merge_(other: str, processes: int, store: str) -> None:
    """Copy all runs and answers of the store OTHER into this store. Existing runs are unchanged."""
    with Store(other, writable=False) as source, Store(store) as opened:
        done = merge(opened, source, processes)
    echo(f"Copied {done.exchanges:,} exchanges, {done.images:,} images and {done.runs:,} runs.")
    if done.same:
        echo(f"{done.same:,} runs were already in this store.")
    for there, here in done.renamed:
        echo(f"This store already has another run named {there}; the copied run is now named {here}.")
