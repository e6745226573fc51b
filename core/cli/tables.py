"""`prejudge export`: the numbers of a run as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast, get_args

import click

from ..catalogue.study import Catalogue
from ..contracts.errors import UsageError
from ..report.export import ENDINGS, Format, encode, latex_table, write_bytes
from ..report.place import own_file
from ..scoring.score import Scores, estimates_frame, score
from ..store import Store
from .outlet import echo
from .shared import (
    read_assignments,
    registry_option,
    run_argument,
    runs_option,
    say_own_options,
    set_option,
    store_option,
)


@click.command()
@run_argument
@click.option("--format", "kind", type=click.Choice(get_args(Format)), default="csv", show_default=True)
@click.option("--what", type=click.Choice(["estimates", "observations"]), default="estimates", show_default=True)
@click.option("--metric", "metrics", multiple=True, help="Estimates of this measure only. Repeatable.")
@click.option("--out", default=None, metavar="FILE", help="The file to write. Default: RUN-estimates.csv and so on.")
@set_option
@store_option
@runs_option
@registry_option
def export(
    name: str,
    kind: str,
    what: str,
    metrics: tuple[str, ...],
    out: str | None,
    assignments: tuple[str, ...],
    **where: Any,
) -> None:
    """Write the estimates or observations of the run NAME (default: the latest) for other programs.

    Estimates use the original options of the run; --set changes them.

    To share a whole run with its answers, use `prejudge cache export`.
    """
    given = read_assignments(assignments, None)
    with Store(where["store"], writable=False) as opened:
        scores = score(Catalogue.load(where["registry"]), opened, name, given)
    if what == "estimates":
        say_own_options(Path(where["runs"]) / scores.run.name, given)
    data = _encoded(scores, cast("Format", kind), what, metrics)
    path = Path(out) if out else own_file(Path(f"{scores.run.name}-{what}.{ENDINGS[kind]}"))
    echo(f"Written: {write_bytes(data, path)}")


def _encoded(scores: Scores, kind: Format, what: str, metrics: tuple[str, ...]) -> bytes:
    if what == "observations":
        if metrics:
            raise UsageError("--metric selects estimates; it needs --what estimates.", code="options.conflict")
        return encode(scores.frame, kind)
    every = [estimate for estimates in scores.estimates.values() for estimate in estimates]
    chosen = [e for e in every if e.metric in metrics] if metrics else every
    if not chosen:
        known = ", ".join(dict.fromkeys(e.metric for e in every))
        raise UsageError(f"the run has no estimate of {', '.join(metrics)}. It has: {known}.", code="export.metric")
    return latex_table(chosen).encode() if kind == "latex" else encode(estimates_frame(chosen), kind)
