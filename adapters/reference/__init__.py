"""Tiny Transformers checkpoints with a planted association of known strength, shipped with the package.

They are the default of the demonstration and the ground truth of the tests; the README beside this file says what was
planted and how. Nothing here imports torch: a checkpoint is a folder that the ordinary adapter loads.
"""

from __future__ import annotations

from pathlib import Path

from ...core.contracts.errors import UnknownNameError

__all__ = ["CAUSAL_REFERENCES", "INFERENCE_REFERENCES", "REFERENCES", "reference_path"]

REFERENCES = ("masked_biased", "masked_fair")
"""Names of the shipped masked checkpoints."""
CAUSAL_REFERENCES = ("causal_biased", "causal_fair")
"""Names of the shipped causal checkpoints."""
INFERENCE_REFERENCES = ("inference_biased", "inference_fair")
"""Names of the shipped classifiers of pairs of sentences."""


def reference_path(name: str) -> Path:
    """Return the folder of a shipped checkpoint.

    Raises:
        UnknownNameError: No checkpoint of that name is shipped.
    """
    known = (*REFERENCES, *CAUSAL_REFERENCES, *INFERENCE_REFERENCES)
    if name not in known:
        raise UnknownNameError("reference model", name, known)
    return Path(__file__).resolve().parent / name
