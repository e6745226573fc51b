"""Rules about the identity: it is stable, contains no secret, and changes if and only if answers may change."""

from __future__ import annotations

import os
import subprocess
import sys
from unittest import SkipTest

from ..core.contracts.adapter import Identity, ModelAdapter
from ..core.contracts.canonical import encode, identity_digest
from ._kit import AdapterKit

SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
SHORTEST_SECRET = 8


class IdentityRules(AdapterKit):
    """Rules about the identity of an adapter."""

    def test_identity_is_stable(self) -> None:
        """The same settings give the same identity, before and after it answers."""
        first = self._identity(type(self).make)
        assert isinstance(first, Identity) and first.adapter and first.model and first.version

        async def rule(adapter: ModelAdapter) -> None:
            await adapter.answer(self._groups()[0][:1])
            assert encode(adapter.identity) == encode(first), f"{adapter.identity} is not {first}"

        self._with(rule)

    def test_identity_is_stable_across_processes(self) -> None:
        """Another process, with another hash seed, gives the same identity."""
        if self.recipe is None:
            raise SkipTest("set `recipe` to make the adapter in another process")
        code = (
            f"{self.recipe}\nimport asyncio, sys\nfrom prejudge.core.contracts.canonical import identity_digest\n"
            "sys.stdout.write('identity ' + identity_digest(adapter.identity).hex())\nasyncio.run(adapter.aclose())\n"
        )
        own = identity_digest(self._identity(type(self).make)).hex()
        for seed in ("1", "2"):
            environment = {**os.environ, "PYTHONHASHSEED": seed}
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
            assert done.returncode == 0, done.stderr
            assert done.stdout.rpartition("identity ")[2].strip() == own, "the identity differs between processes"

    def test_identity_changes_with_the_answers(self) -> None:
        """Adapters that give other answers have other identities."""
        if not self.others:
            raise SkipTest("set `others` to makers of adapters that give other answers")
        identities = [self._identity(make) for make in (type(self).make, *self.others)]
        assert len({identity_digest(identity) for identity in identities}) == len(identities), identities

    def test_identity_keeps_through_the_rest(self) -> None:
        """Adapters that give the same answers have the same identity, so that they share stored answers."""
        if not self.same:
            raise SkipTest("set `same` to makers of adapters that give the same answers")
        first = self._identity(type(self).make)
        for identity in map(self._identity, self.same):
            assert identity_digest(identity) == identity_digest(first), f"{identity} is not {first}"

    def test_identity_holds_no_secret(self) -> None:
        """No key of the environment is in the identity or in the adapter's `repr`."""
        names = [name for name in os.environ if name.upper().endswith(SECRET_NAMES) or name in self.secrets]
        secrets = {name: os.environ[name] for name in names if len(os.environ[name]) >= SHORTEST_SECRET}

        async def rule(adapter: ModelAdapter) -> None:
            shown = f"{encode(adapter.identity).decode()} {adapter!r} {adapter}"
            # The message names the variable and not its value, which must not reach a log either.
            told = [name for name, secret in secrets.items() if secret in shown]
            assert not told, f"the value of {told} is in the identity or in repr()"

        self._with(rule)
