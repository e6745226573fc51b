"""The command that trains sentence encoders."""

from __future__ import annotations

from ...core.contracts.plugin import Plugged, hookimpl


@hookimpl
def prejudge_commands() -> list[Plugged]:
    """Return the command."""
    return [
        Plugged(
            "train-encoder",
            "prejudge.adapters.encoder_training.command:train_encoder",
            "Fine-tune a sentence encoder to tell stereotypes from anti-stereotypes.",
        )
    ]
