"""`prejudge trust`."""

from __future__ import annotations

from pathlib import Path

import click

from ..catalogue.registry import FILE_NAME
from ..catalogue.trust import is_trusted, read_candidate, revoke, trust, trusted_files, wants_of
from .completing import complete_file
from .outlet import echo


@click.command("trust")
@click.argument("file", default=FILE_NAME, shell_complete=complete_file)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--revoke", "revoked", is_flag=True, help="Trust the file no longer.")
@click.option("--list", "listed", is_flag=True, help="List the trusted files.")
def trust_(file: str, yes: bool, revoked: bool, listed: bool) -> None:
    """Show what a registry FILE wants, and trust it.

    Commands read the registry.toml of the working directory by themselves. It may add models and studies under new
    names. Unless you trust it, it may not run code, use a key, ask another machine, replace a built-in name, or read a
    file outside of its directory. Trust is for this file as it is now: after a change, you are asked again.
    """
    if listed:
        for path, sha256 in sorted(trusted_files().items()):
            echo(f"{path} (sha256 {sha256[:12]})")
        return
    if revoked:
        echo(f"{file} is no longer trusted." if revoke(Path(file)) else f"{file} was not trusted.")
        return
    candidate = read_candidate(Path(file))
    echo(f"{candidate.path} (sha256 {candidate.sha256[:12]})")
    if is_trusted(candidate):
        echo("This file is trusted. To revoke that: prejudge trust --revoke")
        return
    if not (wants := wants_of(candidate)):
        echo("It needs no trust: it only adds models and studies that run no code and ask no other machine.")
        return
    for want in wants:
        echo(f"- {want}")
    if not yes:
        click.confirm("Trust this file as it is now?", abort=True)
    trust(candidate)
    echo("Trusted. To revoke that: prejudge trust --revoke")
