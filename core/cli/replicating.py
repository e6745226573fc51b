"""`prejudge replicate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..replicate import NOT, REPRODUCED, UNJUDGED, Judged, ReplicateOptions
from ..replicate import replicate as replicate_study
from ..store import Store
from ..study import Catalogue
from .results import terminal
from .shared import read_assignments, registry_option, set_option, store_option


@click.command()
@click.argument("name")
@click.option("--run", "runs", multiple=True, metavar="RUN", help="A run to compare; else the latest of each study.")
@click.option("--scores", default=None, metavar="FILE", help="Scores or counts somebody published, in place of runs.")
@click.option("--model", default=None, metavar="NAME", help="Whose published values to compare with.")
@click.option("--all", "everything", is_flag=True, help="Show every value, not only those that did not come out.")
@set_option
@store_option
@registry_option
def replicate(name: str, runs: tuple[str, ...], assignments: tuple[str, ...], everything: bool, **where: Any) -> int:
    """Compare the study NAME, or all studies whose names begin with NAME-, with the values that were published.

    Says for each value: reproduced, not reproduced, or cannot be judged. Exit code 1 if one was not reproduced.
    """
    catalogue = Catalogue.load(where["registry"])
    options = ReplicateOptions(
        runs=runs, scores=where["scores"], model=where["model"], assignments=read_assignments(assignments, None)
    )
    if options.scores is not None or not ("://" in where["store"] or Path(where["store"]).exists()):
        return show(replicate_study(catalogue, name, options, None), everything)
    with Store(where["store"], writable=False) as store:
        return show(replicate_study(catalogue, name, options, store), everything)


def show(judged: Sequence[Judged], everything: bool) -> int:
    """Print the verdicts, and return 1 if a value was not reproduced."""
    console = terminal()
    rows = [one for one in judged if everything or one.verdict != REPRODUCED]
    if rows:
        console.print(_table(rows), markup=False)
    counts = Counter(one.verdict for one in judged)
    by_source = Counter((one.study, one.model, one.source) for one in judged)
    for place, total in by_source.items():
        own = Counter(one.verdict for one in judged if (one.study, one.model, one.source) == place)
        words = ", ".join(filter(None, place))
        console.print(f"{words}: {own[REPRODUCED]} of {total} reproduced", markup=False)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in (REPRODUCED, NOT, UNJUDGED))
    console.print(f"{len(judged)} published values: {said}.", markup=False)
    return 1 if counts[NOT] else 0


def _table(judged: Sequence[Judged]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("study", "model", "source", "measure", "for"):
        table.add_column(name)
    for name in ("published", "measured", "tolerance"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for one in judged:
        table.add_row(
            *(one.study, one.model, one.source, one.measure),
            ", ".join(map(str, one.group.values())) or "all",
            *(_number(value) for value in (one.published, one.measured, one.tolerance)),
            f"{one.verdict}: {one.why}" if one.why else one.verdict,
        )
    return table


def _number(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{value:.6g}"
