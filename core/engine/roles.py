"""The models of all roles of a study, checked before the first of them is asked: keys, packages, abilities."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from ..catalogue.study import Catalogue, Study
from ..contracts import Stage
from ..contracts.adapter import OPERATIONS, ModelAdapter
from ..contracts.errors import UnsupportedOperationError
from ..workers.remote import open_adapters


async def ensure_ready(catalogue: Catalogue, studies: Iterable[Study], spared: Container[str] = ()) -> None:
    """Check the models of several studies before any of them is asked; nothing is sent, no weights are loaded.

    A study with an error whose code is in `spared` is passed over: its run will say so.

    Raises:
        UsageError: a model cannot be made, for instance as its key or a package is not there, or cannot do what a
            stage asks.
    """
    several = list(studies)
    adapters = await open_adapters(catalogue, (model for study in several for model in study.roles.values()), None)
    try:
        for study in several:
            try:
                ensure_set_up(study, catalogue.instrument(study).stages(), adapters)
            except UnsupportedOperationError as error:
                if error.code not in spared:
                    raise
    finally:
        for adapter in adapters.values():
            await adapter.aclose()


def ensure_set_up(study: Study, stages: Iterable[Stage], adapters: Mapping[str, ModelAdapter]) -> None:
    """Refuse a study with a model, of any role, that cannot do what a stage asks.

    Raises:
        UsageError: naming the operation, the package or the option.
    """
    for stage in stages:
        adapter = adapters[study.roles[stage.role]]
        if (why := adapter.lacks.get(stage.operation)) is not None:
            raise UnsupportedOperationError(
                f"study {study.name!r} needs {OPERATIONS[stage.operation]!r}: {why}", code="model.operation"
            )
        if stage.shows_images:
            adapter.ensure_sight()
        if (misfit := stage.misfit(adapter.identity)) is not None:
            raise misfit
