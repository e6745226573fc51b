"""The models of all roles of a study, checked before the first is asked: keys, packages, abilities, and identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ..catalogue.needs import ensure_suitable
from ..catalogue.study import Catalogue, Study
from ..contracts import Stage
from ..contracts.adapter import Identity, ModelAdapter
from ..contracts.canonical import identity_digest
from ..contracts.errors import ModelError, UsageError
from ..contracts.records import Generate, Image, Likelihood, Message, Request, Text
from ..contracts.version import VERSION
from ..workers.remote import open_adapters
from .manifest import Manifest

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


def ensure_same_models(manifest: Manifest, identities: Mapping[str, Identity], code: str, why: str) -> None:
    """Refuse models, by role, that differ from those that a run asked; `why` ends the sentence that says so.

    Time-outs, concurrency and keys are no part of an identity, and may change.

    Raises:
        UsageError: naming the role and what differs; its `fields` have both.
    """
    for role, now in identities.items():
        before = manifest.identities.get(role, now)
        if identity_digest(before) == identity_digest(now):
            continue
        changed = _differing(before, now)
        changes = ", ".join(f"{name}: {was!r}, now {is_now!r}" for name, (was, is_now) in changed.items())
        other = manifest.prejudge != VERSION and "version" in changed
        mend = (
            f"install prejudge {manifest.prejudge}, with which the run was made"
            if other
            else f"put the entry of {manifest.study.roles.get(role, before.model)!r} back as it was"
        )
        raise UsageError(
            f"the model of the role {role!r} in the run {manifest.run} has changed ({changes}), {why}. "
            f"Start a new run, or {mend}.",
            code=code,
            role=role,
            changed=tuple(changed),
        )


def _differing(before: Identity, now: Identity) -> dict[str, tuple[Any, Any]]:
    """Return both values of each field and setting that differ, by name."""
    fields_before, fields_now = (_flat(identity) for identity in (before, now))
    return {
        name: (fields_before.get(name), fields_now.get(name))
        for name in sorted(fields_before.keys() | fields_now.keys())
        if fields_before.get(name) != fields_now.get(name)
    }


def _flat(identity: Identity) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(identity)
    settings = fields.pop("settings")
    if identity.pinned:
        del fields["model"]  # a name for people, which may change
    return {**fields, **settings}
