"""`prejudge study replicate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..catalogue.published import Published
from ..catalogue.study import Catalogue
from ..contracts.words import UNDEFINED, percent
from ..scoring.replicate import NOT, REPRODUCED, UNJUDGED, Judged, ReplicateOptions
from ..scoring.replicate import replicate as replicate_study
from ..store import Store
from .completing import complete_run, complete_study
from .shared import read_assignments, registry_option, set_option, store_option
from .table_options import table_options
from .terminal import terminal


@click.command()
@click.argument("name", shell_complete=complete_study)
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="RUN",
    shell_complete=complete_run,
    help="The run to compare. Repeatable. Default: the latest run of each study and model.",
)
@click.option("--scores", default=None, metavar="FILE", help="Published scores or counts to compare, instead of runs.")
@click.option("--model", default=None, metavar="NAME", help="Compare with the published values of this model.")
@click.option("--all", "everything", is_flag=True, help="Show all values, not only those that were not reproduced.")
@table_options
@set_option
@store_option
@registry_option
def replicate(name: str, runs: tuple[str, ...], assignments: tuple[str, ...], everything: bool, **where: Any) -> int:
    """Compare the study NAME, or all studies whose names begin with NAME-, with the published values.

    Each value is reproduced, not reproduced, or cannot be judged. Exit code 1 if a value was not reproduced.
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
    for (study, beside, model), some in groupby(judged, key=lambda one: (one.study, one.beside, one.value.model)):
        whom = f"the published values of {model}" if model else "the published values"
        part = [*some]
        if beside:
            console.print(f"{study}: {beside}, compared with {whom}", **_WHOLE)
            _show_part(console, part, everything)
        else:
            why = "; ".join(dict.fromkeys(one.why for one in part))
            console.print(f"{study}: {len(part)} of {whom} cannot be judged: {why}", **_WHOLE)
    counts = Counter(one.verdict for one in judged)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in (REPRODUCED, NOT, UNJUDGED))
    console.print(f"{len(judged)} published values: {said}.")
    return 1 if counts[NOT] else 0


_WHOLE: dict[str, Any] = {"soft_wrap": True}
"""Print lines without wrapping at the width of the terminal."""


def _show_part(console: Console, judged: Sequence[Judged], everything: bool) -> None:
    """Print the results of one run: a line per source with its readings, and a table of single values."""
    by_source: dict[str, list[Judged]] = {}
    for one in judged:
        by_source.setdefault(one.value.source, []).append(one)
    for source, some in by_source.items():
        own = Counter(one.verdict for one in some)
        rest = ", ".join(f"{own[verdict]} {verdict}" for verdict in (NOT, UNJUDGED) if own[verdict])
        line = f"{own[REPRODUCED]} of {len(some)} reproduced{', ' + rest if rest else ''}"
        console.print(f"  {source + ': ' if source else ''}{line}", **_WHOLE)
        for words in _explained(some):
            console.print(f"    {words}", **_WHOLE)
    rows = [one for one in judged if everything or one.verdict == NOT]
    if rows:
        console.print(_table(rows))


def _explained(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield each reading of values and each reason why values cannot be judged, with the number of values."""
    readings = Counter(one.value.reading for one in judged if one.verdict != UNJUDGED and one.value.reading)
    for reading, count in readings.items():
        yield f"{count} with this reading: {reading}"
    for why, count in Counter(one.why for one in judged if one.why).items():
        yield f"{count} cannot be judged: {why}"


def _table(judged: Sequence[Judged]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("source", "measure", "group"):
        table.add_column(name)
    for name in ("published", "measured", "tolerance"):
        table.add_column(name, justify="right")
    table.add_column("verdict", no_wrap=True)
    for one in judged:
        value = one.value
        table.add_row(
            *(value.source, value.measure if value.of == "value" else f"{value.measure}, {value.of}"),
            ", ".join(map(str, value.group.values())) or "all",
            *(_number(value.value), _number(one.measured), _tolerance(value)),
            one.verdict,
        )
    return table


def _tolerance(value: Published) -> str:
    return _number(value.tolerance) if value.relative is None else percent(value.relative)


def _number(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.6g}"
