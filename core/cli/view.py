"""`prejudge view`."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from ..catalogue.study import Catalogue
from ..contracts.errors import MissingExtraError, UsageError
from ..store import Store, get_run
from .completing import complete_run
from .ending import ended_gently
from .outlet import echo
from .shared import ensure_there, registry_option, runs_option, store_option, unproved_option


@click.command()
@click.argument("name", required=False, metavar="[RUN]", shell_complete=complete_run)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1. 0: a free one.")
@click.option("--open/--no-open", "opened", default=True, help="Open the browser.", show_default=True)
@click.option("--samples", default="samples", show_default=True, help="The folder of samples and labels.")
@click.option(
    "--label",
    "labelled",
    default=None,
    metavar="FOLDER",
    help="Label the sample in this folder, and show nothing else: no store is needed.",
)
@click.option(
    "--sheet",
    default=None,
    metavar="FILE",
    help="Label the rows of this CSV file, in its first empty column. Needs --labels, and no store.",
)
@click.option("--labels", default="", metavar="A,B", help="The labels of --sheet.")
@click.option("--question", default="", metavar="TEXT", help="The question of --sheet. Default: the column's name.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=LEVEL",
    help="Show the answers of RUN with this level of a factor, outcome or status. Repeatable.",
)
@unproved_option
@store_option
@runs_option
@registry_option
def view(
    name: str | None,
    port: int,
    opened: bool,
    samples: str,
    labelled: str | None,
    sheet: str | None,
    labels: str,
    question: str,
    filters: tuple[str, ...],
    **where: Any,
) -> None:
    """Read every answer of a store in the browser, or those of RUN; label samples of them. Nothing leaves the machine.

    Ends with Ctrl-C.
    """
    try:
        from ..annotation.samples import sample_of
        from ..annotation.sheets import sample_of_sheet
        from ..view.app import application
        from ..view.desk import label_pages, sample_pages
        from ..view.room import Room
        from ..view.serve import serve
        from ..view.urls import View, run_url
    except ImportError:
        raise MissingExtraError("prejudge view", "view") from None

    def ready(link: str, _: object) -> None:
        echo("Open this link; it works once:", link, "Ctrl-C ends.")

    def show(app: Any, landing: str) -> None:
        with ended_gently():
            serve(app, port, landing, ready, browser=opened)

    if labelled is not None:
        folder = Path(labelled).resolve()
        sample = sample_of(folder.parent, folder.name)
        show(application(None, label_pages(sample.folder.parent)), landing=f"/label/{quote(sample.folder.name)}")
    elif sheet is not None:
        made = sample_of_sheet(sheet, Path(samples), labels.split(","), question)
        pages = sample_pages(Path(samples), alone=True)
        show(application(None, pages), landing=f"/sample/{quote(made.folder.name)}")
    else:
        ensure_there(where["store"])
        with Store(where["store"], writable=False, unproved=where["unproved"]) as store:
            shown = View(filters=filters_of(name, filters)).query
            parts = ("answers",) if filters else ()
            landing = "/" if name is None else run_url(get_run(store, name).name, *parts, query=shown)
            room = Room(store, Catalogue.load(where["registry"]), Path(where["runs"]))
            show(application(room, sample_pages(Path(samples))), landing=landing)
    echo("Ended.")


def filters_of(run: str | None, told: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the levels by column; raises `UsageError` for words without `=`, or without a run."""
    found: dict[str, tuple[str, ...]] = {}
    for one in told:
        column, equals, level = one.partition("=")
        if not equals or not column or run is None:
            raise UsageError(
                f"--filter {one!r} needs a run and NAME=LEVEL: prejudge view RUN --filter status=ok.",
                code="view.filter",
            )
        found[column] = (*found.get(column, ()), level)
    return found
