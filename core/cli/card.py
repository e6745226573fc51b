"""`prejudge card`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..catalogue.study import Catalogue
from ..engine.manifest import in_words, remeasured_in
from ..report.card import write_card
from ..report.place import folder_within
from ..scoring.score import score
from ..store import Store, get_run
from .outlet import echo
from .shared import (
    read_assignments,
    registry_option,
    run_argument,
    runs_option,
    set_option,
    store_option,
    unproved_option,
)


@click.command()
@run_argument
@click.option("--out", default=None, metavar="FOLDER", help="Where to write. Default: the run's own folder.")
@set_option
@unproved_option
@store_option
@runs_option
@registry_option
def card(name: str, out: str | None, assignments: tuple[str, ...], **where: Any) -> None:
    """Write a model card and a data sheet of the run NAME (default: the latest) in Markdown.

    If `prejudge score --set` was used on the run, the card uses the same options.
    """
    with Store(where["store"], writable=False, unproved=where["unproved"]) as opened:
        folder = Path(where["runs"]) / get_run(opened, name).name
        held = remeasured_in(folder)
        options = held | read_assignments(assignments, None)
        scores = score(Catalogue.load(where["registry"]), opened, folder.name, options)
    if options:
        last = f", the options last used for {folder}" if options == held else ""
        echo(f"Measured with {in_words(options)}{last}.")
    for path in write_card(scores, Path(out) if out else folder_within(Path(where["runs"]), folder.name)):
        echo(f"Written: {path}")
