"""`prejudge study associations`: words that a run associates with a descriptor more often than expected, with examples.

Also `prejudge study levels`: associations that a judge rated as annotation sheets, and what people wrote in these.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import polars as pl
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ... import Settings, exchanges, observe, write_table
from ...core.cli.console import (
    complete_run,
    echo,
    one_line,
    registry_option,
    run_argument,
    store_option,
    terminal,
    write_new,
)
from ...core.contracts.errors import UsageError
from ...core.contracts.words import fixed, number, p_value
from ...core.statistics.ranks import agreement, rating_table
from ...core.statistics.resampling import Resampling
from ...core.tables import csv_text
from .compared import atlas, differing, shared_by
from .discovered import ALL, Discovered, discover
from .documented import mark_documented
from .overlap import adjusted
from .people import RATED, SHEET, read_levels, rows_to_rate
from .salience import METHODS, Reading
from .terms import CELL, PAIR, PLACE


@click.command()
@click.argument("runs", nargs=-1, shell_complete=complete_run)
@click.option(
    "--descriptor", "descriptors", multiple=True, help="Show the associations of this descriptor. Repeatable."
)
@click.option("--setting", default=None, help="Show only this setting.")
@click.option(
    "--method",
    type=click.Choice([*METHODS, ALL]),
    default="exact",
    show_default=True,
    help="The method that selects associations, or all.",
)
@click.option("--level", default=0.05, show_default=True, help="Significance level of the method.")
@click.option(
    "--keep",
    type=click.Choice(["within", "above"]),
    default="within",
    show_default=True,
    help="For tf-idf: keep scores within one standard deviation of the mean, as in the paper, or above it.",
)
@click.option("--documented", default=None, metavar="FILE", help="CSV of known associations; the others are new.")
@click.option("--examples", default=1, show_default=True, help="Number of answers to show for each association.")
@click.option("--most", default=20, show_default=True, help="Maximum number of associations to show for each run.")
@click.option(
    "--export", default=None, metavar="FILE", help="Write the associations to a .parquet, .csv or .json file."
)
@click.option(
    "--atlas",
    default=None,
    metavar="FILE",
    help="Write a table of descriptors and words by run, modality and setting to a .parquet, .csv or .json file.",
)
@store_option
@registry_option
def associations(runs: tuple[str, ...], **given: Any) -> None:
    """Show the associations that the runs RUNS (default: the latest) of a study dora-* found.

    Without --descriptor: their number by setting and method, and the associations that several runs have in common.
    Nothing is hidden; the words may be offensive.
    """
    if not 0 < given["level"] < 1:
        raise UsageError(f"--level is {given['level']}. Give a number between 0 and 1.", code="options.value")
    settings = Settings(store=given["store"], registry=given["registry"])
    found = [_discovered(name, settings, given) for name in runs or ("latest",)]
    kept = [_chosen(one, given) for one in found]
    if given["export"]:
        _export(found, kept, Path(given["export"]))
    elif given["atlas"]:
        frame = atlas(found, given["method"])
        echo(f"Written: {write_table(frame, Path(given['atlas']))} ({frame.height:,} associations)")
    elif given["descriptors"]:
        for one, pairs in zip(found, kept, strict=True):
            _show_pairs(one, pairs, settings, given)
    else:
        _show_counts(found)
        _show_shared(found, given["method"])
        _show_differing(found, given)


def _discovered(name: str, settings: Settings, given: dict[str, Any]) -> Discovered:
    seen = observe(name, settings)
    model = seen.study.roles.get("subject", "")
    return discover(seen.run, model, seen.stacked, given["level"], Reading(keep=given["keep"]))


def _chosen(found: Discovered, given: dict[str, Any]) -> pl.DataFrame:
    kept = found.kept(given["method"], given["descriptors"], given["setting"])
    return mark_documented(kept, given["documented"]) if given["documented"] else kept


def _export(found: Sequence[Discovered], kept: Sequence[pl.DataFrame], path: Path) -> None:
    both = zip(found, kept, strict=True)
    named = [pairs.with_columns(run=pl.lit(one.run), model=pl.lit(one.model)) for one, pairs in both]
    frame = pl.concat(named).with_columns(keys=pl.col("keys").list.eval(pl.element().bin.encode("hex")).list.join(" "))
    echo(f"Written: {write_table(frame, path)} ({frame.height:,} associations)")


def _show_counts(found: Sequence[Discovered]) -> None:
    """Print the paper's Table 4, with a column for each method."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, caption_justify="left")
    table.caption = (
        "exact: holds for other wordings where there are several; fisher: for these wordings; both, and log-odds, "
        "corrected over all pairs; in range, tf-idf: the paper's two filters (its Table 4)"
    )
    for column in ("run", *CELL):
        table.add_column(column)
    for column in ("mentions", "associations", "in range", *METHODS):
        table.add_column(column, justify="right")
    for one in found:
        for cell, part in one.pairs.group_by(*CELL, maintain_order=True):
            counts = [part["count"].sum(), part.height, part["in_range"].sum()]
            counts += [part[f"salient_{column}"].sum() for column in METHODS.values()]
            table.add_row(*map(one_line, (one.run, *cell)), *(f"{count:,}" for count in counts))
    terminal().print(table)


