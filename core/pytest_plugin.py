"""A plugin of pytest: `pytest --prejudge-policy FILE --prejudge-run RUN` has one test per rule of the policy.

It is loaded whenever pytest starts where prejudge is installed, so it imports nothing of it until a policy is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


class PolicyFile(pytest.File):
    """A policy: its rules are tests. The run is scored once, when the first of them runs."""

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
        """Return what became of a rule; the error of scoring the run is every rule's."""
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
    """Say which checks of a rule did not hold."""


class RuleItem(pytest.Item):
    """One rule of a policy."""

    def runtest(self) -> None:
        """Fail if the rule does not hold.

        Raises:
            RuleFailed: a check did not hold.
        """
        assert isinstance(self.parent, PolicyFile)
        verdict = self.parent.verdict(self.name)
        if not verdict.passed:
            failed = [o for o in verdict.outcomes if not o.passed]
            raise RuleFailed("\n".join(f"{o.subject}: {o.check}; found: {o.found}" for o in failed))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the checks that did not hold, or a user's mistake, without a traceback."""
        if isinstance(excinfo.value, RuleFailed | import_module("prejudge.core.contracts.errors").PrejudgeError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return where the rule stands."""
        return self.path, None, f"prejudge: {self.name}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("prejudge", "hold a run of prejudge against a policy")
    group.addoption("--prejudge-policy", metavar="FILE", default=None, help="the policy: one test per rule")
    group.addoption("--prejudge-run", metavar="RUN", default="latest", help="the run (default: the latest)")
    store = os.environ.get("PREJUDGE_STORE", "prejudge.db")
    group.addoption("--prejudge-store", metavar="FILE", default=store, help=f"the store (default: {store})")
    group.addoption("--prejudge-registry", metavar="FILE", default=None, help="a registry.toml of your own")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the rules to the tests, before `-k` and `-m` choose among them."""
    policy = config.getoption("--prejudge-policy")
    if policy is not None:
        path = config.invocation_params.dir / policy
        items.extend(PolicyFile.from_parent(session, path=path).collect())
