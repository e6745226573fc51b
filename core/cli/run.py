"""`prejudge run` and `prejudge resume`."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from ..errors import UsageError
from ..manifest import Manifest, digest_files
from ..output import ensure_writable
from ..runs import RunOptions, execute
from ..scheduler import Mode
from ..store import Store, get_run
from ..store.urls import hide_password
from ..study import Catalogue, Study
from .progress import TerminalProgress
from .results import finish
from .shared import (
    data_option,
    model_option,
    quiet_option,
    read_assignments,
    read_models,
    registry_option,
    runs_option,
    set_option,
    store_option,
)


@click.command()
@click.argument("study")
@model_option
@data_option
@set_option
@click.option(
    "--mode",
    type=click.Choice(["use", "replay", "refresh"]),
    default="use",
    show_default=True,
    help="use: ask what the store does not know; replay: ask nothing; refresh: ask all anew.",
)
@store_option
@runs_option
@registry_option
@quiet_option
def run(study: str, models: tuple[str, ...], data: str | None, assignments: tuple[str, ...], **where: Any) -> int:
    """Run STUDY on a model, score it and write its report.

    What the store already answers is not asked again. Ctrl-C keeps what was answered.
    """
    catalogue = Catalogue.load(where["registry"])
    chosen = catalogue.study(study, read_models(models), read_assignments(assignments, data))
    options = RunOptions(
        mode=cast("Mode", where["mode"]), command=hide_password(shlex.join(["prejudge", *sys.argv[1:]]))
    )
    return perform(catalogue, chosen, options, where)


@click.command()
@click.argument("name", default="latest")
@store_option
@runs_option
@registry_option
@quiet_option
def resume(name: str, **where: Any) -> int:
    """Take up the run NAME where it was interrupted, or the latest run."""
    catalogue = Catalogue.load(where["registry"])
    with Store(where["store"], writable=False) as store:
        found = get_run(store, name)
    manifest = msgspec.json.decode(found.manifest, type=Manifest)
    ensure_same_data(manifest)
    return perform(catalogue, manifest.study, RunOptions(name=found.name, command=manifest.command), where)


def ensure_same_data(manifest: Manifest) -> None:
    """Refuse to resume a run whose data file is not what it was: its answers would be to other questions.

    Raises:
        UsageError: naming the file.
    """
    now = digest_files(manifest.study.options)
    for path, digest in manifest.data.items():
        if now.get(path) != digest:
            what = "is not there any more" if path not in now else "changed since"
            raise UsageError(f"run {manifest.run} cannot be resumed: its data file {path!r} {what}. Start a new run.")


def perform(catalogue: Catalogue, study: Study, options: RunOptions, where: dict[str, Any]) -> int:
    """Run a study with its progress on the terminal, show what came out, and return the exit code.

    Raises:
        UsageError: it was interrupted; the message has the command that resumes it.
    """
    ensure_writable(Path(where["runs"]))
    with Store(where["store"]) as store:
        progress = TerminalProgress(quiet=where["quiet"])
        try:
            name = asyncio.run(execute(catalogue, study, store, options, progress))
        except KeyboardInterrupt:
            raise UsageError(_interrupted(progress.run, where["store"])) from None
        finally:
            progress.close()
        return finish(catalogue, store, name, where["runs"])


def _interrupted(run: str | None, store: str) -> str:
    if run is None:
        return "interrupted before anything was asked."
    place = "" if store == "prejudge.db" else f" --store {shlex.quote(hide_password(store))}"
    return f"interrupted. What was answered is kept. Resume with: prejudge resume {run}{place}"
