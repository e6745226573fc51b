"""Studies and models as callers name them, to what the catalogue resolves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..catalogue.study import SUBJECT, Catalogue, Study


def resolve(
    catalogue: Catalogue, study: str, model: str | Mapping[str, str] | None, options: Mapping[str, Any]
) -> Study:
    """Return the study with the model and the options.

    Raises:
        UsageError: a study, model, role or option is unknown, or a value has the wrong type.
    """
    return catalogue.study(study, roles_of(model), options)


def roles_of(model: str | Mapping[str, str] | None) -> dict[str, str]:
    """Return a model per role: a single model is the `subject`."""
    return {SUBJECT: model} if isinstance(model, str) else dict(model or {})
