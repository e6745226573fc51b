"""Two schedulers that ask nothing: `Survey` finds what a stage lacks, `Collected` reads what its batches brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...store import Found
from ..asking import Keyed
from ..scheduler import Scheduler


class Lack(NamedTuple):
    """A request without an answer."""

    keyed: Keyed
    anew: str | None
    """Why its stored answer is not wanted; None if it has none."""


@dataclass
class Survey(Scheduler):
    """Looks up requests in the store, and gathers those without an answer."""

    missing: dict[bytes, Lack] = field(default_factory=dict)

    async def settle(self, requests: Sequence[Keyed], anew: Mapping[bytes, str] | None = None) -> dict[bytes, Found]:
        """Return the stored answers."""
        wanted = {keyed.key: keyed for keyed in requests}
        if self.mode == "refresh":
            anew = dict.fromkeys(wanted, "")
        found = await self.ledger.find(list(wanted), None if anew is None else self.since)
        for key, keyed in wanted.items():
            if key not in found:
                self.missing[key] = Lack(keyed, None if anew is None else anew[key])
        return found


@dataclass
class Collected(Scheduler):
    """Looks up requests in the store; those without an answer have failed."""

    own: set[bytes] = field(default_factory=set)
    """Keys that this run asked, counted when they were collected."""
    lost: set[bytes] = field(default_factory=set)

    def _count_cached(self, found: Mapping[bytes, Found]) -> None:
        own = found.keys() & self.own
        self.own -= own
        self.counts.cached += len(found) - len(own)
        self.counts.refused += sum(answer.status != "ok" for key, answer in found.items() if key not in own)
        self.on_progress(self.counts)

    async def _ask(self, missing: Sequence[Keyed], found: dict[bytes, Found]) -> None:
        self.lost |= {keyed.key for keyed in missing}
        self.counts.failed = len(self.lost)
        self.on_progress(self.counts)
