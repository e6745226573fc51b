"""The models of all roles of a study, checked before the first of them is asked: keys, packages, abilities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from ..catalogue.needs import ensure_suitable
from ..catalogue.study import Catalogue, Study
from ..contracts import Stage
from ..contracts.adapter import ModelAdapter
from ..contracts.errors import ModelError
from ..contracts.records import Generate, Image, Likelihood, Message, Request, Text
from ..workers.remote import open_adapters

_SHOWN = (Message("user", (Image("0" * 64), Text("What is this?"))),)
IMAGE_REQUESTS: dict[type[Request], Request] = {
    Generate: Generate(messages=_SHOWN),
    Likelihood: Likelihood(prompt=_SHOWN, continuations=("a", "b")),
}
"""Requests with an image, by kind: an adapter checks with them whether images can be read here."""


async def ensure_ready(catalogue: Catalogue, studies: Iterable[Study]) -> None:
    """Check the models of several studies before any of them is asked; nothing is sent, no weights are loaded.

    Raises:
        UsageError: a model cannot do what a stage needs, cannot be made, for instance as its key or a package is not
            there, or does not fit an option of the study.
    """
    several = list(studies)
    for study in several:
        ensure_suitable(catalogue, study, catalogue.instrument(study))
    adapters = await open_adapters(catalogue, (model for study in several for model in study.roles.values()), None)
    try:
        for study in several:
            ensure_set_up(study, catalogue.instrument(study).stages(), adapters)
    finally:
        for adapter in adapters.values():
            await adapter.aclose()


def ensure_set_up(study: Study, stages: Iterable[Stage], adapters: Mapping[str, ModelAdapter]) -> None:
    """Refuse a study with a model, of any role, for whose images a package is missing, or that does not fit an option.

    Raises:
        UsageError: naming the package or the option.
    """
    for stage in stages:
        adapter = adapters[study.roles[stage.role]]
        if stage.rules.images:
            with suppress(ModelError):  # of this sample, not of the study
                adapter.check(IMAGE_REQUESTS[stage.operation])
        stage.check_model(adapter.identity)
