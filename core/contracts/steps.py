"""What takes long before the first answer, such as to hash files and to load weights, for whoever shows it.

An adapter wraps such work in `step`. Nothing is shown unless somebody `listens`, as the commands do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

LOG = logging.getLogger(__name__)
Listener = Callable[[str], Callable[[], None]]
"""Receives the words of a step that begins, and returns what is called at its end."""
_LISTENERS: list[Listener] = []
SMALL = 2**20
"""Bytes that are hashed in no time."""
UNITS = ((2**30, "GiB"), (2**20, "MiB"))


@contextmanager
def step(words: str) -> Iterator[None]:
    """Say that some work begins, and that it has ended.

    Args:
        words: what is done, as a verb and its object: `load the weights of my-bert`.

    Example:
        >>> from prejudge.core.contracts.steps import listens, step
        >>> def show(words):
        ...     print(words)
        ...     return lambda: print("done")
        >>> with listens(show), step("load the weights of my-bert"):
        ...     pass
        load the weights of my-bert
        done
    """
    LOG.info("%s", words)
    ends = [listener(words) for listener in _LISTENERS]
    try:
        yield
    finally:
        for end in ends:
            end()


@contextmanager
def listens(listener: Listener) -> Iterator[None]:
    """Let somebody hear of steps, those in other threads among them."""
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)


def hashing(files: Iterable[Path]) -> AbstractContextManager[None]:
    """Say that files are hashed, unless all are small."""
    paths = list(files)
    size = sum(path.stat().st_size for path in paths)
    if size < SMALL:
        return nullcontext()
    names = paths[0].name if len(paths) == 1 else f"{len(paths)} files in {paths[0].parent.name}"
    return step(f"hash {names} ({size_words(size)})")


def size_words(size: int) -> str:
    """Return a number of bytes in words: `1.2 GiB`, `14 MiB`."""
    for unit, name in UNITS:
        if size >= unit:
            return f"{size / unit:.{0 if size >= 10 * unit else 1}f} {name}"
    return f"{size:,} bytes"
