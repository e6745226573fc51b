"""`prejudge demo`."""

from __future__ import annotations

from typing import Any

import click

from ..catalogue.study import Catalogue
from ..engine.runs import RunOptions
from .run import perform
from .shared import quiet_option, runs_option, store_option

STUDY = "bistereo-pairs"
MODELS = ("reference-masked-fair", "reference-masked-biased")
PER_CELL = 300


@click.command()
@click.option("--full", is_flag=True, help=f"All pairs of the study, instead of {PER_CELL} per cell.")
@store_option
@runs_option
@quiet_option
def demo(full: bool, **where: Any) -> None:
    """Run a study on the two reference models that come with the package: one fair, one with a planted bias."""
    catalogue = Catalogue.load()
    options = {} if full else {"per_cell": PER_CELL}
    for model in MODELS:
        click.secho(f"\n{STUDY} on {model}: {catalogue.registry.model(model).summary}", bold=True)
        study = catalogue.study(STUDY, {"subject": model}, options)
        perform(catalogue, study, RunOptions(command="prejudge demo"), where)
