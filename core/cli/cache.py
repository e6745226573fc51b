"""`prejudge cache`: commands that inspect, check and prune the store."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack

import click
from rich.table import Table

from ..contracts.words import counted
from ..store import Store, exchanges_by_model, get_run, statistics
from ..store.batches import Batches
from ..store.checks import Checks, secrets_in
from ..store.exchange_checks import Problem
from ..store.explain import Parts, differences, find_parts, nearest
from ..store.prune import PruneOptions, prune, vacuum, would_go
from ..store.reading import model_names
from ..store.repair import repair
from ..store.unbundle import Bundle, is_bundle
from ..store.urls import option_words
from .batches import batches
from .bundles import export, import_, merge_
from .completing import complete_file, complete_run
from .heads import SHORTEST, Heads
from .outlet import echo
from .shared import ensure_there, processes_option, store_option
from .terminal import terminal

SHOWN = 1_000
"""Number of problems that `verify` lists; the rest are counted."""


@click.group()
def cache() -> None:
    """Inspect and check the store, and export, import, merge or remove runs."""


for command in (export, import_, merge_, batches):
    cache.add_command(command)


@cache.command()
@store_option
def stats(store: str) -> None:
    """Count the rows of each table, and the exchanges by model, operation and status."""
    with Store(store, writable=False) as opened:
        counts, models, named = statistics(opened), exchanges_by_model(opened), model_names(opened)
    console = terminal()
    console.print(", ".join(f"{name}: {count:,}" for name, count in counts.items()))
    table = Table("model", "adapter", "identity", "operation", "status")
    table.add_column("exchanges", justify="right")
    for identity, operation, status, count in models:
        try:
            parts = json.loads(identity)
            names = parts["model"] or ", ".join(named.get(identity, ())) or parts["digest"][:19], parts["adapter"]
        except (ValueError, TypeError, KeyError, RecursionError):
            names = "damaged", "damaged"  # `cache verify` names it
        # Two settings of one model have the same digest of the weights, so the settings are shown too.
        digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
        table.add_row(*names, digest, operation, status, f"{count:,}")
    console.print(table)


@cache.command()
@click.option(
    "--head",
    "kept",
    multiple=True,
    metavar="HEX",
    help="Check whether the store still contains this head, and those of the runs that asked its answers. Repeatable.",
)
@click.option(
    "--signed-by",
    "signers",
    default=None,
    metavar="FILE",
    shell_complete=complete_file,
    help="Check that the runs of --head, or else all, are signed by somebody in this file of allowed signers, as git "
    "has it.",
)
@processes_option
@store_option
def verify(store: str, kept: tuple[str, ...], signers: str | None, processes: int) -> int:
    """Check that everything in the store is as it was written. Exit code 1 if something is not.

    Derives every key, and the digest of every answer, trial, run and image, again, and names each damaged row. Whoever
    can write to the store can also make the digests anew: against that, compare a run's head (--head) with one that
    was kept elsewhere, such as in a paper, or have it signed (`prejudge run --sign`, --signed-by).
    """
    wrong = 0
    with Store(store, writable=False) as opened:
        checks = Checks(opened, processes)
        for wrong, problem in enumerate(checks.problems(), start=1):
            if wrong <= SHOWN:
                echo(_line(problem))
        held, heads = secrets_in(opened), Heads(checks)
        names = [name for head in kept for name in heads.named(head)]
        # A head that is not here has no run, and must not stand for all.
        signed = [] if signers is None or (kept and not names) else list(heads.signed(opened, names, signers))
    if wrong > SHOWN:
        echo(f"... and {wrong - SHOWN:,} more.")
    counts = checks.counts
    others = [counted(getattr(counts, f"{name}s"), name) for name in ("model", "image", "part", "trial")]
    checked, problems = counted(counts.exchanges, "exchange"), counted(wrong, "problem")
    echo(f"{checked} checked, {problems} found. Also checked: {', '.join(others)}.")
    if counts.absent:
        echo(f"Note: {counts.absent:,} images of exchanges are not in the store.")
    for note in held:
        echo(f"Note: {note}")
    if wrong:
        echo(f"Repair what a bundle or another store still has: prejudge cache repair --from FILE{option_words(store)}")
    failed = [head for head in kept if not _say_head(head, heads, damaged=wrong > 0)]
    for finding in signed:
        echo(finding.line)
    return 1 if wrong or failed or any(finding.failed for finding in signed) else 0


def _line(problem: Problem) -> str:
    key = f"; key {problem.key[:12]}" if problem.key else ""
    return f"{problem.where}: {problem.problem} [{problem.table}.{problem.field}{key}]"


def _say_head(head: str, heads: Heads, *, damaged: bool) -> bool:
    """Say which runs have a head, and which asked their answers; return whether all are here as they were."""
    names = heads.named(head)
    found = f"run {', '.join(names)}" if names else "no sound run of this store has it"
    doubt = "; its trials are sound, but what is named above may be an answer of it" if names and damaged else ""
    echo(f"Head {head.strip().lower()[:SHORTEST]}: {found}{doubt}")
    findings = [finding for name in names for finding in heads.followed(name)]
    for finding in findings:
        echo(f"  {finding.line}")
    return bool(names) and not any(finding.failed for finding in findings)


@cache.command("repair")
@click.option("--from", "sources", multiple=True, metavar="BUNDLE|STORE", help="Where to take rows from. Repeatable.")
@store_option
def repair_(sources: tuple[str, ...], store: str) -> int:
    """Restore damaged rows from a bundle or another store, as far as they verify there. Exit code 1 if some remain.

    What remains is marked, so that every report of a run that uses it says so.
    """
    ensure_there(store)
    with ExitStack() as stack:
        others = [_source(source, stack) for source in sources]
        done = repair(stack.enter_context(Store(store)), others)
    for problem in done.left[:SHOWN]:
        echo(_line(problem))
    left = len(done.left)
    echo(f"{counted(done.found, 'problem')} found, {left:,} remain" + (", and are marked." if left else "."))
    return 1 if left else 0


def _source(source: str, stack: ExitStack) -> Store:
    """Open a store, or the one in a bundle."""
    if is_bundle(source):
        return stack.enter_context(Bundle(source)).store
    return stack.enter_context(Store(source, writable=False))


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
        asked_in = Batches(opened).of_exchange(one.key)
    _show(one)
    for batch, state in asked_in:
        echo(f"batch: {batch.provider_id or batch.mark} ({batch.outcome or batch.state}), there {state}")
    if two is None:
        echo("The store has no other key to compare with.")
        return
    found = differences(one, two)
    echo("", f"{'Most similar' if second is None else 'Second'} key: {two.key.hex()}")
    if not found:
        echo("The keys are equal: the same request to the same model.")
    for place, left, right in found:
        echo(f"  {place}: {left!r} | {right!r}")


def _show(parts: Parts) -> None:
    echo(f"Key: {parts.key.hex()}  (sha256 of key version, model digest, request)")
    for name, value in (("model", parts.identity), ("request", parts.request), ("response", parts.response)):
        echo(*f"{name}: {json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)}".split("\n"))
    echo(f"status: {parts.status}")
