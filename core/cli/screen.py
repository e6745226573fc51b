"""`Screen`: a standard stream that takes every text, whatever its encoding, and whose faults stop no command.

What a command computes and writes to files does not depend on whether somebody can read its lines.
"""

from __future__ import annotations

import codecs
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from ..contracts.errors import UsageError

LACKING = "prejudge.lacking"
"""Name of the error handler by which characters are replaced that an encoding lacks."""
SPELLINGS = {
    **dict.fromkeys("−‐‑‒–—―", "-"),
    **dict.fromkeys("‘’‚‛", "'"),
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}", " "),
    **{"…": "...", "•": "*", "·": ".", "†": "+", "²": "^2", "³": "^3", "×": "x", "±": "+/-", "∞": "inf"},
    **{"≈": "~", "≠": "!=", "≤": "<=", "≥": ">=", "→": "->", "←": "<-", "↔": "<->"},
    **{"Δ": "delta", "δ": "delta", "τ": "tau", "ρ": "rho", "χ": "chi", "α": "alpha", "β": "beta"},
}
"""ASCII for the signs of our prose and statistics. Accented letters are not here: two names must not become one."""
_HORIZONTAL, _VERTICAL = "─━┄┅┈┉╌╍═╴╶╸╺", "│┃┆┇┊┋╎╏║╵╷╹╻"
_BOXES = range(0x2500, 0x2580)


def _spelling(character: str) -> str:
    if character in SPELLINGS:
        return SPELLINGS[character]
    if ord(character) in _BOXES:
        return "-" if character in _HORIZONTAL else "|" if character in _VERTICAL else "+"
    return character.encode("ascii", "backslashreplace").decode("ascii")


def _spell_lacking(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_spelling, error.object[error.start : error.end])), error.end


codecs.register_error(LACKING, _spell_lacking)


def writable(text: str, encoding: str | None) -> str:
    """Return a text in characters that an encoding has: signs by a table, others as escapes."""
    try:
        return text.encode(encoding or "utf-8", LACKING).decode(encoding or "utf-8")
    except LookupError:
        return text.encode("ascii", LACKING).decode("ascii")


class Screen:
    """A text stream to a terminal, a pipe or a file.

    After a fault it takes what is written and drops it. A reader that went away (`prejudge run ... | head`) is no
    fault of the command; another one, such as a full disk, is kept in `fault`.
    """

    errors = LACKING
    """As of other text streams; a prompt for a line is encoded with it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.fault: OSError | None = None

    def write(self, text: str | bytes) -> int:
        """Write a text, or the UTF-8 of one, which is how scripts for shells come."""
        shown = writable(text if isinstance(text, str) else text.decode(), self.encoding)
        with self._guarded():
            self._stream.write(shown)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Hand on what is buffered."""
        with self._guarded():
            self._stream.flush()

    @property
    def encoding(self) -> str:
        """Return the encoding of the stream; a stream of characters has none, and takes them all."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        """Return whether a person reads along."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the number of the file."""
        return self._stream.fileno()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not _is_reader_gone(error):
                self.fault = self.fault or error
            self._silence()

    def _silence(self) -> None:
        """Lead the stream to nowhere, or the interpreter would meet the fault again when it ends."""
        with suppress(OSError, ValueError, AttributeError):
            number, nowhere = self._stream.fileno(), os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)


def ensure_written(stream: object) -> None:
    """Refuse to end well where lines of a command are lost, other than those that a reader wanted no more.

    Raises:
        UsageError: the stream had a fault.
    """
    if isinstance(stream, Screen) and stream.fault is not None:
        raise UsageError(
            f"standard output cannot be written: {stream.fault.strerror or stream.fault}. What the command stores and "
            "writes to files is complete. Free space, or send its lines elsewhere.",
            code="screen.unwritable",
        )


def _is_reader_gone(error: OSError) -> bool:
    # Windows reports a pipe without a reader as an invalid argument.
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)


def screen_of(stream: Any) -> Any:
    """Return a stream as a screen; None, where a program has no such stream, stays."""
    return stream if stream is None or isinstance(stream, Screen) else Screen(stream)


@contextmanager
def screens() -> Iterator[None]:
    """Make the standard streams screens: whatever writes to them, such as a library's warning, cannot fail either."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", screen_of(stream)) for stream in before)
    try:
        yield
    finally:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        sys.stdout, sys.stderr = before
