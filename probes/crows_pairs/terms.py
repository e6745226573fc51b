"""Names shared by the probe and the metric of CrowS-Pairs."""

from __future__ import annotations

SIDES = ("more", "less")
"""The more and the less stereotypical sentence."""
DIRECTIONS = ("stereo", "antistereo")
"""Whether a pair states or contradicts a stereotype, as in the published file."""
CELL = ("direction", "bias_type")
"""Columns on the content of a pair."""
DIFFERING_WORD = "differing_word"
"""Part of a pair: of the words by which its sentences differ, the one that most pairs differ by."""
SHOWN = ("shown_first", "shown_second")
"""The two sentences of a question that offers both, in their order."""
CHOSEN = "chosen"
"""Outcome of such a question: `shown_first` or `shown_second`."""
