"""One study over variants of a model: what is checked before the first variant is asked, and the budget they share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..catalogue.capabilities import ensure_capable
from ..catalogue.study import SUBJECT, Catalogue, Study
from ..catalogue.variants import variants
from ..contracts import Stage
from ..contracts.adapter import ModelAdapter
from ..contracts.errors import BudgetError, UsageError
from ..contracts.records import AnyRequest, Generate
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
        adapter = catalogue.adapter(name)
        try:
            found = msgspec.json.encode(adapter.identity, order="sorted")
            if (other := same.setdefault(found, name)) != name:
                raise UsageError(
                    f"{other!r} and {name!r} are the same model: the setting changes nothing that is asked. Vary "
                    "another.",
                    code="vary.same",
                )
            _ensure_sendable(one, catalogue.instrument(one).stages()[0], adapter)
        finally:
            asyncio.run(adapter.aclose())
    return studies


def _ensure_sendable(study: Study, stage: Stage, adapter: ModelAdapter) -> None:
    """Refuse a variant that cannot be sent a request of the first stage; what others ask follows from answers.

    Raises:
        UsageError: naming the variant.
    """
    if stage.role != SUBJECT:
        return
    kinds: set[object] = set()
    for trial, _ in stage.alike({}):
        if (kind := _kind(trial.request)) in kinds:
            continue
        kinds.add(kind)
        if (refused := adapter.refuses(trial.request)) is not None:
            raise UsageError(
                f"{study.roles[SUBJECT]!r} cannot be asked this study, and no variant was asked: {refused}",
                code="vary.refused",
                variant=study.roles[SUBJECT],
                why=refused.code,
            )


def _kind(request: AnyRequest) -> object:
    """Return what decides whether a request can be sent: all but its words."""
    if not isinstance(request, Generate):
        return type(request)
    messages = tuple((one.role, *(type(part) for part in one.parts)) for one in request.messages)
    return (messages, request.sampling, request.top_logprobs, request.json_schema, request.choices)


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
