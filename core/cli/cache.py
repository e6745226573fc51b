"""`prejudge cache`: looking into the store, checking it, removing from it."""

from __future__ import annotations

import hashlib
import json

import click
from rich.table import Table

from ..store import Store, exchanges_by_model, get_run, statistics
from ..store.checks import Checks
from ..store.explain import Parts, differences, find_parts, nearest
from ..store.prune import PruneOptions, prune, vacuum, would_go
from .bundles import export, import_, merge_
from .completing import complete_run
from .shared import ensure_there, store_option
from .terminal import terminal

SHOWN = 20
"""Faults that `verify` names; the rest are counted."""


@click.group()
def cache() -> None:
    """Look into the store, check it, and carry evidence to and from it."""


for command in (export, import_, merge_):
    cache.add_command(command)


@cache.command()
@store_option
def stats(store: str) -> None:
    """Show what the store holds: rows per table, exchanges per model, operation and status."""
    with Store(store, writable=False) as opened:
        counts, models = statistics(opened), exchanges_by_model(opened)
    console = terminal()
    console.print(", ".join(f"{name}: {count:,}" for name, count in counts.items()))
    table = Table("model", "adapter", "identity", "operation", "status")
    table.add_column("exchanges", justify="right")
    for identity, operation, status, count in models:
        parts = json.loads(identity)
        # The digest of the weights would not tell two settings of one model apart.
        digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
        table.add_row(parts["model"], parts["adapter"], digest, operation, status, f"{count:,}")
    console.print(table)


@cache.command()
@store_option
def verify(store: str) -> int:
    """Check that everything in the store hangs together. Exit code 1 if something does not.

    Every key is derived again, every image and repeated text is hashed, every trial must point to an exchange of its
    key. Nothing here can tell a response that was changed: keep a bundle's sha256 for that.
    """
    wrong = 0
    with Store(store, writable=False) as opened:
        checks = Checks(opened)
        for wrong, problem in enumerate(checks.problems(), start=1):
            if wrong <= SHOWN:
                click.echo(f"{problem.where}: {problem.problem}")
    if wrong > SHOWN:
        click.echo(f"... and {wrong - SHOWN:,} more.")
    counts = checks.counts
    others = [f"{getattr(counts, name):,} {name}" for name in ("models", "images", "parts", "trials")]
    click.echo(f"{counts.exchanges:,} exchanges checked, {wrong:,} wrong. Checked too: {', '.join(others)}.")
    if counts.absent:
        click.echo(f"Note: {counts.absent:,} images that exchanges name are not kept here.")
    return 1 if wrong else 0


@cache.command("prune")
@click.option("--run", "name", required=True, metavar="NAME", shell_complete=complete_run, help="The run to remove.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--unused", is_flag=True, help="Remove exchanges that no run uses at all, too.")
@click.option("--killed", is_flag=True, help="Runs that say they are running are not: their processes were killed.")
@click.option("--vacuum", "shrink", is_flag=True, help="Make the file smaller afterwards.")
@store_option
def prune_(name: str, store: str, yes: bool, shrink: bool, **options: bool) -> None:
    """Remove a run and what only it used: exchanges, images, repeated texts. Never what another run uses."""
    ensure_there(store)
    with Store(store) as opened:
        run = get_run(opened, name)
        going = would_go(opened, run, PruneOptions(**options))
        what = [f"{getattr(going, name):,} {name}" for name in ("trials", "exchanges", "failures", "images", "parts")]
        goes = "goes" if yes else "would go"
        click.echo(f"Run {run.name} {goes} with {', '.join(what)}: {going.size:,} bytes.")
        if not yes:
            click.confirm("Answers that go cannot be had again without asking. Remove them?", abort=True)
        prune(opened, run, PruneOptions(**options))
        if shrink:
            vacuum(opened)
    click.echo("Removed.")


@cache.command()
@click.argument("first")
@click.argument("second", required=False)
@store_option
def explain(first: str, second: str | None, store: str) -> None:
    """Show what the key FIRST was made from, and where it differs from SECOND or from the nearest stored key.

    A key is given in hexadecimal (its first digits are enough), or as RUN/TRIAL, where TRIAL is as in the column
    `trial` of observations.parquet.
    """
    with Store(store, writable=False) as opened:
        one = find_parts(opened, first)
        two = find_parts(opened, second) if second is not None else nearest(opened, one)
    _show(one)
    if two is None:
        click.echo("There is no other key to compare with.")
        return
    found = differences(one, two)
    click.echo(f"\n{'Nearest' if second is None else 'Second'} key: {two.key.hex()}")
    if not found:
        click.echo("The keys are equal: one request to one model.")
    for place, left, right in found:
        click.echo(f"  {place}: {left!r} | {right!r}")


def _show(parts: Parts) -> None:
    click.echo(f"Key: {parts.key.hex()}  (sha256 of key version, model digest, request)")
    for name, value in (("model", parts.identity), ("request", parts.request), ("response", parts.response)):
        click.echo(f"{name}: {json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)}")
    click.echo(f"status: {parts.status}")
