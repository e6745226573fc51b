"""Heads that a user has kept: whether the store contains their runs, and those of the runs that asked their answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..contracts.errors import UsageError
from ..contracts.words import counted
from ..engine.manifest import SHOWN_DIGITS, manifest_of
from ..store.checks import Checks
from ..store.earlier_answers import EarlierRun

SHORTEST = 16
"""Minimum number of digits of a head, 64 bits."""


class Finding(NamedTuple):
    """A line about a head, and whether it is bad news."""

    line: str
    wrong: bool


class Heads:
    """The runs of a store with the heads that a check of it has derived; damaged runs have none."""

    def __init__(self, checks: Checks) -> None:
        self._runs = checks.runs
        self._sound = {name: head.hex() for name, head in checks.heads.items()}

    def named(self, head: str) -> list[str]:
        """Return the sound runs whose head begins with these digits.

        Raises:
            UsageError: they are no head, or too few.
        """
        digits = head.strip().lower()
        if len(digits) < SHORTEST or set(digits) - set("0123456789abcdef"):
            raise UsageError(f"{head!r} is no head: give at least {SHORTEST} hexadecimal digits.", code="store.head")
        return [name for name, found in self._sound.items() if found.startswith(digits)]

    def followed(self, name: str) -> Iterator[Finding]:
        """Yield a finding for each run that asked answers of this one, and for those that asked answers of these."""
        checked, waiting = {name}, [name]
        while waiting:
            run = waiting.pop(0)
            earlier = manifest_of(self._runs[run]).earlier
            for source in () if earlier is None else earlier.runs:
                finding, found = self._source(run, source, earlier.answers)
                yield finding
                waiting += [one for one in found if one not in checked]
                checked.update(found)
            if earlier is not None and earlier.of_no_run:
                yield Finding(
                    f"{earlier.of_no_run:,} of {counted(earlier.answers, 'answer')} of {run} are older than it, and no "
                    "other run of its store used them: no other head covers them.",
                    False,
                )

    def _source(self, run: str, source: EarlierRun, answers: int) -> tuple[Finding, list[str]]:
        """Return what is to be said of a run that asked answers of another, and its names in this store."""
        begun = f"{source.answers:,} of {counted(answers, 'answer')} of {run} are from {source.run}"
        if not source.head:
            return Finding(f"{begun}, which had no head yet: no other head covers them.", False), []
        begun = f"{begun}, head {source.head[:SHOWN_DIGITS]}"
        same = [name for name, head in self._sound.items() if head == source.head and name != run]
        if named := [name for name in same if name == source.run] or same[:1]:
            here = "" if named == [source.run] else f", here as {named[0]}"
            return Finding(f"{begun}: it is here{here}, with this head.", False), named
        if source.run in self._sound:
            now = self._sound[source.run][:SHOWN_DIGITS]
            return Finding(f"{begun}: that run has another head now, {now}. It was resumed or changed.", True), []
        if source.run in self._runs:
            return Finding(f"{begun}: that run is damaged, or has not ended.", True), []
        return Finding(f"{begun}: that run is not in this store, so its head could not be checked.", False), []
