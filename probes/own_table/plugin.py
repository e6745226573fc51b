"""Plugin of tables of outcomes: their probe."""

from __future__ import annotations

from ...core.contracts.plugin import Plugged, hookimpl


@hookimpl
def prejudge_probes() -> list[Plugged]:
    """Return the probe."""
    return [
        Plugged(
            "own-table",
            "prejudge.probes.own_table.probe:OwnTable",
            "A table of outcomes of your own, which `prejudge measure` reads; no model is asked.",
        )
    ]
