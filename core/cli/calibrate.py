"""`prejudge lab calibrate`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from time import perf_counter

import click
import msgspec

from ..catalogue.certificates import changed_since
from ..catalogue.golden import SUFFIX
from ..contracts.words import counted
from ..lab.calibration.campaign import Campaign, Done, Journal, pending
from ..lab.calibration.certify import (
    Plan,
    Recipe,
    Size,
    bound,
    certificate_of,
    check,
    conduct,
    plan_of,
    present_certificate,
    with_trained,
)
from ..lab.calibration.gallery import choose
from ..lab.calibration.golden_file import write as write_golden
from ..lab.calibration.numbers import (
    differing_numbers,
    differing_studies,
    filed_certificate,
    golden_path,
    note_version,
    present_golden,
    rewrite,
)
from ..lab.calibration.page import draw, page
from ..lab.calibration.real import conduct_real
from ..lab.calibration.summary import verdict
from ..report.export import write_bytes
from ..report.figures import export
from .outlet import echo
from .shared import data_option, read_assignments, registry_option, set_option, study_argument
from .table_options import table_options

SHOWN = 20
"""Differences that are printed; the others are counted."""
EVERY = 30.0
"""Seconds between two lines of progress."""


@click.command()
@study_argument
@click.option("--studies", default=1000, show_default=True, type=click.IntRange(1), help="Studies of each fair model.")
@click.option(
    "--planted", default=200, show_default=True, type=click.IntRange(0), help="Studies of each planted bias; 0: none."
)
@click.option(
    "--preferring",
    default=200,
    show_default=True,
    type=click.IntRange(2),
    help="Studies of each fair model that prefers levels of what a declared study samples.",
)
@click.option("--null", "nulls", multiple=True, metavar="NAME", help="Only this fair model of the gallery. Repeatable.")
@click.option("--planted-in", multiple=True, metavar="NAME", help="Plant biases in this fair model too. Repeatable.")
@click.option("--gallery", default=None, metavar="FILE", help="More fair models, as TOML.")
@click.option(
    "--by-command", default=20, show_default=True, type=click.IntRange(0), help="Studies to make by `prejudge run` too."
)
@click.option(
    "--real", default=200, show_default=True, type=click.IntRange(0), help="Studies of each trained model; 0: none."
)
@click.option(
    "--trained-only", is_flag=True, help="Add studies of trained models to the certificate that the study has."
)
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Processes at once.")
@click.option("--recorded", is_flag=True, help="Make no more studies: certify those that are recorded.")
@click.option(
    "--verify",
    is_flag=True,
    help="Make the spot studies of the certificate again, and its numbers from stored answers.",
)
@click.option("--numbers", is_flag=True, help="Write the golden file anew, and print every number that changes.")
@click.option(
    "--out", default="calibration", show_default=True, metavar="DIR", help="Folder of record and certificate."
)
@table_options
@data_option
@set_option
@registry_option
def calibrate(
    study: str,
    nulls: tuple[str, ...],
    gallery: str | None,
    by_command: int,
    recorded: bool,
    trained_only: bool,
    verify: bool,
    numbers: bool,
    out: str,
    data: str | None,
    assignments: tuple[str, ...],
    registry: str | None,
    **size: int | tuple[str, ...],
) -> None:
    """Run the study STUDY over models whose bias is known, and write its certificate.

    Every study that is done is recorded, so that the command can be stopped and given again.
    """
    every = Recipe.load(study, read_assignments(assignments, data), registry, gallery)
    recipe = msgspec.structs.replace(every, gallery=choose(every.gallery, nulls))
    if verify or numbers:
        _verify(every, nulls) if verify else _rewrite(every)
        return
    campaign, wanted = recipe.campaign(), msgspec.convert(size, Size)
    golden = present_golden(recipe)
    before = present_certificate(campaign, golden.head) if trained_only else None
    name, folder = campaign.study.name, Path(out)
    journal = Journal(folder / f"{name}.jsonl", campaign.opening(bound(campaign, golden.head)))
    if before is None:
        plan = plan_of(campaign, journal, wanted)
        if not recorded:
            _make(recipe, campaign, journal, plan, wanted.jobs)
            _train(campaign, journal, wanted.real)
        checked = check(recipe, campaign, min(by_command, wanted.studies))
        certificate = certificate_of(campaign, journal, plan, golden.head, checked, wanted.real)
    else:
        if not recorded:
            _train(campaign, journal, wanted.real)
        certificate = with_trained(before, campaign, journal, wanted.real)
    files = {
        "json": msgspec.json.format(msgspec.json.encode(certificate), indent=1),
        "svg": export(draw(certificate), "svg"),
        "md": page(certificate, f"{name}.svg").encode(),
    }
    for ending, content in files.items():
        write_bytes(content, folder / f"{name}.{ending}")
    write_golden(golden, folder / f"{name}{SUFFIX}")
    echo(verdict(certificate))
    echo(f"Written: {folder / name}.json, .md, .svg and {SUFFIX}")


def _verify(recipe: Recipe, nulls: Sequence[str]) -> None:
    filed = filed_certificate(recipe)
    differing = list(map(str, differing_numbers(recipe, filed.golden)))
    _list(differing, "differing numbers, of the same responses")
    studies = list(differing_studies(recipe, filed, nulls))
    spots = [f"{name}: {why}" for name, why in studies if why]
    _list(spots, "differing spot studies")
    if not differing:
        note_version(filed.golden)
    changed = changed_since(filed_certificate(recipe))
    if changed:
        echo(f"The certificate does not hold: {changed}.")
    elif not differing and not spots:
        count = len(studies)
        echo(f"The certificate holds: {count:,} spot studies and every number of the golden file are the same.")
    if changed or differing or spots:
        raise click.exceptions.Exit(1)


def _rewrite(recipe: Recipe) -> None:
    path = golden_path(recipe)
    changes = list(map(str, rewrite(recipe, path)))
    for change in changes:
        echo(change)
    if changes:
        echo(f"Written: {path}. A certificate of the numbers before does not hold; make it again.")
    else:
        echo("No number has changed.")


def _list(lines: Sequence[str], of: str) -> None:
    if lines:
        echo(f"{len(lines):,} {of}:")
    for line in lines[:SHOWN]:
        echo(f"  {line}")
    if len(lines) > SHOWN:
        echo(f"  and {len(lines) - SHOWN:,} more")


def _make(recipe: Recipe, campaign: Campaign, journal: Journal, plan: Plan, jobs: int) -> None:
    left = len(list(pending(journal, plan.cells)))
    hours = left * plan.seconds / 3600
    each = counted(plan.requests, "request")
    echo(f"{left:,} studies of {each} each, about {hours:.2g} hours of processor time.", err=True)
    _tell(conduct(recipe, campaign, journal, plan, jobs), f"{left:,} studies")


def _train(campaign: Campaign, journal: Journal, studies: int) -> None:
    most = studies * len(campaign.entry.calibration.real)
    _tell(conduct_real(campaign, journal, studies), f"{most:,} studies of trained models at most")


def _tell(made: Iterable[Done], of: str) -> None:
    """Wait for studies that are made, and say from time to time how many are."""
    start = told = perf_counter()
    for number, _ in enumerate(made, 1):
        if perf_counter() - told > EVERY:
            told = perf_counter()
            echo(f"{number:,} of {of}, {told - start:,.0f} s", err=True)
