"""`prejudge new`."""

from __future__ import annotations

from pathlib import Path

import click

from ..catalogue.study import Catalogue
from ..contracts.errors import UsageError
from ..scaffold import KINDS, write_package
from ..scaffold.write import check_name
from .outlet import echo
from .shared import registry_option

NEXT = {
    "probe": "prejudge run {name} --model reference-masked-biased",
    "adapter": "prejudge list adapters",
    "metric": "prejudge list metrics",
}


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option("--folder", default=None, metavar="FOLDER", help="Where to write it. Default: NAME.")
@registry_option
def new(kind: str, name: str, folder: str | None, registry: str | None) -> None:
    """Write a package for your own probe, adapter or metric, with tests that pass.

    NAME is the name that users will type, such as word-choice.
    """
    names = check_name(kind, name)
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
