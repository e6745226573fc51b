"""The pages of docs/reference on the command line: commands, their options, and their exit codes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import click

from prejudge.core.cli.exits import EXITS, exits_of
from prejudge.core.cli.main import cli, plugin_commands

from .reference_tables import WRITTEN, line, table

NAME = "prejudge"
SHARED = 3
"""Commands from which on an option that they have in the same words stands once, at the end."""
COMMON = "Options of several commands"
Record = tuple[str, str]


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
        "Every command with its options, as `--help` shows them. [The shell](../shell.md): "
        "completion, logging, variables. Exit code 0 is *done*, 2 is *an error that you can fix*; others are named "
        "with the command ([all exit codes](exit-codes.md)).",
    ]
    every = [("", cli), *commands()]
    seen = Counter(record for _, command in every for record in _options(command))
    shared = {record for record, times in seen.items() if times >= SHARED and "--help" not in record[0]}
    for name, command in every:
        lines += ["", f"## `{f'{NAME} {name}'.strip()}`", "", *_section(name, command, shared)]
        while not lines[-1]:
            lines.pop()
    lines += ["", f"## {COMMON}", "", *_options_table(record for record in seen if record in shared)]
    return "\n".join(lines) + "\n"


def _options(command: click.Command) -> list[Record]:
    """Return the options of a command and their meanings, as `--help` shows them."""
    context = click.Context(command, **command.context_settings)
    options = [option for option in command.get_params(context) if isinstance(option, click.Option)]
    return [record for option in options if (record := option.get_help_record(context)) is not None]


def _options_table(records: Iterable[Record]) -> Iterator[str]:
    return table(("option", "meaning"), [(f"`{line(names)}`", line(told)) for names, told in records])


def _section(name: str, command: click.Command, shared: set[Record]) -> Iterator[str]:
    whole = f"{NAME} {name}".strip()
    context = click.Context(command, info_name=whole, **command.context_settings)
    yield from (f"Usage: `{' '.join([whole, *command.collect_usage_pieces(context)])}`", "")
    for part in re.split(r"\n\s*\n", (command.help or "").replace("\b", "").strip()):
        yield from (line(part), "")
    if name.removeprefix("study ") in plugin_commands():
        yield from ("A command of a study.", "")
    # `--help` stands once, with the first command.
    records = [record for record in _options(command) if not name or "--help" not in record[0]]
    if own := [record for record in records if record not in shared]:
        yield from _options_table(own)
        yield ""
    if common := [f"`{names.split(' ')[0].rstrip(',')}`" for names, told in records if (names, told) in shared]:
        link = COMMON.lower().replace(" ", "-")
        yield from (f"{'Also' if own else 'Options:'} {', '.join(common)}: [meaning](#{link}).", "")
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
