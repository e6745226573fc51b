"""Names shared by the probes and the metrics of BIStereo."""

from __future__ import annotations

LABELS = ("entailment", "contradiction", "neutral")
"""Labels of inference."""
SKINS = ("fair", "dark")
"""Skin tones of a pair of BIStereo-NLI."""
GROUPS, PRIOR, SWAPPED, CONTROL = CONDITIONS = ("groups", "prior", "swapped", "control")
"""An analogy A : B :: C : between two groups; with one neutral word in the place of both; with A and C swapped; and
with two different neutral subjects."""