def _show_shared(found: Sequence[Discovered], method: str) -> None:
    if len(found) < 2:
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, caption_justify="left")
    table.caption = (
        f"kept by {method}; expected: with permuted descriptors; p: permutation test, adjusted over all rows"
    )
    for column in ("runs", *CELL):
        table.add_column(column)
    for column in ("first", "second", "shared", "Jaccard", "expected", "p"):
        table.add_column(column, justify="right")
    for place, one in enumerate(found, 1):
        terminal().print(one_line(f"{place}: {one.run}"))
    rows = [
        (f"{here} and {there}", cell, shared)
        for (here, first), (there, second) in combinations(enumerate(found, 1), 2)
        for cell, shared in shared_by(first, second, method)
    ]
    for (runs, cell, shared), p in zip(rows, adjusted([shared.p for _, _, shared in rows]), strict=True):
        counts = (shared.first, shared.second, shared.shared)
        figures = (number(shared.jaccard), number(shared.expected), p_value(p))
        table.add_row(*map(one_line, (runs, *cell)), *(f"{count:,}" for count in counts), *figures)
    terminal().print(table)


def _show_differing(found: Sequence[Discovered], given: dict[str, Any]) -> None:
    """Print which associations differ between runs that were asked about the same descriptors in the same settings."""
    for (here, first), (there, second) in combinations(enumerate(found, 1), 2):
        rows = differing(first, second)
        shown = rows.filter(pl.col("q") <= given["level"])
        if rows.is_empty():
            continue
        console = terminal()
        console.print(one_line(f"{here} and {there}: {shown.height:,} of {rows.height:,} associations differ"))
        table = Table(box=SIMPLE_HEAD, pad_edge=False, caption_justify="left")
        table.caption = (
            "answers with the word, of all of its letter; q: exact test, adjusted over all; these wordings only"
        )
        for column in (*CELL, "descriptor", "word"):
            table.add_column(column)
        for column in (f"answers in {here}", f"in {there}", "q"):
            table.add_column(column, justify="right")
        for row in shown.head(max(given["most"], 0)).iter_rows(named=True):
            answers = (f"{row[side]} of {row[f'of_{side}']}" for side in ("first", "second"))
            names = (one_line(row[name]) for name in (*CELL, "descriptor", "word"))
            table.add_row(*names, *answers, p_value(row["q"]))
        if shown.height:
            console.print(table)


def _show_pairs(found: Discovered, pairs: pl.DataFrame, settings: Settings, given: dict[str, Any]) -> None:
    console = terminal()
    shown = pairs.head(max(given["most"], 0))
    rest = f", the first {shown.height:,} shown" if shown.height < pairs.height else ""
    what = "associations" if given["method"] == ALL else f"associations kept by {given['method']}"
    console.print(one_line(f"{found.run}: {pairs.height:,} {what}{rest}"))
    if shown.is_empty():
        if given["method"] != ALL:
            console.print(f"--method {ALL} shows every association, whether any method keeps it or not.")
        return
    console.print(_table(shown))
    _show_examples(found, shown.with_columns(pl.col("keys").list.head(max(given["examples"], 0))), settings)


