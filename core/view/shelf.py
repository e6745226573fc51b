"""The indices of runs in the user's cache: found by what they were made of, built anew where they are missing."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..catalogue.built import cache_folder
from ..catalogue.filed import find_golden, head_of
from ..catalogue.origins import origin_of
from ..catalogue.study import Catalogue
from ..contracts.errors import PrejudgeError, UsageError
from ..contracts.version import VERSION
from ..engine.manifest import as_made, manifest_of
from ..store import RunRow, Store, trial_counts
from .build import DESCRIPTION, ROWS, Built, Description, build
from .columns import Column, Filters, Found, Mask, find
from .texts import Texts
from .writing import read_column

FORMAT = 1
"""Increased when an index changes its form."""
RENEWED = 20.0
"""Seconds for which a run that goes on is shown as it was."""
KEPT = 16
"""Results of filters that are kept in memory."""


class Index:
    """The index of one run, read-only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.described = msgspec.json.decode((folder / DESCRIPTION).read_bytes(), type=Description)
        self.columns: Mapping[str, Column] = {
            one.name: read_column(folder, number, one) for number, one in enumerate(self.described.columns)
        }
        loaded = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ROWS]
        self.ordinals: NDArray[np.int64] = loaded[0]
        self.trial_marks: NDArray[np.uint64] = loaded[1]
        self.answer_marks: NDArray[np.uint64] = loaded[2]
        self.asked, self.said = Texts(folder, "asked"), Texts(folder, "said")
        self._found: dict[object, Found] = {}

    @property
    def rows(self) -> int:
        """Return the number of trials."""
        return self.described.rows

    def find(self, filters: Filters, words: str = "", where: str = "said") -> Found:
        """Return the trials that fit the filters, and contain the words in what was `said`, `asked`, or in either.

        Raises:
            UnknownNameError: a filter names no column.
        """
        asked = (tuple(sorted(filters.items())), words.strip(), where)
        if asked not in self._found:
            if len(self._found) >= KEPT:
                self._found.pop(next(iter(self._found)), None)
            self._found[asked] = find(self.columns, filters, self._containing(words.strip(), where))
        return self._found[asked]

    def _containing(self, words: str, where: str) -> Mask | None:
        if not words:
            return None
        if where == "both":
            return self.said.containing(words) | self.asked.containing(words)
        return (self.asked if where == "asked" else self.said).containing(words)

    def stage_of(self, row: int) -> str:
        """Return the stage of a trial."""
        return self.columns["stage"].word(row) or ""


