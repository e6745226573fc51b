"""Tiny Transformers checkpoints with a planted association of known strength, shipped with the package.

They are the default of the demonstration and the ground truth of the tests; the README beside this file says what was
planted and how. Nothing here imports torch: a checkpoint is a folder that the ordinary adapter loads.
"""

from __future__ import annotations

from pathlib import Path

from ...core.errors import UnknownNameError

__all__ = ["REFERENCES", "reference_path"]

REFERENCES = ("masked_biased", "masked_fair")
"""Names of the shipped checkpoints."""


def reference_path(name: str) -> Path:
    """Return the folder of a shipped checkpoint.

    Raises:
        UnknownNameError: No checkpoint of that name is shipped.
    """
    if name not in REFERENCES:
        raise UnknownNameError("reference model", name, REFERENCES)
    return Path(__file__).resolve().parent / name
