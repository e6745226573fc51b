"""`prejudge cache`: commands that inspect, check and prune the store."""

from __future__ import annotations

import hashlib
import json

import click
from rich.table import Table

from ..store import Store, exchanges_by_model, get_run, statistics
from ..store.checks import Checks, secrets_in
from ..store.explain import Parts, differences, find_parts, nearest
from ..store.prune import PruneOptions, prune, vacuum, would_go
from .bundles import export, import_, merge_
from .completing import complete_run
from .outlet import echo
from .shared import ensure_there, store_option
from .terminal import terminal

SHOWN = 20
"""Number of problems that `verify` lists; the rest are counted."""


@click.group()
def cache() -> None:
    """Inspect and check the store, and export, import, merge or remove runs."""


for command in (export, import_, merge_):
    cache.add_command(command)


@cache.command()
@store_option
def stats(store: str) -> None:
    """Count the rows of each table, and the exchanges by model, operation and status."""
    with Store(store, writable=False) as opened:
        counts, models = statistics(opened), exchanges_by_model(opened)
    console = terminal()
    console.print(", ".join(f"{name}: {count:,}" for name, count in counts.items()))
    table = Table("model", "adapter", "identity", "operation", "status")
    table.add_column("exchanges", justify="right")
    for identity, operation, status, count in models:
        parts = json.loads(identity)
        # Two settings of one model have the same digest of the weights, so the settings are shown too.
        digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
        table.add_row(parts["model"], parts["adapter"], digest, operation, status, f"{count:,}")
    console.print(table)


@cache.command()
@store_option
def verify(store: str) -> int:
    """Check that the store is consistent. Exit code 1 if it is not.

    Derives every key again, hashes every image and shared text, and checks that every trial points to an exchange with
    its key. It cannot detect a changed response; for that, compare the sha256 of an exported bundle.
    """
    wrong = 0
    with Store(store, writable=False) as opened:
        checks = Checks(opened)
        for wrong, problem in enumerate(checks.problems(), start=1):
            if wrong <= SHOWN:
                echo(f"{problem.where}: {problem.problem}")
        held = secrets_in(opened)
    if wrong > SHOWN:
        echo(f"... and {wrong - SHOWN:,} more.")
    counts = checks.counts
    others = [f"{getattr(counts, name):,} {name}" for name in ("models", "images", "parts", "trials")]
    echo(f"{counts.exchanges:,} exchanges checked, {wrong:,} problems found. Also checked: {', '.join(others)}.")
    if counts.absent:
        echo(f"Note: {counts.absent:,} images of exchanges are not in the store.")
    for note in held:
        echo(f"Note: {note}")
    return 1 if wrong else 0


@cache.command("prune")
@click.option("--run", "name", required=True, metavar="NAME", shell_complete=complete_run, help="The run to remove.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--unused", is_flag=True, help="Also remove exchanges that no run uses.")
@click.option("--killed", is_flag=True, help="Treat runs marked as running as killed.")
@click.option("--vacuum", "shrink", is_flag=True, help="Reduce the size of a SQLite file afterwards.")
@store_option
def prune_(name: str, store: str, yes: bool, shrink: bool, **options: bool) -> None:
    """Remove a run, with the exchanges, images and shared texts that no other run uses."""
    ensure_there(store)
    with Store(store) as opened:
        run = get_run(opened, name)
        going = would_go(opened, run, PruneOptions(**options))
        what = [f"{getattr(going, name):,} {name}" for name in ("trials", "exchanges", "failures", "images", "parts")]
        removes = "Removing" if yes else "This would remove"
        echo(f"{removes} the run {run.name} with {', '.join(what)}: {going.size:,} bytes.")
        if not yes:
            click.confirm("Removed answers can be restored only by asking the model again. Remove them?", abort=True)
        prune(opened, run, PruneOptions(**options))
        if shrink:
            vacuum(opened)
    echo("Removed.")


@cache.command()
@click.argument("first")
@click.argument("second", required=False)
@store_option
def explain(first: str, second: str | None, store: str) -> None:
    """Show the parts of the key FIRST, and how they differ from SECOND or from the most similar stored key.

    Give a key in hexadecimal (the first digits are enough), or as RUN/TRIAL, where TRIAL is a value of the column
    `trial` in observations.parquet.
    """
    with Store(store, writable=False) as opened:
        one = find_parts(opened, first)
        two = find_parts(opened, second) if second is not None else nearest(opened, one)
    _show(one)
    if two is None:
        echo("The store has no other key to compare with.")
        return
    found = differences(one, two)
    echo(f"\n{'Most similar' if second is None else 'Second'} key: {two.key.hex()}")
    if not found:
        echo("The keys are equal: the same request to the same model.")
    for place, left, right in found:
        echo(f"  {place}: {left!r} | {right!r}")


def _show(parts: Parts) -> None:
    echo(f"Key: {parts.key.hex()}  (sha256 of key version, model digest, request)")
    for name, value in (("model", parts.identity), ("request", parts.request), ("response", parts.response)):
        echo(f"{name}: {json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)}")
    echo(f"status: {parts.status}")
