"""`prejudge lab variance`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..catalogue.study import Catalogue
from ..contracts.words import UNDEFINED, interval, number
from ..lab.variance import Variance, VarianceOptions, component_rows, conclusion, design_rows, write_variance
from ..lab.variance import variance as analyse
from ..lab.variance.outcome import Method
from ..report.output import ensure_writable
from ..store import Store
from .completing import complete_run
from .shared import read_pairs, registry_option, runs_option, store_option
from .terminal import terminal


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="RUN [RUN...]", shell_complete=complete_run)
@click.option("--metric", default="", help="The metric. Default: the first of the study that declares its measures.")
@click.option("--measure", default="", help="The measure. Default: the metric's first mean with a neutral value.")
@click.option("--facets", default="", metavar="A,B,C", help="The facets, at most 6. Default: the declared ones.")
@click.option("--random", default="", metavar="A,B", help="Generalise over these facets, too.")
@click.option("--fixed", default="", metavar="A,B", help="Do not generalise over these facets.")
@click.option(
    "--object", "about", default="", metavar="A", help="Tell apart the levels of this facet. Default: models."
)
@click.option(
    "--where", "where_", multiple=True, metavar="A=LEVEL", help="Only answers with this level of a factor. Repeatable."
)
@click.option("--interactions", type=click.IntRange(1, 6), help="Most facets of an interaction. Default: 3, or 2 of 5.")
@click.option(
    "--method",
    type=click.Choice(get_args(Method)),
    default=VarianceOptions().method,
    show_default=True,
    help="moments: ANOVA, or Henderson's method 1; reml: restricted maximum likelihood, for up to 1,000 levels.",
)
@click.option("--error", type=float, help="The standard error that is wanted. Default: half of the present one.")
@store_option
@runs_option
@registry_option
def variance(names: tuple[str, ...], where_: tuple[str, ...], about: str, **given: Any) -> None:
    """Show where the variance of a measure comes from: templates, words, order, model ... and what to ask more of.

    RUN is a run, or several runs of one study on different models. Only the store is read.
    """
    catalogue = Catalogue.load(given["registry"])
    ensure_writable(Path(given["runs"]))
    choice = VarianceOptions(
        metric=given["metric"],
        measure=given["measure"],
        facets=_split(given["facets"]),
        random=_split(given["random"]),
        fixed=_split(given["fixed"]),
        object=about,
        where=read_pairs("--where", where_, "a factor and its level: --where gender=women"),
        interactions=given["interactions"],
        method=given["method"],
        error=given["error"],
    )
    with Store(given["store"], writable=False) as store:
        found = analyse(catalogue, store, names, choice)
    show(found, write_variance(found, Path(given["runs"])))


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def show(found: Variance, page: Path) -> None:
    """Print the conclusion, the components, the designs, notes and the page."""
    console = terminal()
    console.print(conclusion(found))
    table = Table(
        caption=f"{found.outcome.words.label}: {found.found.method}, {found.outcome.rows.height:,} rows",
        caption_justify="left",
        box=SIMPLE_HEAD,
    )
    table.add_column("component", overflow="fold")
    for head in ("levels", "variance", "interval", "% of variance", "% of squared error"):
        table.add_column(head, justify="right")
    for row in component_rows(found):
        share = row["share of squared error (%)"]
        table.add_row(
            row["component"],
            f"{row['levels']:,}",
            number(row["variance"]),
            interval(row["low"], row["high"]),
            number(row["share of variance (%)"]),
            number(share) if row["in the error"] else "fixed",
        )
    console.print(table)
    rows = design_rows(found)
    table = Table(caption="detectable: with 80 % power at the 5 % level", caption_justify="left", box=SIMPLE_HEAD)
    for head in rows[0]:
        table.add_column(head, justify="left" if head == "design" else "right")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    console.print(table)
    for note in found.notes:
        console.print(f"Note ({note.code}): {note.text}")
    console.print(f"Report: {page}", soft_wrap=True)


def _cell(value: Any) -> str:
    if value is None:
        return UNDEFINED
    return f"{value:,}" if isinstance(value, int) else str(value) if isinstance(value, str) else number(value)
