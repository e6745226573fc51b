"""Rules about the identity: it is stable, contains no secret, and changes if and only if answers may change."""

from __future__ import annotations

import os
import subprocess
import sys
from unittest import SkipTest

from ..core.contracts.adapter import Identity, ModelAdapter
from ..core.contracts.canonical import encode, identity_digest
from ..core.contracts.secrets import SECRET_NAMES
from ._kit import KEY, MODEL, NOWHERE, AdapterKit, run, variable

SHORTEST_SECRET = 8


class IdentityRules(AdapterKit):
    """Rules about the identity of an adapter."""

    def test_identity_is_stable(self) -> None:
        """The same settings give the same identity, before and after it answers."""

        async def asked(adapter: ModelAdapter) -> tuple[Identity, Identity]:
            before = adapter.identity
            await adapter.answer(self._groups()[0][:1])
            return before, adapter.identity

        with self._standing() as make:
            first, *others = *run(make, asked), *run(make, asked)
        assert isinstance(first, Identity) and first.adapter and first.model and first.version
        for other in others:
            assert encode(other) == encode(first), f"{other} is not {first}"

    def test_identity_is_stable_across_processes(self) -> None:
        """Another process, with another hash seed, gives the same identity."""
        if self.recipe is None:
            raise SkipTest("set `recipe` to make the adapter in another process")
        code = "\n".join(
            (
                f"url, model = {NOWHERE!r}, {MODEL!r}",
                self.recipe,
                "import asyncio, sys",
                "from prejudge.core.contracts.canonical import identity_digest",
                "sys.stdout.write('identity ' + identity_digest(adapter.identity).hex())",
                "asyncio.run(adapter.aclose())",
            )
        )
        own = identity_digest(self._identity()).hex()
        for seed in ("1", "2"):
            environment = {**os.environ, "PYTHONHASHSEED": seed} | ({self.key_env: KEY} if self.key_env else {})
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
            assert done.returncode == 0, done.stderr
            assert done.stdout.rpartition("identity ")[2].strip() == own, "the identity differs between processes"

    def test_identity_changes_with_the_answers(self) -> None:
        """Adapters that give other answers have other identities."""
        if not self.others:
            raise SkipTest("set `others` to makers of adapters that give other answers")
        identities = [self._identity(), *map(self._identity, self.others)]
        assert len({identity_digest(identity) for identity in identities}) == len(identities), identities

    def test_identity_keeps_through_the_rest(self) -> None:
        """Adapters that give the same answers have the same identity, so that they share stored answers."""
        if not self.same:
            raise SkipTest("set `same` to makers of adapters that give the same answers")
        first = self._identity()
        for identity in map(self._identity, self.same):
            assert identity_digest(identity) == identity_digest(first), f"{identity} is not {first}"

    def test_identity_names_the_model(self) -> None:
        """The identity states the model's own name, and an adapter of an endpoint names that."""
        if type(self).at is None:
            identity = self._identity()
            named = identity.model != identity.adapter or bool(identity.digest)
            assert named, f"the identity states neither the model's name nor a digest of its files: {identity}"
            return
        for model in (MODEL, "kit-model-2"):

            async def rule(adapter: ModelAdapter) -> None:
                told = adapter.identity.model
                assert model in told, f"the identity of model {model!r} calls it {told!r}"  # noqa: B023 - run at once
                assert adapter.endpoint, "set `endpoint`: without it, the run takes it for a model in this process"

            with variable(self.key_env, KEY):
                run(lambda: self._at(NOWHERE, model), rule)  # noqa: B023 - run at once

    def test_identity_holds_no_secret(self) -> None:
        """No key of the environment is in the identity or in the adapter's `repr`."""
        names = [name for name in os.environ if SECRET_NAMES.search(name) or name in self.secrets]
        secrets = {name: os.environ[name] for name in names if len(os.environ[name]) >= SHORTEST_SECRET}

        async def rule(adapter: ModelAdapter) -> None:
            shown = f"{encode(adapter.identity).decode()} {adapter!r} {adapter}"
            # The message names the variable and not its value, which must not reach a log either.
            told = [name for name, secret in secrets.items() if secret in shown]
            assert not told, f"the value of {told} is in the identity or in repr()"

        self._with(rule)
