"""`prejudge compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..catalogue.study import Catalogue
from ..compare import (
    CompareOptions,
    compare_scores,
    rank_runs,
    ranks_possible,
    score_all,
    write_comparison,
)
from ..report.output import ensure_writable
from ..store import Store
from .comparison import show_comparison
from .completing import complete_run
from .shared import (
    figures_option,
    published_option,
    read_assignments,
    registry_option,
    runs_option,
    set_option,
    store_option,
    unproved_option,
)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="RUN [RUN...]", shell_complete=complete_run)
@click.option("--all-pairs", is_flag=True, help="Compare all pairs of runs, not only each run with the first.")
@click.option(
    "--allow-different", is_flag=True, help="Compare the common units of runs with different options or data."
)
@published_option
@figures_option
@click.option(
    "--margin",
    type=click.FloatRange(0, 100, min_open=True, max_open=True),
    metavar="POINTS",
    help="Difference in percentage points below which a difference does not matter.",
)
@click.option("--ranks", is_flag=True, help="Rank the models in several studies, and test whether the ranks agree.")
@set_option
@unproved_option
@store_option
@runs_option
@registry_option
def compare(
    names: tuple[str, ...],
    assignments: tuple[str, ...],
    published: tuple[str, ...],
    margin: float | None,
    all_pairs: bool,
    allow_different: bool,
    **where: Any,
) -> int:
    """Compare runs of one study with the first run, unit by unit: differences, intervals and corrected tests.

    For runs of two or more studies on three or more models each, the ranks of the models are compared instead.
    """
    catalogue = Catalogue.load(where["registry"])
    ensure_writable(Path(where["runs"]))
    options = CompareOptions(
        all_pairs=all_pairs,
        allow_different=allow_different,
        assignments=read_assignments(assignments, None),
        margin=margin,
        published=published,
    )
    with Store(where["store"], writable=False, unproved=where["unproved"]) as store:
        runs = score_all(catalogue, store, names, options.assignments)
    ranked = where["ranks"] or ranks_possible(runs)
    done = (rank_runs if ranked else compare_scores)(catalogue, runs, options)
    return show_comparison(done, write_comparison(done, Path(where["runs"]), where["figures"]))
