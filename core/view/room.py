"""`Room`: what the pages read: a store, the catalogue, the shelf of indices and the folder of reports."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ..catalogue.study import Catalogue
from ..contracts.errors import PrejudgeError
from ..contracts.estimates import COMMON, Measure
from ..engine.manifest import as_made, manifest_of, read_manifest
from ..report.output import ANSWERS
from ..report.place import folder_within
from ..scoring.worded import measure_in
from ..store import RunRow, Store
from .shelf import Index, Shelf

REPORT = "report.html"


class _Record(msgspec.Struct):
    """What `answers.json` has for the list of runs."""

    answers: list[dict[str, Any]] = []


class Room(msgspec.Struct, frozen=True, dict=True):
    """A reading room."""

    store: Store
    """Opened to be read."""
    catalogue: Catalogue
    runs: Path
    """The folder of reports."""
    cache: Path | None = None

    @cached_property
    def shelf(self) -> Shelf:
        """Return the indices."""
        return Shelf(self.store, self.catalogue, self.cache)

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """Return results that are kept while the room is open."""
        return {}

    def folder(self, run: RunRow) -> Path | None:
        """Return the folder with the output of a run; None if there is none, or it is another's of that name."""
        try:
            folder = folder_within(self.runs, run.name)
            return folder if folder.is_dir() and read_manifest(folder).head == manifest_of(run).head else None
        except PrejudgeError:
            return None

    def report(self, run: RunRow) -> Path | None:
        """Return the report of a run, if it was written."""
        folder = self.folder(run)
        path = None if folder is None else folder / REPORT
        return path if path is not None and path.is_file() else None

    def replies(self, run: RunRow) -> list[dict[str, Any]]:
        """Return what the report of a run answers, from its `answers.json`: `asks`, `verdict` and `sentence` each."""
        folder = self.folder(run)
        try:
            record = msgspec.json.decode((folder / ANSWERS).read_bytes(), type=_Record) if folder is not None else None
        except (OSError, msgspec.MsgspecError):
            return []
        return record.answers if record is not None else []

    def declared(self, run: RunRow, index: Index) -> list[tuple[str, ...]]:
        """Return the columns by which the study's measures make units and clusters of trials, if they say so."""
        metrics = [metric for metric, _ in self._metrics(run)]
        names = [getattr(getattr(one, "pivot", None), "index", "") for one in metrics]
        names += [getattr(one, "row", "") for one in metrics]
        known = [name for name in (*names, *self._ways(run)) if isinstance(name, str) and name in index.columns]
        return [(name,) for name in dict.fromkeys(known)]

    def clusters(self, run: RunRow, index: Index) -> list[str]:
        """Return the columns by which the study's measures make clusters, if they say so."""
        return [name for name in dict.fromkeys(self._ways(run)) if name in index.columns]

    def words(self, run: RunRow) -> dict[str, Measure]:
        """Return label and meaning of the study's measures, as far as they are declared."""
        measures = dict(COMMON)
        for metric, _ in self._metrics(run):
            measures |= metric.measures
        words = manifest_of(run).study.words
        return {name: measure_in(measure, words) for name, measure in measures.items()}

    def _metrics(self, run: RunRow) -> list[tuple[Any, Any]]:
        try:
            return list(self.catalogue.instrument(as_made(self.catalogue, manifest_of(run))).metrics.values())
        except PrejudgeError:
            return []

    def _ways(self, run: RunRow) -> list[str]:
        found: list[str] = []
        for metric, options in self._metrics(run):
            try:
                found += getattr(options, "ways", ()) or getattr(metric, "clusters", ())
            except PrejudgeError:
                continue
        return found
