"""Reading what a user hands in: files that are files, of a bounded size, and TOML of a bounded depth.

A pipe or a device given for a file never answers, or never ends; a value nested a thousand times ends the interpreter.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from .errors import DataError

MOST_BYTES = 1 << 30
"""Bytes of the largest file that is read."""
MOST_DEPTH = 50
"""Deepest nesting of a value."""
_KINDS = {
    stat.S_ISDIR: (errno.EISDIR, "it is a folder"),
    stat.S_ISFIFO: (errno.EINVAL, "it is a pipe, not a file"),
    stat.S_ISCHR: (errno.EINVAL, "it is a device, not a file"),
    stat.S_ISBLK: (errno.EINVAL, "it is a device, not a file"),
    stat.S_ISSOCK: (errno.EINVAL, "it is a socket, not a file"),
}
_LONG_KEY = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MOST_DEPTH}}}")
"""A key of so many parts in a row; the parser's time grows with their square."""


class TooDeepError(DataError):
    """Report a value that is nested too deeply."""


def ensure_file(path: str | os.PathLike[str], most: int = MOST_BYTES) -> None:
    """Refuse what is no regular file, or too large, before it is opened.

    Raises:
        OSError: it cannot be read; `strerror` says why.
    """
    try:
        found = os.stat(path)
    except ValueError:
        raise OSError(errno.EINVAL, "its name has a NUL character", str(path)) from None
    for is_kind, (number, problem) in _KINDS.items():
        if is_kind(found.st_mode):
            raise OSError(number, problem, str(path))
    if found.st_size > most:
        raise OSError(errno.EFBIG, f"it has {found.st_size:,} bytes; at most {most:,} are read", str(path))


def file_bytes(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: it cannot be read, is no regular file, or too large; `strerror` says why.
    """
    ensure_file(path, most)
    with Path(path).open("rb") as file:
        # A file may grow, or say that it is empty, as those of the system do.
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return content


def read_text(path: str | os.PathLike[str], noun: str) -> str:
    """Return the text of a file; `noun` says in the error what the file is, such as `the policy`.

    Raises:
        DataError: it cannot be read, or is not UTF-8.
    """
    try:
        return file_bytes(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {noun} {str(path)!r}: {why}.", code="file.unreadable") from None


def load_toml(text: str, where: str) -> dict[str, Any]:
    """Return the content of a TOML file; `where` names it in the error.

    Raises:
        DataError: it is not valid TOML, or nested too deeply.
    """
    if _LONG_KEY.search(text):
        raise _too_deep(where)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise _too_deep(where) from None
    except ValueError as error:  # also of numbers with thousands of digits
        raise DataError(f"{where} is not valid TOML: {str(error)[:300]}.", code="data.syntax") from None
    if is_deep(data):
        raise _too_deep(where)
    return data


def is_deep(value: Any, most: int = MOST_DEPTH) -> bool:
    """Return whether lists and tables are nested more deeply than `most`."""
    level = [value]
    for _ in range(most + 1):
        level = [
            one
            for held in level
            for one in (held.values() if isinstance(held, dict) else held)
            if isinstance(one, dict | list | tuple)
        ]
        if not level:
            return False
    return True


def _too_deep(where: str) -> TooDeepError:
    return TooDeepError(f"{where} is nested too deeply: at most {MOST_DEPTH} levels.", code="data.syntax")
