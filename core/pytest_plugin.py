"""A plugin of pytest: one test per rule of a policy, and the fixture `chaos_server`.

pytest loads it in every environment that has prejudge, so it imports the rest of prejudge only when it is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


class PolicyFile(pytest.File):
    """A policy, whose rules are tests. The run is scored once, when the first test runs."""

    verdicts: dict[str, Any] | None = None
    problem: Exception | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one test per rule.

        Raises:
            pytest.UsageError: the policy cannot be used.
        """
        gate, errors = import_module("prejudge.core.gate"), import_module("prejudge.core.contracts.errors")
        try:
            self.policy = gate.read_policy(self.path)
        except errors.PrejudgeError as error:
            raise pytest.UsageError(str(error)) from None
        for name in self.policy.names:
            yield RuleItem.from_parent(self, name=name)

    def verdict(self, name: str) -> Any:
        """Return the verdict on a rule. An error in scoring the run fails every rule."""
        if self.problem is not None:
            raise self.problem
        if self.verdicts is None:
            try:
                self.verdicts = {verdict.rule: verdict for verdict in self._judge()}
            except Exception as error:
                self.problem = error
                raise
        return self.verdicts[name]

    def _judge(self) -> list[Any]:
        store, study = import_module("prejudge.core.store"), import_module("prejudge.core.catalogue.study")
        option = self.config.getoption
        catalogue = study.Catalogue.load(option("--prejudge-registry"))
        with store.Store(option("--prejudge-store"), writable=False) as opened:
            _, verdicts = import_module("prejudge.core.gate").judge_run(
                catalogue, opened, option("--prejudge-run"), self.policy
            )
        return list(verdicts)


class RuleFailed(Exception):
    """The failed checks of a rule."""


class RuleItem(pytest.Item):
    """One rule of a policy."""

    def runtest(self) -> None:
        """Fail if a check of the rule fails.

        Raises:
            RuleFailed: a check failed.
        """
        assert isinstance(self.parent, PolicyFile)
        verdict = self.parent.verdict(self.name)
        if not verdict.passed:
            failed = [o for o in verdict.outcomes if not o.passed]
            raise RuleFailed("\n".join(f"{o.subject}: {o.check}; found: {o.told}" for o in failed))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the failed checks, or the text of a usage error, without a traceback."""
        if isinstance(excinfo.value, RuleFailed | import_module("prejudge.core.contracts.errors").PrejudgeError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the location of the rule: the policy file."""
        return self.path, None, f"prejudge: {self.name}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("prejudge", "check a run of prejudge against a policy")
    group.addoption("--prejudge-policy", metavar="FILE", default=None, help="the policy file; one test per rule")
    group.addoption("--prejudge-run", metavar="RUN", default="latest", help="the run (default: the latest)")
    store = os.environ.get("PREJUDGE_STORE", "prejudge.db")
    group.addoption("--prejudge-store", metavar="FILE", default=store, help=f"the store (default: {store})")
    group.addoption("--prejudge-registry", metavar="FILE", default=None, help="your own registry file")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the rules to the tests, before `-k` and `-m` select tests."""
    policy = config.getoption("--prejudge-policy")
    if policy is not None:
        path = config.invocation_params.dir / policy
        items.extend(PolicyFile.from_parent(session, path=path).collect())


@pytest.fixture
def chaos_server() -> Iterator[Any]:
    """Return a server that misbehaves as it is told: `prejudge.testing.ChaosServer`."""
    with import_module("prejudge.testing.chaos").ChaosServer() as server:
        yield server
