"""`Ledger`: async access to the store.

Every call runs in one thread, so writes are sequential and the event loop never waits for a disk. Answers that arrive
during a commit are combined in the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from ..contracts.adapter import Identity, Worker
from ..store import Failure, Found, NewExchange, NewTrial, Store
from ..store.claims import Claimed
from .claiming import RunClaims
from .limiter import Limiters

P = ParamSpec("P")
T = TypeVar("T")


class Ledger:
    """Async access to a store, for one run."""

    def __init__(self, store: Store, run_id: int, limiters: Limiters | None = None) -> None:
        self.store, self.run_id = store, run_id
        self._anew: dict[bytes, str] = {}
        self._thread = Worker("prejudge-store")
        self._claims = RunClaims(self.do, store, limiters)

    async def join(self) -> None:
        """Show other processes that this one is at work."""
        await self._claims.join()

    @property
    def worker(self) -> int:
        """Return the number of this process in the store."""
        return self._claims.worker

    async def do(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call on the store in its thread."""
        return await self._thread.run(call, *args, **kwargs)

    async def ensure_model(self, identity: Identity) -> int:
        """Return the id of a model, adding it if it is new."""
        return await self.do(self.store.ensure_model, identity)

    async def find(self, keys: Iterable[bytes], since: float | None = None) -> dict[bytes, Found]:
        """Return the latest answer to each key that has one; with `since`, none that was stored before."""
        await self._claims.join()
        return await self.do(self.store.find, keys, since)

    async def older(self, exchange_ids: Iterable[int], than: float) -> set[int]:
        """Return those of the exchanges that were stored before a time."""
        return await self.do(self.store.older, exchange_ids, than)

    def renew(self, outcomes: Mapping[bytes, str]) -> None:
        """Let the next answers to these keys be new generations, because the last one was so; `""`: whatever it was."""
        self._anew |= outcomes

    async def generations(self, keys: Iterable[bytes]) -> dict[bytes, int]:
        """Return how often each key was answered before, of those that were."""
        return await self.do(self.store.generations, list(keys))

    def hold(self, keys: Sequence[bytes]) -> bool:
        """Claim keys without a transaction; return whether that was possible, because no other process asks."""
        return not self._anew and self._claims.hold(keys)

    async def claim(self, keys: Sequence[bytes]) -> Claimed:
        """Claim keys before asking; another process is asking those that are in neither part of the result."""
        anew = self._anew.keys() & set(keys)
        claimed = await self._claims.claim([key for key in keys if key not in anew])
        return claimed._replace(mine=claimed.mine | anew)

    def release(self, keys: Iterable[bytes]) -> None:
        """Release keys that were answered or given up."""
        self._claims.release(keys)

    async def keep(self, data: bytes, media_type: str) -> str:
        """Store bytes under their sha256 (hex), which is returned."""
        return await self.do(self.store.keep, data, media_type)

    async def responses(self, exchange_ids: Iterable[int]) -> dict[int, str]:
        """Return the canonical responses of exchanges."""
        return await self.do(self.store.responses, exchange_ids)

    async def add(self, rows: Sequence[NewExchange]) -> dict[bytes, Found]:
        """Commit answers; on return they are durable. Answers must not be counted before."""
        if not rows:
            return {}
        anew = {row.key: self._anew[row.key] for row in rows if row.key in self._anew} if self._anew else {}
        stored = await self.do(self.store.add_exchanges, rows, anew=anew)
        for key in anew:
            del self._anew[key]
        return stored

    async def fail(self, failures: Sequence[Failure]) -> None:
        """Record calls that failed."""
        await self.do(self.store.add_failures, self.run_id, failures)

    async def add_trials(self, rows: Sequence[NewTrial], *, again: bool = False) -> None:
        """Record trials of the run; `again`: unless they are, since an earlier call may have been cut short."""
        await self.do(self.store.add_trials, rows, again=again)

    async def aclose(self) -> None:
        """Release all claims, and end the thread."""
        try:
            await self._claims.aclose()
        finally:
            self._thread.close()
