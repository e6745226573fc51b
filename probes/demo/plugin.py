"""Plugin of the demonstration."""

from __future__ import annotations

from ...core.contracts.plugin import Plugged, hookimpl


@hookimpl
def prejudge_commands() -> list[Plugged]:
    """Return the command."""
    return [
        Plugged(
            "demo",
            "prejudge.probes.demo.command:demo",
            "Run a study on three models whose bias is known, with a page of what is found.",
        )
    ]
