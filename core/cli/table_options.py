"""Options of the commands that read a file of a user: how it is to be understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

import click

from ..tables.faults import BadRows

F = TypeVar("F", bound=Callable[..., Any])

BAD_ROWS_HELP = "Rows of the file that cannot be used: refuse the file (default), or skip and count them."
COLUMNS_HELP = "The columns of fields with other names, or paths in them: text=messages.0.content. Repeatable."
ENCODING_HELP = "Encoding of the file, such as cp1252. Default: UTF-8 or UTF-16."
TABLE = "prejudge.table"
"""Key of the options of a table in the context of a command."""


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value:
        context.meta.setdefault(TABLE, {})[parameter.name] = value


def table_options(command: F) -> F:
    """Add how the file of `--data` is to be understood; `read_assignments` adds what is chosen to a study's options."""
    for option in (
        click.option("--encoding", metavar="NAME", help=ENCODING_HELP, expose_value=False, callback=_keep),
        click.option(
            "--columns",
            multiple=True,
            metavar="FIELD=COLUMN,...",
            help=COLUMNS_HELP,
            expose_value=False,
            callback=_keep,
        ),
        click.option(
            "--bad-rows", type=click.Choice(get_args(BadRows)), help=BAD_ROWS_HELP, expose_value=False, callback=_keep
        ),
    ):
        command = option(command)
    return command


def chosen_table() -> Mapping[str, Any]:
    """Return what was chosen by `table_options`, as options of a study."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta.get(TABLE, {})
