"""`prejudge cache export|import|merge`: evidence that travels."""

from __future__ import annotations

from pathlib import Path

import click

from ..contracts.errors import UsageError
from ..store import Store, get_run
from ..store.bundle import export_run
from ..store.merge import merge
from ..store.unbundle import Bundle, import_bundle
from ..store.urls import option_words
from .shared import run_argument, store_option


@click.command("export")
@run_argument
@click.option("--out", default=None, metavar="FILE", help="The file to write. Default: NAME.zip here.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@store_option
def export(name: str, out: str | None, force: bool, store: str) -> None:
    """Write the run NAME as one file that anyone can import and score again, without keys or models."""
    with Store(store, writable=False) as opened:
        run = get_run(opened, name)
        path = Path(out) if out else Path(f"{run.name}.zip")
        if path.exists() and not force:
            raise UsageError(
                f"{str(path)!r} is there already. Name another with --out, or write over it with --force.",
                code="file.exists",
            )
        done = export_run(opened, run, path)
    click.echo(", ".join(f"{count:,} {kind}" for kind, count in done.counts.items()))
    if done.absent:
        click.echo(f"Note: {done.absent:,} images that requests name are not in the store, and not in the bundle.")
    if run.state != "finished":
        click.echo(f"Note: the run is not finished, but {run.state}.")
    click.echo(f"Bundle: {done.path}\nsha256: {done.sha256}")


@click.command("import")
@click.argument("file")
@click.option("--as", "name", default=None, metavar="NAME", help="Give the run another name here.")
@store_option
def import_(file: str, name: str | None, store: str) -> None:
    """Take over the run in the bundle FILE, once everything in it was checked."""
    with Bundle(file) as bundle, Store(store, later=True) as opened:
        done = import_bundle(opened, bundle, name)
    if not done.new:
        click.echo(f"The run is here already: {done.run}")
        return
    click.echo(f"{done.exchanges:,} exchanges and {done.images:,} images are new here.")
    click.echo(f"Run:    {done.run}\nScore it: prejudge score {done.run}{option_words(store)}")


@click.command("merge")
@click.argument("other")
@store_option
def merge_(other: str, store: str) -> None:
    """Take over all that the store OTHER holds. What is here stays as it is, and goes on being found."""
    with Store(other, writable=False) as source, Store(store) as opened:
        done = merge(opened, source)
    click.echo(f"{done.exchanges:,} exchanges, {done.images:,} images and {done.runs:,} runs taken over.")
    if done.same:
        click.echo(f"{done.same:,} runs were here already.")
    for there, here in done.renamed:
        click.echo(f"Another run is called {there} here; the other store's is now {here}.")
