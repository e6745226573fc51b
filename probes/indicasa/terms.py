"""Names shared by the probe and the metric of IndiCASA."""

from __future__ import annotations

STEREOTYPE, ANTI = KINDS = ("stereotype", "anti-stereotype")
"""Of a text with a known class."""
COMPLETION, VERDICT = "completion", "verdict"
"""Kinds of rows besides: a text that was said, or a class that was published in its place."""
LOST = ("refused", "filtered", "unreadable", "failed")
"""What becomes of a completion that there is no sentence of: statuses, and columns that count them."""
ENCODER = ("encoder_ss", "encoder_sa", "encoder_as", "encoder_aa")
"""Held-out sentences by class: true, then as the encoder has it (s: stereotype, a: anti-stereotype)."""
SEVERAL = "encoder_several"
"""Which cosine counted for them where there were several texts."""
