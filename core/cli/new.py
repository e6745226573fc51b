"""`prejudge new`."""

from __future__ import annotations

from pathlib import Path

import click

from ..catalogue.study import Catalogue
from ..contracts.errors import UsageError
from ..scaffold import KINDS, STUDIES, STUDY, write_package, write_study
from ..scaffold.write import check_name
from .outlet import echo
from .shared import registry_option

TRIAL = "'simulated:trial[planted_by=cells,strength=1]' --quick"
"""The model with a planted effect on which a new study is tried; in the length of a text none can be planted."""
FREE = "simulated:trial --quick"
NEXT = {
    "probe": "prejudge run {name} --model reference-masked-biased",
    "adapter": "prejudge list adapters",
    "metric": "prejudge list metrics",
}


@click.command()
@click.argument("kind", type=click.Choice((*KINDS, STUDY)))
@click.argument("name")
@click.option("--folder", default=None, metavar="FOLDER", help="Where to write it. Default: NAME.")
@click.option("--kind", "form", type=click.Choice(STUDIES), help="Of a study: what the model answers. Default: rating.")
@registry_option
def new(kind: str, name: str, folder: str | None, form: str | None, registry: str | None) -> None:
    """Write a study in a folder, or a package for your own probe, adapter or metric, with tests that pass.

    NAME is the name that users will type, such as word-choice. A study needs no code: write its text and its tables.
    """
    names = check_name(kind, name)
    if kind == STUDY:
        place = Path(name if folder is None else folder)
        for path in write_study(name, form or "rating", place):
            echo(f"  {path}")
        shown = place if place.is_absolute() else f"./{place}"
        echo(
            "Next:",
            f"  prejudge study validate {shown}",
            f"  prejudge run {shown} --model {FREE if form == 'free' else TRIAL}",
        )
        return
    if form is not None:
        raise UsageError(f"--kind is of a study, and {kind} is none. Leave it out.", code="options.conflict")
    offers = Catalogue.load(registry).plugins.offers[kind]
    if name in offers:
        raise UsageError(
            f"the plugin {offers[name].plugin!r} already has a {kind} named {name!r}. Choose another name.",
            code="scaffold.name-taken",
        )
    place = Path(folder) if folder is not None else Path(name)
    for path in write_package(names, place):
        echo(f"  {path}")
    echo("Next:", f"  cd {place}", "  pip install -e '.[test]'", "  pytest", f"  {NEXT[kind].format(name=name)}")
