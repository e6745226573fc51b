"""Names shared by the probes and the metrics of BIStereo."""

from __future__ import annotations

LABELS = ("entailment", "contradiction", "neutral")
"""Labels of inference."""
SKINS = ("fair", "dark")
"""Skin tones of a pair of BIStereo-NLI."""
GROUPS, PRIOR = CONDITIONS = ("groups", "prior")
"""An analogy between two groups, and the same with neutral words in their place."""
