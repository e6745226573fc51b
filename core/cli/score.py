"""`prejudge score`."""

from __future__ import annotations

from pathlib import Path

import click

from ..output import write_output
from ..scoring import score_published
from ..store import Store
from ..study import Catalogue
from .results import finish, show
from .shared import read_assignments, registry_option, runs_option, set_option, store_option


@click.command()
@click.argument("name", default="latest")
@click.option(
    "--scores", default=None, metavar="FILE", help="Measure scores somebody published; NAME is then the study."
)
@set_option
@store_option
@runs_option
@registry_option
def score(name: str, scores: str | None, assignments: tuple[str, ...], registry: str | None, **where: str) -> int:
    """Score the run NAME again from the store alone (default: the latest). No model is loaded, nothing is asked."""
    catalogue = Catalogue.load(registry)
    if scores is not None:
        published = score_published(catalogue, catalogue.study(name, {}, read_assignments(assignments, None)), scores)
        return show(published, write_output(published, None, Path(where["runs"])))
    with Store(where["store"], writable=False) as store:
        return finish(catalogue, store, name, where["runs"], read_assignments(assignments, None))
