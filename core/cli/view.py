"""`prejudge view`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

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
@store_option
@runs_option
@registry_option
def view(name: str | None, port: int, opened: bool, **where: Any) -> None:
    """Read every answer of a store in the browser, or those of RUN; label samples of them. Nothing leaves the machine.

    Ends with Ctrl-C.
    """
    try:
        from ..view.app import application
        from ..view.room import Room
        from ..view.serve import serve
        from ..view.urls import run_url
    except ImportError:
        raise MissingExtraError("prejudge view", "view") from None
    ensure_there(where["store"])

    def ready(link: str, _: object) -> None:
        echo(f"Open this link; it works once:\n{link}\nCtrl-C ends.")
        if opened:
            webbrowser.open(link)

    with Store(where["store"], writable=False) as store:
        landing = "/" if name is None else run_url(get_run(store, name).name)
        room = Room(store, Catalogue.load(where["registry"]), Path(where["runs"]))
        serve(application(room), port, landing, ready)
