"""One study over variants of a model: what is checked before the first variant is asked, and the budget they share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..catalogue.capabilities import ensure_capable
from ..catalogue.study import SUBJECT, Catalogue, Study
from ..catalogue.variants import variants
from ..contracts.adapter import Identity
from ..contracts.errors import BudgetError, UsageError
from .budget import Budget, Caps


def varied_studies(
    catalogue: Catalogue,
    study: str,
    models: Mapping[str, str],
    varied: Mapping[str, Sequence[str]],
    assignments: Mapping[str, Any],
) -> list[Study]:
    """Return the study once per variant of its subject, all of them checked: nothing is asked, no weights are loaded.

    Raises:
        UsageError: a variant cannot be asked, or two of them are the same model.
    """
    if SUBJECT not in models:
        raise UsageError("--vary needs the model whose settings vary: --model NAME.", code="study.role-missing")
    names = variants(models[SUBJECT], varied)
    studies = [catalogue.study(study, {**models, SUBJECT: name}, assignments) for name in names]
    same: dict[bytes, str] = {}
    for one in studies:
        ensure_capable(catalogue, one, catalogue.instrument(one))
        name = one.roles[SUBJECT]
        found = msgspec.json.encode(_identity(catalogue, name), order="sorted")
        if (other := same.setdefault(found, name)) != name:
            raise UsageError(
                f"{other!r} and {name!r} are the same model: the setting changes nothing that is asked. Vary another.",
                code="vary.same",
            )
    return studies


def _identity(catalogue: Catalogue, model: str) -> Identity:
    adapter = catalogue.adapter(model)
    asyncio.run(adapter.aclose())
    return adapter.identity


class Purse:
    """The budget of several runs, one after another: each may spend what the ones before left."""

    def __init__(self, caps: Caps) -> None:
        self.caps, self._budgets = caps, list[Budget]()

    def budget(self) -> Budget | None:
        """Return the budget of the next run; None without limits.

        Raises:
            BudgetError: nothing is left.
        """
        if not self.caps.any:
            return None
        left = {}
        for name in self.caps.__struct_fields__:
            if (most := getattr(self.caps, name)) is not None:
                left[name] = most - sum(getattr(one.spent, name) for one in self._budgets)
                if left[name] <= 0:
                    raise BudgetError(f"the budget is spent (--max-{name} {most:,}).")
        self._budgets.append(Budget(Caps(**left)))
        return self._budgets[-1]
