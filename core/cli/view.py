"""`prejudge view`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from ..catalogue.study import Catalogue
from ..contracts.errors import MissingExtraError
from ..store import Store, get_run
from .completing import complete_run
from .outlet import echo
from .shared import ensure_there, registry_option, runs_option, store_option


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
@store_option
@runs_option
@registry_option
def view(name: str | None, port: int, opened: bool, samples: str, labelled: str | None, **where: Any) -> None:
    """Read every answer of a store in the browser, or those of RUN; label samples of them. Nothing leaves the machine.

    Ends with Ctrl-C.
    """
    try:
        from ..view.app import application
        from ..view.desk import label_pages, sample_pages
        from ..view.labels import Sample
        from ..view.room import Room
        from ..view.serve import serve
        from ..view.urls import run_url
    except ImportError:
        raise MissingExtraError("prejudge view", "view") from None

    def ready(link: str, _: object) -> None:
        echo(f"Open this link; it works once:\n{link}\nCtrl-C ends.")
        if opened:
            webbrowser.open(link)

    if labelled is not None:
        sample = Sample(Path(labelled).resolve())
        pages = label_pages(sample.folder.parent)
        serve(application(None, pages), port, f"/label/{quote(sample.folder.name)}", ready)
        return
    ensure_there(where["store"])
    with Store(where["store"], writable=False) as store:
        landing = "/" if name is None else run_url(get_run(store, name).name)
        room = Room(store, Catalogue.load(where["registry"]), Path(where["runs"]))
        serve(application(room, sample_pages(Path(samples))), port, landing, ready)