class Shelf:
    """Indices by run. One is built at a time, in a thread of its own."""

    def __init__(self, store: Store, catalogue: Catalogue, cache: Path | None = None) -> None:
        self._store, self._catalogue = store, catalogue
        self._cache = cache or cache_folder() / "view"
        self._open: dict[str, Index] = {}
        # Of runs that go on: the index that is shown or made and since when, and the one that was shown last.
        self._going: dict[int, tuple[str, float]] = {}
        self._last: dict[int, str] = {}
        self._readers: dict[str, str] = {}
        self._builds: dict[str, Built | PrejudgeError] = {}
        self._lock, self._turn = threading.Lock(), threading.Lock()

    def index(self, run: RunRow) -> Index | Built:
        """Return the index of a run, or how far its build is, which begins here.

        A run that goes on grows while it is read: its index is shown for `RENEWED` seconds before a new one is made.

        Raises:
            PrejudgeError: it could not be built.
        """
        last, since = self._going.get(run.id, ("", 0.0))
        is_kept = run.head is None and last and (last in self._builds or time.monotonic() - since < RENEWED)
        name = last if is_kept else self._name(run)
        with self._lock:
            if (opened := self._opened(name)) is not None:
                self._builds.pop(name, None)
                self._replace(run, name)
                return opened
            found = self._builds.get(name)
            if isinstance(found, PrejudgeError):
                del self._builds[name]  # asked for again, it is tried again
                raise found
            if found is None:
                if run.head is None:
                    self._going[run.id] = name, time.monotonic()
                found = self._builds[name] = Built()
                threading.Thread(target=self._build, args=(name, run, found), daemon=True).start()
            return found

    def _opened(self, name: str) -> Index | None:
        """Return an index that is there and whole."""
        if not (self._cache / name / DESCRIPTION).exists():
            self._open.pop(name, None)  # it was removed
            return None
        if name not in self._open:
            try:
                self._open[name] = Index(self._cache / name)
            except (OSError, ValueError, EOFError, msgspec.MsgspecError):  # cut short, as when the power failed
                shutil.rmtree(self._cache / name, ignore_errors=True)
                return None
        return self._open[name]

    def _replace(self, run: RunRow, name: str) -> None:
        """Remove the index of what a run had before, which nobody asks for again."""
        if run.head is None and self._last.get(run.id) == name:
            return
        if (before := self._last.pop(run.id, name)) != name:
            self._open.pop(before, None)
            shutil.rmtree(self._cache / before, ignore_errors=True)
        if run.head is None:
            self._going[run.id], self._last[run.id] = (name, time.monotonic()), name

    def wait(self, run: RunRow) -> Index:
        """Return the index of a run, built in this thread where it is missing.

        Raises:
            PrejudgeError: it could not be built.
        """
        name = self._name(run)
        with self._lock:
            found = self._opened(name)
        if found is None:
            self._make(name, run, Built())
            found = self._open[name] = Index(self._cache / name)
        return found

    def _build(self, name: str, run: RunRow, built: Built) -> None:
        try:
            with self._turn:
                self._make(name, run, built)
        except PrejudgeError as error:
            self._builds[name] = error
        except Exception as error:  # a plugin's reader: whatever it raises, the page says so
            self._builds[name] = UsageError(
                f"the index of {run.name} cannot be built: {type(error).__name__}: {error}.", code="view.index"
            )

    def _make(self, name: str, run: RunRow, built: Built) -> None:
        def seen(now: Built) -> None:
            built.done, built.total, built.started = now.done, now.total, now.started

        place = self._cache / name
        try:
            self._cache.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder = Path(tempfile.mkdtemp(prefix="new-", dir=self._cache))
            try:
                build(self._store, run, self._catalogue, folder, seen)
                if not (place / DESCRIPTION).exists():  # else another process has made it meanwhile, and reads it
                    shutil.rmtree(place, ignore_errors=True)  # half of an index
                    folder.rename(place)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError as error:
            raise UsageError(
                f"the index of {run.name} cannot be written to {str(self._cache)!r}: {error.strerror or error}. "
                "Free some space, or set PREJUDGE_CACHE to another folder.",
                code="view.index",
            ) from None

    def _name(self, run: RunRow) -> str:
        # A run that goes on has no head: what it has so far is its own index. A stranger can give two stores one head,
        # so the store is part of the name.
        head = run.head.hex() if run.head else f"{trial_counts(self._store, run.id)}"
        made = (
            FORMAT,
            VERSION,
            pl.__version__,
            _place(self._store),
            self._store.unproved,
            run.id,
            run.name,
            run.manifest,
            head,
        )
        if run.manifest not in self._readers:
            self._readers[run.manifest] = _reader(self._catalogue, run)
        return hashlib.sha256(repr((*made, self._readers[run.manifest])).encode()).hexdigest()[:40]


def _place(store: Store) -> str:
    """Return where a store is, the same from every folder, and another for every folder's `prejudge.db`."""
    file = store.url.database if store.url.get_backend_name() == "sqlite" else None
    return str(Path(file).resolve()) if file else str(store.url)


def _reader(catalogue: Catalogue, run: RunRow) -> str:
    """Return the version of the probe that reads a run's answers, and the digest of its study's golden file.

    The version of a probe of another package is that of its files: it may change without a new number.
    """
    try:
        study = as_made(catalogue, manifest_of(run))
        origin = origin_of(catalogue.plugins, "probe", study.probe)
    except (PrejudgeError, OSError):
        return ""
    golden = find_golden(catalogue, study.name, study.probe)
    head = None if golden is None else head_of(golden)
    version = VERSION if origin is None else f"{origin.version} {origin.sha256}"
    return f"{version} {'' if head is None else head.digest}"
