"""A command."""

import click

from .probe import people as everybody


@click.command("sample-people")
def people():
    """List who is greeted."""
    for name, group in everybody():
        click.echo(f"{name} ({group})")
