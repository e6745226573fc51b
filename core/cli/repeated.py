"""Words of a command line that click would misread: an option that is repeated, and `latest STUDY`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..contracts.errors import UsageError

RUN_ARGUMENTS = ("name", "run")
"""Names of the argument of a command that takes one run."""


def joined_latest(command: click.Command, args: Sequence[str]) -> list[str]:
    """Return the words with `latest STUDY` as one of them, where the command takes one run.

    Several runs are separate words, so that `compare latest RUN` stays two; there quotes join them.
    """
    words = list(args)
    if isinstance(command, click.Group):
        below = command.commands.get(words[0]) if words else None
        return words if below is None else [words[0], *joined_latest(below, words[1:])]
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    if [param.name in RUN_ARGUMENTS and param.nargs == 1 for param in arguments] == [True] and "latest" in words:
        index = words.index("latest")
        if words[index + 1 :] and not words[index + 1].startswith("-"):
            words[index : index + 2] = [" ".join(words[index : index + 2])]
    return words


def ensure_single(command: click.Command, args: Sequence[str], parent: click.Context) -> None:
    """Refuse a command line that gives an option of a single value more than once.

    Args:
        command: the command that is called, built in or of a plugin; the commands below a group are looked at too.
        args: the words behind its name.
        parent: the context of the group that the command belongs to.

    Raises:
        UsageError: naming the option, with the code `options.duplicate`.
    """
    context = click.Context(command, info_name=command.name, parent=parent, resilient_parsing=True)
    context.allow_interspersed_args = command.allow_interspersed_args
    context.ignore_unknown_options = command.ignore_unknown_options
    try:
        _, remaining, order = command.make_parser(context).parse_args(list(args))
    except click.UsageError:
        return  # the command itself reports it
    seen: set[str] = set()
    for option in order:
        if not isinstance(option, click.Option) or not _is_single(option):
            continue
        if option.name in seen:
            flag = max(option.opts, key=len)
            raise UsageError(
                f"{flag} is given more than once, and takes one value. Give it once.",
                code="options.duplicate",
                option=flag,
            )
        seen.add(str(option.name))
    if isinstance(command, click.Group) and remaining:
        below = command.get_command(context, remaining[0])
        if below is not None:
            ensure_single(below, remaining[1:], context)


def _is_single(option: click.Option) -> bool:
    """Return whether a second value would replace the first; a plain flag says the same twice."""
    if option.multiple or option.count:
        return False
    return not option.is_flag or bool(option.secondary_opts) or not option.is_bool_flag
