"""Tiny Transformers checkpoints with a planted association of known strength, shipped or made at their first use.

They are the default of the demonstration and the ground truth of the tests; the README beside this file says what was
planted and how. Nothing here imports torch: a checkpoint is a folder that the ordinary adapter loads.
"""

from __future__ import annotations

from .recipes import REFERENCES, SHIPPED, Reference, recipes, reference_path

__all__ = ["RECIPES", "REFERENCES", "SHIPPED", "Reference", "reference_path"]

RECIPES = recipes()
"""Recipes of the models that are made at their first use."""
