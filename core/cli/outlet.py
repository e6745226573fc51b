"""The one outlet to the terminal: whatever is written, foreign text in it cannot move the cursor or forge a line.

Names in a store, errors of servers and answers of models may hold control characters and line feeds. `echo` and the
console of `terminal` write them as escapes; colours and bars, which are ours, are added after that.
"""

from __future__ import annotations

import re
import sys
import traceback
from types import TracebackType
from typing import IO, Any

import click

from .screen import screen_of

# C0 but for tab and line feed, DEL, C1, marks and overrides of direction, separators of lines, lone surrogates.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_WIDE = re.compile("[^\x00-\x7f]")


def visible(text: str) -> str:
    r"""Return a text with its control characters but line feeds as escapes, such as `\u001b`."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def single_line(text: str) -> str:
    r"""Return a text with its control characters as escapes, a line feed as `\n`."""
    return visible(text).replace("\n", "\\n")


def echo(*lines: object, err: bool = False, file: IO[Any] | None = None, bold: bool = False) -> None:
    r"""Write lines to standard output, to standard error, or to a stream.

    Each argument is one line: a line feed in it is somebody else's, and is shown as `\n`.
    """
    shown = "\n".join(single_line(str(line)) for line in lines)
    stream = file or (sys.stderr if err else sys.stdout)
    click.echo(click.style(shown, bold=True) if bold else shown, file=screen_of(stream))


def echo_json(text: str, *, file: IO[Any] | None = None) -> None:
    """Write lines of JSON in ASCII, since a stream of another encoding than UTF-8 would change what they say."""
    echo(*_WIDE.sub(_escaped, text).splitlines(), file=file)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def echo_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback of an error, as a hook of the interpreter."""
    echo(*traceback_lines(kind, error, trace), file=sys.stderr)


def traceback_lines(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> list[str]:
    """Return the lines of a traceback, where the message of each error is one line."""
    lines: list[str] = []
    for part in traceback.format_exception(kind, error, trace):
        is_stack = part.startswith(("Traceback", " ", "\n"))
        lines += part.splitlines() if is_stack else [part.removesuffix("\n")]
    return lines
