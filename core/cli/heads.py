"""Heads that a user has kept: whether a store has their runs, and those that asked their answers; who signed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..contracts.errors import StoreError, UsageError
from ..contracts.words import counted
from ..engine.manifest import SHOWN_DIGITS, manifest_of
from ..store import Store
from ..store.checks import Checks
from ..store.earlier_answers import EarlierRun
from ..store.signatures import signer_of

SHORTEST = 16
"""Minimum number of digits of a head, 64 bits."""


class Finding(NamedTuple):
    """A line about a run."""

    line: str
    failed: bool = False
    """Whether the check failed."""
    run: str | None = None
    """An earlier run that was found, by its name in this store."""


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
            if (earlier := manifest_of(self._runs[run]).earlier) is None:
                continue
            for source in earlier.runs:
                finding = self._source(run, source, earlier.answers)
                yield finding
                if finding.run is not None and finding.run not in checked:
                    checked.add(finding.run)
                    waiting.append(finding.run)
            if earlier.of_no_run:
                yield Finding(
                    f"{earlier.of_no_run:,} of {counted(earlier.answers, 'answer')} of {run} are older than it, and no "
                    "other run of its store used them: no other head covers them."
                )

    def signed(self, store: Store, names: Iterable[str], signers: str) -> Iterator[Finding]:
        """Yield who signed each of these runs and of those that asked their answers; without names, each of the store.

        Raises:
            UsageError: `ssh-keygen` is not installed, or the list of signers cannot be read.
        """
        chosen = list(names)
        chosen += [finding.run for name in chosen for finding in self.followed(name) if finding.run is not None]
        for name in dict.fromkeys(chosen or self._runs):
            if name not in self._sound:
                yield Finding(f"Run {name}: it is damaged, or has not ended: no signature holds.", failed=True)
                continue
            try:
                by = signer_of(store, self._runs[name], signers)
            except StoreError as error:
                yield Finding(f"Run {name}: {error}. [{error.code}]", failed=True)
            else:
                yield Finding(f"Run {name}: signed by {by.name} ({by.key}).")

    def _source(self, run: str, source: EarlierRun, answers: int) -> Finding:
        """Return what is to be said of a run that asked answers of another."""
        begun = f"{source.answers:,} of {counted(answers, 'answer')} of {run} are from {source.run}"
        if not source.head:
            return Finding(f"{begun}, which had no head yet: no other head covers them.")
        begun = f"{begun}, head {source.head[:SHOWN_DIGITS]}"
        # Runs that took all their answers from another have its head: none of them is its own source.
        same = [name for name, head in self._sound.items() if head == source.head and name != run]
        if same:
            name = source.run if source.run in same else same[0]
            here = "" if name == source.run else f", here as {name}"
            return Finding(f"{begun}: it is here{here}, with this head.", run=name)
        if source.run in self._sound:
            now = self._sound[source.run][:SHOWN_DIGITS]
            return Finding(f"{begun}: that run has another head now, {now}. It was resumed or changed.", failed=True)
        if source.run in self._runs:
            return Finding(f"{begun}: that run is damaged, or has not ended.", failed=True)
        return Finding(f"{begun}: that run is not in this store, so its head could not be checked.")
