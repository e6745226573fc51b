"""`prejudge measure`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from ..answer.needed import by_interval
from ..catalogue.study import Catalogue
from ..contracts import Estimate
from ..contracts.inputs import load_toml, read_text
from ..scoring.own_table import measure_table
from ..scoring.published import store_published
from ..scoring.score import score as score_run
from ..store import Store
from .outlet import echo
from .results import deliver
from .shared import registry_option, runs_option, store_option
from .table_options import chosen_table, table_options
from .terminal import terminal

NO_INTERVAL = (
    "No interval: nobody said what the rows sample. Name the columns (--sampled name,template), or say that each row "
    "is a sample of its own (--independent)."
)
LISTS = ("between", "sampled", "by", "within", "positive")


@click.command()
@click.argument("file")
@click.option("--outcome", metavar="COLUMN", help="The column of outcomes: numbers, or texts (see --positive).")
@click.option("--group", metavar="COLUMN", help="The column whose levels are compared.")
@click.option("--between", metavar="LEVEL,...", help="The levels that are compared: the first less the second.")
@click.option(
    "--sampled",
    metavar="COLUMN,...",
    help="Columns whose levels are examples of a larger population: templates, names, items, raters.",
)
@click.option("--by", metavar="COLUMN,...", help="Columns for whose levels the measures are given, too.")
@click.option("--within", metavar="COLUMN,...", help="Further columns that are equal where groups are compared.")
@click.option("--positive", metavar="TEXT,...", help="The outcomes that count, such as hired; all others do not.")
@click.option("--independent", is_flag=True, default=None, help="Nothing is sampled: each row is a sample of its own.")
@click.option("--limit", type=float, metavar="NUMBER", help="A difference up to this does not matter.")
@click.option("--because", metavar="TEXT", help="Why this limit.")
@click.option("--declared", metavar="TOML", help="A file with the same options, [[measures]] and [[questions]].")
@click.option("--model", default="", metavar="NAME", help="The name of the model that gave the outcomes.")
@table_options
@store_option
@runs_option
@registry_option
def measure(file: str, declared: str | None, model: str, registry: str | None, **where: Any) -> int:
    """Measure the outcomes in FILE: CSV, JSON, JSON Lines, Parquet or xlsx, one outcome a row. No model is asked."""
    catalogue = Catalogue.load(registry)
    places = {name: where.pop(name) for name in ("store", "runs")}
    stated: dict[str, Any] = {} if declared is None else load_toml(read_text(declared, "the declaration"), declared)
    stated |= {name: value for name, value in where.items() if value is not None}
    for name in LISTS:
        if isinstance(stated.get(name), str):
            stated[name] = [part.strip() for part in stated[name].split(",") if part.strip()]
    scores = measure_table(catalogue, file, stated | dict(chosen_table()), model)
    with Store(places["store"]) as store:
        scores = score_run(catalogue, store, store_published(store, scores))
        code = deliver(scores, store, places)
    if not (stated.get("sampled") or stated.get("independent")):
        echo(NO_INTERVAL)
    for line in detectable(scores.headline):
        terminal().print(line, soft_wrap=True, highlight=False)
    return code


def detectable(estimates: Sequence[Estimate]) -> Iterator[str]:
    """Yield what each comparison could have shown: the smallest difference that its interval would find."""
    for e in estimates:
        need = by_interval(e, 1.0) if e.neutral == 0 else None
        if need is not None and need.detectable is not None:
            named = ", ".join([e.label, *map(str, e.group.values())])
            unit = f" {e.unit}" if e.unit else ""
            yield f"Smallest detectable effect, 80 % power: {need.detectable:.3g}{unit} ({named})"
