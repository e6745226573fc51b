"""Whether the models of a run are still those that it asked: an entry of the registry may have changed since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..contracts.adapter import Identity
from ..contracts.canonical import identity_digest
from ..contracts.errors import UsageError
from ..contracts.version import VERSION
from .manifest import Manifest


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
        said = ", ".join(f"{name}: {was!r}, now {is_now!r}" for name, (was, is_now) in changed.items())
        other = manifest.prejudge != VERSION and "version" in changed
        mend = (
            f"install prejudge {manifest.prejudge}, with which the run was made"
            if other
            else f"put the entry of {manifest.study.roles.get(role, before.model)!r} back as it was"
        )
        raise UsageError(
            f"the model of the role {role!r} in the run {manifest.run} has changed ({said}), {why}. "
            f"Start a new run, or {mend}.",
            code=code,
            role=role,
            changed=tuple(changed),
        )


def _differing(before: Identity, now: Identity) -> dict[str, tuple[Any, Any]]:
    """Return both values of each field and setting that differ, by name."""
    one, other = (_flat(identity) for identity in (before, now))
    return {
        name: (one.get(name), other.get(name))
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    }


def _flat(identity: Identity) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(identity)
    settings = fields.pop("settings")
    if identity.pinned:
        del fields["model"]  # a name for people, which may change
    return {**fields, **settings}
