"""A run that is taken up again: what it recorded before is added to, never replaced."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..catalogue.study import Study
from ..store import RunRow, Store, list_runs
from .manifest import Manifest, StageRecord

ADDED = ("asked", "retried")
"""Counts of what was done, each time the run was taken up; the others say how the trials stand."""
KNOWN = ("input_tokens", "output_tokens", "cost")
"""Counts that are added up too, and are unknown if those of any answer are."""


class Earlier(msgspec.Struct, frozen=True):
    """What a run recorded when it was last left."""

    row: RunRow
    manifest: Manifest

    @property
    def done(self) -> bool:
        """Say whether it was at its end."""
        return self.row.state == "finished"


def find_earlier(store: Store, name: str | None, study: Study) -> Earlier | None:
    """Return what stands in the store of a run of this name and study; None if it is new."""
    for row in list_runs(store) if name is not None else ():
        if row.name == name:
            manifest = msgspec.json.decode(row.manifest, type=Manifest)
            return Earlier(row, manifest) if manifest.study == study else None
    return None


def add_up(earlier: Mapping[str, StageRecord], name: str, now: StageRecord) -> StageRecord:
    """Return the record of a stage with what was done in it before."""
    before = earlier.get(name)
    if before is None or not before.counts:
        return now
    if not now.counts:
        return StageRecord(now.planned, before.counts, before.pace)
    counts = dict(now.counts)
    counts |= {key: (counts.get(key) or 0) + (before.counts.get(key) or 0) for key in ADDED}
    # What the run itself asked before is now in the store; it is no answer of another run.
    counts["cached"] = max(0, (now.counts.get("cached") or 0) - (before.counts.get("asked") or 0))
    counts |= {key: _known(key, before, now) for key in KNOWN}
    return StageRecord(now.planned, counts, now.pace if now.counts.get("asked") else before.pace or now.pace)


def _known(key: str, before: StageRecord, now: StageRecord) -> float | None:
    """Return a count of both, such as the cost; unknown if that of any answer is."""
    parts = [part.counts.get(key) for part in (before, now) if part.counts.get("asked")]
    if not parts:
        return now.counts.get(key)
    known = [count for count in parts if count is not None]
    return sum(known) if len(known) == len(parts) else None
