"""Writing a file completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import UsageError


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
