"""`prejudge demo`: BIStereo-Pairs on the reference models, one of which has the measured association planted."""

from __future__ import annotations

from typing import Any

import click

from ...core.cli.console import quiet_option, run_study, runs_option, store_option

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
    for model in MODELS:
        run_study(STUDY, model, {} if full else {"per_cell": PER_CELL}, where, "prejudge demo")
