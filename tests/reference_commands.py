"""The pages of docs/reference on the command line: commands, their options, and their exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from prejudge.core.cli.exits import EXITS, exits_of
from prejudge.core.cli.main import cli, plugin_commands

from .reference_tables import WRITTEN, line, table

NAME = "prejudge"


def commands(group: click.Group = cli, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield each command with the words by which it is called, such as `cache verify`; a group before its own."""
    context = click.Context(group)
    for name in group.list_commands(context):
        if (found := group.get_command(context, name)) is None or found.hidden:
            continue
        yield f"{path}{name}", found
        if isinstance(found, click.Group):
            yield from commands(found, f"{path}{name} ")


def commands_page() -> str:
    """Return the page of all commands."""
    lines = [
        "# Commands",
        "",
        WRITTEN,
        "",
        "Every command with its options, as `--help` shows them. Those of studies come last. [The shell](../shell.md): "
        "completion, logging, variables. Exit code 0 is *done*, 2 is *an error that you can fix*; others are named "
        "with the command ([all exit codes](exit-codes.md)).",
    ]
    for name, command in (("", cli), *commands()):
        lines += ["", f"## `{f'{NAME} {name}'.strip()}`", "", *_section(name, command)]
        while not lines[-1]:
            lines.pop()
    return "\n".join(lines) + "\n"


def _section(name: str, command: click.Command) -> Iterator[str]:
    whole = f"{NAME} {name}".strip()
    context = click.Context(command, info_name=whole, **command.context_settings)
    yield from (f"Usage: `{' '.join([whole, *command.collect_usage_pieces(context)])}`", "")
    for part in re.split(r"\n\s*\n", (command.help or "").replace("\b", "").strip()):
        yield from (line(part), "")
    if name in plugin_commands():
        yield from ("A command of a study.", "")
    options = [option for option in command.get_params(context) if isinstance(option, click.Option)]
    records = [record for option in options if (record := option.get_help_record(context)) is not None]
    # `--help` stands once, with the first command.
    shown = [record for record in records if not name or "--help" not in record[0]]
    if shown:
        yield from table(("option", "meaning"), [(f"`{line(names)}`", line(told)) for names, told in shown])
        yield ""
    if codes := exits_of(name):
        yield from ("Exit codes:", "", *(f"- {code}: {meaning}" for code, meaning in codes.items()))


def exits_page() -> str:
    """Return the page of the exit codes."""
    lines = [
        "# Exit codes",
        "",
        WRITTEN,
        "",
        "Exit codes are part of the interface: scripts can rely on them. A change of a code is a breaking change.",
        "",
    ]
    rows = []
    for one in EXITS:
        by: dict[str, list[str]] = {}
        for command, meaning in one.commands.items():
            by.setdefault(meaning, []).append(f"`{command}`")
        told = "; ".join(f"{', '.join(names)}: {meaning}" for meaning, names in by.items())
        rows.append((str(one.code), one.meaning, told or "every command"))
    return "\n".join([*lines, *table(("code", "meaning", "from"), rows)]) + "\n"
