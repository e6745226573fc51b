"""The one outlet to the terminal: whatever is written, foreign text in it cannot move the cursor or reorder a line.

Names in a store, errors of servers and answers of models may hold control characters. `echo` and the console of
`terminal` write them as escapes; colours and bars, which are ours, are added after that.
"""

from __future__ import annotations

import re
import sys
import traceback
from types import TracebackType
from typing import IO, Any

import click

# C0 but for tab and line feed, DEL, C1, marks and overrides of direction, separators of lines, lone surrogates.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return a text with its control characters as escapes, such as `\u001b`."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def echo(text: object = "", *, err: bool = False, file: IO[Any] | None = None, bold: bool = False) -> None:
    """Write a text and a line feed to standard output, to standard error, or to a stream."""
    shown = visible(str(text))
    click.echo(click.style(shown, bold=True) if bold else shown, err=err, file=file)


def echo_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback of an error, as a hook of the interpreter."""
    echo("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"), file=sys.stderr)
