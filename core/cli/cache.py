"""`prejudge cache stats|verify|explain`."""

from __future__ import annotations

import json

import click
from rich.table import Table

from ..explain import Parts, differences, find_parts, nearest
from ..store import Store, exchanges_by_model, statistics, verify_keys
from .results import terminal
from .shared import store_option


@click.group()
def cache() -> None:
    """Look into the store."""


@cache.command()
@store_option
def stats(store: str) -> None:
    """Show what the store holds: rows per table, exchanges per model, operation and status."""
    with Store(store, writable=False) as opened:
        counts, models = statistics(opened), exchanges_by_model(opened)
    console = terminal()
    console.print(", ".join(f"{name}: {count:,}" for name, count in counts.items()))
    table = Table("model", "adapter", "digest", "operation", "status")
    table.add_column("exchanges", justify="right")
    for identity, operation, status, count in models:
        parts = json.loads(identity)
        table.add_row(parts["model"], parts["adapter"], parts["digest"][:12], operation, status, f"{count:,}")
    console.print(table)


@cache.command()
@store_option
def verify(store: str) -> int:
    """Re-derive every key from its parts. Exit code 1 if one differs."""
    with Store(store, writable=False) as opened:
        count = statistics(opened)["Exchange"]
        wrong = list(verify_keys(opened))
    for mismatch in wrong[:20]:
        click.echo(f"exchange {mismatch.exchange_id}: {mismatch.problem}" if mismatch.exchange_id else mismatch.problem)
    click.echo(f"{count:,} exchanges checked, {len(wrong):,} wrong.")
    return 1 if wrong else 0


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
