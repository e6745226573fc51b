"""Plugin of the built-in constructs."""

from __future__ import annotations

from importlib.resources import files

from ...core.contracts.plugin import StudyFile, hookimpl


@hookimpl
def prejudge_constructs() -> list[StudyFile]:
    """Return the constructs."""
    return [files(__package__) / f"{name}.toml" for name in ("skin-tone-and-desirability", "beauty-and-competence")]