def _show_examples(found: Discovered, pairs: pl.DataFrame, settings: Settings) -> None:
    console = terminal()
    said = exchanges(found.run, [key for keys in pairs["keys"] for key in keys], settings)
    for row in pairs.iter_rows(named=True):
        for exchange in (said[key] for key in row["keys"] if key in said):
            console.print(one_line(f"{row['descriptor']} ↔ {row['said']} ({row['setting']})"), style="bold")
            for label, text in exchange:
                console.print(Text("  ") + one_line(f"{label}: {text}"), soft_wrap=True)


def _table(pairs: pl.DataFrame) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), caption_justify="left")
    table.caption = (
        "expected: answers, if word and descriptor were independent; q: p of the exact test, adjusted over all pairs; "
        "settings: in how many the exact test keeps it, of those that were asked"
    )
    for column in PAIR[1:]:
        table.add_column(column)
    for column in ("count", "expected", "q", "settings", "sentiment", "toxicity", "level"):
        table.add_column(column, justify="right", no_wrap=True)
    marked = "documented" in pairs.columns
    if marked:
        table.add_column("known")
    for row in pairs.iter_rows(named=True):
        figures = (number(row["expected"]), p_value(row["q_exact"]), f"{row['found_in']} of {row['asked_in']}")
        said = (row["sentiment"] or row["sentiment_status"], row["toxicity"] or row["toxicity_status"])
        known = [one_line(row["documented_by"] or "undocumented")] if marked else []
        table.add_row(
            *(one_line(row[name]) for name in (*PLACE[1:], "said")),
            str(row["count"]),
            *figures,
            *said,
            number(row["level"]),
            *known,
        )
    return table


@click.group()
def levels() -> None:
    """Let people rate associations that a judge rated, and correct the judge by them.

    First run a study dora-* with a judge, then `levels sheet`. When the sheets are completed, run `levels agree`, and
    then `prejudge score RUN --set dora-associations.human=levels.csv`.
    """


@levels.command()
@run_argument
@click.option("--rows", default=200, show_default=True, type=click.IntRange(min=1), help="Number of associations.")
@click.option("--out", default="sheet.csv", show_default=True, metavar="FILE", help="The file to write.")
@click.option("--seed", default=0, show_default=True, help="Seed of the draw and of the order of the rows.")
@store_option
@registry_option
def sheet(name: str, rows: int, out: str, seed: int, store: str, registry: str | None) -> None:
    """Draw associations that the judge of the run NAME (default: the latest) rated, by its level, as a sheet.

    Every annotator completes a copy: in the column `level` 1 (not at all biased), 2 (slightly), 3 (moderately), 4
    (highly) or 5 (extremely biased); empty where undecided. The sheet does not show the judge's levels.
    """
    drawn = rows_to_rate(observe(name, Settings(store=store, registry=registry)).stacked, rows, seed)
    write_new(csv_text(SHEET, drawn.with_columns(level=pl.lit("")).to_dicts()), out)
    echo(f"{drawn.height} associations. Give every annotator a copy, then: prejudge study levels agree COPY...")


@levels.command()
@click.argument("sheets", nargs=-1, required=True, metavar="SHEET...")
@click.option("--out", default="levels.csv", show_default=True, metavar="FILE", help="The file of ratings to write.")
def agree(sheets: tuple[str, ...], out: str) -> None:
    """Report the agreement of annotators, and write all their ratings to one file.

    Each SHEET is the copy of one annotator; the name of the file, or the column `annotator`, names the annotator.
    """
    ratings = read_levels(sheets)
    named = ratings.with_columns(unit=pl.concat_str("name", "lemma", separator=": "))
    descriptors = [unit.split(": ")[0] for unit in sorted(set(named["unit"]))]
    plan = Resampling()
    alpha = agreement(rating_table(named, ("unit", "annotator", "level")), "ordinal", plan, descriptors)
    for line in alpha.lines("associations", plan.level):
        echo(line)
    rated = ratings.drop_nulls("level").group_by("annotator").agg(pl.col("level").mean(), pl.len()).sort("annotator")
    for annotator, mean, count in rated.iter_rows():
        echo(f"  {annotator}: mean level {fixed(mean, 2)} of {count}")
    write_new(csv_text(RATED, ratings.to_dicts()), out)
    echo(f"Then: prejudge score RUN --set dora-associations.human={out}")
