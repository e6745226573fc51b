"""`prejudge export`: the numbers of a run as files for other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

import click
import polars as pl

from ..annotation import corrected_run
from ..catalogue.study import Catalogue
from ..contracts.errors import UnknownNameError, UsageError
from ..contracts.estimates import Estimate
from ..contracts.options import parse_assignments
from ..gate import selects
from ..report.export import ENDINGS, Format, encode, latex_table, write_bytes
from ..report.place import own_file
from ..report.text import label
from ..scoring.estimates_frame import estimates_frame
from ..scoring.score import Scores, score
from ..scoring.warnings import unfinished_notes
from ..store import Store
from ..store.urls import option_words
from .card import write_cards
from .outlet import echo
from .shared import (
    correction_options,
    read_assignments,
    registry_option,
    run_argument,
    runs_option,
    say_own_options,
    set_option,
    store_option,
    unproved_option,
)


@click.command()
@run_argument
@click.option(
    "--format",
    "kind",
    type=click.Choice(get_args(Format)),
    default="csv",
    show_default=True,
    help="Format of the file.",
)
@click.option(
    "--what",
    type=click.Choice(["estimates", "observations", "card"]),
    default="estimates",
    show_default=True,
    help="The measures, one row per trial, or a model card and a data sheet in Markdown.",
)
@click.option("--metric", "metrics", multiple=True, help="Estimates of this measure only. Repeatable.")
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="FACTOR=LEVEL",
    help="Estimates of this level only, with * and ? as in file names; an empty level: those without the factor. "
    "Repeatable.",
)
@click.option(
    "--out",
    default=None,
    metavar="PATH",
    help="The file to write; of a card, the folder. Default: RUN-estimates.csv and so on; of a card, the run's folder.",
)
@correction_options
@set_option
@unproved_option
@store_option
@runs_option
@registry_option
def export(
    name: str,
    kind: str,
    what: str,
    metrics: tuple[str, ...],
    groups: tuple[str, ...],
    out: str | None,
    assignments: tuple[str, ...],
    **where: Any,
) -> None:
    """Write the estimates, observations or model card of the run NAME (default: the latest) as files.

    Estimates use the original options of the run; --set changes them. A card uses the options last used for the run.

    To share a whole run with its answers, use `prejudge cache export`.
    """
    if what == "card":
        _ensure_plain(metrics, groups, where)
        return write_cards(name, out, assignments, where)
    given = read_assignments(assignments, None)
    catalogue = Catalogue.load(where["registry"])
    with Store(where["store"], writable=False, unproved=where["unproved"]) as opened:
        scores = score(catalogue, opened, name, given)
    scores = corrected_run(catalogue, scores, where["labels"], where["matrix"], where["outcome"])
    for note in unfinished_notes(scores, option_words(where["store"])):
        echo(f"Note: {note}", err=True)
    if what == "estimates":
        say_own_options(Path(where["runs"]) / scores.run.name, given)
    data = _encoded(scores, cast("Format", kind), what, metrics, parse_assignments(groups))
    path = Path(out) if out else own_file(Path(f"{scores.run.name}-{what}.{ENDINGS[kind]}"))
    echo(f"Written: {write_bytes(data, path)}")


def _ensure_plain(metrics: Sequence[str], groups: Sequence[str], where: Mapping[str, Any]) -> None:
    """Refuse options that select or correct estimates: a card states them all, as they were measured."""
    if metrics or groups or any(where[option] for option in ("labels", "matrix", "outcome")):
        raise UsageError(
            "a card has all estimates of the run: it takes no --metric, --group, --labels, --matrix or --outcome.",
            code="options.conflict",
        )


def _encoded(scores: Scores, kind: Format, what: str, metrics: tuple[str, ...], group: Mapping[str, Any]) -> bytes:
    if what == "observations":
        if metrics or group:
            raise UsageError(
                "--metric and --group select estimates; they need --what estimates.", code="options.conflict"
            )
        frame = scores.frame
        return encode(frame.with_columns(unproved=pl.lit(value=True)) if scores.unproved else frame, kind)
    chosen = _selected([e for every in scores.estimates.values() for e in every], metrics, group)
    return latex_table(chosen).encode() if kind == "latex" else encode(estimates_frame(chosen), kind)


def _selected(every: Sequence[Estimate], metrics: Sequence[str], group: Mapping[str, Any]) -> list[Estimate]:
    """Return the estimates of these measures and groups.

    Raises:
        UnknownNameError: no estimate has such a factor.
        UsageError: there is none; the message has what there is.
    """
    named = [e for e in every if e.metric in metrics] if metrics else list(every)
    if not named:
        known = ", ".join(dict.fromkeys(e.metric for e in every)) or "none"
        raise UsageError(f"the run has no estimate of {', '.join(metrics)}. It has: {known}.", code="export.metric")
    factors = dict.fromkeys(name for e in named for name in e.group)
    for factor in group:
        if factor not in factors:
            raise UnknownNameError("factor of these estimates", factor, factors)
    chosen = [e for e in named if all(selects(level, factor, e) for factor, level in group.items())]
    if not chosen:
        levels = {factor: dict.fromkeys(label(e.group[factor]) for e in named if factor in e.group) for factor in group}
        told = "; ".join(f"{factor}: {', '.join(found)}" for factor, found in levels.items())
        raise UsageError(f"no estimate has all of these levels. There are {told}.", code="export.group")
    return chosen
