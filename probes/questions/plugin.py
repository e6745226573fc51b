"""Plugin of studies in a folder: their probe."""

from __future__ import annotations

from ...core.contracts.plugin import Plugged, hookimpl


@hookimpl
def prejudge_probes() -> list[Plugged]:
    """Return the probe."""
    return [
        Plugged(
            "questions",
            "prejudge.probes.questions.probe:Questions",
            "A question of your own, from a folder: a declared design, a text with slots, a form of answers.",
        )
    ]
