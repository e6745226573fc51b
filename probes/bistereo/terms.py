"""Names shared by the probes and the metrics of BIStereo."""

from __future__ import annotations

LABELS = ("entailment", "contradiction", "neutral")
"""What may follow from a premise."""
SKINS = ("fair", "dark")
"""The sides of a pair of BIStereo-NLI."""
GROUPS, PRIOR = CONDITIONS = ("groups", "prior")
"""An analogy between two groups, and the same with nobody in their place."""
