"""Writing a file completely or not at all, and the folders that a user has for this package."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from .errors import UsageError

PACKAGE = "prejudge"


@contextmanager
def replaced_whole(path: Path, mend: str = "") -> Iterator[Path]:
    """Yield the path of a new file beside `path`, which takes its place at the end; after an error, nothing changes.

    Raises:
        UsageError: the file cannot be written; `mend` says what to do.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        beside.replace(path)
    except OSError as error:
        problem = f"cannot write {str(path)!r}: {error.strerror or error}."
        raise UsageError(f"{problem} {mend}".strip(), code="file.unwritable") from None
    finally:
        beside.unlink(missing_ok=True)


def user_folder(
    purpose: str, own: str, bases: Sequence[str], home: str, environment: Mapping[str, str] = os.environ
) -> Path:
    """Return a folder of this package for one purpose: the user's own word, else one below a base, else below home.

    Args:
        purpose: what it is for, in words.
        own: variable that names the folder itself.
        bases: variables that name the folder that all programs have theirs in.
        home: that folder below the user's home.
        environment: the variables.

    Raises:
        UsageError: the environment names none.
    """
    named = (
        environment.get(own, ""),
        *(f"{folder}/{PACKAGE}" for name in bases if (folder := environment.get(name))),
    )
    # A relative path would lie in the working directory, whose files are not the user's own word.
    for place in named:
        if Path(place).is_absolute():
            return Path(place)
    try:
        return Path.home() / home / PACKAGE
    except RuntimeError:
        raise UsageError(
            f"no folder for {purpose} is known. Set {own} to its absolute path.", code="file.unwritable"
        ) from None
